"""The rows of Ladder answer to the pointer."""

from pathlib import Path

from tests.synthetic import made_runs
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import chart, query
from warpladder.data import store


def test_a_click_anywhere_on_a_row_is_about_its_variant(tmp_path: Path) -> None:
    data = load(store.open_run(made_runs.write(tmp_path, rounds=8, workloads=("conv2d",))))
    frame = query.ladder(data, "conv2d", "n=2048", Timing("device", "cold"))
    drawn = chart.answering(frame, look(data))
    *rows, unseen = drawn.figure.data
    assert [row.customdata[0] for row in rows] == list(unseen.customdata) == list(range((drawn.data["n"] > 0).sum()))
    assert [row.y[0] for row in rows] == list(unseen.y)
    assert drawn.figure.layout.barmode == "overlay", "else bars are beside their names"


def test_the_title_tells_how_far_the_best_rung_is_before_the_best_peer() -> None:
    data = load(store.find_run("H200 tensor_transpose", [store.RECORDED]))
    frame = query.ladder(data, "tensor_transpose", "n=512,perm=210", Timing("device", "cold"))
    assert chart.ladder(frame, look(data)).title.endswith("memory floor, 9.33× v03_simple; 1.06× the best peer, torch_compile")
