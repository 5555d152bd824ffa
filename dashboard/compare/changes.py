"""Two runs compared: the cells that changed, the cells that one run lacks, and what differs between the recordings."""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pandas as pd

from warpladder.dashboard.compare import between_runs
from warpladder.dashboard.compare.between_runs import SMALLEST_EFFECT, VERDICTS, Judgement, Machine, Pair, Verdict, slowness
from warpladder.dashboard.compare.differences import Fact, facts, of_doubts, of_precisions, value_text
from warpladder.dashboard.compare.in_rounds import InRounds
from warpladder.dashboard.compare.levels import Medians, Reading, TimedCell, reading, timing_group
from warpladder.dashboard.compare.within_run import clock_ns
from warpladder.dashboard.core import intervals
from warpladder.dashboard.core.cell import Cell, Entry, Estimate, Timing, name_on, records
from warpladder.dashboard.core.cells import best_config, cells, in_timing, timings
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.numbers import significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import label_from
from warpladder.data.names import NOT_DONE, Source
from warpladder.data.words import first_of
from warpladder.errors import Error

#: The status of a cell that B has no result of.
LOST = "lost"
#: The status of a cell whose times in B cannot be true.
DISTRUSTED = "distrusted"
_SKIPPED = "skipped"
_MOST_NAMED = 3
_UNKNOWN: Final = Estimate.unknown()


@dataclass(frozen=True)
class _Compared:
    """A cell in a comparison. `gpus` worked together, or are processes of a host variant; 0 for a host variant of one process."""

    workload: str
    case: str
    timing: Timing
    variant: str
    config: str
    gpus: int
    on_host: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        """See `name_on`."""
        return name_on(self.variant, self.config, self.gpus, on_host=self.on_host)


@dataclass(frozen=True)
class LostCell(_Compared):
    """A cell of A that ended well there, and has no times in B; or one that B alone has, and that failed.

    Attributes:
        a_ns: median of A with its interval; unknown without times in A.
        status: of B, such as `wrong_result`; `lost` where B has no result, and `distrusted` where its work was not done.
        detail: why.
        fails: whether a gate fails on it.
        of_b: the variant of B that it is compared with; empty where it has the same name.
    """

    a_ns: Estimate
    status: str
    detail: str
    fails: bool
    of_b: str = ""

    @property
    def name(self) -> str:
        """`v03_tile[block=16]`, or of two variants `v03_tile[block=16] → v04_swizzled`: the status is that of the latter."""
        return f"{super().name} → {self.of_b}" if self.of_b else super().name

    @property
    def judged(self) -> bool:
        """Whether B has a result of the cell."""
        return self.status != LOST

    @property
    def reason(self) -> str:
        """`wrong_result: relative error 0.3`; `lost: not recorded in B`."""
        return f"{self.status}: {self.detail}" if self.detail else self.status


def _lost_cell(cell: Cell, variant: str, status: str, detail: str, *, fails: bool) -> LostCell:
    """A cell of A, with what became of it as a variant of B."""
    timing = Timing(cell.scope, cell.cache)
    place = (cell.workload, cell.case, timing, cell.variant, cell.config, cell.gpus)
    of_b = variant if variant != cell.variant else ""
    return LostCell(*place, cell.median_ns, status, detail, fails, of_b, on_host=cell.kind == "host")


def _not_done(cell: Cell) -> list[str]:
    """The sources of findings that the work of a cell was not done."""
    return [each for each in cell.flags if each in NOT_DONE]


def loss_lines(lost: Iterable[LostCell]) -> list[tuple[bool, str]]:
    """A line for each reason in each workload, with its first cells; and whether a gate fails on it.

    `conv2d n=512 v03_tile, n=1024 v03_tile and 4 more: wrong_result: relative error 0.3`
    """
    together: dict[tuple[bool, str, str], list[str]] = {}
    for each in lost:
        together.setdefault((each.fails, each.workload, each.reason), []).append(f"{each.case} {each.name}")
    lines = []
    for (fails, workload, reason), every in together.items():
        lines.append((fails, f"{workload} {first_of(dict.fromkeys(every), _MOST_NAMED)}: {reason}"))
    return lines


