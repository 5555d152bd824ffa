"""What limits the fastest variant of a run with counters, and why it is faster than the one before it, as lines of text."""

from collections.abc import Iterator

from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.run_data import RunData


def lines(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload with counters, at its last case that has some: the limit, and the step to the fastest rung.

    Args:
        every: every step of every case with counters.
    """
    return [line for workload in counters.counted_workloads(data) for line in _of_workload(data, workload, every)]


def _of_workload(data: RunData, workload: str, every: bool) -> Iterator[str]:
    cases = counters.counted_cases(data, workload)
    for case in cases if every else cases[-1:]:
        frame = counted.best(data, workload, case, counted.times(data, workload, case))
        yield f"{workload} {case}: {counted.answer(frame)}"
        _, fastest = counted.pair_to_explain(frame)
        for step in counted.steps(data, workload, case, frame).to_dict("records"):
            if every or step["variant"] == fastest:
                yield f"  {step['sentence']}"
