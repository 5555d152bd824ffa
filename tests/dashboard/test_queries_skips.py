"""Skipped cells are told by their reason, once."""

from pathlib import Path

from dashboard.queries import run_data, trust
from data import store
from tests import synthetic_run


def test_skipped_cells_are_counted_by_workload_and_reason(tmp_path: Path) -> None:
    data = run_data.load(store.open_run(synthetic_run.write(tmp_path, rounds=6)))
    skips = trust.skips(data)
    row = skips[skips["detail"] == "rows=16 leaves 32 blocks for 132 multiprocessors"].iloc[0]
    assert (row["workload"], row["variants"], row["cells"]) == ("conv2d", 1, 1)
    assert skips["cells"].sum() == (data.results["status"] == "skipped").sum()
    assert skips["cells"].is_monotonic_decreasing
