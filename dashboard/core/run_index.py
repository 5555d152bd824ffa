"""The contents of each run, the runs that suit a page, and their labels.

A label is the user's own, or it is made from what was measured, when and where.
"""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import numpy as np

from warpladder.data import figures, files, store
from warpladder.data.words import first_of

#: Workloads that an automatic label names.
_MOST: Final = 2


def label_of(run: store.Run) -> str:
    """The label of a run on one line. Without one: `my_kernel · 2026-11-24 15:01 · AMD EPYC`."""
    if run.info["label"]:
        return files.one_line(str(run.info["label"]))
    try:
        column = run.arrow("cases", ("workload",)).column("workload")
        workloads = column.combine_chunks().unique().to_pylist()
    except store.StoreError:
        workloads = []
    return label_from(run.info, [str(name) for name in workloads])


def dated(run: store.Run, how: str = "%Y-%m-%d") -> str:
    """The label of a run with its date, which a label that is made has already."""
    return f"{label_of(run)} · {run.info['started_at']:{how}}" if run.info["label"] else label_of(run)


def label_from(info: Mapping[str, Any], workloads: Sequence[str]) -> str:
    """As `label_of`, from the row of table `run` and the workloads in their order. Without a workload the name of the imported file with
    its date, and the id of the run where nothing was imported."""
    if info["label"]:
        return files.one_line(str(info["label"]))
    if not workloads and info.get("source"):
        return files.one_line(f"{info['source']} · {info['started_at']:%Y-%m-%d %H:%M}")
    if not workloads:
        return files.one_line(str(info["run_id"]))
    device = str(info["device_name"] or info["cpu_name"])
    return files.one_line(f"{first_of(workloads, _MOST)} · {info['started_at']:%Y-%m-%d %H:%M} · {device}")


def has_versions(info: Mapping[str, Any]) -> bool:
    """Whether a run measured two versions of a file, as `record --against` and `--watch` do; `info` is its row of table `run`."""
    return any(option in str(info["command"]) for option in (" --against", " --watch"))


def recorded_words(command: str) -> tuple[list[str], list[str]]:
    """The workloads and files that the command of a recording names, and its further words; none of another command."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    words = words[words.index("record") + 1 :] if "record" in words else []
    options = [place for place, word in enumerate(words) if word.startswith("--")]
    named = words[: options[0] if options else len(words)]
    return named, words[options[0] :] if options else []


#: A run with a smaller fraction of the charted cases or cells of the fullest run does not hide the fullest run.
LEAST_PART: Final = 0.5
#: The rule of `suitable`, for users.
RULE: Final = (
    "The newest run that has at least half of the charted cases, and of the measured cells, that the fullest run of the "
    "workload on this device has."
)
_Further = ParamSpec("_Further")
_Value = TypeVar("_Value")
_MOST_NAMES: Final = 3  # of workloads in the title of a run
_TRACE: Final = ("ranges", "kernels", "memory_ops", "api_calls")
#: Tables that the ranks of a job have. Variants are not picked among the ranges of ranks.
_OF_RANKS: Final = ("kernels", "memory_ops", "api_calls")


class Need(StrEnum):
    """The needs of a page: what a run must have, of which it has one of some `tables`."""

    tables: tuple[str, ...]

    def __new__(cls, value: str, tables: tuple[str, ...] = ()) -> "Need":
        need = str.__new__(cls, value)
        need._value_, need.tables = value, tables
        return need

    NOTHING = "nothing"
    TIMES = "times", ("samples",)
    SIZES = "times at several sizes", ("samples",)
    PAIR = "times, and another run of the workload to compare with", ("samples",)
    HISTORY = "times of one workload in several runs", ("samples",)
    DEVICES = "times of a workload that another device has too", ("samples",)
    GPU_TIMES = "times of a GPU", ("samples",)
    TRACE = "a trace", _TRACE
    CALLS = "kernels or API calls", ("kernels", "api_calls")
    COPIES = "a trace of copies", ("memory_ops",)
    OPERATORS = "operators of PyTorch", ("operations",)
    COUNTERS = "hardware counters", ("counters",)
    KERNELS = "times or hardware counters of a GPU", ("samples", "counters")
    INSIDE = "times of a GPU, or experiments inside kernels", ("samples", "counters", "experiments")
    CODE = "machine code", ("machine_code",)
    EXPERIMENTS = "experiments inside kernels", ("experiments",)
    GPUS = "samples of several GPUs"
    JOB = "ranks of a job", ("ranks",)
    PUBLISHED = "times of a workload of the students' reports"


#: What the pages of traces need. Of a job, they show the ranks that are chosen.
OF_TRACES: Final = frozenset((Need.TRACE, Need.CALLS, Need.COPIES, Need.OPERATORS))


#: What a page of variants needs, and a page of GPU kernels.
OF_WORKLOADS: Final = frozenset(
    (Need.TIMES, Need.SIZES, Need.PAIR, Need.HISTORY, Need.DEVICES, Need.GPUS, Need.KERNELS, Need.INSIDE)
)
OF_GPU: Final = frozenset((Need.GPU_TIMES, Need.KERNELS, Need.INSIDE))


@dataclass(frozen=True)
class Coverage:
    """The contents of a run for a workload.

    Attributes:
        cases: charted cases with a correct result; cases without a status count as correct.
        cells: pairs of such a case and a variant.
    """

    cases: int
    cells: int


@dataclass(frozen=True)
class Facts:
    """The contents of a run, from its tables `run`, `cases` and `results`.

    Attributes:
        device: the GPU, or the processor where there is no GPU.
        gpus: the most GPUs that were measured together; 1 for an import and for a host.
        workloads: the coverage of each workload, in the order of the run.
    """

    device: str
    started_at: datetime
    collector: str
    imported: bool
    gpus: int
    tables: frozenset[str]
    workloads: Mapping[str, Coverage]

    @property
    def timed(self) -> bool:
        return "samples" in self.tables

    def has(self, need: Need) -> bool:
        """Whether the run has what a page needs."""
        if need is Need.GPUS:
            return self.gpus > 1 and self.timed
        if need is Need.SIZES:
            return self.timed and any(each.cases > 1 for each in self.workloads.values())
        if need is Need.PUBLISHED:
            return self.timed and not self.workloads.keys().isdisjoint(figures.compared())
        return not need.tables or not self.tables.isdisjoint(need.tables)

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of the run in addition to times: a trace, counters, ranks of a job, several GPUs."""
        needs = {"trace": Need.TRACE, "counters": Need.COUNTERS, "experiments": Need.EXPERIMENTS, "job": Need.JOB}
        several = (f"{self.gpus} GPUs",) if self.has(Need.GPUS) else ()
        return (*(word for word, need in needs.items() if self.has(need)), *several)


