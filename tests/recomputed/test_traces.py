"""Twenty figures of each page of traces, at random from the shipped runs, from the parquet files alone."""

import random
from collections.abc import Iterator

import pytest

from tests.recomputed import definitions, displayed, traces
from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Rules, draw
from tests.recomputed.sentences import numbers
from tests.recomputed.test_cells import SEED, VIEW, check
from warpladder.dashboard.trace import samples
from warpladder.dashboard.trace.lanes import build
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.time.calls import query as calls
from warpladder.dashboard.views.timeline import chart
from warpladder.dashboard.views.timeline import query as timeline
from warpladder.dashboard.views.timeline.visible import gpu_table, kernel_table, visible

pytestmark = pytest.mark.slow


def _runs(page: str) -> tuple[random.Random, list[Shipped]]:
    """A run with a trace, at random."""
    rng = random.Random(f"{page} {SEED}")
    return rng, rng.sample([run for run in definitions.shipped() if run.has("kernels")], 1)


def _windows(run: Shipped, rng: random.Random) -> Iterator[tuple[Shown, Rules]]:
    """The tables below the lanes, of windows at random."""
    data = displayed.loaded(run.id)
    lanes = build(data.traces)
    assert lanes
    for _ in range(4):
        long = (lanes.end_ns - lanes.begin_ns) // 10 ** rng.randint(0, 3)
        first = rng.randint(lanes.begin_ns, lanes.end_ns - long)
        seen = visible(data.traces, lanes, first, first + long, int(run.info["device_count"] or 0))
        for frame, rules in ((gpu_table(seen), traces.GPUS), (kernel_table(seen, {}), traces.KERNELS)):
            yield Shown("timeline", run.id, f"window-{first}-{first + long}", "", ("", "", ""), frame), rules


def _whole(run: Shipped) -> Shown:
    """The events and bars of the whole trace."""
    data = displayed.loaded(run.id)
    lanes = build(data.traces)
    assert lanes
    coloring = timeline.coloring(data.traces, lanes, "kernel")
    window = timeline.window(lanes.begin_ns, lanes.end_ns, len(lanes.busiest()), 1000)
    scene = timeline.scene(data.traces, lanes, lanes.busiest(), window, coloring)
    frame = chart.table(scene, window, data.traces, lanes, coloring, look(data))
    return Shown("timeline", run.id, "timeline", "", ("", "", ""), frame)


def test_timeline() -> None:
    rng, runs = _runs("timeline")
    found = [(run, *each) for run in runs for each in _windows(run, rng)]
    found += [(run, _whole(run), traces.TIMELINE) for run in runs]
    check(draw(rng, found, numbers))


_TABLE = {
    "cuda_gpu_kern_sum": "kernels",
    "cuda_api_sum": "api_calls",
    "cuda_gpu_mem_time_sum": "memory_ops",
    "cuda_gpu_mem_size_sum": "memory_ops",
}


def test_api_and_kernels() -> None:
    rng, runs = _runs("calls")
    found = []
    for run in runs:
        data = displayed.loaded(run.id)
        for shown in displayed.charts(VIEW["calls"], run.id, rng):
            where = "kernels" if "kernels" in shown.name else "api_calls", samples.extents(data)[0], ""
            found.append((run, shown._replace(where=where), traces.SUMS))
        for name, table in _TABLE.items():
            for extent in samples.extents(data):
                frame = calls.summary(data, name, extent)
                found.append((run, Shown("calls", run.id, f"{name} of {extent}", "", (table, extent, ""), frame), traces.SUMS))
        nvtx = ((name, calls.summary(data, name)) for name in ("nvtx_sum", "nvtx_gpu_proj_sum"))
        found += [(run, Shown("calls", run.id, name, "", ("", "", ""), frame), traces.NVTX) for name, frame in nvtx]
    check(draw(rng, found, numbers))


@pytest.mark.thorough
def test_transfers() -> None:
    rng, runs = _runs("transfers")
    found = []
    for run in runs:
        tables = displayed.charts(VIEW["transfers"], run.id, rng)
        found += [(run, shown, traces.PAID if "variant" in shown.frame else traces.COPIES) for shown in tables]
    check(draw(rng, found, numbers))
