"""The sentences and tables about two devices, and what the hardware of both gives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.side_by_side import Contest, OneSided, Outcome, Pair, SideBySide, slower
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.cell import Cell, Estimate
from warpladder.dashboard.core.cells import measured
from warpladder.dashboard.core.numbers import format_estimate, format_measure, format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.limits import COMPUTE, compute_ceiling
from warpladder.data.names import Ceiling


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


#: Ceilings that are compared, of a GPU and of a processor. A precision stands for the highest of its ceilings.
_ON_GPU: Final = {
    Ceiling.DEVICE_COPY: "copies in memory",
    **{precision: word(precision) for precision in COMPUTE if precision != "3xtf32"},
    Ceiling.H2D_PINNED: "copies to the device",
    Ceiling.D2H_PINNED: "copies from the device",
    Ceiling.GRAPH_NODE: "an empty kernel",
}
#: Those of memory and arithmetic.
_OF_WORK: Final = (Ceiling.DEVICE_COPY, *COMPUTE, Ceiling.HOST_COPY, Ceiling.HOST_FMA)
_ON_HOST: Final = {Ceiling.HOST_COPY: "copies in memory", Ceiling.HOST_FMA: "fp32"}


def rates(a: RunData, b: RunData, found: SideBySide) -> tuple[Rate, ...]:
    """The ceilings that both runs measured and that concern the variants: those of their precisions, on the GPU or the processor."""
    needed = {"tf32" if pair.a.precision == "3xtf32" else pair.a.precision for pair in found.pairs}
    rates = []
    for name, what in (_ON_HOST if found.on_host else _ON_GPU).items():
        if name in COMPUTE and name not in needed:
            continue
        (value, unit), (other, other_unit) = (_ceiling(data, name) for data in (a, b))
        if unit and unit == other_unit and min(value, other) > 0:
            ratio = value / other if unit.endswith("/s") else other / value
            rates.append(Rate(what, format_measure(value, unit), format_measure(other, unit), ratio, name in _OF_WORK))
    return tuple(rates)


def _ceiling(data: RunData, name: str) -> tuple[float, str]:
    """Value and unit of a ceiling, on the first device that has it; an empty unit where it was not measured."""
    name = compute_ceiling(measured(data), name) if name in COMPUTE else name
    rows = data.ceilings[data.ceilings["name"] == name].sort_values("device")
    return (float(rows["value"].iloc[0]), str(rows["unit"].iloc[0])) if len(rows) else (nan, "")


def headline(contests: Sequence[Contest], pairs: Mapping[str, Pair], devices: tuple[str, str]) -> str:
    """`v12 is the fastest rung on both and takes 0.830 times as long on the H200 as on the H100`; with several precisions a short clause
    for each.

    Args:
        contests: of one case.
        pairs: of the same case, by variant.
    """

    def result(contest: Contest) -> str:
        if contest.both:
            return _takes(contest, pairs, devices, wins=contest.rivals > 1, brief=len(contests) > 1)
        a, b = contest.a, contest.b
        won = f"{a.winner} {_is_fastest(contest, a)} on the {devices[0]}"
        lost = f"{slower(b.behind[a.winner])} slower than {b.winner} on the {devices[1]}"
        return f"{won} and {lost}, which is {slower(a.behind[b.winner])} slower on the {devices[0]}"

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
    clauses = [f"{prefix}{words(contest)}" for prefix, contest in zip(prefixes, contests, strict=True)]
    return "; ".join(clauses) or "no variant may be called best on both devices"


def _takes(
    contest: Contest, pairs: Mapping[str, Pair], devices: tuple[str, str], *, wins: bool = False, brief: bool = False
) -> str:
    """The ratio of the variant that wins on both, or else of the winner on A.

    Args:
        wins: whether it is told that it wins.
        brief: the clause is one of several, and leaves out device A.
    """
    name = contest.both or contest.a.winner
    won = f"{_is_fastest(contest, contest.a, contest.b)} on both and " if wins else ""
    beside = "" if brief else f" as on the {devices[0]}"
    return f"{name} {won}takes {significant(pairs[name].ratio.value)} times as long on the {devices[1]}{beside}"


def _is_fastest(contest: Contest, *outcomes: Outcome) -> str:
    """`is the fastest rung`, or where an outcome has ties `is the fastest rung, or tied with it,`."""
    tied = ", or tied with it," if any(each.ties for each in outcomes) else ""
    return f"is the fastest{' rung' if contest.of_rungs else ''}{tied}"


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
