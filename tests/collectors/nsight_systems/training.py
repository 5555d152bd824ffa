"""A report of a training whose backward pass another thread launches, as PyTorch's does; all sums are counted by hand."""

from tests.collectors.nsight_systems.reports import OTHER_TID, STRINGS, TID, Tables, call, kernel, nvtx

STEPS = 3
#: Text of a phase, when it begins within its step, when it ends, and the durations in ns of the kernels launched meanwhile.
PHASES = (
    ("data", 0, 100, (10,)),
    ("forward", 100, 300, (200, 100)),
    ("backward", 300, 700, (300, 280)),
    ("optimizer", 700, 900, (100,)),
)
STEP_NS = 1_000
#: Of a step: launched on a thread with a range, and on one without. The backward pass launches 10 ns itself.
OWN_NS, BY_TIME_NS = 420, 580
OUTSIDE_NS = 30


def training(*, other_ranges: bool = False) -> Tables:
    """Three steps, then a kernel outside of any range.

    Args:
        other_ranges: a third thread has a range open during each backward pass, so that two threads have one.
    """
    ranges, calls, kernels = [], [], []
    correlation = 0

    def launch(at: int, lasts: int, tid: int) -> None:
        nonlocal correlation
        correlation += 1
        calls.append(call(correlation, at, at + 5, tid=tid))
        begin = 10_000 + kernels[-1]["end"] if kernels else 10_000
        kernels.append(kernel(correlation, begin, begin + lasts))

    for step in range(STEPS):
        start = step * STEP_NS
        ranges.append(nvtx("step", start, start + 950))
        for text, begin, end, durations in PHASES:
            ranges.append(nvtx(text, start + begin, start + end))
            if text == "backward":
                launch(start + begin + 10, 10, TID)
            for place, lasts in enumerate(durations):
                launch(start + begin + 50 + 10 * place, lasts, OTHER_TID if text == "backward" else TID)
        if other_ranges:
            ranges.append(nvtx("loading", start + 320, start + 650, tid=OTHER_TID + 1))
    launch(STEPS * STEP_NS, OUTSIDE_NS, TID)
    strings = [{"id": number, "value": text} for number, text in STRINGS.items()]
    return {
        "StringIds": strings,
        "NVTX_EVENTS": ranges,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
    }