#: What runs of the same device and collector measured of a workload, the oldest first; see `machine.Recordings`.
History = Callable[[str], Sequence[Medians]]
Match = Literal["config", "best"]


class NotComparable(Error):
    """Two runs that cannot be compared. The message says why, and what to do, in one line."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a run, or one variant of it.

    Attributes:
        variant: compares this variant with the variant of the other side; empty to compare variants of equal names.
    """

    data: RunData
    variant: str = ""


@dataclass(frozen=True)
class Options:
    """How two sides are compared.

    Attributes:
        scope: compares this scope, with every state of the caches, or `all`; empty for the first timing that both sides have of a
            workload.
        match: `config` compares equal configs; `best` compares the fastest config of each side.
        smallest: smallest effect of interest, a fraction: smaller differences are `tied`.
        absolute: judge the times as they are, not relative to the unchanged variants of their case.
        any_device: compare although the GPUs differ, or without a GPU the processors.
        partial: B recorded a part of A: a cell without a result is not lost.
        in_rounds: the sides are two versions of a file that one run measured in the same rounds.
    """

    scope: str = ""
    match: Match = "config"
    smallest: float = SMALLEST_EFFECT
    absolute: bool = False
    any_device: bool = False
    partial: bool = False
    in_rounds: bool = False


@dataclass(frozen=True)
class Change(_Compared):
    """A cell of both sides, with the variant and the config of B; without more than `of_a` one that nothing can judge.

    Attributes:
        of_a: the variant and the config of A.
        a_ns, b_ns: medians with 95 % intervals, in nanoseconds.
        ratio: the time of B over the time of A, relative to the unchanged variants; above 1, B is slower. See `between_runs`.
        shift: the factor that was taken out of it: how many times as long the unchanged variants take in B; NaN where nothing was.
        noise: a factor of at least 1; ratios from 1/noise to noise are `tied`. Of two runs it is the noise between them, see
            `between_runs`, and NaN where it is not known. Within one run it is the noise floor.
        same_source: whether the source text is equal on both sides.
        equal_code: whether the source text is known and equal, and variant and config are equal.
        n: samples of the smaller side.
        verdict: of B.
        least_effect: the smallest slowdown that would have been called, a fraction.
    """

    of_a: tuple[str, str]
    a_ns: Estimate = _UNKNOWN
    b_ns: Estimate = _UNKNOWN
    ratio: Estimate = _UNKNOWN
    shift: float = math.nan
    noise: float = math.nan
    same_source: bool = False
    equal_code: bool = False
    n: int = 0
    verdict: Verdict = "unknown"
    least_effect: float = math.nan

    @property
    def key(self) -> tuple[str, ...]:
        """The texts that identify the cell of B in its run."""
        return (self.workload, self.case, self.timing.scope, self.timing.cache, self.variant, self.config, str(self.gpus))


@dataclass(frozen=True)
class Comparison:
    """Two sides, compared.

    Attributes:
        facts: the differences between the recordings, warnings first.
        changed_sources: workload and variant of B for each source text that differs.
        changes: every matched cell: slower cells of B first, then tied, then faster cells, each part by the ratio.
        lost: cells that A has and B lacks, and new cells that failed in B; those on which a gate fails first.
        new: cells that B alone has: workload, case, name and timing.
    """

    facts: tuple[Fact, ...]
    changed_sources: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    lost: tuple[LostCell, ...] = ()
    new: tuple[tuple[str, str, str, Timing], ...] = ()

    def of(self, *verdicts: Verdict) -> tuple[Change, ...]:
        """The changes with these verdicts, in their order."""
        return tuple(change for change in self.changes if change.verdict in verdicts)


