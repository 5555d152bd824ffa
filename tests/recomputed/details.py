"""The definitions of the page Details and of Published: the reports' own tables."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import cells, traces
from tests.recomputed import definitions as of
from tests.recomputed.definitions import UNKNOWN, Interval, Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Expected, Rule, Rules, estimate

Row = Mapping[str, Any]
PUBLISHED: Final = of.RECORDED.parent / "published"


def workload_of(run: Shipped, row: Row) -> str:
    """The workload of a row: that which has its variant and case."""
    if "workload" in row:
        return str(row["workload"])
    cases, variants = run.table("cases"), run.table("variants")
    having = set(cases.loc[cases["case"] == row["case"], "workload"]) & set(
        variants.loc[variants["variant"] == row["variant"], "workload"]
    )
    titled = [name for name in having if "title" not in row or run.variant(name, row["variant"])["title"] == row["title"]]
    return str(titled[0])


def _times(run: Shipped, row: Row, scope: str, cache: str, config: str | None = None) -> "pd.Series[float]":
    cell = (workload_of(run, row), row["variant"], row["config"] if config is None else config, row["case"])
    gpus = [each for each in run.gpus_of(cell, scope, cache) if each <= 1]
    return run.rounds(cell, gpus[0], scope, cache) if gpus else pd.Series(dtype=float)


def _median(times: "pd.Series[float]") -> float:
    return float(times.median()) if len(times) else math.nan


# -- overheads -------------------------------------------------------------------------------------------------------

_PARTS: Final = ("allocate", "h2d", "compute", "d2h", "free")


def _part(place: int) -> Rule:
    return lambda run, row, shown: of.median_interval(_times(run, row, f"phase:{row['part']}", "hot"))[place]


def _fraction(run: Shipped, row: Row, shown: Shown) -> Expected:
    every = [_times(run, row, f"phase:{part}", "hot") for part in _PARTS]
    return _median(_times(run, row, f"phase:{row['part']}", "hot")) / sum(_median(times) for times in every if len(times))


def _case_of(name: str) -> Rule:
    return lambda run, row, shown: run.case(workload_of(run, row), row["case"])[name]


def _title(run: Shipped, row: Row, shown: Shown) -> Expected:
    return str(run.variant(workload_of(run, row), row["variant"])["title"])


OVERHEADS: Final[Rules] = {
    **dict.fromkeys(("case", "variant", "config", "part", "params")),
    "size_rank": _case_of("size_rank"),
    "title": _title,
    "median_ns": _part(0),
    "low_ns": _part(1),
    "high_ns": _part(2),
    "n": lambda run, row, shown: len(_times(run, row, f"phase:{row['part']}", "hot")),
    "fraction": _fraction,
}


# -- phases of a traced step -----------------------------------------------------------------------------------------

_PHASES: Final = ("forward", "backward", "update", "other kernels", "copies", "host and idle")


def _steps(run: Shipped, row: Row) -> pd.DataFrame:
    """The parts of each traced sample of the operation, one row a sample."""
    own = traces.samples_of(run).set_index("range_id")["sample"]
    table = run.table("ranges").set_index("range_id")
    mine = table[
        (table["scope"] == "operation")
        & table["round"].notna()
        & (table["case"] == row["case"])
        & (table["variant"] == row["variant"])
    ]
    mine = mine[(mine["config"].fillna("") == row["config"]) & mine.index.isin(own)]
    found = pd.DataFrame(0.0, index=mine.index, columns=list(_PHASES))
    for name, label in (("kernels", "name"), ("memory_ops", "kind")):
        work = run.table(name)
        sample = work["range_id"].map(own)
        for at, what, start, end in zip(sample, work[label], work["start_ns"], work["end_ns"], strict=True):
            if at in found.index:
                phase = re.match(r"(forward|backward|update)(?![a-z])", str(what)) if name == "kernels" else None
                part = phase[1] if phase else "other kernels" if name == "kernels" or what == "memset" else "copies"
                found.loc[at, part] += end - start
    found["host and idle"] = ((mine["end_ns"] - mine["start_ns"]) - found.sum(axis=1)).clip(lower=0)
    return found


def _phase(run: Shipped, row: Row, shown: Shown) -> Expected:
    return float(_steps(run, row)[row["part"]].mean())


PHASES: Final[Rules] = {
    **dict.fromkeys(("case", "variant", "config", "part")),
    "size_rank": _case_of("size_rank"),
    "title": _title,
    "mean_ns": _phase,
    "total_ns": lambda run, row, shown: float(_steps(run, row).mean().sum()),
    "fraction": lambda run, row, shown: float(_steps(run, row)[row["part"]].mean() / _steps(run, row).mean().sum()),
    "n": lambda run, row, shown: len(_steps(run, row)),
}


# -- with and without copies -----------------------------------------------------------------------------------------


def _over_host(run: Shipped, row: Row, shown: Shown) -> Interval:
    """The time of the host's code over that of the variant; they are not of the same rounds."""
    workload = workload_of(run, row)
    host = run.rounds((workload, row["reference"], "", row["case"]), 0, "operation", "hot")
    return of.ratio(host, _times(run, row, row["scope"], row["cache"]), paired=False)


