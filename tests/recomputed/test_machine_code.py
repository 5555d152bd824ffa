"""Figures of Machine code, at random from a run that was written by hand, from its parquet files alone."""

import random
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.recomputed import displayed
from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Expected, Rules, draw
from tests.recomputed.test_cells import SEED, VIEW, check
from tests.synthetic import made_code
from warpladder.dashboard.core import run_data
from warpladder.data import store

pytestmark = pytest.mark.slow

#: Unit -> the opcodes of it, as NVIDIA's list of instructions groups them. Units that are not here are not recomputed.
OPCODES = {
    "fp32": r"F(ADD|MUL|FMA|SEL|SETP|MNMX|CHK)\d*",
    "global memory": "LDG|STG|LDGSTS|LD|ST|RED|ATOMG",
    "shared memory": "LDS|STS|LDSM|STSM|ATOMS",
    "local memory": "LDL|STL",
}
ARITHMETIC = re.compile(r"(?:@\S+ )?(?:(?:F|H|D)(?:ADD|MUL|FMA|SEL|SET|SETP|MNMX|CHK)\d*|\w*MMA)\b")


def _texts(run: Shipped, row: Mapping[str, Any]) -> list[str]:
    """The instructions of the launch that a row is about."""
    launches = run.table("cell_launches")
    cell = (launches["variant"] == row["variant"]) & (launches["config"] == row["config"])
    code = launches.loc[cell & (launches["kernel"] == row["kernel"]), "code"].iloc[0]
    texts = run.table("machine_code").set_index("code")["sass"][code]
    return str(texts).split("\n")


def _hot(texts: list[str]) -> list[str]:
    """The instructions of the loop with the most arithmetic, without loops inside it; all of a kernel without a loop."""
    last: dict[int, int] = {}
    for place, text in enumerate(texts):
        branch = re.fullmatch(r"(?:@\S+ )?(?:BRA|JMP).* ?(0x[0-9a-f]+)", text)
        if branch and int(branch[1], 16) // 16 < place:
            last[int(branch[1], 16) // 16] = place

    def own(first: int) -> list[str]:
        inner = [(a, b) for a, b in last.items() if a != first and first <= a and b <= last[first]]
        return [texts[n] for n in range(first, last[first] + 1) if not any(a <= n <= b for a, b in inner)]

    def weight(loop: list[str]) -> tuple[int, int]:
        return sum(bool(ARITHMETIC.match(text)) for text in loop), len(loop)

    return max((own(first) for first in sorted(last)), key=weight, default=texts)


def _count(run: Shipped, row: Mapping[str, Any], shown: Shown) -> Expected:
    unit = OPCODES[row["unit"]]
    return sum(bool(re.match(rf"(?:@\S+ )?(?:{unit})\b", text)) for text in _hot(_texts(run, row)))


def _instructions(run: Shipped, row: Mapping[str, Any], shown: Shown) -> Expected:
    return len(_hot(_texts(run, row)))


def _percent(run: Shipped, row: Mapping[str, Any], shown: Shown) -> Expected:
    return 100 * float(_count(run, row, shown)) / len(_hot(_texts(run, row)))  # type: ignore[arg-type]


MIX: Rules = {
    **dict.fromkeys(("variant", "config", "kernel", "part", "unit")),
    "instructions": _instructions,
    "count": _count,
    "percent": _percent,
}


@pytest.mark.thorough
def test_machine_code() -> None:
    rng = random.Random(f"machine_code {SEED}")
    with TemporaryDirectory() as made:
        run = Shipped(made_code.write(Path(made), counted=False))
        data = run_data.load(store.open_run(run.folder))
        found = []
        for shown in displayed.charts(VIEW["machine_code"], run.id, rng, data):
            frame = shown.frame[shown.frame["unit"].isin(list(OPCODES))]
            found.append((run, shown._replace(frame=frame), MIX))
        check(draw(rng, found, lambda run, shown: []), least=15)