def compare(a: Side, b: Side, options: Options = Options(), history: History | None = None) -> Comparison:
    """Compare B with A.

    Each cell of two runs is judged as `between_runs` documents. Device times of events and of a trace are not judged. Two variants of one run are compared round by round, without noise
    between runs. Where several ranks took samples together, the slowest rank of a round counts, and cells of equal numbers of
    ranks are compared.

    Args:
        history: what other runs of the machine measured. It is called for workloads whose two runs do not determine the noise.

    Raises:
        NotComparable: no cell is in both and none is lost, or the devices differ and `options.any_device` is False.
    """
    _refuse_other_devices(a, b, options)
    before, after = reading(a.data), reading(b.data)
    of_a, of_b = (dict(_timed(*sides, options)) for sides in ((a, b), (b, a)))
    both = [key for key in of_b if key in of_a]
    undone = {key: None for key in both if _became_undone(before, after, of_a[key], of_b[key])}
    shared = [key for key in both if key not in undone]
    lost = (
        *_lost(a, b, (cell for key, cell in of_a.items() if key not in of_b), options),
        *(_lost_cell(of_a[key], of_b[key].variant, DISTRUSTED, ", ".join(_not_done(of_b[key])), fails=True) for key in undone),
    )
    if not shared and not any(each.judged for each in lost):
        for side in (a, b):
            if not len(side.data.samples):
                raise NotComparable(f"{_title(side)} has no times: its table `samples` is missing or empty; record it again")
        where = f" of scope {options.scope}" if options.scope not in ("", "all") else ""
        scopes = ", ".join(dict.fromkeys(reading(a.data).data.samples["scope"]))
        raise NotComparable(
            f"{_title(a)} and {_title(b)} have no cell{where} in common; "
            + (f"A has the scopes {scopes}" if where else "`warpladder summary RUN` shows the workloads and cases of a run")
        )
    lost = tuple(sorted((*lost, *_new_and_failed(a, b)), key=lambda each: not each.fails))
    pairs = [(of_a[key], of_b[key]) for key in shared]
    judged = _changes(before, after, pairs, options, history)
    cells_compared = ((each.workload, each.of_a[0], each.variant) for each in judged)
    precisions = of_precisions(cells_compared, a.data, b.data)
    every = (*facts(a.data, b.data), *precisions, *of_doubts(pairs), *_of_unchanged(judged, a, b))
    differences = sorted(every, key=lambda fact: not fact.warning)
    sources = dict.fromkeys((each.workload, each.variant) for each in judged if not each.same_source)
    new = tuple(
        (
            each.workload,
            each.case,
            name_on(each.variant, each.config, each.gpus, on_host=each.kind == "host"),
            Timing(each.scope, each.cache),
        )
        for key, each in of_b.items()
        if key not in of_a
    )
    return Comparison(tuple(differences), tuple(sources), judged, lost, new)


#: From this factor on, less 1, what the unchanged variants have in common is told.
_SHARED: Final = 0.05


def _of_unchanged(changes: Sequence[Change], a: Side, b: Side) -> Iterator[Fact]:
    """What the unchanged variants of each workload tell about two runs: that all of them take longer or less long, which no ratio shows; or
    that there are none, so that nothing tells a slower machine from slower code."""
    if a.data.info["run_id"] == b.data.info["run_id"]:
        return
    for workload in dict.fromkeys(each.workload for each in changes):
        own = [each for each in changes if each.workload == workload]
        shifts = [each.shift for each in own if not math.isnan(each.shift)]
        shift = statistics.median(shifts) if shifts else 1.0
        if abs(math.log(shift)) > math.log1p(_SHARED):
            words = "left out of the ratios; --absolute judges times as they are"
            yield Fact(f"time of the unchanged variants of {workload}", "1", f"{shift:.2f}", words)
        if not any(each.equal_code for each in own) and any(each.verdict in ("slower", "faster") for each in own):
            yield Fact(
                f"unchanged variants of {workload}", "none", "none", "another clock or a busy machine looks like other code"
            )


