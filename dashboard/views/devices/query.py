"""The variants that two devices have in common: times, floors, the winners of each case on both, and what the hardware gives."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import axes, history
from warpladder.dashboard.core.cell import ASIDE, ROLE_ORDER, Cell, Contender, Estimate, Timing, records
from warpladder.dashboard.core.cells import best_of_charted, cells, measured
from warpladder.dashboard.core.compare import Judgement, Noise, compared, judged, noise_of, precisions, word
from warpladder.dashboard.core.history import TimedCell
from warpladder.dashboard.core.numbers import format_measure, format_percent, significant
from warpladder.dashboard.core.run_data import Entry, Rounds, RunData
from warpladder.dashboard.core.trusted import doubt
from warpladder.data.limits import compute_ceiling
from warpladder.data.names import Ceiling

#: What follows the model in the name of a device: memory, cores, and the word for a processor.
_AFTER_MODEL: Final = re.compile(r"\s+(\d+\s?GB\b|\d+-Core\b|CPU\b|Processor\b|@).*")


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
        loss: the time of the other device's winner over the time of the winner.
        verdict: `tied` where that loss is within the noise, `slower` where it is beyond; empty where both have the same winner.
    """

    winner: str
    ties: tuple[str, ...]
    loss: Estimate
    verdict: str

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
    """

    pairs: tuple[Pair, ...]
    contests: tuple[Contest, ...]
    doubted: frozenset[tuple[str, str]]
    alone: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.a.case for pair in self.pairs))

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
    wins = {(each.case, name): on for each in contests for name, on in _wins(each)}
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
    return SideBySide(pairs, tuple(contests), doubted, _alone(a, b, timing, common))


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
        winners = [side.fastest for side in sides]
        of_a, of_b = (side.outcome(other) for side, other in zip(sides, reversed(winners), strict=True))
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

    @property
    def fastest(self) -> str:
        return min(self.cells, key=self.time)

    def time(self, name: str) -> float:
        return self.cells[name].median_ns.value

    def outcome(self, other: str) -> Outcome:
        """The outcome here, with the loss of the winner of the other device."""
        behind = {name: self._behind(name) for name in sorted(self.cells, key=self.time) if name != self.fastest}
        ties = tuple(name for name, each in behind.items() if each.verdict != "faster")
        if other == self.fastest:
            return Outcome(self.fastest, ties, Estimate.unknown(), "")
        return Outcome(self.fastest, ties, behind[other].ratio.estimate, "tied" if other in ties else "slower")

    def _behind(self, name: str) -> Judgement:
        """The fastest against another variant: `faster` where that is slower beyond the noise."""
        return judged(self.rounds, self.noise, self._entry(self.fastest), self._entry(name))

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
_ON_HOST: Final = {Ceiling.HOST_COPY: "copies in memory", Ceiling.HOST_FMA: "fp32"}


def rates(a: RunData, b: RunData, *, on_host: bool) -> tuple[Rate, ...]:
    """The ceilings that both runs measured, of the GPU or of the processor."""
    found = []
    for name, what in (_ON_HOST if on_host else _ON_GPU).items():
        (value, unit), (other, other_unit) = (_ceiling(data, name) for data in (a, b))
        if unit and unit == other_unit and min(value, other) > 0:
            ratio = value / other if unit.endswith("/s") else other / value
            found.append(Rate(what, format_measure(value, unit), format_measure(other, unit), ratio, name in _OF_WORK))
    return tuple(found)


def _ceiling(data: RunData, name: str) -> tuple[float, str]:
    """Value and unit of a ceiling, on the first device that has it; an empty unit where it was not measured."""
    name = compute_ceiling(measured(data), name) if name == _TF32 else name
    rows = data.ceilings[data.ceilings["name"] == name].sort_values("device")
    return (float(rows["value"].iloc[0]), str(rows["unit"].iloc[0])) if len(rows) else (nan, "")


def short_names(a: str, b: str) -> tuple[str, str]:
    """`H100` and `H200` for `NVIDIA H100 80GB HBM3` and `NVIDIA H200`; the whole names where the short ones are equal."""
    one, other = (_AFTER_MODEL.sub("", name.removeprefix("NVIDIA ")) for name in (a, b))
    return (one, other) if one != other else (a, b)


_NO_CONTEST: Final = "no variant may be called best on both devices"


def headline(contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    """`v12 wins on both and takes 0.830 times as long on the H200 as on the H100`, a clause for each precision.

    Args:
        contests: of one case.
        pairs: of the same case, by variant.
    """
    return _clauses(contests, lambda contest: _result(contest, pairs, devices))


def reached(contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    """`v12 reaches 81.0 % of the memory floor on the H100 and 77.0 % on the H200`, a clause for each precision."""

    def words(contest: Contest) -> str:
        names = (contest.both, contest.both) if contest.both else (contest.a.winner, contest.b.winner)
        floors = [pairs[names[0]].a, pairs[names[1]].b]
        percents = [format_percent(cell.percent_of_floor.value) for cell in floors]
        bounds = [f" of the {cell.floor_bound} floor" if cell.floor_bound else "" for cell in floors]
        last = "" if contest.both and bounds[0] == bounds[1] else bounds[1]
        second = "" if contest.both else f"{names[1]} "
        return f"{names[0]} reaches {percents[0]}{bounds[0]} on the {devices[0]} and {second}{percents[1]}{last} on the {devices[1]}"

    return _clauses(contests, words)


def against_rates(
    contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str], rates: Sequence[Rate]
) -> str:
    """`v12 takes 0.723 times as long on the H200 as on the H100; copies in memory 0.713 times, fp32 1.00 times`."""
    times = _clauses(contests, lambda contest: _takes(contest, pairs, devices))
    given = ", ".join(f"{rate.what} {significant(rate.ratio)}" for rate in rates if rate.of_work)
    return f"{times}; {given}" if given else times


def _clauses(contests: Sequence[Contest], words: Callable[[Contest], str]) -> str:
    prefixes = [f"{word(contest.precision)}: " if len(contests) > 1 else "" for contest in contests]
    return "; ".join(f"{prefix}{words(contest)}" for prefix, contest in zip(prefixes, contests, strict=True)) or _NO_CONTEST


def _result(contest: Contest, pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    a, b = contest.a, contest.b
    if contest.both:
        return _takes(contest, pairs, devices, " wins on both and")
    on_b = f"{a.winner} wins on the {devices[0]} and is {slower(b.loss)} slower than {b.winner} on the {devices[1]}"
    return f"{on_b}, which is {slower(a.loss)} slower on the {devices[0]}"


def _takes(contest: Contest, pairs: Mapping[str, Pair], devices: tuple[str, str], wins: str = "") -> str:
    """The ratio of the variant that wins on both, or else of the winner on A."""
    name = contest.both or contest.a.winner
    times = significant(pairs[name].ratio.value)
    return f"{name}{wins if contest.rivals > 1 else ''} takes {times} times as long on the {devices[1]} as on the {devices[0]}"


def slower(loss: Estimate) -> str:
    """`7.10 %` for a ratio of 1.071."""
    return format_percent(100 * (loss.value - 1))


def changed(contests: Sequence[Contest], devices: tuple[str, str]) -> str:
    """`1 of 6 contests has another winner on the H200 than on the H100: n=256 in TF32`; a contest is a case in a precision."""
    differ = [each for each in contests if not each.both]
    count = f"{len(contests)} contest{'' if len(contests) == 1 else 's'}"
    if not differ:
        return f"In {count} the {devices[0]} and the {devices[1]} have a winner in common"
    several = len({each.precision for each in contests}) > 1
    where = ", ".join(f"{each.case}{f' in {word(each.precision)}' if several else ''}" for each in differ)
    have = "has" if len(differ) == 1 else "have"
    return f"{len(differ)} of {count} {have} another winner on the {devices[1]} than on the {devices[0]}: {where}"


def winners(contests: Iterable[Contest]) -> pd.DataFrame:
    """The winners of each contest.

    Returns:
        `case`, `precision`; `a`, `b`: the winner on each device, with the variants that are tied with it; `result`: `same`, `tied`
        or `differ`; `a_on_b`: by how much the winner of A is slower than the winner of B on B, in percent, with the ends of its
        interval in `a_on_b_low` and `a_on_b_high`, null for the same winner; and `b_on_a` likewise.
    """
    rows = []
    for each in contests:
        same = each.a.winner == each.b.winner
        rows.append(
            {
                "result": "same" if same else "tied" if each.both else "differ",
                "case": each.case,
                "precision": word(each.precision),
                "a": " ≈ ".join(each.a.winners),
                "b": " ≈ ".join(each.b.winners),
                **_percent(each.b.loss, "a_on_b"),
                **_percent(each.a.loss, "b_on_a"),
            }
        )
    return pd.DataFrame(rows)


def _percent(loss: Estimate, name: str) -> dict[str, float]:
    return Estimate(*(100 * (end - 1) for end in (loss.value, loss.low, loss.high))).columns(name)


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
