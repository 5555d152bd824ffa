"""Operators of PyTorch: their calls, their time on the device and on the host, and the kernels that they launched."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.trace.operators import MODULE, Operators, read
from warpladder.data.arrays import Bools, Int64s, lookup, numbered
from warpladder.data.nesting import nearest

#: What makes operators one row: their name, alone or with the shapes of their inputs, the modules or the range around them, or their stack.
By = Literal["name", "shape", "module", "range", "stack"]
#: The columns of `operators` that tell the rows of one name apart.
DETAILS: Final[Mapping[By, tuple[str, ...]]] = {
    "name": (),
    "shape": ("shapes", "types", "strides"),
    "module": ("module",),
    "range": ("range",),
    "stack": ("stack",),
}
#: The columns of `operators` after the name and the details.
FIGURES: Final = ("calls", "self_device_ns", "percent", "device_ns", "self_host_ns", "host_ns", "launches")
_WORK: Final = {"kernels": "full_name", "memory_ops": "kind"}
#: Steps of the profiler are one range.
_STEP: Final = re.compile(r"ProfilerStep#\d+")
#: Objects of one type are alike in a stack.
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class Totals:
    """Sums over a trace.

    Attributes:
        device_ns: durations of all kernels, copies and sets.
        launched_ns: the part of it that operators launched.
    """

    device_ns: int
    launched_ns: int

    @property
    def timed(self) -> Literal["self_device_ns", "self_host_ns"]:
        """The column that ranks operators: without device work their time on the host."""
        return "self_device_ns" if self.launched_ns else "self_host_ns"


def totals(data: RunData) -> Totals:
    """The device time of a trace with operators, and the part of it that operators launched."""
    traces = data.traces
    device = sum(int(traces.durations(table).sum()) for table in _WORK if table in traces.tables)
    return Totals(device, int(traces.numbers("operations", "self_device_ns").sum()))


def groupings(data: RunData) -> tuple[By, ...]:
    """The groupings for which the profiler recorded something."""
    traces = data.traces

    def recorded(by: By) -> bool:
        if by == "range":
            columns = ("range_id", "time_range_id")
            return "ranges" in traces.tables and any((traces.numbers("operations", each) >= 0).any() for each in columns)
        if by == "module":
            return any(MODULE in text for text in traces.texts("operations", "stack").categories)
        column = "input_dims" if by == "shape" else "stack"
        return by == "name" or any(traces.texts("operations", column).categories)

    return tuple(by for by in get_args(By) if recorded(by))


def operators(data: RunData, by: By = "name") -> pd.DataFrame:
    """The operators of a trace by name and details, the most device time first.

    The figures are those of `key_averages()` of PyTorch's profiler. It removes an operator that is the only operator inside another one
    of the same name, and then sums each column over all operators of a name. So it counts the total times of an operator twice where
    it runs inside another one of its name that also calls others. Here total times count an operator once: those of operators inside
    another one of the same row are left out. All other sums are equal.

    Returns:
        One row for each name and its details of `DETAILS`, with the columns

        - `operator`;
        - `shapes`, `types` and `strides` of the inputs as JSON, the strides empty where all inputs are contiguous;
        - `module`: modules of PyTorch around the operator, the innermost first; `range`: the innermost range around it. Both are empty
          without one. An operator of the backward pass has those of the operation whose gradient it computes;
          An operator that still has no range has the one that it is attributed to by time;
        - `stack`: functions of Python, the innermost first;
        - `calls`: executions;
        - `self_device_ns`: durations of the kernels, copies and sets that the operators launched themselves;
        - `percent`: its share of all device time of the trace; of all `self_host_ns` where operators launched nothing;
        - `device_ns`: the same with those of the operators inside;
        - `self_host_ns`: time on the host outside of the operators and API calls inside;
        - `host_ns`: time on the host from start to end;
        - `launches`: kernels, copies and sets that they launched themselves;
        - `number`: of the row, for `launched`.
    """
    traces = data.traces
    every = read(traces)
    names = traces.texts("operations", "name")
    root, again = _repeated(every, names.codes)
    code, details = _groups(traces, every, by, root)
    outer = every.outermost(code)
    count = len(details["operator"])

    def summed(values: Int64s, mask: Bools | slice = slice(None)) -> Int64s:
        total = np.zeros(count, dtype=np.int64)
        np.add.at(total, code[mask], values[mask])
        return total

    device = {name: traces.numbers("operations", name) for name in ("self_device_ns", "device_ns", "launches")}
    frame = pd.DataFrame(
        {
            **details,
            "calls": np.bincount(code[~again], minlength=count),
            "self_device_ns": summed(device["self_device_ns"]),
            "device_ns": summed(device["device_ns"], outer),
            "self_host_ns": summed(every.self_host_ns),
            "host_ns": summed(every.host_ns, outer),
            "launches": summed(device["launches"]),
            "number": np.arange(count),
        }
    )
    sums = totals(data)
    whole = sums.device_ns if sums.launched_ns else frame["self_host_ns"].sum()
    frame["percent"] = 100 * frame[sums.timed] / max(whole, 1)
    by_time = {"self_device_ns": False, "self_host_ns": False, "operator": True, "number": True}
    frame = frame[frame["calls"] > 0].sort_values(list(by_time), ascending=list(by_time.values()), ignore_index=True)
    return frame[["operator", *DETAILS[by], *FIGURES, "number"]]


def launched(data: RunData, by: By, number: int) -> pd.DataFrame:
    """The kernels, copies and sets that the operators of a row launched, and the operators inside them.

    Args:
        number: of the row of `operators`.

    Returns:
        One row for each kernel and operator that launched it, the most time first: `kernel` (short name), `operator`, `count`,
        `total_ns`, `percent` (of their sum), `mean_ns` and `name` (full name; the kind of a memory operation).
    """
    traces = data.traces
    every = read(traces)
    names = traces.texts("operations", "name")
    root, _ = _repeated(every, names.codes)
    code, _ = _groups(traces, every, by, root)
    inside = every.within(np.flatnonzero(every.outermost(code) & (code == number)))
    parts = []
    for table, column in _WORK.items():
        if table not in traces.tables:
            continue
        owner = every.launched(traces, table)
        rows = np.flatnonzero((owner >= 0) & inside[owner])
        texts = traces.texts(table, column)
        keys = texts.codes[rows], names.codes[owner[rows]]
        pair, first = numbered(*keys)
        name, operator = (key[first] for key in keys)
        total = np.zeros(len(name), dtype=np.int64)
        np.add.at(total, pair, traces.durations(table)[rows])
        called = np.asarray(texts.categories, dtype=object)[name]
        by_name = short_names(list(called)) if table == "kernels" else {}
        parts.append(
            pd.DataFrame(
                {
                    "kernel": [by_name.get(each, each) for each in called],
                    "operator": np.asarray(names.categories, dtype=object)[operator],
                    "count": np.bincount(pair, minlength=len(name)),
                    "total_ns": total,
                    "name": called,
                }
            )
        )
    columns = ["kernel", "operator", "count", "total_ns", "percent", "mean_ns", "name"]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    if frame.empty:
        return pd.DataFrame(columns=columns)
    frame["percent"] = 100 * frame["total_ns"] / max(frame["total_ns"].sum(), 1)
    frame["mean_ns"] = frame["total_ns"] / frame["count"]
    return frame.sort_values(["total_ns", "name", "operator"], ascending=[False, True, True], ignore_index=True)[columns]


def keys(frame: pd.DataFrame) -> list[str]:
    """A name for each row of `operators` in a URL: `aten::mm`, and `aten::mm#2` for the second row of that operator."""
    place = frame.groupby("operator", sort=False).cumcount()
    return [f"{name}#{n + 1}" if n else name for name, n in zip(frame["operator"], place, strict=True)]


def _repeated(every: Operators, name: npt.NDArray[Any]) -> tuple[Int64s, Bools]:
    """The operator that each one counts as, and a mask of those that count as another: the only one inside another of their name."""
    parent, has = every.parent, every.parent >= 0
    inner = np.bincount(parent[has], minlength=len(parent))
    again: Bools = has & (inner[parent] == 1) & (name[parent] == name)
    return nearest(parent, ~again), again


def _groups(traces: Traces, every: Operators, by: By, root: Int64s) -> tuple[Int64s, dict[str, npt.NDArray[Any]]]:
    """The number of the row of each operator, and the texts of the rows by column."""
    names = traces.texts("operations", "name")
    columns, words = [names.codes], [np.asarray(names.categories, dtype=object)]
    if by == "shape":
        of_inputs = [traces.texts("operations", f"input_{name}") for name in ("dims", "types", "strides")]
        columns += [texts.codes for texts in of_inputs[:2]]
        words += [np.asarray(texts.categories, dtype=object) for texts in of_inputs[:2]]
        strides, text = _strides(of_inputs[0], of_inputs[2])
        columns.append(strides)
        words.append(text)
    elif by != "name":
        code, text = (
            _ranges(traces) if by == "range" else _stacks(traces, modules_of if by == "module" else partial(_ADDRESS.sub, ""))
        )
        code = code if by == "stack" else _of_forward(traces, every, code, text)
        if by == "range":
            by_time, _ = _ranges(traces, "time_range_id")
            code = np.where(text[code] == "", by_time, code)
        columns.append(code)
        words.append(text)
    number, first = numbered(*columns)
    texts = {name: text[codes[first]] for name, text, codes in zip(("operator", *DETAILS[by]), words, columns, strict=True)}
    return number[root], texts


def _strides(dims: "pd.Categorical[Any]", strides: "pd.Categorical[Any]") -> tuple[Int64s, npt.NDArray[Any]]:
    """A code for each operator and the texts by code: its strides, or nothing where all of its inputs are contiguous."""
    pair, first = numbered(dims.codes, strides.codes)
    texts = [
        "" if _contiguous(dims.categories[each], strides.categories[which]) else strides.categories[which]
        for each, which in zip(dims.codes[first].tolist(), strides.codes[first].tolist(), strict=True)
    ]
    code, words = pd.factorize(np.array(texts, dtype=object))
    return code[pair].astype(np.int64), np.asarray(words, dtype=object)


def _contiguous(dims: str, strides: str) -> bool:
    """Whether each of the inputs, given as JSON, has the strides of a contiguous array. A text that was cut is no JSON."""
    try:
        return _as_contiguous(json.loads(dims or "[]"), json.loads(strides or "[]"))
    except (ValueError, TypeError, RecursionError):
        return False


def _as_contiguous(dims: Any, strides: Any) -> bool:
    if not isinstance(dims, list) or not isinstance(strides, list):
        return False
    if not strides or 0 in dims:
        return True
    if any(isinstance(each, list) for each in dims):
        return all(_as_contiguous(*pair) for pair in zip(dims, strides, strict=False))
    sizes = [(size, stride) for size, stride in zip(dims, strides, strict=False) if size != 1]
    inner = all(outer[1] == size * stride for outer, (size, stride) in pairwise(sizes))
    return not sizes or (sizes[-1][1] == 1 and inner)


def _ranges(traces: Traces, column: str = "range_id") -> tuple[Int64s, npt.NDArray[Any]]:
    """A code for each operator and the texts by code: the range of a column, or nothing."""
    place = lookup(traces.numbers("ranges", "range_id"), traces.numbers("operations", column))
    texts = traces.texts("ranges", "text")
    words = [_STEP.sub("ProfilerStep", str(text)) for text in texts.categories]
    code, distinct = pd.factorize(np.array([*words, ""], dtype=object))
    return code[np.append(texts.codes, -1)[place]].astype(np.int64), np.asarray(distinct, dtype=object)


def _stacks(traces: Traces, text_of: Callable[[str], str]) -> tuple[Int64s, npt.NDArray[Any]]:
    """A code for each operator and the texts by code: what a function makes of its stack."""
    stacks = traces.texts("operations", "stack")
    code, distinct = pd.factorize(np.array([*map(text_of, stacks.categories), ""], dtype=object))
    return code[stacks.codes].astype(np.int64), np.asarray(distinct, dtype=object)


def modules_of(stack: str) -> str:
    """`Conv2d_0 < ResNet_0` out of a stack, the innermost module first; empty without a module."""
    return " < ".join(frame.removeprefix(MODULE) for frame in stack.split("\n") if frame.startswith(MODULE))


def _of_forward(traces: Traces, every: Operators, code: Int64s, texts: npt.NDArray[Any]) -> Int64s:
    """The codes, where an operator without a text has that of the operation whose gradient it or an operator around it computes."""
    forward = lookup(traces.numbers("operations", "operation_id"), traces.numbers("operations", "forward_id"))
    linked = forward[nearest(every.parent, (forward >= 0) | (every.parent < 0))]
    without = (texts[code] == "") & (linked >= 0)
    return np.where(without, code[linked], code)