def _lost(a: Side, b: Side, cells_of_a: Iterable[Cell], options: Options) -> list[LostCell]:
    """How the cells of A ended that B has no times of, those on which a gate fails first.

    Of two variants, one that cannot run, or was not asked for in a case, is no loss.
    """
    roles = a.data.variants[["workload", "variant", "role"]].itertuples(index=False, name=None)
    specimens = {(workload, variant) for workload, variant, role in roles if role == "specimen"}
    results: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
    columns = ["workload", "variant", "case", "config", "status", "detail"]
    for *key, config, status, detail in b.data.results[columns].fillna("").itertuples(index=False, name=None):
        results.setdefault((key[0], key[1], key[2]), {})[config] = status, detail
    lost = []
    for cell in cells_of_a:
        if (cell.workload, cell.variant) in specimens:
            continue
        variant = b.variant or cell.variant
        of_b = results.get((cell.workload, variant, cell.case), {})
        ended = [result for config, result in of_b.items() if options.match == "best" or config == cell.config]
        why = "" if ended else why_lost(b.data, cell.workload, variant, cell.case)
        status, detail = next(
            (result for result in ended if result[0] != "ok"),
            (
                LOST,
                why or f"B has no times of {cell.scope} {cell.cache}{name_on('', '', cell.gpus, on_host=cell.kind == 'host')}",
            ),
        )
        fails = status not in (LOST, _SKIPPED) or not (a.variant != b.variant or (options.partial and status == LOST))
        lost.append(_lost_cell(cell, variant, status, detail, fails=fails))
    return sorted(lost, key=lambda each: not each.fails)


def _new_and_failed(a: Side, b: Side) -> Iterator[LostCell]:
    """The cells that B alone has, and that failed there. A gate fails on those of the user's own variants."""
    if a.variant != b.variant:
        return
    key = ["workload", "variant", "config", "case"]
    known = set(a.data.results[key].itertuples(index=False, name=None))
    of_b = b.data.results.merge(b.data.variants[["workload", "variant", "role", "kind"]], on=["workload", "variant"])
    of_b = of_b[~of_b["status"].isin(["ok", _SKIPPED]) & (of_b["role"] != "specimen")]
    for cell in records(of_b[[*key, "status", "detail", "role", "kind"]]):
        if (cell.workload, cell.variant, cell.config, cell.case) not in known and b.variant in ("", cell.variant):
            where = (cell.workload, cell.case, Timing("", ""), cell.variant, cell.config, 0)
            is_own = cell.role in ("rung", "host")
            yield LostCell(*where, _UNKNOWN, cell.status, cell.detail, is_own, on_host=cell.kind == "host")


def why_lost(b: RunData, workload: str, variant: str, case: str) -> str:
    """Why B has no result of a cell of A."""
    if workload not in b.workloads:
        return "B has no such workload"
    if variant not in set(b.variants.loc[b.variants["workload"] == workload, "variant"]):
        return "B has no such variant"
    unreached = b.diagnostics.loc[b.diagnostics["source"] == Source.NOT_REACHED, "text"]
    if len(unreached) and not ((b.results["workload"] == workload) & (b.results["case"] == case)).any():
        return str(unreached.iloc[0])
    return "not recorded in B"


def _became_undone(before: Reading, after: Reading, of_a: Cell, of_b: Cell) -> bool:
    """Whether the work of a cell is not done in B, and was in A. With equal code, the ceilings differ, and not the work."""
    return bool(_not_done(of_b)) and not _not_done(of_a) and before.source(of_a) != after.source(of_b)


def _refuse_other_devices(a: Side, b: Side, options: Options) -> None:
    if a.data.device != b.data.device and not options.any_device:
        raise NotComparable(
            f"{_title(a)} was recorded on {a.data.device}, {_title(b)} on {b.data.device}; "
            "record both on one device, or add --any-device"
        )


def sentence(changes: Sequence[Change], lost: Sequence[LostCell] = ()) -> str:
    """`1 wrong or lost, 3 slower, 61 tied; the worst: conv2d n=512 v03_tile, 1.04x; a difference below 3 % would not be seen`.

    Args:
        changes: with the slowest first.
        lost: the failing cells are counted.
    """
    counts = Counter(change.verdict for change in changes)
    failed = sum(each.fails for each in lost)
    words = [f"{failed} wrong or lost"] if failed else []
    parts = [", ".join([*words, *(f"{counts[each]} {each}" for each in VERDICTS if counts[each])])]
    worst = next((change for change in changes if change.verdict == "slower"), None)
    if worst is not None:
        parts.append(f"the worst: {worst.workload} {worst.case} {worst.name}, {worst.ratio.value:.3f}x")
    effects = [change.least_effect for change in changes if change.verdict == "tied"]
    if effects:
        middle, most = _below(statistics.median(effects)), _below(max(effects))
        where = f" in half of the tied cells, and {most} in the noisiest" if most != middle else ""
        parts.append(f"a difference {middle} would not be seen{where}")
    return "; ".join(parts)


