"""The definitions of the pages of cells: Overview, Ladder, Sizes, Roofline, Which to ship, Details, Published, Runs & checks."""

import math
from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.definitions import UNKNOWN, Between, Interval, Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import UNTOLD, Expected, Rule, Rules, estimate

Row = Mapping[str, Any]


def cell_of(row: Row) -> tuple[str, str, str, str]:
    return row["workload"], row["variant"], row["config"], row["case"]


def gpus_of(row: Row) -> int:
    return 0 if pd.isna(row["gpus"]) else int(row["gpus"])


def times(run: Shipped, row: Row) -> "pd.Series[float]":
    if pd.isna(row["scope"]):
        return pd.Series(dtype=float)
    return run.rounds(cell_of(row), gpus_of(row), row["scope"], row["cache"])


def median(run: Shipped, row: Row, shown: Shown) -> tuple[float, float, float]:
    found = times(run, row)
    return of.time_interval(run, found, row["scope"], row["cache"]) if len(found) else (math.nan, math.nan, math.nan)


def _end(place: int) -> Rule:
    return lambda run, row, shown: median(run, row, shown)[place]


def _of_case(name: str) -> Rule:
    return lambda run, row, shown: run.case(row["workload"], row["case"])[name]


def _of_variant(name: str) -> Rule:
    return lambda run, row, shown: run.variant(row["workload"], row["variant"])[name]


