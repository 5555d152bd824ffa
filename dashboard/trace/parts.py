"""The parts that the time of devices is made of, the steps of a program, and what to do about the largest part."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_interval, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import job_tables
from warpladder.data.words import counted

#: From this share of the span on, graphs with unknown kernels are what to look at first.
MUCH: Final = 0.2
#: Class of time -> its words. The classes add up to the span.
CLASSES: Final = {
    "compute_ns": "compute",
    "graph_ns": "CUDA graphs, whose kernels are not known",
    "exposed_ns": "exposed communication (nothing computes)",
    "copies_ns": "copies, memsets (no kernel runs meanwhile)",
    "idle_ns": "idle",
}
#: Cause of idle time -> its words. They add up to the idle time.
IDLE: Final = {
    "host_wait_ns": "next work not launched yet",
    "other_idle_ns": "launched work waits > 30 µs",
    "kernel_wait_ns": "gaps under 30 µs",
    "managed_ns": "the host uses managed memory",
    "untold_ns": "launch not in the profile",
}
#: The same of a profile with graphs that were traced as a whole.
_OUTSIDE: Final = {"compute_ns": "compute outside of graphs", "exposed_ns": "communication outside of graphs"}
#: A part that is smaller than the largest by less than this ties with it, and two times that differ by less are alike.
_APART: Final = 0.05
#: From this part of the idle time on, a cause is one to look at; from this part of the span on, waits for launches hold up steps.
_CAUSE: Final = 0.25
_WAITS: Final = 0.05
#: Devices that work for less show what launches cost, and not what the program does.
_TINY_NS: Final = 100_000
#: So much in waits of less than 100 us each are many waits, which fewer launches shorten.
_MANY_NS: Final = 1_000_000
#: A step of so many times the median is slow, and one to look at where what it takes more is `MUCH` of the span.
_SLOW: Final = 1.5
_FEWEST_STEPS: Final = 3
#: From this part of the span on, a cause of idle time is shown beside others.
_SHOWN: Final = 0.01
#: Between what to do and the title of the page of the dashboard that shows it; between that title and the one of its section.
IN_APP: Final = ": warpladder app, page "
IN_PAGE: Final = ", section "
_TIMELINE: Final = f"{IN_APP}Timeline"
_WHILE_IDLE: Final = "what the host does while the device is idle"
_OUTSIDE_OF_WORK: Final = "what the host does before and after the device work"
_GRAPHS: Final = "profile with nsys profile --cuda-graph-trace=node: the kernels of the graphs are not in this profile"
_NAMES: Final = 42
#: In the names of AMD's GPUs.
_OF_AMD: Final = re.compile(r"\b(?:AMD|Instinct|Radeon|gfx\w*)\b")
_COLUMNS: Final = tuple(column.name for column in job_tables.BREAKDOWN)


@dataclass(frozen=True)
class Parts:
    """Where the time of devices goes.

    Attributes:
        times: the classes `CLASSES`.
        idle: the causes `IDLE`.
        long_wait_ns: of the waits for launches, those that are so long that the host does more than to launch.
        communication_ns: time in which communication ran, outside of graphs that were traced as a whole.
        whole: words for the span, as the last row has them; after a comma, what it is the sum of.
        ranks: of which the times are the mean; else they are sums.
    """

    times: Mapping[str, int]
    idle: Mapping[str, int]
    long_wait_ns: int
    communication_ns: int
    whole: str
    ranks: int = 1

    @classmethod
    def of(cls, rows: pd.DataFrame, whole: str = "") -> "Parts":
        """The parts of rows with the columns `job_tables.BREAKDOWN`, in sum."""
        sums = {name: int(rows[name].sum()) for name in _COLUMNS}
        copies = sums["busy_ns"] - sums["compute_ns"] - sums["graph_ns"] - sums["exposed_ns"]
        sums |= {"copies_ns": copies, "idle_ns": sums["span_ns"] - sums["busy_ns"]}
        sums |= {
            "other_idle_ns": sums["other_idle_ns"] - sums["untold_ns"],
            "untold_ns": sums["untold_ns"] - sums["managed_ns"],
        }
        times, idle = ({name: sums[name] for name in names} for names in (CLASSES, IDLE))
        return cls(times, idle, sums["long_wait_ns"], sums["communication_ns"], whole)

    def mean(self, ranks: int) -> "Parts":
        """The parts of a rank, on average, from those of all ranks in sum."""
        times, idle = ({name: round(time / ranks) for name, time in each.items()} for each in (self.times, self.idle))
        long_wait, communication = (round(time / ranks) for time in (self.long_wait_ns, self.communication_ns))
        return replace(
            self, times=times, idle=idle, long_wait_ns=long_wait, communication_ns=communication, ranks=self.ranks * ranks
        )

    @property
    def heading(self) -> str:
        """`where the time goes`, and that of how many ranks it is the mean."""
        return f"where the time goes{f', mean of {self.ranks} ranks' if self.ranks > 1 else ''}"

    @property
    def span_ns(self) -> int:
        """From the first device work to the last, in sum over devices."""
        return sum(self.times.values())

    @property
    def busy_ns(self) -> int:
        """Time in which device work ran."""
        return self.span_ns - self.times["idle_ns"]

    @property
    def known(self) -> bool:
        """Whether all device work is known, as no graph was traced as a whole."""
        return not self.times["graph_ns"]

    def share(self, name: str) -> float:
        """A class as a fraction of the span."""
        return self.times[name] / self.span_ns if self.span_ns else 0.0

    def words(self, name: str) -> str:
        return (CLASSES | ({} if self.known else _OUTSIDE))[name]

    @property
    def largest(self) -> list[str]:
        """The largest class, and those that tie with it."""
        ordered = sorted(CLASSES, key=lambda name: -self.times[name])
        return [name for name in ordered if self.times[name] >= (1 - _APART) * self.times[ordered[0]]]

    @property
    def headline(self) -> str:
        """`largest part: compute, 67.5 % of 51.9 ms`; parts that tie are named together."""
        whole, (first, *tied) = format_duration(self.span_ns), [(self.words(name), self.share(name)) for name in self.largest]
        whole = f"a rank's {whole}" if self.ranks > 1 else whole
        whole += f" ({added})" if (added := self.whole.partition(", ")[2]) else ""
        if not tied:
            return f"largest part: {_short(first[0])}, {100 * first[1]:.1f} % of {whole}"
        return (
            f"largest parts of {whole}: {', '.join(f'{_short(words)} {100 * share:.1f} %' for words, share in (first, *tied))}"
        )

    @property
    def idle_sentence(self) -> str:
        """`idle: next work not launched yet 51.9 %, gaps under 30 µs 2.8 %`: the causes in percent of the span; empty for a short idle time."""
        most = sorted((name for name in IDLE if self.idle[name] > _SHOWN * self.span_ns), key=lambda name: -self.idle[name])
        causes = ", ".join(f"{IDLE[name]} {100 * self.idle[name] / self.span_ns:.1f} %" for name in most)
        return f"idle: {causes}" if causes else ""

    def rows(self, *, causes_too: bool = True) -> Iterator[tuple[str, int]]:
        """The words and the time of each class that has time, the largest first, of each cause of idle time, and of the span.

        Causes with little time have no row where there is one main cause or none. Without rows of causes, that of most idle time is named.
        """
        causes = sorted(
            ((words, self.idle[name]) for name, words in IDLE.items() if self.idle[name]), key=lambda each: -each[1]
        )
        main = [words for words, time in causes if time >= _SHOWN * self.span_ns] if len(causes) > 1 else []
        is_main = len(main) == 1 or (not causes_too and main and 2 * causes[0][1] > self.times["idle_ns"])
        alone = f": {causes[0][0]}" if len(causes) == 1 else f", mainly: {main[0]}" if is_main else ""
        for name in sorted(CLASSES, key=lambda name: -self.times[name]):
            if self.times[name]:
                yield f"idle{alone}" if name == "idle_ns" else self.words(name), self.times[name]
            if name == "idle_ns" and causes_too and len(main) > 1:
                yield from ((f"- {words}", time) for words, time in causes)
        yield f"sum: {self.whole}", self.span_ns

    def facts(self) -> dict[str, int | None]:
        """The same with the names of a text for programs; None for what is not known, as what communicates inside of graphs."""
        other = sum(self.idle[name] for name in ("other_idle_ns", "managed_ns", "untold_ns"))
        return {
            "span_ns": self.span_ns,
            "busy_ns": self.busy_ns,
            "compute_ns": self.times["compute_ns"] if self.known else None,
            "communication_ns": self.communication_ns if self.known else None,
            "exposed_communication_ns": self.times["exposed_ns"] if self.known else None,
            "copies_and_sets_alone_ns": self.times["copies_ns"],
            "graphs_traced_whole_ns": self.times["graph_ns"],
            "idle_ns": self.times["idle_ns"],
            "idle_host_wait_ns": self.idle["host_wait_ns"],
            "idle_kernel_wait_ns": self.idle["kernel_wait_ns"],
            "idle_other_ns": other,
            "idle_other_launch_unknown_ns": self.idle["untold_ns"],
            "idle_other_managed_memory_ns": self.idle["managed_ns"],
        }


@dataclass(frozen=True)
class SlowStep:
    """A step that takes much longer than the others; times are the means of all ranks.

    Attributes:
        number: of the step.
        device_ns: on the devices.
        more_ns: than the median step.
        why: the class that grows the most; `why_ns` its time in the step.
    """

    number: int
    device_ns: float
    more_ns: float
    why: str
    why_ns: float


@dataclass(frozen=True)
class Steps:
    """Numbered steps of a program, such as `ProfilerStep#3` or `step 3`: how many a rank has, and how long they take, in ns.

    Attributes:
        median_ns, least_ns, most_ns: on the host, from the start of its range to the end.
        device_median_ns, device_least_ns, device_most_ns: on the devices; None where no step launched work.
        device_ns: of all steps, in sum over devices and ranks; the classes of the profile hold it.
        host_ns: of all steps, in sum over ranks.
        waits_ns: of the host of a step, on average, in calls that wait for the device or copy.
        times: the classes of all steps.
        slow: the longest step, where it is much longer than the median.
        total: steps of all ranks, in sum.
    """

    COLUMNS: ClassVar = ("iteration", "start_ns", "end_ns", "device_start_ns", "device_end_ns", *_COLUMNS)
    #: Those that JSON has.
    FACTS: ClassVar = (
        *("count", "median_ns", "least_ns", "most_ns", "device_median_ns", "device_least_ns", "device_most_ns", "device_ns"),
    )

    count: int
    median_ns: float
    least_ns: float
    most_ns: float
    device_median_ns: float | None
    device_least_ns: float | None
    device_most_ns: float | None
    device_ns: int
    host_ns: float
    waits_ns: float
    times: Mapping[str, int]
    slow: SlowStep | None = None
    total: int = 0

    @classmethod
    def of(cls, iterations: pd.DataFrame, waits_ns: int) -> "Steps | None":
        """The steps of a table `iterations`; None without any.

        Args:
            waits_ns: of all hosts in calls that wait for a device or copy.
        """
        if iterations.empty:
            return None
        lasts = (iterations["end_ns"] - iterations["start_ns"]).astype(float)
        known = iterations[iterations["device_start_ns"].notna()]
        on_device = (known["device_end_ns"] - known["device_start_ns"]).astype(float)
        median, least, most = (on_device.median(), on_device.min(), on_device.max()) if len(on_device) else (None, None, None)
        count, parts = int(iterations["iteration"].nunique()), Parts.of(iterations)
        waits, slow = waits_ns / len(iterations), _slow_step(known.assign(device_ns=on_device))
        host = cls(
            count, lasts.median(), lasts.min(), lasts.max(), median, least, most, parts.span_ns, lasts.sum(), waits, parts.times
        )
        return replace(host, slow=slow, total=len(iterations))

    def sentence(self, parts: Parts | None, of_devices: str = "") -> str:
        """`4 steps: 15.1 ms each on the host, 12.8 ms each from first to last device work, which cover 51.6 of 51.9 ms`.

        Args:
            parts: of all devices, in sum, or the mean of all ranks; None without device work.
            of_devices: ` of 4 devices` where a rank has several.
        """
        ranks = parts.ranks if parts else 1
        steps = counted(self.count, "step") if self.count > 1 else "one step"
        if ranks > 1:
            same = self.total == self.count * ranks
            steps = (
                f"{steps} on each of {ranks} ranks" if same else f"{self.total} steps on {ranks} ranks, not the same on each"
            )
        several = self.count > 1 or ranks > 1
        on_host = f"{_spread(self.median_ns, self.least_ns, self.most_ns, several)} on the host"
        if parts is None or self.device_median_ns is None or self.device_least_ns is None or self.device_most_ns is None:
            return f"{steps} without device work: {on_host}"
        on_device = _spread(self.device_median_ns, self.device_least_ns, self.device_most_ns, several)
        if abs(self.median_ns - self.device_median_ns) > _APART * self.device_median_ns:
            on_device = f"{on_host}, {on_device} from first to last device work"
        part = _part(self.device_ns / ranks, parts.span_ns) + of_devices
        covers = (
            f"which cover{'' if several else 's'} {part}"
            if several or not part.startswith("all ")
            else "to which the parts add up"
        )
        return f"{steps}: {on_device}, {covers}{self._outside(parts)}{self._slowest}"

    def _outside(self, parts: Parts) -> str:
        """`; the other 30.1 ms: 67.7 % exposed communication`, where that is much."""
        rest = parts.span_ns - self.device_ns / parts.ranks
        if rest < _APART * parts.span_ns:
            return ""
        more = {name: parts.times[name] - self.times[name] / parts.ranks for name in CLASSES}
        most = max(more, key=lambda name: more[name])
        share = format_percent(100 * more[most] / rest)
        return f"; the other {format_duration(rest)}: {'' if share == '100 %' else f'{share} '}{_short(parts.words(most))}"

    @property
    def _slowest(self) -> str:
        """`; step 2 takes 2.98 ms, 1.96 ms of it idle`, where one is slow."""
        if self.slow is None:
            return ""
        own, why = format_duration(self.slow.device_ns), format_duration(self.slow.why_ns)
        return f"; step {self.slow.number} takes {own}, {why} of it {_short(CLASSES[self.slow.why])}"

    def outside_ns(self, parts: Parts) -> float:
        """How much longer the host's ranges of all steps are than the span of the devices: before the first device work, and after the last."""
        return max(self.host_ns / parts.ranks - parts.span_ns, 0.0)

    def on_host(self, parts: Parts) -> str:
        """Why a faster kernel does not make a step shorter; empty where it may, as the host waits for the device, or launches early."""
        device, own = self.device_median_ns, self.median_ns - self.waits_ns
        late = parts.idle["host_wait_ns"] + self.outside_ns(parts)
        if device is None or own <= (1 + _APART) * device or late < _WAITS * parts.span_ns:
            return ""
        waits = f"{format_duration(self.waits_ns)} in waits and copies" if self.waits_ns else "without waits"
        host = f"under the profiler, the host takes {format_duration(self.median_ns)} a step ({waits})"
        return f"{host}, the device {format_duration(device)}: faster kernels do not shorten a step; see"


