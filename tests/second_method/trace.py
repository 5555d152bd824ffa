"""A trace of PyTorch's profiler as plain lists of intervals. Times are whole nanoseconds, from the digits of the file."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Final

#: What is compared: page, row and column -> figure.
Totals = dict[tuple[str, str, str], float | None]

_WORK: Final = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "set", "memset": "set"}
_CALLS: Final = ("runtime", "driver", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")
_OPERATORS: Final = ("cpu_op", "operator")
STEP: Final = re.compile(r"(?i)\W*(profilerstep|step|iteration|iter)\s*[#_:=\s]?\s*(\d{1,12})\W*")


@dataclass(frozen=True)
class Interval:
    """Something that lasts from `start` to `end`, with its name, thread and further arguments."""

    start: int
    end: int
    name: str
    thread: tuple[Any, Any] = (None, None)
    kind: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lasts(self) -> int:
        return self.end - self.start


class Nest:
    """Intervals of one thread, sorted, with the nearest earlier one around each that does not end sooner."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        self.all = sorted(intervals, key=lambda each: (each.start, -each.end))
        self.parent: list[int] = []
        for place, each in enumerate(self.all):
            above = place - 1
            while above >= 0 and self.all[above].end < each.end:
                above = self.parent[above]
            self.parent.append(above)

    def innermost(self, times: Iterable[int]) -> dict[int, int]:
        """The place of the interval that was opened last among those that are open at each time; -1 for none."""
        found, last = {}, -1
        for time in sorted(set(times)):
            while last + 1 < len(self.all) and self.all[last + 1].start <= time:
                last += 1
            at = last
            while at >= 0 and self.all[at].end <= time:
                at = self.parent[at]
            found[time] = at
        return found


@dataclass(frozen=True)
class Trace:
    """The events of one file, one process. `rank` is that of its job, where the file has it."""

    work: Sequence[Interval]
    calls: Sequence[Interval]
    ranges: Sequence[Interval]
    operators: Sequence[Interval]
    rank: int | None

    @cached_property
    def call_of(self) -> Mapping[int, Interval]:
        """The call that launched the work of each correlation, the first one where it occurs again."""
        found: dict[int, Interval] = {}
        for call in self.calls:
            if number := integer(call.args.get("correlation")):
                found.setdefault(number, call)
        return found

    def launch(self, work: Interval) -> Interval | None:
        """The call that launched some work; None where the trace lacks it."""
        return self.call_of.get(integer(work.args.get("correlation")) or 0)

    def kernels(self) -> Iterator[Interval]:
        return (each for each in self.work if each.kind == "kernel")

    def memory(self) -> Iterator[Interval]:
        return (each for each in self.work if each.kind != "kernel")


def read(path: Path) -> Trace:
    """The trace of a file, `.json` or `.json.gz`."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text, parse_float=Decimal)
    head = {} if isinstance(document, list) else document
    events, base = head.get("traceEvents", document), head.get("baseTimeNanoseconds", 0)
    rank = (head.get("distributedInfo") or {}).get("rank", rank_in(path.name))
    kinds: dict[str, list[Interval]] = defaultdict(list)
    for event in events:
        category = str(event.get("cat", "")).lower()
        kind = _WORK.get(category) or ("call" if category in _CALLS else "operator" if category in _OPERATORS else category)
        if event.get("ph") != "X" or "ts" not in event or "dur" not in event:
            continue
        start = base + round(event["ts"] * 1000)
        thread = event.get("pid"), event.get("tid")
        name, lasts, args = str(event["name"]), round(event["dur"] * 1000), event.get("args") or {}
        if kind == "operator" and name.startswith("ProfilerStep#"):
            kind = "user_annotation"
        kinds[kind].append(Interval(start, start + lasts, name, thread, kind, args))
    work = [each for kind in ("kernel", "copy", "set") for each in kinds[kind]]
    return Trace(work, kinds["call"], kinds["user_annotation"], kinds["operator"], rank)


def rank_in(name: str) -> int | None:
    """The rank in the name of a file."""
    found = re.search(r"(?i)rank[-_=]?(\d+)|worker(\d+)", name)
    return int(found[1] or found[2]) if found else None


def union(intervals: Iterable[Interval]) -> int:
    """Time in which at least one of them runs."""
    total, reached = 0, None
    for each in sorted(intervals, key=lambda one: one.start):
        begin = each.start if reached is None else max(each.start, reached)
        total += max(each.end - begin, 0)
        reached = each.end if reached is None else max(reached, each.end)
    return total


def integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def grouped(intervals: Iterable[Interval], key: Callable[[Interval], Any]) -> dict[Any, list[Interval]]:
    groups: dict[Any, list[Interval]] = defaultdict(list)
    for each in intervals:
        groups[key(each)].append(each)
    return groups


def by_thread(intervals: Iterable[Interval]) -> dict[Any, list[Interval]]:
    return grouped(intervals, lambda each: each.thread)


def by_device(intervals: Iterable[Interval]) -> dict[Any, list[Interval]]:
    return grouped(intervals, lambda each: each.args.get("device"))


def joined(intervals: Iterable[Interval]) -> list[tuple[int, int]]:
    """The union as intervals that do not touch."""
    found: list[tuple[int, int]] = []
    for each in sorted(intervals, key=lambda one: one.start):
        if found and each.start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], each.end)
        else:
            found.append((each.start, each.end))
    return found


def step_ranges(trace: Trace) -> list[Interval]:
    """The ranges that are steps: the outermost numbered ones, in the order of their start."""
    kinds: dict[str, list[Interval]] = defaultdict(list)
    for each in sorted(trace.ranges, key=lambda one: (one.start, -one.end)):
        if found := STEP.fullmatch(each.name):
            kinds[found[1].lower()].append(each)
    outer = {kind: _outermost(ranges) for kind, ranges in kinds.items()}
    outer = {kind: ranges for kind, ranges in outer.items() if kind == "profilerstep" or len(ranges) > 1}
    if not outer:
        return []
    chosen = max(outer, key=lambda kind: (kind == "profilerstep", len(outer[kind])))
    for kind, ranges in outer.items():
        if kind != chosen and 2 * sum(_inside(each, ranges) for each in outer[chosen]) >= len(outer[chosen]):
            chosen = kind
    return outer[chosen]


def _inside(one: Interval, ranges: Iterable[Interval]) -> bool:
    return any(each is not one and each.start <= one.start and one.end <= each.end for each in ranges)


def _outermost(ranges: Sequence[Interval]) -> list[Interval]:
    return [each for place, each in enumerate(ranges) if not _inside(each, ranges[:place])]