def device_of(run: store.Run) -> str:
    """The GPU of a run, or its processor where it has no GPU."""
    return str(run.info["device_name"] or run.info["cpu_name"])


def facts_of(run: store.Run) -> Facts:
    """Read the contents of a run once, and note them for the index of the run's folder.

    Raises:
        StoreError: table `cases` or `results` is damaged, or its columns do not match the schema.
    """
    info = run.info
    found = _noted(store.noted(run))
    if found is None:
        # Only profiles of PyTorch have operators.
        operators = ("operations",) if info["kind"] == "job" and store.any_rank_has(run, "operations") else ()
        found = MappingProxyType(_workloads(run)), (*_OF_RANKS, *operators) if info["kind"] == "job" else ()
        store.note(run, json.dumps([{name: [has.cases, has.cells] for name, has in found[0].items()}, found[1]]))
    of_workloads, of_ranks = found
    return Facts(
        device=device_of(run),
        started_at=info["started_at"],
        collector=str(info["collector"]),
        imported=info["kind"] in ("import", "job"),
        gpus=int(info["device_count"]) if info["kind"] == "recording" and info["device_count"] else 1,
        tables=frozenset((*run.tables, *of_ranks)),
        workloads=of_workloads,
    )


#: The coverage of each workload of a run, and the tables that its ranks have.
_Contents = tuple[Mapping[str, Coverage], tuple[str, ...]]


@lru_cache
def _noted(text: str) -> _Contents | None:
    """The contents in a note; None where it is none. Thousands of runs have a few different notes."""
    try:
        counts, of_ranks = json.loads(text)
        workloads = {str(name): Coverage(int(cases), int(cells)) for name, (cases, cells) in counts.items()}
        return MappingProxyType(workloads), tuple(map(str, of_ranks))
    except (ValueError, TypeError, AttributeError):
        return None


def _workloads(run: store.Run) -> dict[str, Coverage]:
    read = run.arrow("cases", ("workload", "case", "size_rank"))
    cases = list(zip(*(column.to_pylist() for column in read.columns), strict=True))
    charted = {(workload, case) for workload, case, rank in cases if rank is not None}
    cells = _measured(run) or {(workload, case, "") for workload, case, _ in cases}
    coverage = {}
    for name in dict.fromkeys(workload for workload, _, _ in cases):
        correct = {(case, variant) for workload, case, variant in cells if workload == name and (workload, case) in charted}
        coverage[str(name)] = Coverage(len({case for case, _ in correct}), len(correct))
    return coverage