COPIES: Final[Rules] = {
    **dict.fromkeys(("variant", "case", "size", "series", "scope", "cache", "reference")),
    "config": lambda run, row, shown: (
        of.fastest(run, workload_of(run, row), row["case"], row["scope"], row["cache"], row["variant"]) or ("", None)
    )[1],
    "title": _title,
    "size_rank": _case_of("size_rank"),
    "copies": lambda run, row, shown: row["scope"] == "end_to_end",
    **estimate("speedup", _over_host, ("speedup", "low", "high")),
    "n": lambda run, row, shown: min(
        len(_times(run, row, row["scope"], row["cache"])),
        len(run.rounds((workload_of(run, row), row["reference"], "", row["case"]), 0, "operation", "hot")),
    ),
    "paired": lambda run, row, shown: False,
}


# -- block size ------------------------------------------------------------------------------------------------------


def _relative(run: Shipped, row: Row, shown: Shown) -> Interval:
    """The time over that of the fastest block of the variant."""
    same = [
        each
        for each in run.timed(row["workload"], row["case"], row["scope"], row["cache"])
        if each[0] == row["variant"] and re.fullmatch(r"block=\d+", each[1])
    ]
    times = {each: run.rounds((row["workload"], *each[:2], row["case"]), each[2], row["scope"], row["cache"]) for each in same}
    best = min(times.values(), key=lambda each: each.median())
    return of.ratio(cells.times(run, row), best)


BLOCKS: Final[Rules] = {
    **cells.CELL,
    "config": None,
    "block": lambda run, row, shown: int(row["config"].removeprefix("block=")),
    **estimate("relative", _relative),
}


# -- bank conflicts --------------------------------------------------------------------------------------------------


def _extra(tile: Sequence[int], perm: Sequence[int]) -> float:
    """The words of the busiest of 32 banks, less one, in the mean over the warps of an 8x8x8 block that stores to a tile."""
    threads = list(itertools.product(range(8), repeat=3))
    passes = []
    for first in range(0, 512, 32):
        words = {((t[perm[0]] * tile[1]) + t[perm[1]]) * tile[2] + t[perm[2]] for t in threads[first : first + 32]}
        passes.append(max(sum(word % 32 == bank for word in words) for bank in range(32)) - 1)
    return float(np.mean(passes))


def _tile(row: Row) -> tuple[list[int], list[int]]:
    return [int(each) for each in row["tile"].split("x")], [int(each) for each in row["perm"]]


# -- routes ----------------------------------------------------------------------------------------------------------

_ROUTE_CASES: Final = {"call": ("n=64,calls=1", 1), "in_a_row": ("n=64,calls=100", 100), "report": ("n=1024,calls=1", 1)}


def _route(run: Shipped, row: Row, case: str, scope: str, cache: str) -> "pd.Series[float]":
    found = [each for each in run.timed("call_routes", case, scope, cache) if each[0] == row["variant"]]
    return run.rounds(("call_routes", *found[0][:2], case), found[0][2], scope, cache) if found else pd.Series(dtype=float)


def _call(name: str, place: int) -> Rule:
    case, calls = _ROUTE_CASES[name]
    return lambda run, row, shown: of.median_interval(_route(run, row, case, "operation", "hot"))[place] / calls


def _first_use(step: str, cache: str = "cold") -> Rule:
    return lambda run, row, shown: _median(_route(run, row, "n=1024,calls=1", f"phase:{step}", cache))


