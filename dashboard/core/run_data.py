"""The tables of one run that comparisons are made of, whole or a part of them."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, wraps
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.dashboard.core.cell import Entry
from warpladder.dashboard.core.inside import Experiments
from warpladder.dashboard.core.machine_code import MachineCode
from warpladder.dashboard.core.traces import Job, Traces
from warpladder.data import schema, store
from warpladder.data.arrays import Floats, Int64s
from warpladder.data.names import Source
from warpladder.data.words import first_of
from warpladder.errors import Error

#: The columns that identify the cell and timing of a group of samples.
CELL: Final = ["workload", "variant", "config", "case", "gpus", "cache", "scope"]
#: The columns that identify a row of table `results`, which holds the status of a cell.
STATUS_KEY: Final = ["workload", "variant", "config", "case"]
NO_COUNTERS: Final = pd.DataFrame(columns=schema.COUNTERS.arrow.names)
NO_SAMPLES: Final = pd.DataFrame(columns=schema.SAMPLES.arrow.names)
NO_ENERGY: Final = pd.DataFrame(columns=schema.ENERGY.arrow.names)


class SampleGroups(NamedTuple):
    """Samples in the order of their groups.

    Attributes:
        keys: one row for each group: the columns of `CELL`, `twin`, and `n`.
        first: the place in the other arrays at which each group starts.
        durations: in nanoseconds.
        processes: the measuring process of each sample.
    """

    keys: pd.DataFrame
    first: Int64s
    durations: Floats
    rounds: npt.NDArray[np.int32]
    processes: npt.NDArray[np.int16]


@dataclass(frozen=True)
class Rounds(Mapping[Entry, "pd.Series[float]"]):
    """Durations in nanoseconds by round, of the entries of one case and timing. A series is made when it is read."""

    grouped: SampleGroups
    places: Mapping[Entry, slice]
    _made: dict[Entry, "pd.Series[float]"] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, entry: Entry) -> "pd.Series[float]":
        if entry not in self._made:
            place = self.places[entry]
            self._made[entry] = pd.Series(self.grouped.durations[place], index=self.grouped.rounds[place])
        return self._made[entry]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


#: What ended a recording before its time -> the word for it.
_CUT_SHORT: Final = {Source.INTERRUPTED: "interrupted", Source.CUT_OFF: "killed before its end"}


@dataclass(frozen=True, eq=False)
class RunData:
    """The tables of one run, with the columns that `data/README.md` gives them.

    Attributes:
        info: the row of table `run`.
        samples: samples of one process.
        run: what tables that few pages need are read from, when they are first needed.
        together: samples that several ranks took together, one row for each rank and round. They are apart, so that a page
            never compares different numbers of GPUs by mistake.
        hidden: workloads with variants that no comparison shows, although others may be compared with them.
        selected_from: the run of which this is a part (see `selection.select`), and from which a baseline is chosen; None where it
            is whole.
    """

    info: Mapping[str, Any]
    ceilings: pd.DataFrame
    variants: pd.DataFrame
    cases: pd.DataFrame
    results: pd.DataFrame
    samples: pd.DataFrame
    diagnostics: pd.DataFrame
    traces: Traces = field(default_factory=Traces)
    run: store.Run | None = None
    counters: pd.DataFrame = field(default_factory=lambda: NO_COUNTERS)
    energy: pd.DataFrame = field(default_factory=lambda: NO_ENERGY)
    together: pd.DataFrame = field(default_factory=lambda: NO_SAMPLES)
    hidden: frozenset[tuple[str, str]] = frozenset()
    selected_from: "RunData | None" = None

    @property
    def argument(self) -> str:
        """The run as an argument of a command."""
        return self.run.argument if self.run else str(self.info["run_id"])

    @cached_property
    def code(self) -> MachineCode:
        return MachineCode(self.run)

    @cached_property
    def job(self) -> Job:
        return Job(self.run)

    @cached_property
    def experiments(self) -> Experiments:
        return Experiments(self.run)

    @property
    def device(self) -> str:
        """The name of the hardware in charts: the GPU, or the processor where there is no GPU."""
        return str(self.info["device_name"] or self.info["cpu_name"])

    def source_text(self, workload: str, variant: str) -> str:
        """The source of a variant as it was measured; empty where none was recorded."""
        rows = self.variants[(self.variants["workload"] == workload) & (self.variants["variant"] == variant)]
        return next(iter(rows["source_text"].fillna("")), "")

    @property
    def ending(self) -> str:
        """How a recording ended: `finished`, also with cases that its time limit left out, or what cut it short; empty of an import."""
        if self.info["kind"] != "recording":
            return ""
        texts = dict(zip(self.diagnostics["source"], self.diagnostics["text"], strict=True))
        if cut_short := next((word for source, word in _CUT_SHORT.items() if source in texts), ""):
            return cut_short
        # `15 of 25 cases not reached within 60 s of measuring; to measure all: …`
        left_out = str(texts.get(Source.NOT_REACHED, "")).partition(";")[0]
        return f"finished; {left_out}" if left_out else "finished"

    @property
    def on_gpu(self) -> bool:
        """Whether the run was recorded with a GPU."""
        return bool(self.info["device_name"])

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workloads in the order in which they were recorded."""
        return tuple(self.cases["workload"].unique())

    def hosts(self, workload: str) -> frozenset[str]:
        """The workload's variants that run on the processor, in one process or several."""
        return self._hosts.get(workload, frozenset())

    @cached_property
    def _hosts(self) -> Mapping[str, frozenset[str]]:
        hosts = self.variants[self.variants["kind"] == "host"]
        return {str(workload): frozenset(names) for workload, names in hosts.groupby("workload")["variant"]}

    def rounds(self, workload: str, case: str, scope: str, cache: str) -> "Rounds":
        """Durations in nanoseconds by round, of every entry that was sampled in one case and timing."""
        return Rounds(self.grouped, self._places.get((workload, case, scope, cache), {}))

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """The answers of `once`. They go with the run."""
        return {}

    @cached_property
    def _places(self) -> Mapping[tuple[str, str, str, str], dict[Entry, slice]]:
        """The place of each entry's samples in `grouped`, by workload, case, scope and cache."""
        keys, first = self.grouped.keys, self.grouped.first
        places: dict[tuple[str, str, str, str], dict[Entry, slice]] = {}
        columns = ["workload", "case", "scope", "cache", "variant", "config", "gpus", "twin"]
        rows = zip(keys[columns].itertuples(index=False, name=None), first.tolist(), keys["n"].tolist(), strict=True)
        for (*where, variant, config, gpus, twin), start, n in rows:
            places.setdefault(tuple(where), {})[Entry(variant, config, int(gpus), int(twin))] = slice(start, start + n)
        return places

    @cached_property
    def grouped(self) -> SampleGroups:
        """The samples grouped by cell and twin, once for all queries."""
        samples = by_round(self.samples)
        groups = samples.groupby([*CELL, "twin"], observed=True, sort=False)
        number = groups.ngroup().to_numpy()
        keys = groups.size().rename("n").reset_index()
        texts = keys.columns[keys.dtypes == "category"]
        order = np.argsort(number, kind="stable")
        n = keys["n"].to_numpy()
        durations = samples["duration_ns"].to_numpy(dtype=float)[order]
        rounds, processes = (samples[column].to_numpy()[order] for column in ("round", "process"))
        labels = keys.astype(dict.fromkeys(texts, "str"))
        return SampleGroups(labels, np.cumsum(n) - n, durations, rounds, processes)


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def once(query: Callable[Concatenate[RunData, Arguments], Answer]) -> Callable[Concatenate[RunData, Arguments], Answer]:
    """Answer a query of a run once for the same arguments. A frame is the caller's own copy; who asks must not change other answers."""

    @wraps(query)
    def asked(data: RunData, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        question = (query, args, tuple(sorted(kwargs.items())))
        if question not in data.answers:
            data.answers[question] = query(data, *args, **kwargs)
        answer: Answer = data.answers[question]
        # The copy shares the memory of the kept frame until either is written to (pandas' copy on write).
        return cast(Answer, answer.copy()) if isinstance(answer, pd.DataFrame) else answer

    return asked


def find_entry(rounds: "Mapping[Entry, pd.Series[float]]", variant: str, config: str) -> Entry | None:
    """The first entry of a variant and config in a case, on the fewest GPUs; None where it has no samples."""
    entries = [entry for entry in rounds if (entry.variant, entry.config, entry.twin) == (variant, config, 0)]
    return min(entries, default=None)


def by_round(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples with the ranks of one execution joined. An operation of several processes takes as long as its slowest one."""
    if not (samples["rank"] > 0).any():
        return samples
    same = [*CELL, "twin", "process", "round", "position"]
    return samples.groupby(same, observed=True)["duration_ns"].max().reset_index()


def load(run: store.Run) -> RunData:
    """Read the tables of a run that comparisons need.

    Raises:
        StoreError: a file is damaged or is not of this schema.
    """
    names = ("ceilings", "variants", "cases", "results", "diagnostics", "counters", "energy")
    # There are hundreds of thousands of rows, which are grouped by their texts.
    samples, together = run.table("samples", categories=True), NO_SAMPLES
    # Where only rank 0 has samples, all are of one process, which may use several GPUs, as an imported program can.
    if (samples["rank"] > 0).any():
        several = samples["gpus"] > 1
        samples, together = (samples[rows].reset_index(drop=True) for rows in (~several, several))
    return RunData(
        info=run.info,
        samples=samples,
        together=together,
        **{name: run.table(name) for name in names},
        hidden=frozenset(),
        selected_from=None,
        traces=Traces(run),
        run=run,
    )


_GLOB: Final = frozenset("*?[]")
_MOST_CLOSE: Final = 5
_MOST_NAMES: Final = 12


def select(data: RunData, workloads: Sequence[str] = (), variants: Sequence[str] = (), cases: Sequence[str] = ()) -> RunData:
    """The run with some workloads, variants and cases alone; all of them where none is named.

    Speedups stay those over the run's baseline, also where the baseline is left out. The tables of the trace stay whole.

    Args:
        workloads: names or globs such as `mlp_*`.
        variants: names or globs such as `v0*`; each finds a variant of the chosen workloads.
        cases: names or globs such as `n=512,*`; each finds a case of the chosen workloads. A workload without one is left out.

    Raises:
        Error: a name or a pattern finds nothing.
    """
    if not workloads and not variants and not cases:
        return data
    selected = _matching(workloads, data.workloads, "--workload", "workload") or set(data.workloads)
    of_workloads = data.cases[data.cases["workload"].isin(selected)]
    shown_cases = _matching(cases, list(of_workloads["case"].unique()), "--case", "case") or set(of_workloads["case"])
    selected &= set(of_workloads.loc[of_workloads["case"].isin(shown_cases), "workload"])
    of_selected = data.variants[data.variants["workload"].isin(selected)]
    shown = _matching(variants, list(of_selected["variant"].unique()), "--variants", "variant") or set(of_selected["variant"])
    is_shown = of_selected["variant"].isin(shown)
    shown_workloads = set(of_selected.loc[is_shown, "workload"])
    names = zip(data.variants["workload"], data.variants["variant"], strict=True)
    hidden = frozenset(
        (workload, variant) for workload, variant in names if workload not in shown_workloads or variant not in shown
    )

    def chosen(frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the chosen variants and cases, and those about none."""
        chosen_names = {"workload": shown_workloads, "variant": shown, "case": shown_cases}
        every = (frame[name].astype(object) for name in chosen_names)
        masks = [
            each.isin(names) | each.isna() | (each == "") for each, names in zip(every, chosen_names.values(), strict=True)
        ]
        return frame[np.logical_and.reduce(masks)].reset_index(drop=True)

    return replace(
        data,
        variants=data.variants[data.variants["workload"].isin(shown_workloads)].reset_index(drop=True),
        cases=data.cases[data.cases["workload"].isin(shown_workloads) & data.cases["case"].isin(shown_cases)].reset_index(
            drop=True
        ),
        results=chosen(data.results),
        diagnostics=chosen(data.diagnostics),
        counters=chosen(data.counters),
        together=chosen(data.together),
        samples=_beside(data.samples, chosen(data.samples)),
        hidden=data.hidden | hidden,
        selected_from=data.selected_from or data,
    )


def _beside(samples: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The samples of all variants, among them the baseline, in the cases and timings in which a chosen one has samples."""
    where = ["workload", "case", "scope", "cache"]
    texts = samples[where].astype(object)
    keys = pd.MultiIndex.from_frame(chosen[where].astype(object).drop_duplicates())
    return samples[pd.MultiIndex.from_frame(texts).isin(keys)].reset_index(drop=True)


def _matching(patterns: Sequence[str], names: Sequence[str], option: str, what: str) -> set[str]:
    """The names that names and globs find, where each finds one."""
    matching: set[str] = set()
    for pattern in patterns:
        matches = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not matches:
            raise Error(f"{option} {pattern}: no {what} of this run; {_suggestion(pattern, names)}")
        matching.update(matches)
    return matching


def _suggestion(pattern: str, names: Sequence[str]) -> str:
    plain = "".join(letter for letter in pattern if letter not in _GLOB)
    within = [name for name in names if plain and plain.lower() in name.lower()]
    close = list(dict.fromkeys([*difflib.get_close_matches(plain, names), *within]))
    if close:
        return f"did you mean {', '.join(close[:_MOST_CLOSE])}?"
    return f"it has {first_of(names, _MOST_NAMES)}"


class RunError(Error, ValueError):
    """A run does not have what was asked for. The message says what is there, in one line."""


def chosen(choice: str | None, names: Sequence[str], what: str, argument: str) -> str:
    """The name that was asked for, or the only one.

    Args:
        choice: None for the only one.
        what: the run, for the message.
        argument: of the caller, such as `workload`.

    Raises:
        RunError: there is no such name, or none was asked for and there are several.
    """
    if choice is None and len(names) == 1:
        return names[0]
    if choice in names:
        return str(choice)
    close = difflib.get_close_matches(str(choice), names, 3) if choice else []
    order = [*close, *(name for name in names if name not in close)]
    listed = first_of(map(repr, order), len(close) or _MOST_NAMES)
    if choice is None:
        raise RunError(f"{what} has {len(names)} {argument}s; give {argument}= one of {listed}")
    raise RunError(f"{argument}={choice!r}: {what} has no such {argument}; it has {listed}")
