"""On a GPU, a thread of this process measures what a process of its own measures."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import warpladder
from warpladder.workloads import registry

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "row_sum.py"


@pytest.mark.gpu
def test_a_thread_and_a_process_verify_and_time_alike_on_a_gpu(tmp_path: Path) -> None:
    options = {"collector": "cuda_events", "cases": "rows=64000", "data_dir": tmp_path, "max_rounds": 60, "processes": 1}
    (workload,) = registry.load_file(EXAMPLE)  # a copy of it is at the top level of no file
    runs = [warpladder.record(each, **options) for each in (replace(workload), EXAMPLE, replace(workload))]  # type: ignore[arg-type]
    here, apart, again = runs
    tables = [run.table(scope="all").set_index(["variant", "config", "scope", "cache"]) for run in runs]
    assert all(set(table["status"]) == {"ok"} for table in tables)
    assert set(here.samples()["scope"]) == set(apart.samples()["scope"]) >= {"device", "operation"}
    ratio = (tables[0]["median_ns"] / tables[1]["median_ns"]).xs("device", level="scope")
    assert ratio.between(0.95, 1.05).all(), ratio
    assert pd.Series(again.table()["status"]).eq("ok").all()  # the process is as usable as before