def _slow_step(known: pd.DataFrame) -> SlowStep | None:
    """The longest step, where it takes `_SLOW` times the median step or more."""
    computing = known["compute_ns"] + known["graph_ns"] + known["exposed_ns"]
    times = known.assign(idle_ns=known["span_ns"] - known["busy_ns"], copies_ns=known["busy_ns"] - computing)
    # The mean of the devices: the classes of a step are sums over them.
    times[[*CLASSES]] = (
        times[[*CLASSES]].mul(known["device_ns"] / known["span_ns"].where(known["span_ns"] > 0), axis=0).fillna(0.0)
    )
    means = times.groupby("iteration", as_index=False)[["device_ns", *CLASSES]].mean()
    if len(means) < _FEWEST_STEPS:
        return None
    longest = means.iloc[int(means["device_ns"].to_numpy(float).argmax())]
    more = longest - means.median()
    if longest["device_ns"] < _SLOW * (longest["device_ns"] - more["device_ns"]):
        return None
    why = max(CLASSES, key=lambda name: float(more[name]))
    return SlowStep(int(longest["iteration"]), float(longest["device_ns"]), float(more["device_ns"]), why, float(longest[why]))


def _short(words: str) -> str:
    """The words of a class without what explains them."""
    return words.split(" (")[0].split(", ")[0]


