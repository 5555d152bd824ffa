"""The big trace of the benchmark is the small one over again, with launches and steps of its own."""

from pathlib import Path

from benchmarks.big_trace import ROOT, enlarge
from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store

SMALL = ROOT / "tests" / "fixtures" / "kineto" / "graph_and_two_streams.json.gz"


def test_each_copy_adds_the_same(tmp_path: Path) -> None:
    assert enlarge(SMALL, tmp_path / "one.json", 1) == 1
    size = (tmp_path / "one.json").stat().st_size
    assert enlarge(SMALL, tmp_path / "big.json", 2 * size + 1) == 3
    small, big = (
        store.open_run(tmp_path / import_report(path, tmp_path, "", None, [])) for path in (SMALL, tmp_path / "big.json")
    )
    for table in ("kernels", "operations", "api_calls"):
        once, thrice = small.table(table), big.table(table)
        assert len(thrice) == 3 * len(once), table
        assert (thrice["end_ns"] - thrice["start_ns"]).sum() == 3 * (once["end_ns"] - once["start_ns"]).sum()
    once, thrice = small.table("kernels"), big.table("kernels")
    assert thrice["launch_start_ns"].notna().sum() == 3 * once["launch_start_ns"].notna().sum()
    assert (thrice["start_ns"] - thrice["launch_start_ns"]).sum() == 3 * (once["start_ns"] - once["launch_start_ns"]).sum()