def _over(amount: str, place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        counted = float(run.case(row["workload"], row["case"])[amount])
        if amount == "flops" and run.variant(row["workload"], row["variant"])["role"] == "ceiling":
            return math.nan
        return counted / median(run, row, shown)[place] if counted else math.nan

    return rule


def floor(run: Shipped, row: Row, shown: Shown) -> float:
    if pd.isna(row["scope"]):
        return math.nan
    return of.floor(run, row["workload"], row["variant"], row["case"], gpus_of(row), row["scope"], row["cache"])[1]


def _bound(run: Shipped, row: Row, shown: Shown) -> Expected:
    if pd.isna(row["scope"]):
        return ""
    return of.floor(run, row["workload"], row["variant"], row["case"], gpus_of(row), row["scope"], row["cache"])[0]


def _percent(place: int) -> Rule:
    return lambda run, row, shown: 100 * floor(run, row, shown) / median(run, row, shown)[place]


def _result(name: str) -> Rule:
    return lambda run, row, shown: run.result(*cell_of(row)).get(name)


def _config(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The fastest config of the variant that may be called best."""
    if not row["n"]:
        return UNTOLD
    found = of.fastest(run, row["workload"], row["case"], row["scope"], row["cache"], row["variant"])
    return found[1] if found else None


def _trusted(run: Shipped, row: Row) -> bool:
    return not pd.isna(row["scope"]) and of.trusted(run, *cell_of(row), gpus_of(row), row["scope"], row["cache"])


def _baseline_variant(run: Shipped, workload: str, scope: str, cache: str, cases: list[str]) -> str:
    """The variant with a twin in most of some cases, on a GPU before on the host; else the lowest rung."""
    twins = [each for case in cases for each in run.timed(workload, case, scope, cache, 1)]
    if twins:
        return max(twins, key=lambda each: (each[2] > 0, twins.count(each)))[0]
    rungs = {each[0] for case in cases for each in run.timed(workload, case, scope, cache)}
    rungs = {name for name in rungs if run.variant(workload, name)["role"] == "rung"}
    return min(rungs, key=lambda name: run.variant(workload, name)["rung"], default="")


def _baseline(run: Shipped, row: Row, shown: Shown) -> tuple[str, str, int] | None:
    """Variant, config and GPUs of the baseline at the case of a row, in its fastest config."""
    workload, scope, cache = shown.where
    variant = _baseline_variant(run, workload, scope, cache, list(dict.fromkeys(shown.frame["case"])))
    return of.fastest(run, workload, row["case"], scope, cache, variant)


def _of_baseline(place: int) -> Rule:
    return lambda run, row, shown: str((_baseline(run, row, shown) or ("", ""))[place])


def _no_speedup(run: Shipped, row: Row, shown: Shown) -> Expected:
    """Why the baseline gives no speedup."""
    base = _baseline(run, row, shown)
    if base is None:
        return ""
    flags = of.flags(run, row["workload"], *base[:2], row["case"])
    n = len(_series(run, shown, row, base))
    doubt = f"distrusted: {', '.join(flags)}" if flags else f"of only {n} sample{'s' * (n != 1)}" if n < of.FEWEST else ""
    name = f"{base[0]}[{base[1]}]" if base[1] else base[0]
    return f"no speedup: the baseline {name} is {doubt}" if doubt else ""


def _speedup(run: Shipped, row: Row, shown: Shown) -> Interval:
    base = _baseline(run, row, shown)
    if base is None or _no_speedup(run, row, shown):
        return UNKNOWN
    return of.ratio(_series(run, shown, row, base), times(run, row))


def _noise(
    run: Shipped, workload: str, case: str, scope: str, cache: str, *sides: "tuple[str, pd.Series[float]]"
) -> tuple[float, float]:
    """The least and the greatest noise floor of the ratio of two variants.

    Args:
        sides: each variant with its times.
    """
    found = [of.noise(run, workload, case, scope, cache, run.variant(workload, each)["kind"] == "host") for each, _ in sides]
    of_clock = of.clock(run, scope, cache, *(series for _, series in sides))
    return max(of_clock, *(low for low, _ in found)), max(of_clock, *(high for _, high in found))


def _verdict(run: Shipped, row: Row, shown: Shown) -> Expected:
    own, entry = times(run, row), _baseline(run, row, shown)
    if own.empty or entry is None:
        return {""}
    if not _trusted(run, row) or _no_speedup(run, row, shown):
        return {"unknown"}
    base = _series(run, shown, row, entry)
    noise = _noise(run, row["workload"], row["case"], row["scope"], row["cache"], (entry[0], base), (row["variant"], own))
    return of.verdicts(of.ratio(base, own), min(len(base), len(own)), noise)


def _gain(run: Shipped, row: Row, shown: Shown) -> Interval:
    if pd.isna(row["gain_over"]):
        return UNKNOWN
    workload, scope, cache = shown.where
    before = of.fastest(run, workload, row["case"], scope, cache, row["gain_over"])
    assert before
    return of.ratio(run.rounds((workload, *before[:2], row["case"]), before[2], scope, cache), times(run, row))


def _gain_over(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The rung before it in its precision; of the first of a precision the last fp32 rung, or else any rung, before it."""
    workload, scope, cache = shown.where
    own = run.variant(workload, row["variant"])
    if own["role"] != "rung" or not row["n"]:
        return ""
    every = {each[0] for each in run.timed(workload, row["case"], scope, cache)}
    usable = [name for name in every if of.fastest(run, workload, row["case"], scope, cache, name)]
    before = [run.variant(workload, name) for name in usable]
    before = sorted(
        (each for each in before if each["role"] == "rung" and each["rung"] < own["rung"]), key=lambda each: each["rung"]
    )
    for precision in (own["precision"], "fp32", None):
        if found := [each for each in before if precision in (None, each["precision"])]:
            return str(found[-1]["variant"])
    return ""


def _gain_verdict(run: Shipped, row: Row, shown: Shown) -> Expected:
    gain = _gain(run, row, shown)
    if not of.known(gain):
        return {""}
    workload, scope, cache = shown.where
    before = of.fastest(run, workload, row["case"], scope, cache, row["gain_over"])
    assert before
    if not _trusted(run, row) or not of.trusted(run, workload, *before[:2], row["case"], before[2], scope, cache):
        return {"unknown"}
    own, other = times(run, row), run.rounds((workload, *before[:2], row["case"]), before[2], scope, cache)
    noise = _noise(run, workload, row["case"], scope, cache, (row["variant"], own), (row["gain_over"], other))
    return of.verdicts(gain, min(len(own), len(other)), noise)


def _on_front(run: Shipped, row: Row, shown: Shown) -> Expected:
    """No other variant is as fast and as exact, and better in one of the two."""
    if not _trusted(run, row):
        return False
    error, time = run.result(*cell_of(row))["rel_l2_error"], times(run, row).median()
    for other in shown.frame.to_dict("records"):
        if _trusted(run, other):
            exact, fast = run.result(*cell_of(other))["rel_l2_error"], times(run, other).median()
            if fast <= time and exact <= error and (fast < time or exact < error):
                return False
    return True


_NAMES: Final = ["workload", "variant", "case", "gpus", "cache", "scope", "params", "size", "series", "detail", "flags",
                 "doubted", "doubt", "doubted_ns", "interval_kind", "floor_ceiling"]  # fmt: skip
CELL: Final[Rules] = {
    **dict.fromkeys(_NAMES),
    "config": _config,
    "n": lambda run, row, shown: len(times(run, row)),
    "median_ns": _end(0),
    "low_ns": _end(1),
    "high_ns": _end(2),
    "status": _result("status"),
    "rel_l2_error": _result("rel_l2_error"),
    **{name: _of_variant(name) for name in ("role", "kind", "precision", "title", "rung", "transfer")},
    **{name: _of_case(name) for name in ("size_rank", "flops", "min_bytes", "passes", "h2d_bytes", "d2h_bytes")},
    "floor_ns": floor,
    "floor_bound": _bound,
    **{f"{name}{end}": _over(amount, place) for name, amount in (("gb_per_s", "min_bytes"), ("gflop_per_s", "flops"))
       for end, place in (("", 0), ("_low", 2), ("_high", 1))},
    **{f"percent_of_floor{end}": _percent(place) for end, place in (("", 0), ("_low", 2), ("_high", 1))},
}  # fmt: skip


def _size_value(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The number of the axis that changes with the size, where it is one axis; else the place of the size from 1."""
    workload = row["workload"]
    cases = of.charted(run, workload)
    points = {case: of.parameters(run, workload, case) for case in cases}
    sizes = {case: run.case(workload, case)["size_rank"] for case in cases}
    axes = []
    for axis in dict.fromkeys(name for point in points.values() for name in point):
        by_rank: dict[Any, set[Any]] = {}
        for case in cases:
            by_rank.setdefault(sizes[case], set()).add(points[case].get(axis))
        if all(len(each) == 1 for each in by_rank.values()) and len(set.union(*by_rank.values())) > 1:
            axes.append(axis)
    if not axes and len({axis for point in points.values() for axis in point}) == 1:
        axes = list(points[row["case"]])
    values = [points[case].get(axes[0]) if len(axes) == 1 else None for case in cases]
    if values and all(isinstance(value, (int, float)) and value > 0 for value in values):
        return float(points[row["case"]][axes[0]])
    return float(sizes[row["case"]] + 1)


OVER_BASELINE: Final[Rules] = {
    **estimate("speedup", _speedup),
    "verdict": _verdict,
    "baseline": _of_baseline(0),
    "baseline_config": _of_baseline(1),
    "no_speedup": _no_speedup,
}
LADDER: Final[Rules] = {
    **CELL,
    **OVER_BASELINE,
    **estimate("gain", _gain),
    "gain_verdict": _gain_verdict,
    "gain_over": _gain_over,
    "gain_from": lambda run, row, shown: (
        run.variant(row["workload"], row["gain_over"])["precision"] if isinstance(row["gain_over"], str) else ""
    ),
    "beats": None,
    "ties": None,
    "on_front": _on_front,
}


# -- winners ---------------------------------------------------------------------------------------------------------


@cache
def contest(
    run: Shipped, workload: str, case: str, scope: str, cache: str, precision: str, roles: tuple[str, ...]
) -> list[tuple[str, str, int]]:
    """The trusted cells that compete in a precision, each variant in its fastest config, the fastest first."""
    found = []
    for variant in dict.fromkeys(each[0] for each in run.timed(workload, case, scope, cache)):
        about = run.variant(workload, variant)
        wanted = of.peers_of(precision) if about["role"] == "peer" else {precision}
        best = (
            of.fastest(run, workload, case, scope, cache, variant)
            if about["role"] in roles and about["precision"] in wanted
            else None
        )
        if best and of.trusted(run, workload, *best[:2], case, best[2], scope, cache):
            found.append(best)
    return sorted(found, key=lambda each: run.rounds((workload, *each[:2], case), each[2], scope, cache).median())


def _winner(run: Shipped, row: Row, shown: Shown) -> list[tuple[str, str, int]]:
    return contest(run, row["workload"], row["case"], *shown.where[1:], row["compared_in"], ("rung", "peer", "host"))


def _series(run: Shipped, shown: Shown, row: Row, entry: tuple[str, str, int]) -> "pd.Series[float]":
    return run.rounds((row["workload"], *entry[:2], row["case"]), entry[2], *shown.where[1:])


def _margin(run: Shipped, row: Row, shown: Shown) -> Interval:
    found = _winner(run, row, shown)
    if len(found) < 2:
        return UNKNOWN
    return of.ratio(_series(run, shown, row, found[1]), _series(run, shown, row, found[0]))


def _told(run: Shipped, row: Row, shown: Shown) -> Expected:
    found = _winner(run, row, shown)
    if len(found) < 2:
        return {""}
    sides = [(each[0], _series(run, shown, row, each)) for each in found[:2]]
    noise = _noise(run, row["workload"], row["case"], *shown.where[1:], *sides)
    return of.verdicts(_margin(run, row, shown), min(len(series) for _, series in sides), noise)


def _won(place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        return of.time_interval(run, _series(run, shown, row, _winner(run, row, shown)[0]), *shown.where[1:])[place]

    return rule


def _tied_with(run: Shipped, row: Row, shown: Shown) -> Expected:
    """Of the winner of a precision at the case, the next one where it is not known to be slower."""
    found: set[str] = set()
    for precision in dict.fromkeys([row["precision"], "fp32", "3xtf32", "tf32"]):
        held = contest(run, row["workload"], row["case"], *shown.where[1:], precision, ("rung", "peer", "host"))
        if len(held) > 1 and held[0][0] == row["variant"]:
            told = _told(run, {**row, "compared_in": precision}, shown)
            assert isinstance(told, set)
            found |= {held[1][0] if word not in ("", "faster") else "" for word in told}
    return found or {""}


WINNERS: Final[Rules] = {
    **dict.fromkeys(["workload", "case", "series", "size", "compared_in"]),
    "size_rank": _of_case("size_rank"),
    "variant": lambda run, row, shown: _winner(run, row, shown)[0][0],
    "config": lambda run, row, shown: _winner(run, row, shown)[0][1],
    "precision": _of_variant("precision"),
    "title": _of_variant("title"),
    "median_ns": _won(0),
    "low_ns": _won(1),
    "high_ns": _won(2),
    "runner_up": lambda run, row, shown: found[1][0] if len(found := _winner(run, row, shown)) > 1 else "",
    **estimate("margin", _margin),
    "n": lambda run, row, shown: len(_series(run, shown, row, _winner(run, row, shown)[0])),
    "verdict": _told,
    "row": None,
}
SIZES: Final[Rules] = {**CELL, **OVER_BASELINE, "size_value": _size_value, "tied_with": _tied_with}


# -- roofline --------------------------------------------------------------------------------------------------------


def _roofs(run: Shipped, row: Row) -> tuple[float, float]:
    """GB/s for the mix of the case at a large size, and GFLOP/s of the precision."""
    about = run.case(row["workload"], row["case"])
    kind = run.variant(row["workload"], row["variant"])["kind"]
    read, written = of.moved(about)
    rate = (read + written) / of.memory_ns(run.ceilings, read, written, "")
    return rate, 1000 * of.rate_of(run.ceilings, kind, run.variant(row["workload"], row["variant"])["precision"])


def _roof(run: Shipped, row: Row) -> float:
    about = run.case(row["workload"], row["case"])
    memory, compute = _roofs(run, row)
    return float(np.nanmin([memory * about["flops"] / about["min_bytes"], compute]))


def _of_roof(place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        return 100 * run.case(row["workload"], row["case"])["flops"] / median(run, row, shown)[place] / _roof(run, row)

    return rule


ROOFLINE: Final[Rules] = {
    **CELL,
    "size_value": _size_value,
    "flop": _of_case("flops"),
    "bytes": _of_case("min_bytes"),
    "memory_roof": None,
    "roof": None,
    "memory_gb_per_s": lambda run, row, shown: _roofs(run, row)[0],
    "flop_per_byte": lambda run, row, shown: (
        run.case(row["workload"], row["case"])["flops"] / run.case(row["workload"], row["case"])["min_bytes"]
    ),
    "roof_gflop_per_s": lambda run, row, shown: _roof(run, row),
    **{f"percent_of_roof{end}": _of_roof(place) for end, place in (("", 0), ("_low", 2), ("_high", 1))},
}


# -- which to ship ---------------------------------------------------------------------------------------------------


def _place(run: Shipped, row: Row, shown: Shown) -> tuple[list[tuple[str, str, int]], Interval]:
    found = contest(run, row["workload"], row["case"], *shown.where[1:], row["precision"], ("rung",))
    own = next(each for each in found if each[0] == row["variant"])
    return found, of.ratio(_series(run, shown, row, own), _series(run, shown, row, found[0]))


def _loss(run: Shipped, row: Row, shown: Shown) -> Interval:
    """By how much a variant is slower than the fastest of the case, in percent."""
    found = _place(run, row, shown)[1]
    ends = (Between(*(100 * (end - 1) for end in each)) for each in found[1:])
    return Interval(100 * (found.value - 1), *ends)


def _shipped(place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        own = of.fastest(run, row["workload"], row["case"], *shown.where[1:], row["variant"])
        assert own
        return of.time_interval(run, _series(run, shown, row, own), *shown.where[1:])[place]

    return rule


def _leader(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The fastest of those that are left after each group, where the variant cannot be told from it."""
    left = _place(run, row, shown)[0]
    found: set[str] = set()
    groups = [left]
    for _ in range(64):
        if not groups:
            break
        rest = groups.pop()
        if len(groups) > 8 or not rest:
            continue
        leader = rest[0]
        unsure, apart = [], []
        for each in rest[1:]:
            ratio = of.ratio(_series(run, shown, row, each), _series(run, shown, row, leader))
            sides = [(side[0], _series(run, shown, row, side)) for side in (each, leader)]
            noise = _noise(run, row["workload"], row["case"], *shown.where[1:], *sides)
            words = of.verdicts(ratio, min(len(series) for _, series in sides), noise)
            tied = {word in ("tied", "unknown") for word in words}
            if each[0] == row["variant"] and True in tied:
                found.add(leader[0])
            if tied == {True, False}:
                unsure.append(each)
            if tied == {False}:
                apart.append(each)
        if leader[0] == row["variant"]:
            found.add("")
        elif row["variant"] in {each[0] for each in (*apart, *unsure)}:
            order = {each: place for place, each in enumerate(rest)}
            groups.append(apart)
            groups += [sorted([*apart, each], key=order.__getitem__) for each in unsure]
            if len(unsure) > 1:
                groups.append(sorted([*apart, *unsure], key=order.__getitem__))
    return found


SHIP: Final[Rules] = {
    **dict.fromkeys(["workload", "precision", "case", "variant", "group"]),
    "size_value": _size_value,
    "config": lambda run, row, shown: next(each[1] for each in _place(run, row, shown)[0] if each[0] == row["variant"]),
    "tied_with": _leader,
    "median_ns": _shipped(0),
    "low_ns": _shipped(1),
    "high_ns": _shipped(2),
    **estimate("slower_percent", _loss),
    "n": lambda run, row, shown: len(
        _series(run, shown, row, next(e for e in _place(run, row, shown)[0] if e[0] == row["variant"]))
    ),
}


# -- overview --------------------------------------------------------------------------------------------------------


def _cases(run: Shipped, row: Row) -> list[str]:
    """The cases of a row of Overview: those of its size at which the best rung may be called best."""
    parts = set(str(row["case"]).split(","))
    every = of.charted(run, row["workload"])
    largest = [case for case in every if parts <= set(case.split(","))]
    top = max(run.case(row["workload"], case)["size_rank"] for case in largest)
    largest = [case for case in largest if run.case(row["workload"], case)["size_rank"] == top]
    return [
        case for case in largest if contest(run, row["workload"], case, row["scope"], row["cache"], row["precision"], ("rung",))
    ]


def _mean(values: Any) -> float:
    array = np.asarray(list(values), dtype=float)
    return float(np.exp(np.log(array).mean())) if len(array) and (array > 0).all() else math.nan


def _bests(run: Shipped, row: Row, who: str) -> "list[tuple[str, tuple[str, str, int], pd.Series[float]]]":
    found = []
    for case in _cases(run, row):
        entry = of.fastest(run, row["workload"], case, row["scope"], row["cache"], row[who])
        if entry:
            found.append((case, entry, run.rounds((row["workload"], *entry[:2], case), entry[2], row["scope"], row["cache"])))
    return found


def _best_time(place: int) -> Rule:
    return lambda run, row, shown: _mean(
        of.time_interval(run, times, row["scope"], row["cache"])[place] for _, _, times in _bests(run, row, "best")
    )


def _best_floor(place: int) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        if not isinstance(row["best"], str):
            return math.nan
        found = []
        for case, entry, times in _bests(run, row, "best"):
            floor = of.floor(run, row["workload"], entry[0], case, entry[2], row["scope"], row["cache"])[1]
            found.append(100 * floor / of.time_interval(run, times, row["scope"], row["cache"])[place])
        return _mean(found)

    return rule


def _over_other(who: str) -> Any:
    def interval(run: Shipped, row: Row, shown: Shown) -> Interval:
        if not isinstance(row[who], str):
            return UNKNOWN
        others = {case: (entry, times) for case, entry, times in _bests(run, row, who)}
        bests = _bests(run, row, "best")
        timing = row["scope"], row["cache"]
        if not all(
            of.trusted(run, row["workload"], *entry[:2], case, entry[2], *timing) for case, (entry, _) in others.items()
        ):
            return UNKNOWN
        if len(others) < len(bests) or min(len(each[2]) for each in bests) < of.FEWEST:
            return UNKNOWN
        ratios = [of.ratio(others[case][1], times) for case, _, times in bests]
        ends = [Between(*(_mean(getattr(each, end)[side] for each in ratios) for side in (0, 1))) for end in ("low", "high")]
        return Interval(_mean(each.value for each in ratios), *ends)

    return interval


def _over_verdict(who: str) -> Rule:
    """By the geometric mean of the cases' noise floors."""
    over = _over_other(who)

    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        if not isinstance(row[who], str):
            return {""}
        found, bests = over(run, row, shown), _bests(run, row, "best")
        if not of.known(found):
            return {"unknown"} if len(_bests(run, row, who)) == len(bests) else {""}
        pairs = zip(bests, _bests(run, row, who), strict=True)
        floors = [
            _noise(run, row["workload"], mine[0], row["scope"], row["cache"], (row["best"], mine[-1]), (row[who], other[-1]))
            for mine, other in pairs
        ]
        n = min(len(times) for which in ("best", who) for *_, times in _bests(run, row, which))
        return of.verdicts(found, n, (_mean(low for low, _ in floors), _mean(high for _, high in floors)))

    return rule


def _configs(who: str) -> Rule:
    """The configs of a variant over the cases, where they differ all of them."""

    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        if not isinstance(row[who], str):
            return ""
        every = dict.fromkeys(entry[1] for _, entry, _ in _bests(run, row, who))
        return {" or ".join(order) for order in permutations(every)}

    return rule


def _on(run: Shipped, row: Row, shown: Shown) -> Expected:
    """Whether the run has times of several GPUs of the workload too."""
    samples = run.table("samples")
    several = ((samples["workload"] == row["workload"]) & (samples["gpus"] > 1)).any()
    return "1 GPU" if several and run.info["device_name"] else ""


def _best_of(roles: tuple[str, ...], who: str) -> Rule:
    """The variant with the least geometric mean over the cases, among those that may be called best in the most of them."""

    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        logs: dict[str, list[float]] = {}
        cases = _cases(run, row)
        for case in cases:
            for entry in contest(run, row["workload"], case, row["scope"], row["cache"], row["precision"], roles):
                times = run.rounds((row["workload"], *entry[:2], case), entry[2], row["scope"], row["cache"])
                logs.setdefault(entry[0], []).append(math.log(times.median()))
        most = max(map(len, logs.values()), default=0)
        if who == "peer" and most < len(cases):
            return ""
        return min((name for name, each in logs.items() if len(each) == most), key=lambda name: np.mean(logs[name]), default="")

    return rule


_OVERVIEW_NAMES: Final = ["workload", "precision", "scope", "cache", "case", "tied_with", "doubts", "badges"]  # fmt: skip


def _of_best(rule: Rule) -> Rule:
    """Null where no rung may be called best."""
    return lambda run, row, shown: rule(run, row, shown) if isinstance(row["best"], str) else math.nan


OVERVIEW: Final[Rules] = {
    **dict.fromkeys(_OVERVIEW_NAMES),
    "on": _on,
    "baseline": _of_best(
        lambda run, row, shown: _baseline_variant(run, row["workload"], row["scope"], row["cache"], _cases(run, row))
    ),
    **{f"{who}_config": _of_best(_configs(who)) for who in ("baseline", "best", "peer")},
    "speedup_verdict": _of_best(_over_verdict("baseline")),
    "over_peer_verdict": _of_best(_over_verdict("peer")),
    "cases": _of_best(lambda run, row, shown: len(_cases(run, row))),
    "best": _of_best(_best_of(("rung",), "best")),
    "peer": _of_best(_best_of(("peer",), "peer")),
    "best_ns": _of_best(_best_time(0)),
    "best_ns_low": _of_best(_best_time(1)),
    "best_ns_high": _of_best(_best_time(2)),
    **{f"percent_of_floor{end}": _of_best(_best_floor(place)) for end, place in (("", 0), ("_low", 2), ("_high", 1))},
    **{
        name: _of_best(rule)
        for name, rule in {**estimate("speedup", _over_other("baseline")), **estimate("over_peer", _over_other("peer"))}.items()
    },
    "n": _of_best(lambda run, row, shown: min(len(times) for _, _, times in _bests(run, row, "best"))),
}
