"""The run whose hardware counters or experiments explain the variants of another: its own, or those of a run with the same sources."""

from collections.abc import Callable
from typing import Any

from warpladder.dashboard.core import counters, run_index
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, Need
from warpladder.dashboard.ui import runs
from warpladder.data import store

_Sources = frozenset[tuple[str, str]]


def sources(run: store.Run, workload: str) -> _Sources:
    """The variants of a workload, each with the hash of its source."""
    frame = run.table("variants", ["workload", "variant", "source_sha256"])
    frame = frame[(frame["workload"] == workload) & (frame["source_sha256"] != "")]
    return frozenset(frame[["variant", "source_sha256"]].itertuples(index=False, name=None))


def equal_variants(run: store.Run, other: store.Run, workload: str) -> frozenset[str]:
    """The variants of a workload with equal sources in both runs."""
    return frozenset(variant for variant, _ in sources(run, workload) & sources(other, workload))


def find(
    run: store.Run, workload: str, need: Need = Need.COUNTERS, has: Callable[[RunData, str], Any] = counters.counted_cases
) -> ListedRun | None:
    """The run with counters, or what else is needed, of the most variants of the workload that have the sources of this run: the run itself before others, one of its
    device before one of another device, and a newer one before an older one. None where there is none.

    Args:
        has: what a run must have of the workload.
    """
    device, own = run_index.device_of(run), sources(run, workload)
    able = [each for each in runs.context().having(need, workload) if workload in each.facts.workloads]
    every = runs.glance([each.run for each in able], sources, workload)
    shared = [0 if isinstance(found, store.StoreError) else len(own & found) for found in every]

    def order(place: int) -> tuple[bool, int, bool]:
        return able[place].run.path == run.path, shared[place], able[place].facts.device == device

    for place in sorted(range(len(able)), key=order, reverse=True):
        each = able[place]
        fits = shared[place] or each.run.path == run.path
        if fits and runs.opens(each.run) and runs.ask(each.run, has, workload):
            return each
    return None
