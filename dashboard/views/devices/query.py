"""The variants that two devices have in common: times, floors, the winners of each case on both, and what the hardware gives."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core import axes, history
from warpladder.dashboard.core.cell import ASIDE, ROLE_ORDER, Cell, Contender, Estimate, Timing, records
from warpladder.dashboard.core.cells import best_of_charted, cells, measured
from warpladder.dashboard.core.compare import Noise, compared, judged, noise_of, precisions, word
from warpladder.dashboard.core.history import TimedCell
from warpladder.dashboard.core.numbers import format_estimate, format_measure, format_percent, significant
from warpladder.dashboard.core.run_data import Entry, Rounds, RunData
from warpladder.dashboard.core.trusted import doubt
from warpladder.data.limits import compute_ceiling
from warpladder.data.names import Ceiling

#: What follows the model in the name of a device: memory, cores, and the word for a processor.
_AFTER_MODEL: Final = re.compile(r"\s+(\d+\s?GB\b|\d+-Core\b|CPU\b|Processor\b|@).*")
_MARK: Final = re.compile(r"\((R|TM)\)")
_LABEL: Final = 8


@dataclass(frozen=True)
class Pair:
    """A variant of a case on both devices, on each with its own fastest config.

    Attributes:
        ratio: time on B over the time on A. The runs are separate; see `history.ratio`.
        same_source: whether both runs measured the same source.
        wins: `both`, `A` or `B`, where no rival is faster beyond the noise of the case; else empty.
    """

    a: Cell
    b: Cell
    ratio: Estimate
    same_source: bool
    wins: str

    @property
    def of_floors(self) -> float:
        """The floor on B over the floor on A, the ratio of a variant that is equally far from both; NaN where there is none to compare."""
        return nan if self.unlike_floors else self.b.floor_ns / self.a.floor_ns

    @property
    def unlike_floors(self) -> bool:
        """Whether the floors come from different ceilings, since one run measured fewer or another bound is the longer one."""
        return self.a.floor_ceiling != self.b.floor_ceiling


@dataclass(frozen=True)
class Outcome:
    """The result of a contest on one device.

    Attributes:
        winner: the fastest variant.
        ties: the other variants that are not known to be slower, by time.
        behind: of each other variant, its time over the time of the winner.
    """

    winner: str
    ties: tuple[str, ...]
    behind: Mapping[str, Estimate]

    @property
    def winners(self) -> tuple[str, ...]:
        return (self.winner, *self.ties)


@dataclass(frozen=True)
class Contest:
    """The variants of a case in one precision, on both devices.

    Attributes:
        rivals: how many variants compete.
        both: the variant that wins on both devices, the fastest one of several; empty where the winners differ beyond the noise.
    """

    case: str
    precision: str
    rivals: int
    a: Outcome
    b: Outcome
    both: str


@dataclass(frozen=True)
class SideBySide:
    """What two runs of a workload have in common in one timing.

    Attributes:
        pairs: by case in the order of the sizes, then rungs, then peers; host variants where no other is in both.
        contests: by case, fp32 first. A case without a variant that may be called best on both has none.
        doubted: case and name of the variants that take part in no contest, because one device's time may not be called best.
        alone: names of the variants that A has alone, and of those that B has alone, in the common cases.
        processes: how many processes of each run took samples.
    """

    pairs: tuple[Pair, ...]
    contests: tuple[Contest, ...]
    doubted: frozenset[tuple[str, str]]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    processes: tuple[int, int]

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.a.case for pair in self.pairs))

    @property
    def on_host(self) -> bool:
        """Whether the variants run on the processors."""
        return all(pair.a.role == "host" for pair in self.pairs)

    @property
    def changed_sources(self) -> tuple[str, ...]:
        """The variants whose sources differ."""
        return tuple(dict.fromkeys(pair.a.variant for pair in self.pairs if not pair.same_source))


def timings(a: RunData, b: RunData, workload: str) -> tuple[Timing, ...]:
    """The timings in which both runs have a variant of a case in common."""
    of_a, of_b = (_timed_keys(data, workload) for data in (a, b))
    return axes.in_order(Timing(scope, cache) for scope, cache in {key[:2] for key in of_a & of_b})


def _timed_keys(data: RunData, workload: str) -> frozenset[tuple[str, ...]]:
    """Scope, cache, case and variant of the competitors that have times."""
    frame = cells(data)
    frame = frame[(frame["workload"] == workload) & (frame["n"] > 0) & (frame["status"] == "ok") & frame["size_rank"].notna()]
    frame = frame[~frame["role"].isin(ASIDE)]
    return frozenset(frame[["scope", "cache", "case", "variant"]].itertuples(index=False, name=None))


def side_by_side(a: RunData, b: RunData, workload: str, timing: Timing) -> SideBySide:
    """What two runs have in common in a timing, with the winners of each case."""
    common = _common(a, b, workload, timing)
    contests: list[Contest] = []
    for case in dict.fromkeys(one.case for one, _ in common):
        of_case = [both for both in common if both[0].case == case and all(map(_good, both))]
        contests += _contests(a, b, timing, of_case)
    # A peer can be in the contests of two precisions; the first one, its own, counts.
    wins = {(each.case, name): on for each in reversed(contests) for name, on in _wins(each)}
    ratio, source = _ratios(a, b, workload), [_sources(data, workload) for data in (a, b)]
    pairs = tuple(
        Pair(
            one,
            other,
            ratio(one, other),
            source[0][one.variant] == source[1][one.variant],
            wins.get((one.case, one.variant), ""),
        )
        for one, other in common
    )
    doubted = frozenset((one.case, one.variant) for one, other in common if not (_good(one) and _good(other)))
    processes = (len(np.unique(a.grouped.processes)), len(np.unique(b.grouped.processes)))
    return SideBySide(pairs, tuple(contests), doubted, _alone(a, b, timing, common), processes)


def _good(cell: Cell) -> bool:
    return not doubt(cell.n, cell.flags)


@lru_cache(maxsize=16)
def _timed(data: RunData, workload: str, timing: Timing) -> Mapping[tuple[str, str], Contender]:
    """The cells of a run by case and variant, each on the fewest GPUs, without ceilings and specimens. The order is that of the ladder."""
    frame = best_of_charted(data, workload, timing)
    frame = frame[~frame["role"].isin(ASIDE)].assign(place=frame["role"].map(ROLE_ORDER.index))
    frame = frame.sort_values(["size_rank", "case", "place", "rung", "gpus"], kind="stable").drop_duplicates(
        ["case", "variant"]
    )
    return {(cell.case, cell.variant): cell for cell in records(Contender, frame)}


def _common(a: RunData, b: RunData, workload: str, timing: Timing) -> list[tuple[Contender, Contender]]:
    """The cells that both runs have. Variants of the host are left out where there are others."""
    of_a, of_b = (_timed(data, workload, timing) for data in (a, b))
    common = [(cell, of_b[key]) for key, cell in of_a.items() if key in of_b]
    return [both for both in common if both[0].role != "host"] or common


def _alone(
    a: RunData, b: RunData, timing: Timing, common: Sequence[tuple[Contender, Contender]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variants that one run has alone in the common cases, on the host where the common ones are."""
    if not common:
        return (), ()
    cases, on_host = {one.case for one, _ in common}, common[0][0].role == "host"
    names = [
        dict.fromkeys(
            cell.variant
            for cell in _timed(data, common[0][0].workload, timing).values()
            if cell.case in cases and (cell.role == "host") == on_host
        )
        for data in (a, b)
    ]
    return tuple(each for each in names[0] if each not in names[1]), tuple(each for each in names[1] if each not in names[0])