#: From this slowdown on, a fraction, how much is invisible tells no more.
_TENFOLD: Final = 9.0


def _below(fraction: float) -> str:
    """`below 3 %`; from one on the factor, `below 2.1×`; `even of ten times` for more than that."""
    if fraction >= _TENFOLD:
        return "even of ten times"
    percent = f"{float(f'{100 * fraction:.2g}'):g} %"
    return f"below {percent if fraction < 1 else f'{significant(1 + fraction, 2)}×'}"


#: A tied cell that could not have shown this slowdown, a fraction, is not seen, whatever was asked for.
BLIND: Final = 0.3


def unseen(changes: Iterable[Change], detect: float | None) -> tuple[Change, ...]:
    """The cells that a gate cannot see: those without a verdict, and those in which a slowdown by `detect` would have been tied.

    Cells of equal code do not count, since no gate fails on them; nor do slower cells, which show their slowdown, and faster ones, whose
    whole interval excludes one.

    Args:
        detect: a fraction; None where no sensitivity is asked for, so that `BLIND` counts for cells that are tied.
    """

    def is_unseen(change: Change) -> bool:
        blind = not change.least_effect <= (BLIND if detect is None else detect)
        return change.verdict == "unknown" or (blind and change.verdict == "tied")

    return tuple(each for each in changes if not each.equal_code and is_unseen(each))


def durations(data: RunData, change: Change, cell: tuple[str, str]) -> "pd.Series[float]":
    """Durations in nanoseconds by round, of one side of a change.

    Args:
        data: the run of that side.
        cell: variant and config of that side.
    """
    rounds = reading(data).data.rounds(change.workload, change.case, change.timing.scope, change.timing.cache)
    return rounds[Entry(*cell, change.gpus, 0)]


#: The values by which cells are matched: those of the cell, without the variant and the config where they are not matched.
_Key = tuple[str, str, str, str, str, str, int]


def _timed(side: Side, other: Side, options: Options) -> Iterator[tuple[_Key, Cell]]:
    data = reading(side.data).data
    every = cells(data)
    every = every[(every["n"] > 0) & (every["status"] == "ok")]
    if side.variant:
        every = every[every["variant"] == side.variant]
    every = every[_chosen(data, reading(other.data).data, every, options.scope)]
    if options.match == "best":
        every = best_config(every)
    names = ["workload", *TimedCell._fields, "median_ns", "low_ns", "high_ns", "flags", "kind"]
    for cell in records(every[names]):
        variant = "" if side.variant and other.variant else cell.variant
        config = "" if options.match == "best" else cell.config
        yield (cell.workload, cell.case, cell.scope, cell.cache, variant, config, cell.gpus), cell


def _chosen(data: RunData, other: RunData, every: pd.DataFrame, scope: str) -> "pd.Series[bool]":
    if scope == "all":
        return pd.Series(True, every.index)
    if scope:
        return every["scope"] == scope
    mask = pd.Series(False, every.index)
    for workload in data.workloads:
        own, of_other = timings(data, workload), timings(other, workload)
        for timing in ([each for each in own if each in of_other] or own)[:1]:
            mask[in_timing(every, workload, timing).index] = True
    return mask


