"""The operators of PyTorch in a trace: how they nest, which one was the innermost when a call began, and their own time on the host."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.traces import Traces, calls_of
from warpladder.data.arrays import NONE, Bools, Int64s, lookup, numbered
from warpladder.data.nesting import Innermost

#: The beginning of a frame of a stack that is a module of PyTorch, and those of frames outside of the user's program.
MODULE: Final = "nn.Module: "
INTERNAL: Final = ("<", "torch/", "contextlib.py")


@dataclass(frozen=True, eq=False)
class Operators:
    """Operators in the order of table `operations`: thread by thread, by start, the outer one first.

    Attributes:
        thread: shape (n,), number of the process and thread.
        start, end: shape (n,), nanoseconds.
        parent: shape (n,), row of the operator around each one; `NONE` for the outermost.
        of_call: operator that was the innermost when each row of `api_calls` began; `NONE` for a call outside all operators.
        calls_ns: shape (n,), time in API calls directly inside each operator.
    """

    thread: Int64s
    start: Int64s
    end: Int64s
    parent: Int64s
    of_call: Int64s
    calls_ns: Int64s

    @property
    def host_ns(self) -> Int64s:
        """Shape (n,), from the start to the end of each operator."""
        return self.end - self.start

    @property
    def self_host_ns(self) -> Int64s:
        """Shape (n,), the part of `host_ns` outside the operators and API calls inside each one."""
        own, has = self.host_ns - self.calls_ns, self.parent >= 0
        np.subtract.at(own, self.parent[has], self.host_ns[has])
        outside: Int64s = np.maximum(own, 0)
        return outside

    def outermost(self, group: Int64s) -> Bools:
        """Mask of the operators that are inside no other operator of their group.

        Args:
            group: shape (n,), number of the group of each operator.
        """
        number, _ = numbered(group, self.thread)
        order = np.argsort(number, kind="stable")
        inside = np.empty(len(order), dtype=bool)
        inside[order] = self.start[order] < _ends_before(number[order], self.end[order])
        return ~inside

    def within(self, rows: Int64s) -> Bools:
        """Mask of the operators that are some of the rows or inside them. The rows are `outermost` of one group."""
        marks = np.zeros(len(self.start), dtype=np.int64)
        marks[rows] = self.end[rows]
        until = pd.Series(marks).groupby(self.thread).cummax().to_numpy()
        mask: Bools = self.start < until
        mask[rows] = True
        return mask

    def launched(self, traces: Traces, table: str) -> Int64s:
        """Row of the operator that launched each kernel or memory operation; `NONE` where none did.

        The operator is the innermost one of the calling thread when the call began, as in `self_device_ns`.
        """
        call = calls_of(traces, table)
        return np.where(call >= 0, np.append(self.of_call, NONE)[call], NONE)


def read(traces: Traces) -> Operators:
    """The operators of a trace that has some."""
    traces.read("operations", "process", "thread", "start_ns", "end_ns", "operation_id", "parent_id")
    columns = [traces.numbers("operations", name) for name in ("process", "thread", "start_ns", "end_ns")]
    parent = lookup(traces.numbers("operations", "operation_id"), traces.numbers("operations", "parent_id"))
    count = len(parent)
    calls = [np.empty(0, dtype=np.int64)] * 4
    if "api_calls" in traces.tables:
        names = ("process", "thread", "start_ns", "end_ns")
        parts = list(traces.scan("api_calls", *names))
        calls = [np.concatenate(column) for column in zip(*parts, strict=True)]
    process, thread, start, end = (np.concatenate(pair) for pair in zip(columns, calls, strict=True))
    number, _ = numbered(process, thread)
    of_call = Innermost(number[:count], start[:count], end[:count]).at(number[count:], start[count:])
    alone = _alone(number[count:], start[count:], end[count:])
    calls_ns, has = np.zeros(count, dtype=np.int64), of_call >= 0
    np.add.at(calls_ns, of_call[has], alone[has])
    return Operators(number[:count], start[:count], end[:count], parent, of_call, calls_ns)


def _alone(thread: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """Time of each call outside the calls of its thread that began earlier, so that a call inside another counts once."""
    order = np.lexsort((-end, start, thread))
    alone = np.empty(len(order), dtype=np.int64)
    before = _ends_before(thread[order], end[order])
    alone[order] = np.maximum(end[order] - np.maximum(start[order], before), 0)
    return alone


def _ends_before(group: Int64s, end: Int64s) -> Int64s:
    """The latest end of the rows before each row, in its group; the least number for the first. Rows are sorted by group."""
    latest = pd.Series(end).groupby(group).cummax().to_numpy()
    before = np.full(len(end), np.iinfo(np.int64).min)
    same = group[1:] == group[:-1]
    before[1:][same] = latest[:-1][same]
    return before


def place_of(stack: str) -> str:
    """The innermost frame of a stack outside of built-in functions and of PyTorch, or else the innermost frame."""
    frames = stack.split("\n")
    return next((frame for frame in frames if not frame.startswith(INTERNAL)), frames[0]).removeprefix(MODULE)