def _measured(run: store.Run) -> set[tuple[str, str, str]]:
    """Workload, case and variant of each cell with a correct result, from the distinct codes of the texts."""
    read = run.arrow("results", ("workload", "case", "variant", "status"))
    if not len(read):
        return set()
    columns = [column.combine_chunks() for column in read.columns]
    codes = np.stack([column.indices.to_numpy() for column in columns])
    texts = [column.dictionary.to_pylist() for column in columns]
    if "ok" not in texts[3]:
        return set()
    cells = np.unique(codes[:3, codes[3] == texts[3].index("ok")], axis=1).T.tolist()
    return {(texts[0][workload], texts[1][case], texts[2][variant]) for workload, case, variant in cells}


@dataclass(frozen=True)
class ListedRun:
    """A run that can be chosen.

    Attributes:
        name: what the URL calls it.
        shipped: it ships with the project; else it is the user's own.
    """

    name: str
    run: store.Run
    facts: Facts
    shipped: bool

    @property
    def kind(self) -> str:
        """`recording`, `job`, or what an import has: `trace` or `counters`."""
        if not self.facts.imported:
            return "recording"
        return next((word for word in ("job", "trace", "counters") if word in self.facts.marks), "import")

    def fits(self, need: Need) -> bool:
        """Whether a page with this need has something to show of the run: what it has, of a workload or a GPU where the page needs one."""
        if not self.has_gpu(need):
            return False
        return self.facts.has(need) and bool(self.facts.workloads or need not in OF_WORKLOADS)

    def has_gpu(self, need: Need) -> bool:
        """Whether the run is of a GPU where the page needs one. A trace from inside a kernel does not name its GPU."""
        from_inside = need is Need.INSIDE and self.facts.has(Need.EXPERIMENTS)
        return need not in OF_GPU or bool(self.run.info["device_name"]) or from_inside

    @property
    def title(self) -> str:
        """Label, date, device, workloads and marks, as in `conv2d · 2026-11-22 16:02 · NVIDIA H200 · conv2d · trace`."""
        if not self.run.info["label"] and self.facts.workloads:
            labels = (label_from(self.run.info, list(self.facts.workloads)), ", ".join(self.facts.marks))
            return " · ".join(part for part in labels if part)
        shown = first_of(self.facts.workloads, _MOST_NAMES)
        date = f"{self.facts.started_at:%Y-%m-%d %H:%M}"
        parts = (str(self.run.info["label"] or self.name), date, self.facts.device, shown, ", ".join(self.facts.marks))
        return files.one_line(" · ".join(part for part in parts if part))


class Runs(tuple[ListedRun, ...]):
    """Runs that can be chosen. The results of the functions of this module are computed once for them.

    Each page calls these functions a dozen times with a tuple of thousands of runs.
    """

    def __init__(self, _: Iterable[ListedRun] = ()) -> None:
        self.results: dict[Hashable, Any] = {}


def _once(
    find: Callable[Concatenate[Iterable[ListedRun], _Further], _Value],
) -> Callable[Concatenate[Iterable[ListedRun], _Further], _Value]:
    """A function of runs that is computed once for the same `Runs` and the same further arguments."""

    @wraps(find)
    def once(every: Iterable[ListedRun], /, *args: _Further.args, **options: _Further.kwargs) -> _Value:
        if not isinstance(every, Runs):
            return find(every, *args, **options)
        key = (find, args, tuple(options.items()))
        if key not in every.results:
            every.results[key] = find(every, *args, **options)
        answer: _Value = every.results[key]
        return answer

    return once


@_once
def devices(every: Iterable[ListedRun]) -> tuple[str, ...]:
    """The devices of the user's own runs by their newest run, then those of the shipped runs by their number of runs."""
    newest = newest_first(every)
    shipped = Counter(each.facts.device for each in newest if each.shipped)
    own = [each.facts.device for each in newest if not each.shipped]
    return tuple(dict.fromkeys([*own, *(device for device, _ in shipped.most_common())]))


@_once
def first_workload(every: Iterable[ListedRun], device: str, need: Need = Need.TIMES) -> str:
    """The workload of the newest of the user's own runs on a device; of shipped runs alone, the one with the most cells."""
    every = list(every)
    names = workloads(every, device, need)
    shown = {name: suitable(every, device, name, need)[0] for name in names}
    if own := [name for name in names if not shown[name].shipped]:
        return max(own, key=lambda name: shown[name].facts.started_at)
    return max(names, key=lambda name: shown[name].facts.workloads[name].cells, default="")


@_once
def workloads(every: Iterable[ListedRun], device: str, need: Need = Need.TIMES) -> tuple[str, ...]:
    suited = (each for each in every if each.facts.device == device and each.facts.has(need))
    count = Counter(name for each in suited for name, has in each.facts.workloads.items() if has.cells)
    names = (name for name, runs in count.items() if runs >= _least_runs(need))
    return tuple(sorted(name for name in names if need is not Need.DEVICES or len(devices_of(every, name)) > 1))


