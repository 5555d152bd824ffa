"""The table of docs/results.md, recomputed from the shipped run of one H200."""

from typing import Final

import pandas as pd
import pytest

from tests.doc_pages import ROOT
from warpladder.data import store

pytestmark = pytest.mark.slow

RUN: Final = "H200 call_routes"
#: Column -> case, scope, executions, and the cache of the figure; a second one is in brackets.
COLUMNS: Final = {
    "one call, with the wait": ("n=64,calls=1", "operation", 1, ("hot",)),
    "per launch in a row": ("n=64,calls=100", "operation", 100, ("hot",)),
    "on the device": ("n=64,calls=100", "device", 100, ("hot",)),
    "import": ("n=1024,calls=1", "phase:import", 1, ("cold",)),
    "compile": ("n=1024,calls=1", "phase:compile", 1, ("cold", "hot")),
    "load": ("n=1024,calls=1", "phase:load", 1, ("cold",)),
    "first call": ("n=1024,calls=1", "phase:first_call", 1, ("cold",)),
}


def _written(ns: float) -> str:
    unit, size = next((unit, size) for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if ns >= size or unit == "µs")
    return f"{ns / size:.1f} {unit}" if ns < 100 * size else f"{ns / size:.0f} {unit}"


def _table() -> pd.DataFrame:
    samples = next(run for run in store.list_runs([store.RECORDED])[0] if run.info["label"] == RUN).table("samples")
    medians = samples.groupby(["variant", "case", "scope", "cache"])["duration_ns"].median()
    routes = samples.loc[samples["scope"] == "phase:first_call", "variant"].unique()
    rows = {}
    for variant in routes:
        cells = {}
        for column, (case, scope, executions, caches) in COLUMNS.items():
            times = [medians.get((variant, case, scope, cache)) for cache in caches]
            first, *others = ("with compile" if time is None else _written(time / executions) for time in times)
            cells[column] = f"{first} ({others[0]})" if others else first
        rows[f"`{variant}`"] = cells
    return pd.DataFrame(rows).T


def test_the_table_of_costs_is_from_the_shipped_run() -> None:
    lines = (ROOT / "docs" / "results.md").read_text().partition("### What each costs\n")[2].partition("\n|")[2].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")])
    printed = pd.DataFrame([row[1:] for row in rows], index=[row[0] for row in rows], columns=head[1:])
    expected = _table()
    assert set(printed.index) == set(expected.index)
    pd.testing.assert_frame_equal(printed, expected.loc[printed.index, printed.columns], check_dtype=False)
