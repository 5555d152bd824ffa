"""What a watch prints of a save: the present version beside the last one, which one run measured in the same rounds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare.changes import Options
from warpladder.dashboard.compare.versions import Declared, compare_versions
from warpladder.dashboard.text.compare import brief

NEAR = (1000, 1001, 999, 1000, 1002, 998, 1000, 1001, 1000)
BASE, MINE = "v01_base", "v02_mine"
LAST = {BASE: f"{BASE}@last", MINE: f"{MINE}@last"}


def told(
    factors: Mapping[tuple[str, str], float], failed: Mapping[tuple[str, str], str] | None = None, **code: str
) -> list[list[str]]:
    """The lines without the headings, each in its columns, of a run of both versions of two variants.

    Args:
        factors: each cell takes 1000 ns times its factor.
        failed: cells without samples, and why.
        code: of `mine` and `mine_last`, where it is not another one in each.
    """
    failed = failed or {}
    codes = {BASE: "base", LAST[BASE]: "base", MINE: code.get("mine", "1"), LAST[MINE]: code.get("mine_last", "2")}
    names = dict.fromkeys(name for name, _ in (*factors, *failed))
    timed = [
        row
        for (name, case), factor in factors.items()
        for twin in ((0, 1) if name == BASE else (0,))
        for row in samples(name, [round(ns * factor) for ns in NEAR], case=case, twin=twin)
    ]
    keys: dict[str, Any] = dict.fromkeys(case for _, case in (*factors, *failed))
    cases = [{"workload": "w", "case": case, "size_rank": rank, "params": "{}"} for rank, case in enumerate(keys)]
    results = [
        {"workload": "w", "variant": name, "case": case, "status": failed.get((name, case), "ok")}
        for name, case in (*factors, *failed)
    ]
    run = run_of([variant(name, source_text=codes[name], source_sha256="") for name in names], timed, results, cases)
    run = replace(run, info={**run.info, "command": "warpladder record bench.py --watch"})
    of_run = {("w", name): digest for name, digest in codes.items()}
    declared = Declared("last", "last", "now", "", of_run, (), run.cases, {})
    text = brief(*compare_versions(run, declared, Options(match="best")))
    return [
        [part.strip() for part in line.split("  ") if part.strip()]
        for line in text.splitlines()
        if not line.startswith("variant ")
    ]


def cells(mine: float, last: float, *cases: str) -> dict[tuple[str, str], float]:
    return {
        (name, case): factor
        for case in cases
        for name, factor in ((BASE, 1.0), (LAST[BASE], 1.0), (MINE, mine), (LAST[MINE], last))
    }


def test_a_slower_variant_has_both_times_the_ratio_of_its_rounds_and_the_ratio_to_the_baseline() -> None:
    row, sentence = told(cells(0.65, 0.5, "n=1"))
    assert row[:5] == [MINE, "slower", "n=1", "500 ns", "650 ns"]
    assert row[5].startswith("1.300 (") and row[-1] == f"1.54× {BASE}"
    assert sentence == ["1 slower; the worst: w n=1 v02_mine, 1.300x"]


def test_every_case_has_a_row_whatever_the_verdict_and_the_unchanged_baseline_has_none() -> None:
    both = {**cells(1.0, 1.0, "n=1"), **cells(0.5, 1.0, "n=2")}
    assert [row[:3] for row in told(both)[:-1]] == [[MINE, "tied", "n=1"], [MINE, "faster", "n=2"]]


def test_a_cell_without_former_times_is_new_and_one_that_failed_is_mended() -> None:
    new = {key: factor for key, factor in cells(0.5, 1.0, "n=1").items() if key[0] != LAST[MINE]}
    assert told(new) == [[MINE, "new", "n=1", "–", "500 ns", "–", "–", f"2.00× {BASE}"]]
    (row,) = told(new, {(LAST[MINE], "n=1"): "wrong_result"})
    assert row[:3] == [MINE, "mended", "n=1"]


def test_a_cell_that_was_right_and_is_wrong_now_is_told_without_a_row() -> None:
    right = {key: factor for key, factor in cells(0.5, 1.0, "n=1").items() if key[0] != MINE}
    assert told(right, {(MINE, "n=1"): "wrong_result"})[-1] == ["FAILED: w n=1 v02_mine: wrong_result"]


def test_of_many_cells_the_first_are_shown() -> None:
    *rows, more, _ = told(cells(1.0, 1.0, *(f"n={n}" for n in range(18))))
    assert len(rows) == 16 and more == ["and 2 more rows"]


@pytest.mark.parametrize(("code", "rows"), [("1", 0), ("2", 1)])
def test_only_variants_whose_code_differs_have_rows(code: str, rows: int) -> None:
    assert len([row for row in told(cells(0.5, 1.0, "n=1"), mine="1", mine_last=code) if row[0] == MINE]) == rows