def _changes(
    a: Reading, b: Reading, pairs: Iterable[tuple[Cell, Cell]], options: Options, history: History | None
) -> tuple[Change, ...]:
    """The changes of pairs of cells, the slowest first. Nothing is known where one side is distrusted, and the other one is not or for
    another reason."""
    known = [(each, _of_equal_code(a, b, *each)) for each in pairs]
    judge = _judge_of(a, b, [pair[1] for pair, is_equal in known if is_equal], options, history)
    changes = []
    for (of_a, of_b), equal in known:
        # A program with equal files that takes longer is slower, since it may load others; one that does not show it fails no gate.
        tells = all(each.medians(of_b.workload).tells_unchanged for each in (a, b))
        judged, n = judge(of_a, of_b, equal and tells)
        change = Change(
            of_b.workload,
            of_b.case,
            Timing(of_b.scope, of_b.cache),
            of_b.variant,
            of_b.config,
            of_b.gpus,
            of_a=(of_a.variant, of_a.config),
            a_ns=of_a.median_ns,
            b_ns=of_b.median_ns,
            ratio=judged.ratio,
            shift=judged.shift,
            noise=judged.noise,
            same_source=a.source(of_a) == b.source(of_b),
            equal_code=equal,
            n=n,
            verdict=judged.verdict if set(of_a.flags) == set(of_b.flags) else "unknown",
            on_host=of_b.kind == "host",
            least_effect=between_runs.least_effect(judged.ratio, judged.noise, options.smallest),
        )
        changes.append(change)
    return tuple(sorted(changes, key=lambda each: slowness(each.verdict, each.ratio)))


def _of_equal_code(a: Reading, b: Reading, of_a: Cell, of_b: Cell) -> bool:
    """Whether the source of both cells is known and equal, and their variant and config are."""
    same_cell = (of_a.variant, of_a.config) == (of_b.variant, of_b.config)
    return same_cell and a.source(of_a) == b.source(of_b) != ""


#: Judges a cell of A and one of B, given whether they are of equal code; with the samples of the smaller side.
_Judge = Callable[[Cell, Cell, bool], tuple[Judgement, int]]


def _judge_of(a: Reading, b: Reading, equal: Sequence[Cell], options: Options, history: History | None) -> _Judge:
    if options.in_rounds:
        versions = InRounds(a, b, equal)
        return lambda of_a, of_b, is_equal: versions.judge(
            of_a, of_b, options.smallest, equal=is_equal, clock=_of_clock(a, of_a, of_b)
        )
    if a.data.info["run_id"] == b.data.info["run_id"]:
        return lambda of_a, of_b, _: _within(a, b, of_a, of_b, options)
    return _between(a, b, options, history)


def _within(a: Reading, b: Reading, before: Cell, after: Cell, options: Options) -> tuple[Judgement, int]:
    """Two cells of one run, compared round by round; and the samples of the smaller side."""
    ratio = paired_ratio(b.durations(after), a.durations(before))
    noise = max(a.noise(before), b.noise(after), _of_clock(a, before, after))
    verdict = between_runs.judge(ratio.estimate, noise, options.smallest, n=ratio.n, equal=False)
    return Judgement(ratio.estimate, noise, verdict), ratio.n


def _of_clock(a: Reading, before: Cell, after: Cell) -> float:
    """The ratio up to which the clock of a run cannot tell two of its cells, at least 1."""
    return 1 + clock_ns(a.data, before.scope, before.cache) / min(before.median_ns.value, after.median_ns.value)


def _between(a: Reading, b: Reading, options: Options, history: History | None) -> _Judge:
    """The comparison of cells of two runs."""
    apart = intervals.differ(*(each.data.info["collector"] for each in (a, b)))

    @functools.cache
    def pair(workload: str, timing: Timing, gpus: int) -> Pair:
        runs, absolute = history or (lambda _: []), options.absolute
        machine = functools.cache(lambda: Machine(runs(workload), timing, gpus, absolute=absolute))
        return Pair(a.medians(workload), b.medians(workload), timing, gpus, machine, absolute=absolute)

    def judged(of_a: Cell, of_b: Cell, equal: bool) -> tuple[Judgement, int]:
        before, after, timed = a.level(of_a), b.level(of_b), TimedCell.of(of_b)
        found = pair(of_b.workload, *timing_group(timed)).judge(before, after, timed, options.smallest, equal=equal)
        if of_b.scope == "device" and apart:
            found = found._replace(noise=math.nan, verdict="unknown")
        return found, min(before.n, after.n)

    return judged


def _title(side: Side) -> str:
    return value_text(side.data.info["label"]) or label_from(side.data.info, side.data.workloads)