ROUTES: Final[Rules] = {
    **dict.fromkeys(("variant", "zero_copy", "interface", "why", "device_bound")),
    "title": lambda run, row, shown: run.variant("call_routes", row["variant"])["title"],
    "n": lambda run, row, shown: len(_route(run, row, "n=64,calls=1", "operation", "hot")),
    **{f"{name}{end}": _call(name, place) for name in _ROUTE_CASES for place, end in enumerate(("", "_low", "_high"))},
    **{step: _first_use(step) for step in ("import", "compile", "load", "first_call", "hand_over")},
    "compile_cached": _first_use("compile", "hot"),
}


def rules_of(shown: Shown) -> Rules:
    columns = set(shown.frame.columns)
    for has, rules in (("call", ROUTES), ("block", BLOCKS), ("copies", COPIES), ("mean_ns", PHASES)):
        if has in columns:
            return rules
    return OVERHEADS


# -- Published -------------------------------------------------------------------------------------------------------

_UNITS: Final = {"ns": 1.0, "ms": 1e-6, "s": 1e-9}


@cache
def _printed_table(report: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"{report}.csv", dtype=str, keep_default_na=False)


def _printed_row(row: Row, shown: Shown) -> Row:
    table = _printed_table(shown.where[0])
    _, section, quantity = shown.name.split("|")
    table = table[(table["table"] == section) & (table["quantity"] == quantity)].reset_index(drop=True)
    return {str(key): value for key, value in table.iloc[row["place"]].items()}


def _own(run: Shipped, row: Row, shown: Shown) -> "tuple[Row, pd.Series[float], tuple[str, str]]":
    """Our cell for a printed number, hot where it was measured so, its times and their scope and cache."""
    printed = _printed_row(row, shown)
    scope = "operation" if printed["our_variant"] == "numba_serial" else printed["scope"]
    workload, variant, case = printed["workload"], printed["our_variant"], printed["case"]
    for cache_ in ("hot", "cold"):
        configs = {each[1] for each in run.timed(workload, case, scope, cache_) if each[0] == variant}
        usable = [run.result(workload, variant, config, case).get("status", "ok") == "ok" for config in configs]
        if not any(usable):
            continue
        entry = of.fastest(run, workload, case, scope, cache_, variant)
        if printed["config"] and configs - {""}:
            entry = next(
                (each for each in run.timed(workload, case, scope, cache_) if each[:2] == (variant, printed["config"])), None
            )
        if entry:
            return printed, run.rounds((workload, *entry[:2], case), entry[2], scope, cache_), (scope, cache_)
    return printed, pd.Series(dtype=float), ("", "")


def _ours(run: Shipped, row: Row, shown: Shown) -> Interval:
    printed, times, timing = _own(run, row, shown)
    quantity = printed["quantity"]
    if quantity == "bank_conflicts":
        value = _extra(
            *_tile({"tile": printed["config"].removeprefix("tile="), "perm": printed["case"].rpartition("perm=")[2]})
        )
        return Interval(value, *[of.Between(value, value)] * 2)
    if times.empty or quantity not in ("time", "bandwidth", "rate", "speedup"):
        return UNKNOWN
    if quantity == "speedup":
        host = run.rounds((printed["workload"], "numba_serial", "", printed["case"]), 0, "operation", "hot")
        return of.ratio(host, times, paired=False)
    median, low, high = of.time_interval(run, times, *timing)
    if quantity != "time":
        about = run.case(printed["workload"], printed["case"])
        # The convolution report counts 25 operations for a point, and we count 50.
        amount = about["min_bytes"] if quantity == "bandwidth" else about["flops"] / 2
        median, low, high = amount / median, amount / high, amount / low
    else:
        median, low, high = (end * _UNITS[printed["unit"]] for end in (median, low, high))
    return Interval(median, of.Between(low, low), of.Between(high, high))


def _twice(name: str) -> Rule:
    return lambda run, row, shown: (
        2 * (float(_printed_row(row, shown)["value"]) if name == "published" else _ours(run, row, shown).value)
    )


PRINTED: Final[Rules] = {
    **dict.fromkeys(
        (
            "place",
            "variant",
            "our_variant",
            "config",
            "case",
            "unit",
            "hardware",
            "note",
            "our_config",
            "our_scope",
            "our_cache",
            "why",
        )
    ),
    "published": lambda run, row, shown: float(_printed_row(row, shown)["value"] or "nan"),
    **estimate("ours", _ours),
    "n": lambda run, row, shown: (
        0
        if math.isnan(_ours(run, row, shown).value) or _printed_row(row, shown)["quantity"] == "bank_conflicts"
        else len(_own(run, row, shown)[1])
    ),
    "published_at_50": _twice("published"),
    "ours_at_50": _twice("ours"),
}