@_once
def devices_of(every: Iterable[ListedRun], workload: str) -> tuple[str, ...]:
    """The devices that have times of a workload, in the order of `devices`."""
    every = list(every)
    timed = {each.facts.device for each in every if each.facts.timed and _coverage(each, workload).cells}
    return tuple(device for device in devices(every) if device in timed)


def _least_runs(need: Need) -> int:
    """How many runs of a workload a page needs."""
    return 2 if need in (Need.PAIR, Need.HISTORY) else 1


@_once
def suitable(every: Iterable[ListedRun], device: str, workload: str, need: Need = Need.TIMES) -> tuple[ListedRun, ...]:
    """The runs of a workload on a device, in the order in which a page prefers them.

    See `RULE`. Times come from recordings of one process where there are any, then from recordings of several GPUs, then
    from imports. For a page of several GPUs, the runs with the most GPUs come first. The runs that are only a small part of the
    fullest one follow the others.
    """
    candidates = [each for each in every if each.facts.device == device and each.facts.has(need)]
    candidates = [each for each in newest_first(candidates) if _coverage(each, workload).cells]
    if len(candidates) < _least_runs(need) or (need is Need.DEVICES and len(devices_of(every, workload)) < 2):
        return ()
    first = min(_place(each, need) for each in candidates)
    leading = [each for each in candidates if _place(each, need) == first]
    cases = max((_coverage(each, workload).cases for each in leading), default=0)
    cells = max((_coverage(each, workload).cells for each in leading), default=0)

    def order(each: ListedRun) -> tuple[int, bool]:
        has = _coverage(each, workload)
        return _place(each, need), has.cases < LEAST_PART * cases or has.cells < LEAST_PART * cells

    return tuple(sorted(candidates, key=order))


def _coverage(each: ListedRun, workload: str) -> Coverage:
    return each.facts.workloads.get(workload, Coverage(0, 0))


def _place(each: ListedRun, need: Need) -> int:
    """Smaller for a run that comes before others, whatever their dates."""
    if need is Need.GPUS:
        return -each.facts.gpus
    if need in (Need.TIMES, Need.SIZES, Need.PAIR, Need.HISTORY, Need.DEVICES, Need.GPU_TIMES, Need.PUBLISHED):
        return 2 if each.facts.imported else int(each.facts.gpus > 1)
    return 0


def newest_first(every: Iterable[ListedRun]) -> list[ListedRun]:
    """The runs in the order in which they were started, the last one first."""
    return sorted(every, key=lambda each: each.facts.started_at, reverse=True)


def comparable(every: Iterable[ListedRun], listed: ListedRun) -> list[ListedRun]:
    """The timed runs before one with a workload of it, on its device and by its collector, the newest first."""
    facts = listed.facts
    return [
        each
        for each in newest_first(every)
        if (each.facts.device, each.facts.collector) == (facts.device, facts.collector)
        and each.facts.started_at < facts.started_at
        and each.facts.timed
        and not facts.workloads.keys().isdisjoint(each.facts.workloads)
    ]


@_once
def having(every: Iterable[ListedRun], need: Need, device: str, workload: str = "") -> tuple[ListedRun, ...]:
    """The runs with what a page needs: first runs of the device and workload, then of the device, then all others as `devices` has them.

    Runs of the workload come in the order of `suitable`. Of the others, those that are the first choice of some workload come
    first, and then the newest.
    """
    every = every if isinstance(every, Runs) else Runs(every)
    fitting = [each for each in newest_first(every) if each.facts.has(need) and fits_beside(every, each, need)]
    first = suitable(fitting, device, workload, need)
    names = {each.name for each in first}
    order = [device, *devices(every)]
    places = {(each.facts.device, name) for each in fitting for name in each.facts.workloads}
    choices = {each.name for of, name in places for each in suitable(fitting, of, name, need)[:1]}
    rest = sorted(
        (each for each in fitting if each.name not in names),
        key=lambda each: (order.index(each.facts.device), each.name not in choices),
    )
    return (*first, *rest)


def fits_beside(every: Runs, each: ListedRun, need: Need) -> bool:
    """Whether a run is of a GPU where the page needs one, and a workload of it is in as many runs or devices as the page needs."""
    if need in OF_GPU:
        return each.has_gpu(need)
    if need is Need.PAIR and has_versions(each.run.info):
        return True
    if need not in (Need.PAIR, Need.HISTORY, Need.DEVICES):
        return True
    return not each.facts.workloads.keys().isdisjoint(workloads(every, each.facts.device, need))
