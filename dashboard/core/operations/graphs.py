"""The operators of CUDA graphs, from a profile of the same program without its graphs.

A trace does not tell which operators the kernels of a graph belong to, since they ran when it was captured. A profile of the program
without the graph does. The work of a launch takes the operators of that profile only where the match is proven:

- The work on each of its streams, in the order of its start, has the names, blocks and threads of kernels, and the directions and bytes
  of copies and sets, that follow one another on a stream within a step of the profile. There may be more before and after. Names are
  functions with their template arguments, which PyTorch's profiler and Nsight Systems spell differently.
- There, no call of an operator has work both inside and outside of it.
- Where it is found at several places, the operators are the same at all of them. Otherwise each step of both profiles has it equally
  often, and the launches take the places in order.
- No two streams of a launch take the same work.
"""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.operations.operator_calls import Calls, OperatorWork
from warpladder.data.arrays import Int64s, heads, numbered, occurrence
from warpladder.data.iterations import steps_of
from warpladder.data.store import Run

#: What differs between tools in names of functions, and how it is written here.
_SPELLINGS: Final = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"<unnamed>|\(anonymous namespace\)", "unnamed"),
        (r"\bvoid (?=\w)", ""),
        (r"\(bool\)1", "true"),
        (r"\(bool\)0", "false"),
        (r"\([\w: ]+\)(?=-?\d)", ""),
        (r"(?<=\d)u?l{0,2}(?=[,> ])", ""),
        (r"\{lambda\([^{}]*\)#(\d+)\}", r"lambda#\1"),
        (r"\[lambda\([^\[\]]*\) \(instance (\d+)\)\]", r"lambda#\1"),
    )
)
#: Between the work of two streams or steps.
_END = -1


class _Unproven(Exception):
    """A match is not proven.

    Attributes:
        reason: why.
        matched: how much of the work is as in the profile.
    """

    def __init__(self, reason: str, matched: int) -> None:
        super().__init__(reason)
        self.reason, self.matched = f"kernels of a CUDA graph: {reason}", matched


