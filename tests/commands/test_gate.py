"""`warpladder compare` as a gate: it fails where it could not see, and where something else was asked of the variants."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.synthetic import made_runs
from warpladder.__main__ import command

pytestmark = pytest.mark.slow

#: The variant whose source differs in B.
MINE = "v04_sliding"


def changed(path: Path, table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Write a table of a run with some of its values changed."""
    file = path / f"{table}.parquet"
    before = pq.read_table(file)
    after = change(before.to_pandas())
    pq.write_table(pa.Table.from_pandas(after, schema=before.schema, preserve_index=False), file)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs, timed at two sizes, that differ in the source of one variant alone."""
    a, b = (made_runs.write(tmp_path, name, rounds=12, seed=seed, workloads=("conv2d",)) for name, seed in (("a", 7), ("b", 8)))
    for path in (a, b):
        changed(path, "samples", lambda rows: rows[rows["case"].isin(["n=512", "n=8192"])])
    changed(
        b, "variants", lambda rows: rows.assign(source_sha256=rows["source_sha256"].mask(rows["variant"] == MINE, "f" * 64))
    )
    return a, b


def compared(path: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command(), ["compare", "a", "b", *words, "--data-dir", str(path.parent)])
    return done.exit_code, done.output


def test_equal_times_pass_and_a_slowdown_fails(sides: tuple[Path, Path]) -> None:
    assert compared(sides[0], "--detect", "11%")[0] == 0  # 0.2 µs, which the events may err, are 10 % of the shortest
    slower = 1.2
    changed(
        sides[1],
        "samples",
        lambda rows: rows.assign(
            duration_ns=(rows["duration_ns"] * rows["variant"].eq(MINE).map({True: slower, False: 1.0})).astype("int64")
        ),
    )
    code, text = compared(sides[0])
    assert code == 1 and f"{MINE}" in text and " slower" in text.splitlines()[-1]
    assert compared(sides[0], "--fail-above", "30%")[0] == 0


def test_too_few_rounds_are_no_pass(sides: tuple[Path, Path]) -> None:
    changed(sides[1], "samples", lambda rows: rows[rows["round"] < 5])
    code, text = compared(sides[0])
    assert code == 3
    (line,) = (line for line in text.splitlines() if line.startswith("NOT SEEN: "))
    assert "cells have no verdict: conv2d " in line and line.endswith("with some variants that do not change")
    code, text = compared(sides[0], "--format", "json")
    content = json.loads(text)
    hidden = {each["variant"] for each in content["changes"] if each["unseen"]}
    assert code == 3 and hidden == {MINE} and content["gate"] == [line]
    suite = ElementTree.fromstring(compared(sides[0], "--format", "junit")[1])
    assert int(suite.attrib["errors"]) == len(suite.findall(".//error")) > 0 and suite.attrib["failures"] == "0"


def test_a_cell_that_is_slower_is_seen(sides: tuple[Path, Path]) -> None:
    changed(
        sides[1],
        "samples",
        lambda rows: rows.assign(
            duration_ns=(rows["duration_ns"] * rows["variant"].eq(MINE).map({True: 1.5, False: 1.0})).astype("int64")
        ),
    )
    code, text = compared(sides[0], "--detect", "0.1%")
    assert code == 1 and " slower" in text and "NOT SEEN" not in text


def test_a_gate_that_could_not_have_shown_what_was_asked_for_has_a_code_of_its_own(sides: tuple[Path, Path]) -> None:
    code, text = compared(sides[0], "--detect", "0.1%")
    assert code == 3 and "could not have shown 0.1 %" in text
    (row, *_) = (line for line in text.splitlines() if line.startswith("tied "))
    assert MINE in row and re.search(r"[01]\.\d+ \(0\.\d+ to 1\.\d+\)", row), "how far it may be off"


@pytest.mark.thorough
def test_a_tie_in_which_a_third_more_would_be_tied_too_is_no_pass(sides: tuple[Path, Path]) -> None:
    def scattered(rows: pd.DataFrame) -> pd.DataFrame:
        is_long = rows["variant"].eq(MINE) & (rows["round"] % 2 == 1)
        return rows.assign(duration_ns=rows["duration_ns"].where(~is_long, 3 * rows["duration_ns"]))

    changed(sides[1], "samples", scattered)
    code, text = compared(sides[0])
    assert code == 3 and "could not have shown 30 %" in text


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("table", "column", "value", "asked", "line"),
    [
        ("results", "tolerance", 0.9, "tolerance", "tolerance of conv2d: "),
        ("cases", "reference_sha256", "b" * 64, "reference", "reference of conv2d: source aaaaaaaa → source bbbbbbbb"),
    ],
)
def test_another_tolerance_or_reference_fails_unless_it_is_allowed(
    sides: tuple[Path, Path], table: str, column: str, value: object, asked: str, line: str
) -> None:
    changed(sides[0], "cases", lambda rows: rows.assign(reference_sha256="a" * 64))
    changed(sides[1], "cases", lambda rows: rows.assign(reference_sha256="a" * 64))
    assert compared(sides[0])[0] == 0
    changed(sides[1], table, lambda rows: rows.assign(**{column: value}))
    code, text = compared(sides[0])
    assert code == 1 and f"--allow {asked}" in text and f"warning: {line}" in text
    assert compared(sides[0], "--allow", asked)[0] == 0
    suite = ElementTree.fromstring(compared(sides[0], "--format", "junit")[1])
    assert suite.attrib["failures"] == "1" == str(len(suite.findall(".//failure")))


def test_the_wider_tolerance_of_a_cell_that_rounds_more_or_is_wrong_is_no_difference(sides: tuple[Path, Path]) -> None:
    def wider(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(tolerance=rows["tolerance"].where(rows["variant"] != MINE, 2 * rows["tolerance"]))

    changed(sides[1], "results", wider)
    code, text = compared(sides[0])
    assert code == 0 and "tolerance" not in text
    changed(sides[1], "results", lambda rows: rows.assign(status=rows["status"].where(rows["variant"] != MINE, "wrong_result")))
    code, text = compared(sides[0])
    assert code == 1 and "wrong_result" in text and "tolerance of" not in text


def test_other_inputs_and_another_number_of_threads_are_lines_and_no_failures(sides: tuple[Path, Path]) -> None:
    for path, source, threads in zip(sides, "ab", (8, 2), strict=True):
        changed(path, "cases", lambda rows, source=source: rows.assign(inputs_sha256=source * 64))
        changed(path, "run", lambda rows, threads=threads: rows.assign(cpu_threads=threads))
    code, text = compared(sides[0])
    assert code == 0
    assert "warning: inputs of conv2d: source aaaaaaaa → source bbbbbbbb (the variants work on other values)" in text
    assert "threads of the processor: 8 → 2" in text
