"""The answer of a comparison of programs as text."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.synthetic import made_runs
from warpladder.collectors.core.cells import result_row
from warpladder.collectors.programs.names import Names, case_rows, cells_of, parse, variant_rows
from warpladder.dashboard.core import run_data
from warpladder.dashboard.text import versus
from warpladder.data import naming, store

CELLS = cells_of(Names("solver", "whole", ("v1", "v2", "v3", "v4 | x")))
#: ns of each round. v1 and its twin differ by 1 %, so that v2 is within the noise; v3 takes half the time.
TIMES = {("v1", 0): 1000, ("v1", 1): 1010, ("v2", 0): 995, ("v3", 0): 500}


def sample(variant: str, twin: int, scope: str, number: int, duration_ns: int) -> dict[str, Any]:
    cell = next(cell for cell in CELLS if cell.variant == variant)
    state = dict.fromkeys(naming.UNKNOWN)
    return {
        **cell.key,
        **naming.SAME,
        **state,
        "gpus": 0,
        "scope": scope,
        "twin": twin,
        "round": number,
        "duration_ns": duration_ns,
    }


@pytest.fixture
def rows(tmp_path: Path) -> pd.DataFrame:
    programs = [parse(command) for command in ("./v1", "./v2", "./v3", "./v4")]
    verdicts = [("ok", ""), ("ok", ""), ("ok", ""), ("launch_error", "exit code 3: no | memory")]
    results = [result_row(cell, *verdict) for cell, verdict in zip(CELLS, verdicts, strict=True)]
    samples = [
        sample(variant, twin, "operation", number, duration + number % 2)
        for (variant, twin), duration in TIMES.items()
        for number in range(10)
    ]
    samples += [sample("v1", 0, "phase:compute", number, 300) for number in range(3)]
    tables = {
        "variants": variant_rows(CELLS, programs, [None] * len(CELLS)),
        "cases": case_rows(CELLS),
        "results": results,
        "samples": samples,
    }
    path = made_runs.write_tables(tmp_path, made_runs.run_row("programs", ""), tables)
    return versus.figures(run_data.load(store.open_run(path)))


def test_each_program_is_compared_with_the_first_one_and_its_noise(rows: pd.DataFrame) -> None:
    assert rows["variant"].tolist() == ["v1", "v2", "v3", "v4 | x"]
    assert rows["verdict"].tolist() == ["baseline", "tied", "faster", ""]
    assert rows["speedup"].tolist()[1:3] == pytest.approx([1000.5 / 995.5, 2.0], rel=2e-3)
    assert rows["noise"].dropna().unique().tolist() == pytest.approx([1.01], rel=1e-3)
    assert rows["n"].tolist() == [10, 10, 10, 0]
    assert rows["compute_ns"].tolist()[0] == 300
    assert rows["compute_ns"].isna().tolist() == [False, True, True, True]
    assert rows["h2d_ns"].isna().all()


def test_all_forms_tell_the_same(rows: pd.DataFrame) -> None:
    lines = versus.render(rows, "table").splitlines()
    assert lines[0].split("  ")[0] == "program" and lines[0].endswith("kernels")
    assert "copies" not in lines[0]
    assert "2.00× (" in lines[3] and "faster" in lines[3]
    assert lines[4].split() == ["v4", "|", "x", "–", "–", "launch_error", "–", "–"]
    assert lines[5:] == [
        "v4 | x: launch_error: exit code 3: no | memory",
        "v1 against itself differs by up to 1.0 %: less than that is a tie",
    ]
    markdown = versus.render(rows, "markdown").splitlines()
    assert markdown[1] == "| --- | --- | --- | --- | --- | --- |"
    assert markdown[5].startswith("| v4 \\| x | – | – | launch\\_error | – | – |")
    parsed = json.loads(versus.render(rows, "json"))
    assert [row["verdict"] for row in parsed] == ["baseline", "tied", "faster", ""]
    assert versus.render(rows, "csv").splitlines()[0].startswith("workload,case,variant,status,n,median_ns")


def test_programs_that_all_failed_have_rows_with_their_reasons(rows: pd.DataFrame) -> None:
    failed = rows.tail(1).assign(baseline=None)
    assert versus.render(failed, "table").splitlines()[1:] == [
        "v4 | x   –     –                           launch_error  –",
        "v4 | x: launch_error: exit code 3: no | memory",
    ]