def _spread(median_ns: float, least_ns: float, most_ns: float, several: bool) -> str:
    """`12.8 ms` of one, `12.8 ms each`, or `median 12.8 ms (12.5 to 16.9 ms)` where the least and the most differ from it."""
    median, *ends = map(format_duration, (median_ns, least_ns, most_ns))
    if not several:
        return median
    return f"{median} each" if ends == [median] * 2 else f"median {median} ({format_interval(*ends)})"


def _part(part_ns: float, whole_ns: float) -> str:
    """`23.8 of 44.0 ms`, or `all 44.0 ms`."""
    part, whole = format_duration(part_ns), format_duration(whole_ns)
    if part == whole:
        return f"all {whole}"
    number, unit = part.split(" ")
    return f"{number if unit == whole.split(' ')[1] else part} of {whole}"


@dataclass(frozen=True)
class Told:
    """What a profile or a job comes to, in sentences, as import, summary and Home have it.

    Attributes:
        headline: what most of the time is; empty without device work.
        findings: which stage or rank the others wait for, why, and which kernel differs.
        steps: how many, and how long they take; empty without any.
        to_do: what to do first.
    """

    headline: str
    findings: tuple[str, ...]
    steps: str
    to_do: str

    @property
    def lines(self) -> tuple[str, ...]:
        """All that is told, in order."""
        return tuple(each for each in (self.headline, *self.findings, self.steps, f"next: {self.to_do}") if each)


