"""Whether the baseline of an extracted benchmark does what the trace has: the same kernels with the same grids, in the same time."""

from collections.abc import Collection, Iterator, Mapping
from math import isnan, nan
from typing import Final, NamedTuple

import pandas as pd

from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.operations.hot_operations import Form, HotOperations, Operation
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.store import Run

#: The variant that calls the operator as the program did.
BASELINE: Final = "as_called"
#: The name of the axis whose values are the forms.
AXIS: Final = "call"
#: A time within this share of the trace's agrees with it.
AGREES: Final = 0.10


Grid = tuple[int, ...]


class Difference(NamedTuple):
    """A kernel of the trace that the baseline does not launch so.

    Attributes:
        name, grid: of the kernel in the trace.
        grids: with which the baseline launches a kernel of this name; empty where it launches none.
    """

    name: str
    grid: Grid
    grids: tuple[Grid, ...]


class Checked(NamedTuple):
    """A form of an operation in a trace and in a recording.

    Attributes:
        cold_ns, warm_ns: medians of the recording with a cold and a warm L2; NaN where it has none.
        differences: kernels of the trace that the baseline does not launch so; None where the recording has no trace.
        nearest: the time of the recording that is nearest to the trace's, over it.
        cause: the likely cause of a difference; empty where the times agree.
    """

    operation: Operation
    form: Form
    cold_ns: float
    warm_ns: float
    differences: tuple[Difference, ...] | None
    nearest: float
    cause: str


def check(hot: HotOperations, trace: Mapping[str, object], data: RunData, recording: Run) -> tuple[Checked, ...]:
    """The forms that a recording has, in the order of the operations.

    Args:
        hot: the operations of the trace.
        trace: row of table `run` of the trace.
        data, recording: the recording of the file.
    """
    frame = cells(data)
    frame = frame[(frame["variant"] == BASELINE) & frame["scope"].isin(["operation"] if hot.on_host else ["device"])]
    keys = zip(*(frame[name].astype(str) for name in ("workload", "case", "cache")), strict=True)
    times = dict(zip(keys, frame["median_ns"].astype(float), strict=True))
    launched = _launched(recording)
    other = ""
    if hot.on_host:
        other = "another load or number of threads of the processor"
    elif trace["device_name"] != recording.info["device_name"]:
        other = f"another GPU, {recording.info['device_name']}"
    found = []
    for operation, form in [(each, form) for each in hot.operations for form in each.forms]:
        case, trace_ns = (operation.workload, f"{AXIS}={form.name}"), form.median_ns
        if (*case, "cold") not in times and (*case, "hot") not in times:
            continue
        cold, warm = (times.get((*case, cache), nan) for cache in ("cold", "hot"))
        ratios = [each / trace_ns for each in (cold, warm) if not isnan(each) and trace_ns]
        nearest = min(ratios, key=lambda ratio: abs(ratio - 1), default=nan)
        traced = launched.get(case) if launched is not None else None
        differences = None if traced is None else tuple(_differences(form, traced))
        agrees = abs(nearest - 1) <= AGREES and not differences
        cause = "" if agrees else ", ".join(_causes(trace_ns, cold, warm, differences, other))
        found.append(Checked(operation, form, cold, warm, differences, nearest, cause))
    return tuple(found)


def _differences(form: Form, launched: Mapping[str, Collection[Grid]]) -> Iterator[Difference]:
    """A grid that the trace or the recording lacks, all zeros, differs from none."""
    for name, grid in dict.fromkeys((kernel.name, kernel.grid) for kernel in form.kernels if kernel.grid):
        grids = launched.get(name, ())
        if not grids or (any(grid) and grid not in grids and all(map(any, grids))):
            yield Difference(name, grid, tuple(sorted(grids)))


def _causes(trace: float, cold: float, warm: float, differences: tuple[Difference, ...] | None, other: str) -> Iterator[str]:
    """The likely causes of a difference, the likeliest first."""
    if other:
        yield other
    if any(not each.grids for each in differences or ()):
        yield "other kernels: another version of PyTorch, or cudnn.benchmark"
    elif differences:
        yield "other grids: another version of PyTorch, or shapes that were edited"
    elif not other and min(warm, cold) <= trace <= max(warm, cold):
        yield "an L2 that is neither cold nor warm"
    elif not other:
        yield "other clocks, or work at the same time on another stream" if trace > cold or isnan(cold) else "other clocks"


def _launched(recording: Run) -> Mapping[tuple[str, str], Mapping[str, Collection[Grid]]] | None:
    """The kernels that the baseline launched, with their grids, by benchmark and case; None for a recording without a trace."""
    if not recording.rows("kernels") or not recording.rows("ranges"):
        return None
    ranges = recording.table("ranges", ["range_id", "workload", "variant", "case"])
    ranges = ranges[ranges["variant"] == BASELINE]
    grid = [f"grid_{axis}" for axis in "xyz"]
    kernels = recording.table("kernels", ["range_id", "time_range_id", "name", *grid])
    kernels = kernels.assign(range_id=kernels["range_id"].fillna(kernels["time_range_id"])).dropna(subset=["range_id"])
    joined: pd.DataFrame = kernels.merge(ranges, on="range_id")[["workload", "case", "name", *grid]].drop_duplicates()
    found: dict[tuple[str, str], dict[str, set[Grid]]] = {}
    for workload, case, name, *sizes in joined.fillna(0).itertuples(index=False):
        found.setdefault((str(workload), str(case)), {}).setdefault(str(name), set()).add(tuple(map(int, sizes)))
    return found
