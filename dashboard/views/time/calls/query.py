"""Sums of kernels, memory operations, API calls and ranges, as `nsys stats` has them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import GRAPH, Traces, of_calls
from warpladder.dashboard.trace import ranges as trace_nesting
from warpladder.dashboard.trace import samples as trace_samples
from warpladder.dashboard.trace.describe import Tally, describe, rounded, statistics, tally, times
from warpladder.dashboard.trace.ranges import (
    has_graphs,
    nvtx_gpu_proj_sum,
    nvtx_sum,
    range_names,
    without_graphs,
)
from warpladder.dashboard.trace.samples import Extent
from warpladder.data.arrays import NONE, Int64s, Places, numbered

#: Pairs of an owner and a kernel that are summed at once.
_PAIRS_AT_ONCE: Final = 1 << 22
#: In a range with more launches than this, each name is looked for.
_FEW_LAUNCHES: Final = 64


class _Kernels(NamedTuple):
    """For each kernel: its row, the place of its innermost range, the number of its name, and its duration in nanoseconds."""

    row: Int64s
    holder: npt.NDArray[np.int32]
    name: npt.NDArray[Any]
    duration: Int64s

    def of(self, rows: npt.NDArray[Any]) -> "_Kernels":
        """The kernels at some places, or of a mask."""
        return _Kernels(self.row[rows], self.holder[rows], self.name[rows], self.duration[rows])


class _Owners(NamedTuple):
    """The keys by which kernels are summed: an owner is a named range of a process and thread.

    `of_range` is the number of each range's owner. The other fields are the columns of the owners, by number: `style` is the
    number of the range's name and style (`NONE` for kernels outside of all ranges), and `process` and `thread` are `NONE` where
    they are not known.
    """

    of_range: Int64s
    style: Int64s
    process: Int64s
    thread: Int64s


class _Sums(NamedTuple):
    """Sums by owner and kernel name, indexed by `owner * names + name`.

    `durations` has the statistics of the durations, in which a kernel counts once for each range that holds it. `kernels` and
    `ranges` are the numbers of kernels and of ranges.
    """

    durations: pd.DataFrame
    kernels: "pd.Series[int]"
    ranges: "pd.Series[int]"


def nvtx_kern_sum(data: RunData) -> pd.DataFrame:
    """Kernels by all ranges that were open at their launch, not only by the innermost range.

    A kernel in two nested ranges of one name is one instance, but its time counts twice. Kernels outside of all ranges come
    first, with a null range. Process and thread are null where the launch was not traced. Graphs traced as a whole are left
    out. In a trace of PyTorch, a kernel counts too for the ranges that it is attributed to by time.
    """
    traces = data.traces
    labelled, names = range_names(traces), traces.texts("kernels", "full_name")
    traces.read("ranges", "process", "thread", "range_id")
    process, thread = traces.numbers("ranges", "process"), traces.numbers("ranges", "thread")
    number, heads = numbered(labelled.code, process, thread)
    owners = _Owners(number, labelled.code[heads], process[heads], thread[heads])
    ranges = Places(traces.numbers("ranges", "range_id"))
    holder, first = np.empty(traces.length("kernels"), dtype=np.int32), 0
    for (held,) in traces.scan("kernels", "range_id"):
        holder[first : first + len(held)] = ranges.of(held)
        first += len(held)
    kernels = _Kernels(np.arange(len(holder)), holder, names.codes, traces.durations("kernels"))
    if traces.of_pytorch:
        kernels = _with_by_time(kernels, ranges.of(traces.numbers("kernels", "time_range_id")).astype(np.int32))
    if has_graphs(traces):
        kernels = kernels.of(np.isin(kernels.row, without_graphs(traces, "kernels")))
    width = max(len(names.categories), 1)
    owners, sums = _summed(traces, kernels, owners, width)
    durations = sums.durations
    words = np.array([*labelled.names, None], dtype=object)  # the last one is for kernels outside of all ranges
    words[words == ""] = None
    owner, what = np.divmod(durations.index.to_numpy(dtype=np.int64), width)
    label = owners.style[owner]
    frame = pd.DataFrame(
        {
            "NVTX Range": words[label],
            "Style": np.array([*labelled.styles, None], dtype=object)[label],
            "PID": _nullable(owners.process[owner]),
            "TID": _nullable(owners.thread[owner]),
            "NVTX Inst": sums.ranges.reindex(durations.index, fill_value=0).to_numpy(),
            "Kern Inst": sums.kernels[durations.index].to_numpy(),
            "Total Time (ns)": durations["total"].to_numpy(),
            "Avg (ns)": rounded(durations["mean"]),
            "Med (ns)": rounded(durations["median"]),
            "Min (ns)": durations["min"].to_numpy(),
            "Max (ns)": durations["max"].to_numpy(),
            "StdDev (ns)": rounded(durations["stddev"]),
            "Kernel Name": np.asarray(names.categories)[what],
        }
    )
    order = {"NVTX Range": True, "PID": True, "TID": True, "Total Time (ns)": False, "Style": True, "Kernel Name": True}
    return frame.sort_values(list(order), ascending=list(order.values()), na_position="first", ignore_index=True)


def _with_by_time(kernels: _Kernels, by_time: npt.NDArray[np.int32]) -> _Kernels:
    """The kernels with their ranges by time too. A kernel that also has a range of its own thread is there twice."""
    again = np.flatnonzero((by_time >= 0) & (kernels.holder >= 0))
    holder = np.where(kernels.holder < 0, by_time, kernels.holder)
    rows = np.concatenate((np.arange(len(holder)), again))
    return kernels.of(rows)._replace(holder=np.concatenate((holder, by_time[again])))


def _summed(traces: Traces, kernels: _Kernels, owners: _Owners, width: int) -> tuple[_Owners, _Sums]:
    """The sums by owner and kernel name. In the order of launches, the kernels of a range are consecutive, whether or not ranges nest."""
    ranges = trace_nesting.places(traces)
    held = trace_nesting.held(ranges, trace_nesting.launches_of(traces, ranges, "kernels", kernels.row, kernels.holder))
    some = np.flatnonzero(held.first < held.last)
    owner = np.tile(owners.of_range[some], 2)
    # Where ranges begin and end, by owner: between two such places, as many of the owner's ranges are open.
    ends = pd.DataFrame({"owner": owner, "at": np.concatenate((held.first[some], held.last[some]))})
    steps = ends.assign(opened=np.repeat([1, -1], len(some))).groupby(["owner", "at"], as_index=False)["opened"].sum()
    times = steps["opened"].cumsum().to_numpy()
    opened = np.flatnonzero(times)
    owner, at = steps["owner"].to_numpy(), steps["at"].to_numpy()
    inside = np.zeros(len(held.launch) + 1, dtype=np.int64)
    np.add.at(inside, at[opened], 1)
    np.subtract.at(inside, at[opened + 1], 1)
    outside = np.sort(held.launch[np.cumsum(inside)[:-1] == 0])
    alone, owners = _threads(traces, kernels.of(outside), owners)
    alone = alone * width + kernels.name[outside]
    parts, instances = [tally(alone, kernels.duration[outside])], [_counts(alone)]
    before = np.cumsum(at[opened + 1] - at[opened])
    for rows in np.split(opened, np.flatnonzero(np.diff(before // _PAIRS_AT_ONCE)) + 1) if len(opened) else ():
        window, kernel = trace_nesting.HeldLaunches(held.launch, at[rows], at[rows + 1]).pairs()
        group, n = owner[rows][window] * width + kernels.name[kernel], times[rows][window]
        once, duration = n == 1, kernels.duration[kernel]
        parts += [tally(group[once], duration[once]), Tally(group[~once], duration[~once], n[~once])]
        instances.append(_counts(group))
    durations = Tally(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.lexsort((durations.value, durations.group))
    sums = statistics(Tally(*(column[order] for column in durations)))
    return owners, _Sums(sums, pd.concat(instances).groupby(level=0).sum(), _ranges_by_name(kernels, held, owners, width))


def _ranges_by_name(kernels: _Kernels, held: trace_nesting.HeldLaunches, owners: _Owners, width: int) -> "pd.Series[int]":
    """The number of ranges of each owner in which kernels of each name were launched, indexed by `owner * width + name`."""
    few = held.last - held.first <= _FEW_LAUNCHES
    holder, kernel = held._replace(last=np.where(few, held.last, held.first)).pairs()
    pairs = [np.unique(holder * width + kernels.name[kernel])]
    many, names = np.flatnonzero(~few), kernels.name[held.launch]
    by_name = np.argsort(names, kind="stable")
    for launched in np.split(by_name, np.flatnonzero(np.diff(names[by_name])) + 1) if len(many) else ():
        left, right = (np.searchsorted(launched, ends[many]) for ends in (held.first, held.last))
        pairs.append(many[left < right] * width + int(names[launched[0]]))
    held_pairs = np.concatenate(pairs)
    return _counts(owners.of_range[held_pairs // width] * width + held_pairs % width)


def _threads(traces: Traces, kernels: _Kernels, owners: _Owners) -> tuple[Int64s, _Owners]:
    """Owners of kernels outside of all ranges: their threads, numbered after the other owners."""
    process, correlation = traces.at("kernels", kernels.row, "process", "correlation")
    place, thread = of_calls(traces, process, correlation, "thread")
    # Calls are looked up by process and correlation. Where the call was not traced, process and thread are both `NONE`.
    process = np.where(place >= 0, process, NONE)
    number, first = numbered(process, thread)
    added = np.full(len(first), NONE), process[first], thread[first]
    joined = [np.concatenate(pair) for pair in zip(owners[1:], added, strict=True)]
    return len(owners.style) + number, _Owners(owners.of_range, *joined)


def _counts(numbers: Int64s) -> "pd.Series[int]":
    """The count of each number, indexed by the number."""
    values, n = np.unique(numbers, return_counts=True)
    return pd.Series(n, index=values)


def _nullable(values: Int64s) -> "pd.api.extensions.ExtensionArray":
    return pd.arrays.IntegerArray(values, values < 0)


#: Kind of memory operation -> its name in `nsys stats`, which is of CUDA.
OPERATIONS: Final = {
    "h2d": "[CUDA memcpy Host-to-Device]",
    "d2h": "[CUDA memcpy Device-to-Host]",
    "d2d": "[CUDA memcpy Device-to-Device]",
    "p2p": "[CUDA memcpy Peer-to-Peer]",
    "h2h": "[CUDA memcpy Host-to-Host]",
    "memset": "[CUDA memset]",
    "unified_h2d": "[CUDA memcpy Unified Host-to-Device]",
    "unified_d2h": "[CUDA memcpy Unified Device-to-Host]",
    "unknown": "[CUDA memcpy of unknown direction]",
}
#: A summary that `nsys stats` does not have: launches of CUDA graphs that were traced as a whole, each from its first node to its last.
GRAPHS: Final = "graph_launches"
_BYTES_A_MB: Final = 1e6
#: Summaries of a table, which can be restricted to the variants' samples -> the table, the column with the names, the heading of the number
#: of rows, and the heading of the names. Kernels are summed without CUDA graphs that were traced as a whole.
OF_EXTENTS: Final = {
    "cuda_gpu_kern_sum": ("kernels", "full_name", "Instances", "Name"),
    "cuda_api_sum": ("api_calls", "name", "Num Calls", "Name"),
    "cuda_gpu_mem_time_sum": ("memory_ops", "kind", "Count", "Operation"),
    "cuda_gpu_mem_size_sum": ("memory_ops", "kind", "Count", "Operation"),
    GRAPHS: ("kernels", "full_name", "Instances", "Name"),
}
#: Summaries of ranges -> the tables that they need.
_OF_RANGES: Final[Mapping[str, tuple[Callable[[RunData], pd.DataFrame], frozenset[str]]]] = {
    "nvtx_sum": (nvtx_sum, frozenset({"ranges"})),
    "nvtx_gpu_proj_sum": (nvtx_gpu_proj_sum, frozenset({"ranges"})),
    "nvtx_kern_sum": (nvtx_kern_sum, frozenset({"ranges", "kernels"})),
}
#: The summaries of `nsys stats`.
SUMMARIES: Final = (*(name for name in OF_EXTENTS if name != GRAPHS), *_OF_RANGES)


def available(data: RunData, extent: Extent = "all") -> tuple[str, ...]:
    """The summaries that have rows for the part of the trace, including `GRAPHS` where graphs were traced as a whole."""
    traces = data.traces
    graphs = has_graphs(traces)
    tables = set(traces.tables)
    if graphs and not len(without_graphs(traces, "kernels")):
        tables.remove("kernels")
    names = [name for name in SUMMARIES if (_OF_RANGES[name][1] if name in _OF_RANGES else {OF_EXTENTS[name][0]}) <= tables]
    names += [GRAPHS] if graphs else []

    def has_rows(name: str) -> bool:
        rows = _rows(traces, name, extent)
        return isinstance(rows, slice) or len(rows) > 0

    return tuple(name for name in names if name in _OF_RANGES or has_rows(name))


def summary(data: RunData, name: str, extent: Extent = "all") -> pd.DataFrame:
    """A summary of `available`, of the part of the trace. Summaries of ranges are of the whole trace."""
    if name in _OF_RANGES:
        return _OF_RANGES[name][0](data)
    traces, (table, column, count, heading) = data.traces, OF_EXTENTS[name]
    traces.read(table, column)
    names, rows = traces.texts(table, column), _rows(traces, name, extent)
    codes, words = names.codes[rows], np.asarray(names.categories)
    if table == "memory_ops":
        words = np.array([OPERATIONS[kind].replace("CUDA ", f"{traces.api} ".lstrip()) for kind in names.categories])
    if name == "cuda_gpu_mem_size_sum":
        return _sizes(codes, traces.numbers(table, "bytes")[rows], words)
    ties = [count, heading] if table == "kernels" else [heading]
    return times(codes, traces.durations(table)[rows], count, {heading: words}, ties)


def _rows(traces: Traces, name: str, extent: Extent) -> Int64s | slice:
    """Places of the rows of a summary's table in the part of the trace."""
    table = OF_EXTENTS[name][0]
    rows = slice(None) if extent == "all" else trace_samples.rows(traces, table)
    if table != "kernels" or not has_graphs(traces):
        return rows
    names = traces.texts("kernels", "full_name")
    own = np.flatnonzero((names.codes == names.categories.get_loc(GRAPH)) == (name == GRAPHS))
    return own if isinstance(rows, slice) else np.intersect1d(rows, own, assume_unique=True)