def _contests(a: RunData, b: RunData, timing: Timing, good: Sequence[tuple[Contender, Contender]]) -> Iterator[Contest]:
    """The contests of one case: of its rungs in a precision, or where there is one rung or none, of all variants compared in it.

    Args:
        good: the cells of the case, all of which may be called best.
    """
    if not good:
        return
    case, columns = good[0][0].case, ["variant", "role", "precision"]
    frame = pd.DataFrame([[getattr(one, name) for name in columns] for one, _ in good], columns=columns)
    for precision in precisions(frame):
        rivals = compared(frame, precision)
        rungs = rivals[rivals["role"] == "rung"]
        names = (rungs if len(rungs) > 1 else rivals)["variant"].tolist()
        pairs = [both for both in good if both[0].variant in names]
        sides = [_Side.of(data, timing, [both[place] for both in pairs]) for place, data in enumerate((a, b))]
        of_a, of_b = (side.outcome() for side in sides)
        shared = [name for name in names if name in of_a.winners and name in of_b.winners]
        both = min(shared, key=lambda name: sides[0].time(name) * sides[1].time(name), default="")
        yield Contest(case, precision, len(names), of_a, of_b, both)


@dataclass(frozen=True)
class _Side:
    """The rivals of a contest on one device, with what they are judged by."""

    cells: Mapping[str, Cell]
    rounds: Rounds
    noise: Noise

    @classmethod
    def of(cls, data: RunData, timing: Timing, cells: Sequence[Cell]) -> "_Side":
        rounds = data.rounds(cells[0].workload, cells[0].case, timing.scope, timing.cache)
        return cls({cell.variant: cell for cell in cells}, rounds, noise_of(rounds, data.hosts(cells[0].workload)))

    def time(self, name: str) -> float:
        return self.cells[name].median_ns.value

    def outcome(self) -> Outcome:
        winner, *others = sorted(self.cells, key=self.time)
        behind = {name: judged(self.rounds, self.noise, self._entry(winner), self._entry(name)) for name in others}
        # The winner is `faster` than a variant that is slower beyond the noise.
        ties = tuple(name for name, each in behind.items() if each.verdict != "faster")
        return Outcome(winner, ties, {name: each.ratio.estimate for name, each in behind.items()})

    def _entry(self, name: str) -> Entry:
        cell = self.cells[name]
        return Entry(name, cell.config, cell.gpus, 0)


