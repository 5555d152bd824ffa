"""The parts that the time of devices is made of, and the steps of a program, as rows of a text of 80 columns."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_interval
from warpladder.dashboard.ui.tables import plain_table
from warpladder.dashboard.ui.text import cut

#: Columns of a text, the lines of a screen, and those of them that are kept for warnings.
WIDTH: Final = 80
SCREEN: Final = 24
WARNED: Final = 2
#: Lines of a text.
LINES: Final = SCREEN - WARNED
#: From this share of the span on, a part is what to look at first.
MUCH: Final = 0.2
_NAME_CHARACTERS: Final = 42
#: A smaller share, in percent, would be written 0.0.
_LEAST_SHARE: Final = 0.05
#: Class of time -> its words. The classes add up to the span.
CLASSES: Final = {
    "compute_ns": "compute",
    "graph_ns": "CUDA graphs, traced whole: kinds unknown",
    "exposed_ns": "exposed communication (nothing computes)",
    "copies_ns": "copies and sets alone",
    "host_wait_ns": "idle: waits for the host to launch",
    "kernel_wait_ns": "idle: between launched kernels",
    "other_idle_ns": "idle: other",
}
#: The same of a profile with graphs that were traced as a whole.
_OUTSIDE: Final = {"compute_ns": "compute outside of graphs", "exposed_ns": "communication outside of graphs"}
_IDLE: Final = ("host_wait_ns", "kernel_wait_ns", "other_idle_ns")

Row = tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """Where the time of devices goes.

    Attributes:
        span_ns: from the first device work to the last, in sum over devices and ranks.
        times: the classes `CLASSES`.
        communication_ns: time in which communication ran, outside of graphs that were traced as a whole.
    """

    span_ns: int
    times: Mapping[str, int]
    communication_ns: int

    @classmethod
    def of(cls, sums: Mapping[str, int]) -> "Parts":
        """The parts of sums with the columns of table `ranks` that are times."""
        copies = sums["busy_ns"] - sums["compute_ns"] - sums["graph_ns"] - sums["exposed_ns"]
        times = {name: int(copies if name == "copies_ns" else sums[name]) for name in CLASSES}
        return cls(int(sums["span_ns"]), times, int(sums["communication_ns"]))

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

    def rows(self) -> list[Row]:
        """A row for each class that has time."""
        words = CLASSES if self.known else {**CLASSES, **_OUTSIDE}
        return [row(words[name], time, self.span_ns) for name, time in self.times.items() if time]

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
        device_median_ns: on the devices; None where no step launched work.
    """

    COLUMNS: ClassVar = ("iteration", "start_ns", "end_ns", "device_start_ns", "device_end_ns")

    count: int
    median_ns: float
    least_ns: float
    most_ns: float
    device_median_ns: float | None

    @classmethod
    def of(cls, iterations: pd.DataFrame) -> "Steps | None":
        """The steps of a table `iterations`; None without any."""
        if iterations.empty:
            return None
        lasts = (iterations["end_ns"] - iterations["start_ns"]).astype(float)
        known = iterations[iterations["device_start_ns"].notna()]
        on_device = (known["device_end_ns"] - known["device_start_ns"]).astype(float)
        count = int(iterations["iteration"].nunique())
        return cls(count, lasts.median(), lasts.min(), lasts.max(), on_device.median() if len(on_device) else None)

    @property
    def sentence(self) -> str:
        """`4 steps: median 12.8 ms on the host (12.5 to 16.9 ms), 9.20 ms on the device`."""
        spread = format_interval(format_duration(self.least_ns), format_duration(self.most_ns))
        several = f"{self.count} steps: median {format_duration(self.median_ns)} on the host ({spread})"
        one = f"one step: {format_duration(self.median_ns)} on the host"
        on_device = "" if self.device_median_ns is None else f", {format_duration(self.device_median_ns)} on the device"
        return (several if self.count > 1 else one) + on_device


def row(what: str, time_ns: float, of_ns: float, *notes: str) -> Row:
    """A row of a table: what takes the time, the time, its share, and notes."""
    share = 100 * time_ns / of_ns if of_ns else 0.0
    return middle_cut(what), format_duration(time_ns), "<0.1 %" if 0 < share < _LEAST_SHARE else f"{share:.1f} %", *notes


def middle_cut(name: str, most: int = _NAME_CHARACTERS) -> str:
    """A name of at most so many characters: its start and its end, in which templates differ."""
    name = cut(name, 10 * most)
    return name if len(name) <= most else f"{name[: most - most // 3 - 1]}…{name[-(most // 3) :]}"


def table(headings: Row, rows: Sequence[Row], first_characters: int = _NAME_CHARACTERS) -> list[str]:
    """The lines of a table, no longer than `WIDTH`, with a first column of so many characters."""
    first = headings[0].ljust(first_characters)
    return [line[:WIDTH].rstrip() for line in plain_table((first, *headings[1:]), rows)] if rows else []


def brief(sentences: Iterable[str], most: int = 2) -> list[str]:
    """Sentences in lines as of `wrapped`, each cut after so many. Of those that begin alike, as reasons do, the first is kept."""
    first = {sentence.split(": ")[0]: sentence for sentence in reversed(list(sentences))}
    found = []
    for sentence in reversed(first.values()):
        lines = wrapped([sentence])
        found += lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: WIDTH - 1]}…"]
    return found


def fitting(findings: Sequence[str], lines: int) -> list[str]:
    """The first findings in so many lines, the very first cut where it takes more, and how many more there are."""
    shown: list[str] = []
    for number, each in enumerate(findings):
        whole = wrapped([each])
        left = lines - len(shown) - (number + 1 < len(findings))
        if len(whole) > left and not number:
            whole = [*whole[: left - 1], f"{whole[left - 1][: WIDTH - 1]}…"]
        if len(whole) > left:
            more = len(findings) - number
            return [*shown, f"{more} more finding{'s' if more > 1 else ''}, and all in full: warpladder summary --all"]
        shown += whole
    return shown


def wrapped(lines: Iterable[str]) -> list[str]:
    """Sentences in lines no longer than `WIDTH`; those after the first of a sentence are indented."""
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)]