def _sizes(codes: npt.NDArray[Any], moved: Int64s, words: npt.NDArray[Any]) -> pd.DataFrame:
    """Sizes of copies, sets and migrations by kind, in MB with three decimals. Those whose size is not known are left out."""
    sizes = describe(codes[moved != NONE], moved[moved != NONE])
    columns = {"total": "Total", "mean": "Avg", "median": "Med", "min": "Min", "max": "Max", "stddev": "StdDev"}
    # Rounded from the exact value of the binary fraction, as by C's printf.
    frame = pd.DataFrame(
        {f"{label} (MB)": [float(f"{size:.3f}") for size in sizes[name] / _BYTES_A_MB] for name, label in columns.items()}
    )
    frame.insert(1, "Count", sizes["n"].to_numpy())
    frame["Operation"] = words[sizes.index]
    order = frame.assign(total=sizes["total"].to_numpy()).sort_values(["total", "Operation"], ascending=[False, True])
    return frame.loc[order.index].reset_index(drop=True)


def leading(summary: pd.DataFrame, percent: float = 90) -> pd.DataFrame:
    """The longest rows of a summary that together reach a percentage of `Total Time (ns)`, with `cumulative_percent`."""
    share = 100 * summary["Total Time (ns)"].cumsum() / max(summary["Total Time (ns)"].sum(), 1)
    enough = int((share < percent).sum()) + 1
    return summary.assign(cumulative_percent=share).head(enough)
