"""The totals of a trace by a second method: equal, and a difference is found."""

import math
from pathlib import Path

import pytest

from tests.collectors.kineto import test_steps_of_threads
from tests.second_method.__main__ import Row, rows_of
from warpladder.collectors.jobs import engine

TRACE = Path(__file__).parents[1] / "fixtures" / "kineto" / "graph_and_two_streams.json.gz"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks are imported without a process of their own, which takes seconds to start."""
    monkeypatch.setattr(engine, "_pooled", lambda function, tasks, _: ((at, function(task)) for at, task in enumerate(tasks)))


@pytest.mark.thorough
def test_every_figure_of_a_trace_of_graphs_and_two_streams_equals_that_of_the_second_method(tmp_path: Path) -> None:
    rows = list(rows_of(TRACE, tmp_path))
    assert {row.page for row in rows} == {
        "cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_size_sum", "cuda_gpu_mem_time_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum",
        "nvtx_sum", "transfers", "operators-name", "key_averages", "ranks-breakdown", "ranks-over-iterations", "idle-by-stream",
        "job-kernels-all-iterations", "critical-path",
    }  # fmt: skip
    assert len(rows) > 120 and not [row for row in rows if row.differs]


@pytest.mark.slow
def test_every_figure_of_steps_of_several_threads_equals_that_of_the_second_method(tmp_path: Path) -> None:
    rows = list(rows_of(test_steps_of_threads.write(tmp_path / "steps.json"), tmp_path))
    assert {row.row for row in rows if row.page == "transfer-stages"} == {f"ProfilerStep#{step}" for step in (1, 2, 3)}
    assert not [row for row in rows if row.differs]


@pytest.mark.parametrize(
    ("ours", "second", "why", "differs"),
    [
        (5, 5, "", False),
        (5, 6, "", True),
        (5, 6, "counted twice", False),
        (0, None, "", True),
        (None, None, "", False),
        (1 + 1e-15, 1.0, "", False),
        (10**12 + 2, 10**12, "", True),
    ],
)
def test_a_figure_differs_by_a_nanosecond_or_where_one_side_has_none(
    ours: float | None, second: float | None, why: str, differs: bool
) -> None:
    row = Row("trace", "page", "row", "column", ours, second, why)
    assert row.differs == differs
    assert math.isnan(row.difference) == ((ours is None and second is not None) or (ours is not None and second is None))
