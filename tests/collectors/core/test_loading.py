"""What a run could not hold is found when a workload is loaded, not when all of it has been measured."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from warpladder.__main__ import command
from warpladder.collectors.core.plan import Request, case_row, make_plan
from warpladder.workloads import registry
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload, WorkloadError

TEMPLATE = """
import numpy as np
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

def double(case, inputs, outputs):
    outputs["y"][:] = 2 * inputs["x"]

def buffers(case):
    {buffers}
    return {{"x": Buffer((8,))}}, {{"y": Buffer((8,))}}

WORKLOAD = Workload(
    name={name}, title="Doubling", cases=(Case({params}, flops={flops}, min_bytes={min_bytes}, sets=("quick",), size_rank={rank}),),
    variants=(HostVariant({variant}, "double", "host", run={run}),), buffers=buffers,
    make_inputs=lambda case, rng: {{"x": rng.standard_normal(8, dtype=np.float32)}},
    reference=lambda case, inputs: {{"y": 2.0 * inputs["x"]}},
)
"""
AS_IT_SHOULD_BE = {
    "buffers": "", "name": "'mine'", "params": "{'n': 8}", "flops": "8", "min_bytes": "64", "rank": "0", "variant": "'double'", "run": "double",
}  # fmt: skip


def workload(folder: Path, **changes: str) -> Path:
    file = folder / "mine.py"
    file.write_text(TEMPLATE.format(**(AS_IT_SHOULD_BE | changes)))
    return file


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flops": "2**63"}, "case n=8: flops is 9223372036854775808; give a whole number of at most 2^63 - 1"),
        ({"min_bytes": "1.5"}, "case n=8: min_bytes is 1.5; give a whole number"),
        ({"min_bytes": "float('nan')"}, "case n=8: min_bytes is nan"),
        ({"rank": "'large'"}, "case n=8: size_rank is large"),
        ({"rank": "0, passes=0"}, "case n=8: passes is 0; give at least 1"),
        ({"rank": "0, passes=None"}, "case n=8: passes is None; give a whole number"),
        ({"params": "{'n': object}"}, "give params numbers and texts"),
        ({"params": "{'n': '\\udcff'}"}, "case 'n=\\udcff': 'utf-8' codec can't encode"),
        ({"name": "'\\udcff'"}, "'\\udcff': not a name; give text that UTF-8 can hold"),
        ({"variant": "'\\udcff'"}, "'\\udcff': not a name"),
        ({"buffers": "raise KeyError('m')"}, "mine/n=8: `buffers` fails (KeyError: 'm'); correct it"),
        ({"buffers": "return {}"}, "mine/n=8: `buffers` fails (ValueError: not enough values to unpack"),
        (
            {"buffers": "return {'x': Buffer((2**62,))}, {}"},
            "mine/n=8: its buffers take 1.84e+19 bytes, more than can be recorded",
        ),
        ({"run": "np.add"}, "mine/double: its source cannot be read ("),
    ],
)
def test_what_no_run_can_hold_is_one_line_and_exit_code_2(changes: dict[str, str], said: str, tmp_path: Path) -> None:
    file = workload(tmp_path, **changes)
    done = CliRunner().invoke(command(), ["record", str(file), "--data-dir", str(tmp_path / "data")])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "data").exists()


def test_numbers_of_numpy_are_taken_as_those_of_python(tmp_path: Path) -> None:
    numbers = "{'n': np.int64(8), 'scale': np.float32(0.5), 'odd': np.bool_(True)}"
    file = workload(tmp_path, params=numbers, flops="np.int32(8)", min_bytes="6.4e1", rank="np.int8(3)")
    (job,) = make_plan(Request(files=[file])).jobs
    assert job.case == "n=8,scale=0.5,odd=True"
    (mine,) = registry.load_file(file)
    row = case_row(mine, mine.cases[0])
    assert json.loads(row["params"]) == {"n": 8, "scale": 0.5, "odd": True}
    assert [(value, type(value)) for value in (row["flops"], row["min_bytes"], row["size_rank"])] == [
        (8, int),
        (64, int),
        (3, int),
    ]


def test_bytes_of_a_large_buffer_are_counted_without_overflow() -> None:
    assert Buffer((np.int32(1 << 20), 1 << 20, 1 << 20)).nbytes == 1 << 62


@pytest.mark.parametrize("words", [["record", "conv2d"], ["import", "absent.sqlite"], ["profile", "--", "true"]])
def test_a_label_that_is_not_utf_8_is_one_line_before_anything_is_done(words: list[str], tmp_path: Path) -> None:
    given = [*words[:1], "--label", os.fsdecode(b"caf\xe9"), "--data-dir", str(tmp_path / "data"), *words[1:]]
    done = CliRunner().invoke(command(), given)
    assert done.exit_code == 2
    assert done.stderr == "--label caf?: not valid UTF-8; write the label in UTF-8\n"
    assert not (tmp_path / "data").exists()


def test_a_variant_whose_file_is_not_utf_8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def undecodable(_: Any) -> str:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    monkeypatch.setattr("inspect.getsource", undecodable)
    with pytest.raises(WorkloadError, match=r"mine/double: its source cannot be read \('utf-8' codec can't decode"):
        make_plan(Request(files=[workload(tmp_path)]))


def test_names_that_utf_8_can_hold_are_taken() -> None:
    case = Case({"größe": 1}, flops=0, min_bytes=0)
    made = Workload(
        "größen", "", (case,), (HostVariant("schnell_ü", "", "host"),), lambda _: ({}, {}), lambda *_: {}, lambda *_: {}
    )
    assert made.case("größe=1") == case