def _wins(contest: Contest) -> Iterator[tuple[str, str]]:
    """The variants that win, each with the devices on which it does."""
    for name in dict.fromkeys((*contest.a.winners, *contest.b.winners)):
        on_a, on_b = name in contest.a.winners, name in contest.b.winners
        yield name, "both" if on_a and on_b else "A" if on_a else "B"


def _ratios(a: RunData, b: RunData, workload: str) -> Callable[[Cell, Cell], Estimate]:
    """The time of a cell on B over that on A."""
    medians = [history.reading(data).medians(workload) for data in (a, b)]
    places = [{cell: place for place, cell in enumerate(each.cells)} for each in medians]

    def level(side: int, cell: Cell) -> history.Level:
        key = TimedCell(cell.case, cell.scope, cell.cache, cell.variant, cell.config, cell.gpus)
        return medians[side].levels.at(places[side][key])

    return lambda one, other: history.ratio(level(0, one), level(1, other))


def _sources(data: RunData, workload: str) -> dict[str, str]:
    """The hash of the source of each variant; empty where no source was recorded."""
    rows = data.variants[data.variants["workload"] == workload]
    return dict(zip(rows["variant"], rows["source_sha256"].fillna(""), strict=True))


@dataclass(frozen=True)
class Rate:
    """A ceiling of both devices.

    Attributes:
        a, b: values with units.
        ratio: the time that the same work takes on B over the time on A.
        of_work: whether kernels are bounded by it, as by memory and arithmetic.
    """

    what: str
    a: str
    b: str
    ratio: float
    of_work: bool


#: In place of the faster of the two ceilings of TF32.
_TF32: Final = "tf32"
#: Ceilings that are compared, of a GPU and of a processor.
_ON_GPU: Final = {
    Ceiling.DEVICE_COPY: "copies in memory",
    Ceiling.FP32_FMA: "fp32",
    _TF32: "TF32",
    Ceiling.H2D_PINNED: "copies to the device",
    Ceiling.D2H_PINNED: "copies from the device",
    Ceiling.GRAPH_NODE: "an empty kernel",
}
#: Those of memory and arithmetic.
_OF_WORK: Final = (Ceiling.DEVICE_COPY, Ceiling.FP32_FMA, _TF32, Ceiling.HOST_COPY, Ceiling.HOST_FMA)
#: Precision -> its arithmetic on a GPU.
_OF_PRECISION: Final = {"fp32": Ceiling.FP32_FMA, "tf32": _TF32, "3xtf32": _TF32}
_ON_HOST: Final = {Ceiling.HOST_COPY: "copies in memory", Ceiling.HOST_FMA: "fp32"}


def rates(a: RunData, b: RunData, found: SideBySide) -> tuple[Rate, ...]:
    """The ceilings that both runs measured and that concern the variants: those of their precisions, on the GPU or the processor."""
    needed = {_OF_PRECISION.get(pair.a.precision) for pair in found.pairs}
    rates = []
    for name, what in (_ON_HOST if found.on_host else _ON_GPU).items():
        if name in _OF_PRECISION.values() and name not in needed:
            continue
        (value, unit), (other, other_unit) = (_ceiling(data, name) for data in (a, b))
        if unit and unit == other_unit and min(value, other) > 0:
            ratio = value / other if unit.endswith("/s") else other / value
            rates.append(Rate(what, format_measure(value, unit), format_measure(other, unit), ratio, name in _OF_WORK))
    return tuple(rates)


def _ceiling(data: RunData, name: str) -> tuple[float, str]:
    """Value and unit of a ceiling, on the first device that has it; an empty unit where it was not measured."""
    name = compute_ceiling(measured(data), name) if name == _TF32 else name
    rows = data.ceilings[data.ceilings["name"] == name].sort_values("device")
    return (float(rows["value"].iloc[0]), str(rows["unit"].iloc[0])) if len(rows) else (nan, "")


