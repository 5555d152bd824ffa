"""The changes of variants that were recorded again: a line for each variant, against the last run with times of it.

The rule is the rule of Compare: a time counts relative to the unchanged variants of its rounds, such as the baseline, so that a machine
that became slower as a whole makes no variant slower; see `between_runs`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from warpladder.dashboard.compare.between_runs import Verdict
from warpladder.dashboard.compare.changes import Change, History, NotComparable, Options, Side, compare
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.cells import baseline_variant, baselines, best_config, cells, in_timing, timings
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_estimate,
    format_interval,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data import store

_HEADINGS: Final = ("variant", "verdict", "time over the last", "case", "last", "now", "over the baseline")
#: Verdicts in the order in which a line lists them.
_FIRST: Final = ("slower", "faster", "tied", "drifted", "mended", "new", "unknown")


@dataclass(frozen=True)
class JudgedVariant:
    """A variant to judge.

    Attributes:
        last: folder of the last run with times of the variant; empty where no run has such times.
    """

    workload: str
    variant: str
    last: str


@dataclass(frozen=True)
class _Cell:
    """A variant in one case, with its fastest config: the last time, the new time, and the new time over the last."""

    case: str
    verdict: Verdict | Literal["new", "mended"]
    ratio: Estimate
    last_ns: float
    now_ns: float
    over_baseline: str


def verdicts(
    data: RunData, variants: Sequence[JudgedVariant], history: History | None = None, smallest: float = Options().smallest
) -> str:
    """The verdicts as text that ends with a line feed: a table with a line for each variant that has times, then the failures.

    Args:
        data: the new run.
        history: see `changes.compare`.
        smallest: smaller differences are tied, a fraction.
    """
    several = len({each.workload for each in variants}) > 1
    rows: list[tuple[str, ...]] = []
    failed: list[str] = []
    for each in variants:
        name = f"{each.workload} {each.variant}" if several else each.variant
        if cells := _cells(data, each, history, smallest):
            rows.append((name, *_line(cells)))
        failed += [f"{name}: {failure}" for failure in _failures(data, each)]
    return plain_lines((*plain_table(_HEADINGS, rows), *failed))


def _cells(data: RunData, judged: JudgedVariant, history: History | None, smallest: float) -> list[_Cell]:
    """The cells of a variant, in the order of the cases."""
    timed = timings(data, judged.workload)
    if not timed:
        return []
    changes = _changes(data, judged.last, history, smallest) if judged.last else {}
    timing = next((change.timing for key, change in changes.items() if key[0] == judged.workload), timed[0])
    times = best_config(in_timing(cells(data), judged.workload, timing)).drop_duplicates(["variant", "case"])
    keys = zip(times["variant"], times["case"], strict=True)
    now = dict(zip(keys, times["median_ns"].astype(float), strict=True))
    base = baseline_variant(data, judged.workload, timing)
    references = baselines(data, judged.workload, timing, frozenset(times["case"]))
    result = []
    for case in data.cases.loc[data.cases["workload"] == judged.workload, "case"]:
        if (judged.variant, case) not in now:
            continue
        now_ns = now[judged.variant, case]
        over = NOTHING
        if judged.variant == base:
            over = ITSELF
        elif case in references and references[case].doubt:
            over = "unknown"
        elif (base, case) in now:
            over = f"{format_ratio(now[base, case] / now_ns)} {base}"
        change = changes.get((judged.workload, judged.variant, case))
        if change is None:
            is_mended = bool(judged.last) and _failed(_load(judged.last), judged, case)
            result.append(_Cell(case, "mended" if is_mended else "new", Estimate.unknown(), math.nan, now_ns, over))
        else:
            result.append(_Cell(case, change.verdict, change.ratio, change.a_ns.value, now_ns, over))
    return result


def _failed(last: RunData, judged: JudgedVariant, case: str) -> bool:
    """Whether a variant had no times of a case in the last run because it failed there."""
    results = last.results
    of_case = results[
        (results["workload"] == judged.workload) & (results["variant"] == judged.variant) & (results["case"] == case)
    ]
    return bool(len(of_case)) and not of_case["status"].isin(["ok", "skipped"]).any()


def _changes(data: RunData, last: str, history: History | None, smallest: float) -> dict[tuple[str, str, str], Change]:
    """The changes from the last run to this run, by workload, variant and case; empty where they cannot be compared."""
    try:
        comparison = compare(Side(_load(last)), Side(data), Options(match="best", smallest=smallest), history)
    except (NotComparable, store.StoreError):
        return {}
    return {(change.workload, change.variant, change.case): change for change in reversed(comparison.changes)}


@lru_cache(maxsize=8)
def _load(path: str) -> RunData:
    return run_data.load(store.open_run(Path(path)))


def _line(cells: Sequence[_Cell]) -> tuple[str, ...]:
    """The texts under `_HEADINGS` except the first. For several cases: the ends of their intervals, and the largest change."""
    counts = Counter(cell.verdict for cell in cells)
    main = next(verdict for verdict in _FIRST if counts[verdict])
    judged = [cell for cell in cells if cell.verdict == main]
    ratios = [cell.ratio.value for cell in judged]
    extreme = {"slower": max, "faster": min}.get(main)
    cell = judged[ratios.index(extreme(ratios))] if extreme else judged[-1]
    words = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in _FIRST if counts[verdict])
    verdict = f"{words} of {len(cells)} cases" if len(counts) > 1 else f"{main} in {len(cells)} cases"
    ends = [end for cell in judged for end in (cell.ratio.low, cell.ratio.high)]
    ratio = format_interval(format_ratio(min(ends)), format_ratio(max(ends)))
    if len(cells) == 1:
        verdict = str(main)
    if len(judged) == 1:
        ratio = format_estimate(cell.ratio, format_ratio)
    ratio = ratio if cell.ratio.known else NOTHING
    return verdict, ratio, cell.case, format_duration(cell.last_ns), format_duration(cell.now_ns), cell.over_baseline


def _failures(data: RunData, judged: JudgedVariant) -> list[str]:
    """A text for each status with which cells of a variant failed or were skipped."""
    results = data.results
    of_variant = results[(results["workload"] == judged.workload) & (results["variant"] == judged.variant)]
    failed = of_variant[of_variant["status"] != "ok"]
    failures = []
    for status, rows in failed.groupby("status", sort=False):
        first = rows.iloc[0]
        where = f"{first['case']} with {first['config']}" if first["config"] else first["case"]
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        failures.append(f"{status} at {where}{more}: {first['detail']}")
    return failures