def advice(parts: Parts, steps: Steps | None, about: Mapping[str, str]) -> str:
    """What to do first, about the largest part; about something else, it tells why.

    Args:
        about: what to do about compute, exposed communication and copies.
    """
    if parts.busy_ns < _TINY_NS:
        works = format_duration(parts.busy_ns)
        return f"profile a longer part of the program: the device works for only {works}, too little to tell what limits it"
    if parts.share("graph_ns") >= MUCH:
        return _GRAPHS
    every = {"graph_ns": _GRAPHS, "idle_ns": about_idle(parts), **about}
    on_host = steps.on_host(parts) if steps and "compute_ns" in parts.largest[:1] else ""
    if on_host:
        outside = steps is not None and steps.outside_ns(parts) > parts.idle["host_wait_ns"]
        waits = 2 * parts.idle["host_wait_ns"] > parts.times["idle_ns"]
        looks = _about(parts, "host_wait_ns").removeprefix("see ") if waits else f"{_WHILE_IDLE}{_TIMELINE}"
        return f"{on_host} {f'{_OUTSIDE_OF_WORK}{_TIMELINE}' if outside else looks}"
    slow = steps.slow if steps else None
    if slow and slow.more_ns >= MUCH * parts.span_ns:
        return f"see why step {slow.number} takes {format_duration(slow.more_ns)} more than the median step{_TIMELINE}"
    return "; and ".join(every[name] for name in parts.largest[:2])


