"""Skipped cells are told by their reason, once."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from tests.synthetic import made_runs
from warpladder.dashboard.core import run_data
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store


def test_skipped_cells_are_counted_by_workload_and_reason(tmp_path: Path) -> None:
    data = run_data.load(store.open_run(made_runs.write(tmp_path, rounds=6)))
    skips = trust.skips(data)
    row = skips[skips["detail"] == "rows=16 leaves 32 blocks for 132 multiprocessors"].iloc[0]
    assert (row["workload"], row["variants"], row["cells"]) == ("conv2d", 1, 1)
    assert skips["cells"].sum() == (data.results["status"] == "skipped").sum()
    assert skips["cells"].is_monotonic_decreasing


def test_findings_of_one_kind_about_one_variant_are_one_row_with_the_first_case_and_text(tmp_path: Path) -> None:
    data = run_data.load(store.open_run(made_runs.write(tmp_path, rounds=6)))
    throttled = data.diagnostics[data.diagnostics["source"] == "throttling"]
    again = throttled.assign(case="n=4096", text="5 samples under a power cap were taken again")
    several = replace(data, diagnostics=pd.concat([data.diagnostics, again], ignore_index=True))
    found = trust.findings(several).set_index("source")
    assert found.loc["throttling", ["workload", "variant", "role", "cells", "example", "text"]].tolist() == [
        "conv2d", "v04_sliding", "rung", 2, "n=8192 rows=16", "3 samples under a power cap were taken again",
    ]  # fmt: skip
    assert found.loc["constant_time", "role"] == "specimen"
    assert found.loc["sampling", ["workload", "variant", "role", "cells", "example"]].tolist() == ["", "", "", 1, ""]