def devices_of(a: RunData, b: RunData, found: SideBySide) -> tuple[str, str]:
    """The names of what the variants ran on: the devices of both runs, or for variants of the host the processors if they differ."""
    processors = str(a.info["cpu_name"]), str(b.info["cpu_name"])
    return processors if found.on_host and processors[0] != processors[1] else (a.device, b.device)


def short_names(a: str, b: str) -> tuple[str, str]:
    """`H100` and `H200` for `NVIDIA H100 80GB HBM3` and `NVIDIA H200`; the whole names where the short ones are equal."""
    one, other = (_AFTER_MODEL.sub("", _MARK.sub("", name).removeprefix("NVIDIA ")) for name in (a, b))
    return (one, other) if one != other else (a, b)


def labels(devices: tuple[str, str]) -> tuple[str, str]:
    """The short names where there is little room; `A` and `B` where one is long."""
    return devices if max(map(len, devices)) <= _LABEL else ("A", "B")


_NO_CONTEST: Final = "no variant may be called best on both devices"


def headline(contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    """`v12 wins on both and takes 0.830 times as long on the H200 as on the H100`; with several precisions a short clause for each.

    Args:
        contests: of one case.
        pairs: of the same case, by variant.
    """

    def result(contest: Contest) -> str:
        if contest.both:
            return _takes(contest, pairs, devices, wins=contest.rivals > 1, brief=len(contests) > 1)
        a, b = contest.a, contest.b
        on_b = f"{a.winner} wins on the {devices[0]} and is {slower(b.behind[a.winner])} slower than {b.winner} on the {devices[1]}"
        return f"{on_b}, which is {slower(a.behind[b.winner])} slower on the {devices[0]}"

    return _clauses(contests, result)


def reached(contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    """`v12 reaches 81.0 % of the memory floor on the H100 and 77.0 % on the H200`, a clause for each precision."""

    def shares(contest: Contest) -> str:
        names = (contest.both, contest.both) if contest.both else (contest.a.winner, contest.b.winner)
        cells = [pairs[names[0]].a, pairs[names[1]].b]
        first, second = (format_percent(cell.percent_of_floor.value) for cell in cells)
        bounds = [f" of the {cell.floor_bound} floor" if cell.floor_bound and len(contests) == 1 else "" for cell in cells]
        if contest.both and bounds[0] == bounds[1]:
            bounds[1] = ""
        other = "" if contest.both else f"{names[1]} "
        return f"{names[0]} reaches {first}{bounds[0]} on the {devices[0]} and {other}{second}{bounds[1]} on the {devices[1]}"

    return _clauses(contests, shares)


def against_rates(
    contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str], rates: Sequence[Rate]
) -> str:
    """`v12 takes 0.723 times as long on the H200 as on the H100; copies in memory 0.713, fp32 1.00`."""
    times = _clauses(contests, lambda contest: _takes(contest, pairs, devices, brief=len(contests) > 1))
    given = ", ".join(f"{rate.what} {significant(rate.ratio)}" for rate in rates if rate.of_work)
    return f"{times}; {given}" if given else times


def _clauses(contests: Sequence[Contest], words: Callable[[Contest], str]) -> str:
    prefixes = [f"{word(contest.precision)}: " if len(contests) > 1 else "" for contest in contests]
    return "; ".join(f"{prefix}{words(contest)}" for prefix, contest in zip(prefixes, contests, strict=True)) or _NO_CONTEST


def _takes(
    contest: Contest, pairs: Mapping[str, Pair], devices: tuple[str, str], *, wins: bool = False, brief: bool = False
) -> str:
    """The ratio of the variant that wins on both, or else of the winner on A."""
    name = contest.both or contest.a.winner
    times = significant(pairs[name].ratio.value)
    if brief:
        return f"{name} {'wins on both and ' if wins else ''}takes {times} times as long on the {devices[1]}"
    return f"{name} {'wins on both and ' if wins else ''}takes {times} times as long on the {devices[1]} as on the {devices[0]}"


def slower(behind: Estimate) -> str:
    """`7.10 %` for a ratio of 1.071."""
    return format_percent(100 * (behind.value - 1))


@dataclass(frozen=True)
class OneSided:
    """A variant that wins on one device and loses on the other.

    Attributes:
        wins: `A` or `B`.
        behind: its time over the time of the winner, on the other device.
        to: the winner there.
        same_source: whether both runs measured the same source of the variant.
    """

    case: str
    precision: str
    variant: str
    wins: str
    behind: Estimate
    to: str
    same_source: bool


def one_sided(found: SideBySide) -> list[OneSided]:
    """The variants that win on one device and lose on the other, the largest loss first."""
    sided = []
    for each in found.contests:
        for name, on in _wins(each):
            if on != "both":
                there = each.b if on == "A" else each.a
                same = name not in found.changed_sources
                sided.append(OneSided(each.case, each.precision, name, on, there.behind[name], there.winner, same))
    return sorted(sided, key=lambda each: -each.behind.value)


def losers(found: Sequence[OneSided], devices: tuple[str, str]) -> str:
    """`v14 wins on the H200 and is 0.972 % slower than v12 on the H100, n=4096`; of several, their number and the largest loss."""
    if not found:
        return f"No variant wins on one of the {devices[0]} and the {devices[1]} and loses on the other"
    first = found[0]
    won, lost = devices if first.wins == "A" else reversed(devices)
    loss = f"{first.variant} wins on the {won} and is {slower(first.behind)} slower than {first.to} on the {lost}, {first.case}"
    loss += "" if first.same_source else ", with another source"
    return loss if len(found) == 1 else f"{len(found)} wins on one device are losses on the other; the largest: {loss}"


def frame_of_losers(found: Iterable[OneSided], devices: tuple[str, str]) -> pd.DataFrame:
    """A row for each variant that wins on one device and loses on the other.

    Returns:
        `variant`, `case`, `precision`; `wins` and `loses`, the devices; `slower`, in percent as text with its interval, on the device where
        it loses; `to`, the winner there; `source`, `differs` where the sources of the two runs do.
    """
    return pd.DataFrame(
        {
            "variant": each.variant,
            "case": each.case,
            "precision": word(each.precision),
            "wins": devices[each.wins == "B"],
            "loses": devices[each.wins == "A"],
            "slower": _percent(each.behind),
            "to": each.to,
            "source": "" if each.same_source else "differs",
        }
        for each in found
    )


def winners(contests: Iterable[Contest]) -> pd.DataFrame:
    """The winners of each contest.

    Returns:
        `result`: `same` winner, `tied`, or `differ` beyond the noise; `case`, `precision`; `a`, `b`: the winner on each device, with the
        variants that are tied with it; `a_on_b`: how much slower the winner of A is on B than the winner of B, in percent with its
        interval as text, empty for the same winner; and `b_on_a` likewise.
    """
    return pd.DataFrame(
        {
            "result": "same" if each.a.winner == each.b.winner else "tied" if each.both else "differ",
            "case": each.case,
            "precision": word(each.precision),
            "a": " ≈ ".join(each.a.winners),
            "b": " ≈ ".join(each.b.winners),
            "a_on_b": _percent(each.b.behind.get(each.a.winner)),
            "b_on_a": _percent(each.a.behind.get(each.b.winner)),
        }
        for each in contests
    )


def _percent(behind: Estimate | None) -> str:
    """`7.10 % (6.90 to 7.30 %)` for a ratio of 1.071; empty for None."""
    if behind is None:
        return ""
    return format_estimate(Estimate(*(100 * (end - 1) for end in (behind.value, behind.low, behind.high))), format_percent)


def frame_of(pairs: Iterable[Pair]) -> pd.DataFrame:
    """A row for each pair: `case`, `variant`, `wins`, the figures of both devices, their ratio, and whether the source is the same.

    The figures are `config`, `n`, `median_ns`, `percent_of_floor`, `floor_ns` and `floor_bound`, each after `a_` or `b_`; an interval
    has the columns `_low` and `_high`.
    """
    return pd.DataFrame(
        {
            "workload": pair.a.workload,
            "case": pair.a.case,
            "variant": pair.a.variant,
            "precision": pair.a.precision,
            "wins": pair.wins,
            **{f"a_{name}": value for name, value in _figures(pair.a).items()},
            **{f"b_{name}": value for name, value in _figures(pair.b).items()},
            **pair.ratio.columns("ratio"),
            "ratio_of_floors": pair.of_floors,
            "same_source": pair.same_source,
        }
        for pair in pairs
    )


def _figures(cell: Cell) -> dict[str, Any]:
    return {
        "config": cell.config,
        "n": cell.n,
        "median_ns": cell.median_ns.value,
        "median_low_ns": cell.median_ns.low,
        "median_high_ns": cell.median_ns.high,
        **cell.percent_of_floor.columns("percent_of_floor"),
        "floor_ns": cell.floor_ns,
        "floor_bound": cell.floor_bound,
    }