def about_kernels(data: RunData, longest: str) -> str:
    """What to do about compute in the trace of one process, whose longest kernel has this short name."""
    if data.traces.has_operators:
        return f"see which operations a better kernel could make faster: warpladder extract {data.argument}"
    longest = longest.split("<")[0].split(" ")[0].split("::")[-1][:_NAMES]
    if _OF_AMD.search(str(data.info["device_name"] or "")):
        return f"see what limits {longest}: rocprof-compute profile -n NAME -k {longest} -- PROGRAM"
    command = f"ncu --set full --export report -k regex:{longest} PROGRAM"
    return f"see what limits {longest}: {command}, then warpladder import report.ncu-rep"


def about_idle(parts: Parts) -> str:
    """What to do about idle time: where to see its causes, and what makes waits shorter."""
    causes = sorted((name for name in IDLE if parts.idle[name]), key=lambda name: -parts.idle[name])
    causes = [name for name in causes if parts.idle[name] >= _CAUSE * parts.times["idle_ns"]]
    if causes and causes[0] == "managed_ns":
        return "the host works on managed memory while the device is idle: do that work on the device, or leave it out of the profile"
    return _about(parts, *(causes[:2] or ["untold_ns"]))


def _about(parts: Parts, *causes: str) -> str:
    """Where to see causes of idle time, and what makes the waits of the first one shorter."""
    short_ns = parts.idle["host_wait_ns"] - parts.long_wait_ns
    long, many = parts.long_wait_ns > short_ns, short_ns >= _MANY_NS
    looks = {
        "host_wait_ns": "what the host does before late launches" if long else "which work is launched late",
        "other_idle_ns": "where launched work waits",
        "kernel_wait_ns": "between which kernels the gaps are",
        "managed_ns": "when the host uses managed memory",
        "untold_ns": "where the device is idle, as the profile does not tell why",
    }
    cures = {
        "host_wait_ns": "fewer launches or a CUDA graph help",
        "kernel_wait_ns": "fewer, longer kernels or a CUDA graph help",
    }
    cure = cures.get(causes[0], "")
    if causes[0] == "host_wait_ns" and (long or not many):
        cure = ""
    return f"see {', and '.join(looks[name] for name in causes)}{_TIMELINE}{cure and f'; {cure}'}"