class Graphs:
    """The launches of CUDA graphs among the device work of a trace.

    Args:
        work: all device work.
        step_of: the step of each piece; -1 for none. What is outside of steps is left alone.

    Attributes:
        reason_of: for each piece of work a place in `reasons`; -1 for none.
        reasons: why operators of graphs are not known.
    """

    def __init__(self, work: OperatorWork, step_of: Int64s) -> None:
        self._work, self._step_of = work, step_of
        self.reason_of = np.full(len(step_of), -1)
        self.reasons: list[str] = []
        self._matched: list[int] = []

    def take_operators(self, calls: Calls, run: Run) -> Calls:
        """Give the work of graphs the operators of a profile, where that is proven.

        Args:
            calls: of the trace.
            run: a profile of the program without the graphs.

        Returns:
            The calls, with copies of those that the graphs take.
        """
        work = self._work
        rows = np.flatnonzero(work.in_graph & (self._step_of >= 0) & ~work.is_whole_graph)
        if not len(rows):
            return calls
        launch = numbered(work.process[rows], work.correlation[rows])[0]
        order = np.lexsort((work.start[rows], work.stream[rows], launch))
        rows, launch = rows[order], launch[order]
        eager = _Eager(run, work, rows)
        origin, reason = np.full(len(rows), -1), np.full(len(rows), -1)
        for places in _alike(eager.codes_of_graphs, launch, work.stream[rows]):
            first = places[:, 0]
            places = places[np.argsort(work.start[rows[first]], kind="stable")]
            first = places[:, 0]
            step = self._step_of[rows[first]]
            try:
                origin[places] = eager.work_of(eager.codes_of_graphs[places[0]], rows[places], launch[first], step, work)
            except _Unproven as error:
                reason[places] = self._reason(error)
        self._refuse_shared(launch, origin, reason)
        of_launch = np.full(int(launch.max()) + 1, -1)
        np.maximum.at(of_launch, launch, reason)
        proven = of_launch[launch] < 0
        # The reason of the profile that matches most is kept.
        matched, refused, why = np.array([*self._matched, -1]), rows[~proven], of_launch[launch[~proven]]
        self.reason_of[refused] = np.where(matched[why] > matched[self.reason_of[refused]], why, self.reason_of[refused])
        return self._copied(calls, eager, rows[proven], launch[proven], origin[proven])

    def _reason(self, error: _Unproven) -> int:
        self.reasons.append(error.reason)
        self._matched.append(error.matched)
        return len(self.reasons) - 1

    def _refuse_shared(self, launch: Int64s, origin: Int64s, reason: Int64s) -> None:
        """Refuse launches of which two streams take the same work."""
        order = np.lexsort((origin, launch))
        same = (np.diff(launch[order]) == 0) & (np.diff(origin[order]) == 0) & (origin[order][1:] >= 0)
        if same.any():
            error = _Unproven("several of its streams match the same kernels of the profile without it", 0)
            reason[np.isin(launch, launch[order][1:][same])] = self._reason(error)

    def _copied(self, calls: Calls, eager: "_Eager", rows: Int64s, launch: Int64s, origin: Int64s) -> Calls:
        """The calls with copies for each launch of those that its work has in the profile, and of the calls around them."""
        call, count = eager.work.call[origin], max(len(eager.calls), 1)
        called = call >= 0
        key = launch[called] * count + call[called]
        levels = [pd.unique(key)]  # numpy.unique takes many times longer on such numbers
        while len(above := levels[-1]):
            parent = eager.calls.parent[above % count]
            levels.append(pd.unique((above - above % count + parent)[parent >= 0]))
        found = np.sort(pd.unique(np.concatenate(levels)))
        self._work.in_graph[rows] = False
        self._work.call[rows[called]] = len(calls) + np.searchsorted(found, key)
        return calls.with_copies(eager.calls, found % count, found // count)


class _Eager:
    """The work of a profile without graphs, step by step and stream by stream, in one sequence.

    Args:
        run: the profile.
        graphs: device work of the other trace.
        rows: of that, what graphs launched.
    """

    def __init__(self, run: Run, graphs: OperatorWork, rows: Int64s) -> None:
        self.calls, self.work = Calls.of(run), OperatorWork(run)
        self.work.launched_by(self.calls, run)
        steps = steps_of(run)
        self.step_of = self.work.steps(steps.start, steps.end)
        own = np.flatnonzero((self.step_of >= 0) & ~self.work.in_graph)
        group = numbered(self.step_of[own], self.work.stream[own])[0]
        order = np.lexsort((self.work.start[own], group))
        own, group = own[order], group[order]
        self.codes_of_graphs, codes = _codes((graphs, rows), (self.work, own))
        place = np.arange(len(own)) + group
        self._sequence, self._source = (np.full(len(own) + int(group.max(initial=-1)) + 1, _END) for _ in range(2))
        self._sequence[place], self._source[place] = codes, own
        owner = np.append(self.calls.owners(self.work, "", ""), -1)[self._source]
        call = np.append(self.work.call, -1)[self._source]
        self._call = np.where(owner >= 0, owner, call)
        form = np.append(self.calls.form, -1)
        begins = [np.diff(each, prepend=-1) != 0 for each in (owner, call)]
        self._pattern = numbered(form[owner] + 1, form[call] + 1, *(each.astype(np.int64) for each in begins))[0]

    def work_of(self, codes: Int64s, chains: Int64s, launch: Int64s, step_of: Int64s, graphs: OperatorWork) -> Int64s:
        """The work that chains of launches, with the same work on one stream, are proven to be; shape (chains, n). Raises _Unproven.

        Args:
            codes: shape (n,), a number for name and sizes of each piece.
            chains: shape (chains, n), places in the device work of the graphs, in the order of their start.
            launch, step_of: shape (chains,), number of the launch, and the step in which it was called.
        """
        at, length = self._found(codes.tolist(), chains[0], graphs), len(codes)
        step = self.step_of[self._source[at]]
        at = at[np.lexsort((self.work.start[self._source[at]], step))]
        step = np.sort(step)
        first = at[step == step[0]]
        in_launch, in_step = occurrence(launch), occurrence(step_of)
        if (streams := int(in_launch.max()) + 1) > len(first):
            raise _Unproven(
                f"{streams} of its streams have the same work, which is at {len(first)} places of a step without it", length
            )
        if self._same(at, np.full(len(at), at[0]), length):
            return self._work_at(first[in_launch], length)
        often = {len(first), *(int(each) for of in (step, step_of) for each in np.unique(of, return_counts=True)[1])}
        apart = bool((np.diff(np.sort(at)) >= length).all())
        if len(often) > 1 or in_launch.any() or not apart or not self._same(at, first[occurrence(step)], length):
            raise _Unproven(
                f"its work is at {len(first)} places of a step without it, with different operators, and at "
                f"{int(in_step.max()) + 1} of a step with it",
                length,
            )
        return self._work_at(first[in_step], length)

    def _found(self, codes: list[int], work: Int64s, graphs: OperatorWork) -> Int64s:
        """Where in the sequence the work of a chain is, whole calls of operators. Raises _Unproven."""
        at = np.flatnonzero(self._sequence == codes[0])
        if not len(at):
            raise _Unproven(f"the first of {len(codes)}, {_described(graphs, work[0])}, is not in the profile without it", 0)
        for number, code in enumerate(codes[1:], 1):
            further = at[self._sequence[at + number] == code]
            if not len(further):
                pieces = (graphs, int(work[number])), (self.work, int(self._source[at[0] + number]))
                here, there = (_described(*each) for each in pieces)
                if here == there:
                    here, there = (each.kernel(row).full_name for each, row in pieces)
                raise _Unproven(
                    f"{number} of {len(codes)} are as in the profile without it; then comes {here}, and there {there}", number
                )
            at = further
        call, last = np.append(self._call, -1), at + len(codes) - 1
        begins = (call[at] >= 0) & (call[at] == call[at - 1])
        ends = (call[last] >= 0) & (call[last] == call[last + 1])
        if (begins | ends).all():
            cut = at[0] if begins[0] else last[0]
            name = self.calls.names[self.calls.name[call[cut]]]
            raise _Unproven(f"in the profile without it, its work begins or ends inside a call of {name}", len(codes))
        whole: Int64s = at[~(begins | ends)]
        return whole

    def _work_at(self, at: Int64s, length: int) -> Int64s:
        work: Int64s = self._source[at[:, None] + np.arange(length)]
        return work

    def _same(self, at: Int64s, reference: Int64s, length: int) -> bool:
        """Whether operators and their calls at places of the sequence are those at other places."""
        return all(bool((self._pattern[at + each] == self._pattern[reference + each]).all()) for each in range(length))


def _alike(codes: Int64s, launch: Int64s, stream: Int64s) -> Iterator[Int64s]:
    """The places of chains, shape (chains, n), for each different content of chains.

    Args:
        codes, launch, stream: of work that is sorted by launch, stream and start.
    """
    begin = heads(launch, stream)
    found: dict[bytes, list[int]] = {}
    for first, last in zip(begin.tolist(), [*begin[1:].tolist(), len(codes)], strict=True):
        found.setdefault(codes[first:last].tobytes(), []).append(first)
    for content, firsts in found.items():
        yield np.array(firsts)[:, None] + np.arange(len(content) // codes.itemsize)


def _codes(*parts: tuple[OperatorWork, Int64s]) -> list[Int64s]:
    """Equal numbers for equal names and sizes of some work of several traces."""
    texts: dict[str, int] = {}
    columns = []
    for work, rows in parts:
        names = (map(same_function, work.full_names), work.kinds)
        name, kind = (np.array([texts.setdefault(each, len(texts)) for each in of], np.int64) for of in names)
        named = np.concatenate((name[work.full], kind[work.kind]))
        columns.append([each[rows] for each in (named, *work.sizes)])
    codes, _ = numbered(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    return np.split(codes, np.cumsum([len(rows) for _, rows in parts])[:-1])


def same_function(name: str) -> str:
    """A function of C++ with its template arguments and without parameters, in one spelling.

    PyTorch's profiler writes `f<4, g()::{lambda(float)#1}, 2ul>(float*)` where Nsight Systems has
    `f<(int)4, g()::[lambda(float) (instance 1)], (unsigned long)2>(T1 *)`.
    """
    for pattern, written in _SPELLINGS:
        name = pattern.sub(written, name)
    depth, kept = 0, []
    for part in re.split(r"([()])", name):
        depth = max(depth + (part == "(") - (part == ")"), 0)
        if not depth and part != ")":
            kept.append(part)
    return "".join(kept).replace(" ", "")


def _described(work: OperatorWork, place: int) -> str:
    """A piece of work in words: name, blocks and threads, or bytes; -1 for none."""
    if place < 0:
        return "nothing"
    *sizes, size = (int(each[place]) for each in work.sizes)
    name = work.kernel(place).name
    return f"{name}<<<{tuple(sizes[:3])}, {tuple(sizes[3:])}>>>" if place < work.kernels else f"{name} of {size} bytes"
