"""The parts that the time of devices is made of, and the steps of a program, as rows of a text of 80 columns."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_interval
from warpladder.dashboard.ui.text import cut, plain_table

#: Columns of a text, and the lines of a screen.
WIDTH: Final = 80
SCREEN: Final = 24
#: From this share of the span on, graphs with unknown kernels are what to look at first.
MUCH: Final = 0.2
#: A step's range on the host is told where it differs from the step on the devices by this part of it.
_APART: Final = 0.05
_NAME_CHARACTERS: Final = 42
#: What tells alike short names apart, and what ends a word of a name.
_NUMBER: Final = re.compile(r" #\d+\Z")
_NO_WORD: Final = re.compile(r"[\W_]")
#: A smaller share, in percent, would be written 0.0.
_LEAST_SHARE: Final = 0.05
#: Class of time -> its words. The classes add up to the span.
CLASSES: Final = {
    "compute_ns": "compute",
    "graph_ns": "CUDA graphs, whose kernels are not known",
    "exposed_ns": "exposed communication (nothing computes)",
    "copies_ns": "copies, memsets (no kernel runs meanwhile)",
    "host_wait_ns": "idle: the next work was not launched yet",
    "kernel_wait_ns": "idle: gaps under 30 µs, work was launched",
    "other_idle_ns": "idle: gaps over 30 µs, work was launched",
}
#: The same of a profile with graphs that were traced as a whole.
_OUTSIDE: Final = {"compute_ns": "compute outside of graphs", "exposed_ns": "communication outside of graphs"}
#: The same where launches are not in the profile, so that idle time may have been a wait for the host.
_UNTOLD: Final = {
    "kernel_wait_ns": "idle: gaps under 30 µs, launch unknown",
    "other_idle_ns": "idle: gaps over 30 µs, launch unknown",
}
_IDLE: Final = ("host_wait_ns", "kernel_wait_ns", "other_idle_ns")
#: Idle time that the profile does not explain.
UNTOLD: Final = "untold"
_TIMELINE: Final = "warpladder app, page Timeline"
#: Class of time -> what to do where it is the largest, of a profile as of a job.
HINTS: Final = {
    "graph_ns": "profile with nsys profile --cuda-graph-trace=node: the kernels of the graphs are not in this profile",
    "host_wait_ns": f"see which work is launched late: {_TIMELINE}; fewer launches or a CUDA graph help",
    "kernel_wait_ns": f"see between which kernels the gaps are: {_TIMELINE}; fewer, longer kernels or a CUDA graph help",
    "other_idle_ns": f"see what the launched work waits for, such as another stream: {_TIMELINE}",
    UNTOLD: f"see where the device is idle: {_TIMELINE}; the profile does not tell why",
}

Row = tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """Where the time of devices goes.

    Attributes:
        span_ns: from the first device work to the last, in sum over devices and ranks.
        times: the classes `CLASSES`.
        communication_ns: time in which communication ran, outside of graphs that were traced as a whole.
        untold: of classes of idle time, the part before work whose launch is not in the profile; None where it may be any part.
        whole: words for the span, as the last row has them.
        why_untold: words for that part.
    """

    span_ns: int
    times: Mapping[str, int]
    communication_ns: int
    whole: str
    untold: Mapping[str, int] | None = field(default_factory=dict)
    why_untold: str = "idle: the launch is not in the profile"

    @classmethod
    def of(cls, sums: Mapping[str, int], whole: str, untold: Mapping[str, int] | None, why_untold: str = "") -> "Parts":
        """The parts of sums with the columns of table `ranks` that are times."""
        copies = sums["busy_ns"] - sums["compute_ns"] - sums["graph_ns"] - sums["exposed_ns"]
        times = {name: int(copies if name == "copies_ns" else sums[name]) for name in CLASSES}
        return cls(int(sums["span_ns"]), times, int(sums["communication_ns"]), whole, untold, why_untold or cls.why_untold)

    @property
    def known(self) -> bool:
        """Whether all device work is known, as no graph was traced as a whole."""
        return not self.times["graph_ns"]

    @property
    def idle_ns(self) -> int:
        """Time in which no device work ran."""
        return sum(self.times[name] for name in _IDLE)

    def share(self, name: str) -> float:
        """A class as a fraction of the span."""
        return self.times[name] / self.span_ns if self.span_ns else 0.0

    def _told(self) -> dict[str, int]:
        """Each class that has time, and `UNTOLD`, the largest first."""
        untold = self.untold or {}
        parts = {name: time - untold.get(name, 0) for name, time in self.times.items()} | {UNTOLD: sum(untold.values())}
        return {name: time for name, time in sorted(parts.items(), key=lambda part: -part[1]) if time}

    def _words(self, name: str) -> str:
        words = {**CLASSES, UNTOLD: self.why_untold}
        return (words | ({} if self.known else _OUTSIDE) | (_UNTOLD if self.untold is None else {}))[name]

    @property
    def largest(self) -> str:
        """The class to look at first: graphs with unknown kernels from `MUCH` of the span on, else that with the most time."""
        most = next(iter(self._told()))
        most = UNTOLD if self.untold is None and most in _UNTOLD else most
        return "graph_ns" if self.share("graph_ns") >= MUCH else most

    @property
    def headline(self) -> str:
        """`largest part: compute, 67.5 % of 51.9 ms`."""
        name, time = next(iter(self._told().items()))
        what = self._words(name)
        what = f"idle ({what.removeprefix('idle: ')})" if what.startswith("idle: ") else what
        return f"largest part: {what}, {100 * time / self.span_ns:.1f} % of {format_duration(self.span_ns)}"

    def rows(self) -> list[Row]:
        """A row for each part that has time, and one for the span."""
        parts = [(self._words(name), time) for name, time in self._told().items()]
        return [row(what, time, self.span_ns) for what, time in (*parts, (f"sum: {self.whole}", self.span_ns))]

    def facts(self) -> dict[str, int | None]:
        """The same with the names of a text for programs; None for what is not known, as what communicates inside of graphs."""
        return {
            "span_ns": self.span_ns,
            "busy_ns": self.span_ns - self.idle_ns,
            "compute_ns": self.times["compute_ns"] if self.known else None,
            "communication_ns": self.communication_ns if self.known else None,
            "exposed_communication_ns": self.times["exposed_ns"] if self.known else None,
            "copies_and_sets_alone_ns": self.times["copies_ns"],
            "graphs_traced_whole_ns": self.times["graph_ns"],
            "idle_ns": self.idle_ns,
            **{f"idle_{name}": self.times[name] for name in _IDLE if name != "other_idle_ns"},
            "idle_other_ns": self.times["other_idle_ns"],
        }


@dataclass(frozen=True)
class Steps:
    """Numbered steps of a program, such as `ProfilerStep#3` or `step 3`: how many a rank has, and how long they take, in ns.

    Attributes:
        median_ns, least_ns, most_ns: on the host, from the start of its range to the end.
        device_median_ns, device_least_ns, device_most_ns: on the devices; None where no step launched work.
        device_ns: of all steps, in sum over devices and ranks; the classes of the profile hold it.
    """

    COLUMNS: ClassVar = ("iteration", "start_ns", "end_ns", "device_start_ns", "device_end_ns", "span_ns")

    count: int
    median_ns: float
    least_ns: float
    most_ns: float
    device_median_ns: float | None
    device_least_ns: float | None
    device_most_ns: float | None
    device_ns: int

    @classmethod
    def of(cls, iterations: pd.DataFrame) -> "Steps | None":
        """The steps of a table `iterations`; None without any."""
        if iterations.empty:
            return None
        lasts = (iterations["end_ns"] - iterations["start_ns"]).astype(float)
        known = iterations[iterations["device_start_ns"].notna()]
        on_device = (known["device_end_ns"] - known["device_start_ns"]).astype(float)
        count, whole = int(iterations["iteration"].nunique()), int(iterations["span_ns"].sum())
        median, least, most = (on_device.median(), on_device.min(), on_device.max()) if len(on_device) else (None, None, None)
        return cls(count, lasts.median(), lasts.min(), lasts.max(), median, least, most, whole)

    def sentence(self, span_ns: int, of: str = "", on: str = "") -> str:
        """`4 steps take 51.6 of 51.9 ms on the device: median 12.8 ms (12.4 to 13.7 ms); their ranges on the host: 15.1 ms each`.

        Args:
            span_ns: of all devices, in sum.
            of: the ranks that have the steps, such as ` of 2 ranks`; empty where it is one.
            on: ` on 4 devices` where a rank has several.
        """
        steps, takes = (f"{self.count} steps{of}", "take") if self.count > 1 else (f"one step{of}", "takes")
        several = self.count > 1 or of
        lasts = _spread(self.median_ns, self.least_ns, self.most_ns) if several else format_duration(self.median_ns)
        host = f"; {'their ranges' if several else 'its range'} on the host: {lasts}"
        if self.device_median_ns is None or self.device_least_ns is None or self.device_most_ns is None:
            return f"{steps} without device work{host}"
        each = f": {_spread(self.device_median_ns, self.device_least_ns, self.device_most_ns)}" if several else ""
        if abs(self.median_ns - self.device_median_ns) <= _APART * self.device_median_ns:
            return f"{steps} {takes} {_part(self.device_ns, span_ns)}{on}{each}"
        on = on or f" on the device{'s' if of else ''}"
        return f"{steps} {takes} {_part(self.device_ns, span_ns)}{on}{each}{host}"


def _spread(median_ns: float, least_ns: float, most_ns: float) -> str:
    """`12.8 ms each`, or `median 12.8 ms (12.5 to 16.9 ms)` where the least and the most differ from it."""
    median, *ends = map(format_duration, (median_ns, least_ns, most_ns))
    return f"{median} each" if ends == [median] * 2 else f"median {median} ({format_interval(*ends)})"


def _part(part_ns: float, whole_ns: float) -> str:
    """`23.8 of 44.0 ms`, or `all 44.0 ms`."""
    part, whole = format_duration(part_ns), format_duration(whole_ns)
    if part == whole:
        return f"all {whole}"
    number, unit = part.split(" ")
    return f"{number if unit == whole.split(' ')[1] else part} of {whole}"


def summed(time_ns: float, covered_ns: float) -> str:
    """`97.3 ms (overlaps count twice)`: a sum of times that cover less time together."""
    time = format_duration(time_ns)
    return time if time == format_duration(covered_ns) else f"{time} (overlaps count twice)"


def row(what: str, time_ns: float, of_ns: float, *notes: str) -> Row:
    """A row of a table: what takes the time, the time, its share, and notes."""
    share = 100 * time_ns / of_ns if of_ns else 0.0
    return middle_cut(what), format_duration(time_ns), "<0.1 %" if 0 < share < _LEAST_SHARE else f"{share:.1f} %", *notes


def middle_cut(name: str, most: int = _NAME_CHARACTERS) -> str:
    """A name of at most so many characters: its start and its end, in which templates differ."""
    name = cut(name, 10 * most)
    return name if len(name) <= most else f"{name[: most - most // 3 - 1]}…{name[-(most // 3) :]}"


def apart(names: Sequence[str], full: Sequence[str], most: int = _NAME_CHARACTERS) -> list[str]:
    """Names of at most so many characters, of which no two are alike where the full names differ.

    Args:
        names: short names; those of kernels that differ inside of long arguments end with `#` and a number.
        full: the full name of each.
    """
    cuts = [middle_cut(_NUMBER.sub("", name), most) for name in names]
    alike = Counter(cuts)
    groups = {each: [full[place] for place, other in enumerate(cuts) if other == each] for each in cuts if alike[each] > 1}
    return [_differing(name, groups[name], own, most) if name in groups else name for name, own in zip(cuts, full, strict=True)]


def _differing(name: str, group: Sequence[str], own: str, most: int) -> str:
    """The start of a name, and what its full name has from the word on in which it differs from the others."""
    place = next(
        (place for place, each in enumerate(zip(*group, strict=False)) if len(set(each)) > 1), len(min(group, key=len))
    )
    place = max((found.end() for found in _NO_WORD.finditer(own, 0, place)), default=place)
    head = re.split(r"\W", name, maxsplit=1)[0][: most // 2 - 1]
    return cut(f"{head}…{own[place:]}", most)


def table(headings: Row, rows: Sequence[Row], first_characters: int = _NAME_CHARACTERS) -> list[str]:
    """The lines of a table, no longer than `WIDTH`, with a first column of so many characters."""
    first = headings[0].ljust(first_characters)
    return [line[:WIDTH].rstrip() for line in plain_table((first, *headings[1:]), rows)] if rows else []


def fitting(findings: Sequence[str], lines: int) -> list[str]:
    """The first findings in so many lines, the very first cut where it takes more, and how many more there are."""
    shown: list[str] = []
    for number, each in enumerate(findings):
        whole = wrapped([each])
        left = lines - len(shown) - (number + 1 < len(findings))
        if not number:
            whole = shortened(each, left)
        if len(whole) > left:
            more = len(findings) - number
            return [*shown, f"{more} more warning{'s' if more > 1 else ''}, and all in full: warpladder summary --all"]
        shown += whole
    return shown


def shortened(text: str, lines: int) -> list[str]:
    """A sentence in at most so many lines, cut between words."""
    whole = wrapped([text])
    if len(whole) <= lines:
        return whole
    indent = "  " if lines > 1 else ""
    return [*whole[: lines - 1], indent + textwrap.shorten(" ".join(whole[lines - 1 :]), WIDTH - 2, placeholder=" …")]


def wrapped(lines: Iterable[str]) -> list[str]:
    """Sentences in lines no longer than `WIDTH`; those after the first of a sentence are indented."""
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)]
