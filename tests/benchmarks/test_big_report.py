"""The big report of the benchmark is the small one over again: rows, sums and ranges of kernels counted out."""

import sqlite3
from pathlib import Path

import pytest

from benchmarks.big_report import SMALL, enlarge
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.data.store import open_run


def imported(report: Path, folder: Path) -> RunData:
    return load(open_run(folder / import_report(report, folder, "", None, [])))


@pytest.mark.slow
def test_each_copy_adds_the_same_to_every_summary(tmp_path: Path) -> None:
    # 100 kernels a copy, so 250 take three copies.
    assert enlarge(SMALL, tmp_path / "big.sqlite", 250)["CUPTI_ACTIVITY_KIND_KERNEL"] == 300
    small, big = imported(SMALL, tmp_path), imported(tmp_path / "big.sqlite", tmp_path)
    for name in trace_sums.SUMMARIES:
        once, thrice = trace_sums.summary(small, name), trace_sums.summary(big, name)
        # Megabytes are rounded; how many operations they are of is not.
        total = "Count" if name == "cuda_gpu_mem_size_sum" else next(heading for heading in once if heading.startswith("Total"))
        assert thrice[total].tolist() == [3 * value for value in once[total]], name


def test_a_file_without_kernels_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.Error, match="unable to open"):
        enlarge(tmp_path / "missing.sqlite", tmp_path / "big.sqlite", 1)
    assert not (tmp_path / "missing.sqlite").exists()
