"""What changed in variants that were recorded again: each against the last run with times of it, in a line.

In each run the time of a variant is taken relative to that of the baseline, which is measured in the same rounds and did not
change. So a machine that became slower as a whole makes no variant slower.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from warpladder.dashboard.core import axes, run_data
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.changes import Change, NotComparable, Options, Side, Verdict, compare, durations
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_estimate,
    format_interval,
    format_ratio,
)
from warpladder.dashboard.ui.plain_table import plain_table
from warpladder.data import store

_HEADINGS: Final = ("variant", "verdict", "time over the last", "case", "last", "now", "over the baseline")
#: Verdicts in the order in which they are told.
_FIRST: Final = ("slower", "faster", "unchanged", "new", "unknown")


@dataclass(frozen=True)
class Asked:
    """A variant to judge.

    Attributes:
        last: folder of the last run with times of it; empty where there is none.
    """

    workload: str
    variant: str
    last: str


@dataclass(frozen=True)
class _Cell:
    """A variant in one case, by its fastest config: its last time, its time now, and the one over the other."""

    case: str
    verdict: Verdict | Literal["new"]
    ratio: Estimate
    last_ns: float
    now_ns: float
    over_baseline: str


def verdicts(data: RunData, asked: Sequence[Asked], smallest: float = Options().smallest) -> str:
    """The verdicts as text that ends with a line feed: a table with a line for each variant that has times, then the failures.

    Args:
        data: the run of now.
        smallest: smaller differences are unchanged, a fraction.
    """
    several = len({each.workload for each in asked}) > 1
    rows: list[tuple[str, ...]] = []
    failed: list[str] = []
    for each in asked:
        name = f"{each.workload} {each.variant}" if several else each.variant
        if found := _cells(data, each, smallest):
            rows.append((name, *_line(found)))
        failed += [f"{name}: {failure}" for failure in _failures(data, each)]
    return "".join(f"{line}\n" for line in (*plain_table(_HEADINGS, rows), *failed))


def _cells(data: RunData, asked: Asked, smallest: float) -> list[_Cell]:
    """The cells of a variant, in the order of the cases."""
    known = axes.timings(data, asked.workload)
    if not known:
        return []
    changes = _changes(data, asked.last) if asked.last else {}
    timing = next((change.timing for key, change in changes.items() if key[0] == asked.workload), known[0])
    times = best_config(cells(data))
    times = times[(times["workload"] == asked.workload) & (times["scope"] == timing.scope) & (times["cache"] == timing.cache)]
    now = {(row["variant"], row["case"]): row for row in times.drop_duplicates(["variant", "case"]).to_dict("records")}
    reference = axes.baseline(data, asked.workload, timing)
    base = reference.variant if reference else ""
    found = []
    for case in data.cases.loc[data.cases["workload"] == asked.workload, "case"]:
        if (asked.variant, case) not in now:
            continue
        now_ns = float(now[asked.variant, case]["median_ns"])
        over = NOTHING
        if asked.variant == base:
            over = ITSELF
        elif (base, case) in now:
            over = f"{format_ratio(float(now[base, case]['median_ns']) / now_ns)} {base}"
        change = changes.get((asked.workload, asked.variant, case))
        if change is None:
            found.append(_Cell(case, "new", Estimate.unknown(), math.nan, now_ns, over))
        else:
            of_base = changes.get((asked.workload, base, case))
            verdict, ratio = _judged(_load(asked.last), data, change, of_base, smallest)
            found.append(_Cell(case, verdict, ratio, change.a_ns.value, now_ns, over))
    return found


def _changes(data: RunData, last: str) -> dict[tuple[str, str, str], Change]:
    """The cells of now against those of the last run, by workload, variant and case; empty where they cannot be compared."""
    try:
        found = compare(Side(_load(last)), Side(data), Options(match="best"))
    except (NotComparable, store.StoreError):
        return {}
    return {(change.workload, change.variant, change.case): change for change in reversed(found.changes)}


@cache
def _load(path: str) -> RunData:
    return run_data.load(store.open_run(Path(path)))


def _judged(last: RunData, now: RunData, change: Change, base: Change | None, smallest: float) -> tuple[Verdict, Estimate]:
    """The verdict, and the time of now over the last time, each relative to the baseline where its source did not change.

    Args:
        base: the baseline in the same case.
    """
    ratio = change.ratio
    if base is not None and base.variant != change.variant and base.same_source and base.gpus == change.gpus:
        ratio = _over(
            _relative(now, change, (change.variant, change.config), (base.variant, base.config)),
            _relative(last, change, change.of_a, base.of_a),
        )
    if not ratio.known:
        return "unknown", ratio
    band = max(change.noise, 1 + smallest)
    if ratio.low > band:
        return "slower", ratio
    return ("faster" if ratio.high < 1 / band else "unchanged"), ratio


def _relative(data: RunData, change: Change, cell: tuple[str, str], base: tuple[str, str]) -> Estimate:
    """The time of a cell over that of the baseline, paired by round: what slows a round down slows both."""
    return paired_ratio(durations(data, change, cell), durations(data, change, base)).estimate


def _over(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two ratios of independent runs. The distances to the ends of its interval add up as squares, on a logarithmic
    scale, as those of independent errors do."""
    if not (above.low > 0 and below.low > 0):  # unknown, or too short for the clock
        return Estimate.unknown()
    value = above.value / below.value
    up = math.hypot(math.log(above.high / above.value), math.log(below.value / below.low))
    down = math.hypot(math.log(above.value / above.low), math.log(below.high / below.value))
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def _line(found: Sequence[_Cell]) -> tuple[str, ...]:
    """The texts under `_HEADINGS`, but for the first: of several cases the ends of their intervals, and the largest change."""
    counts = Counter(cell.verdict for cell in found)
    main = next(verdict for verdict in _FIRST if counts[verdict])
    judged = [cell for cell in found if cell.verdict == main]
    ratios = [cell.ratio.value for cell in judged]
    told = {"slower": max, "faster": min}.get(main)
    cell = judged[ratios.index(told(ratios))] if told else judged[-1]
    words = ", ".join(f"{verdict} in {counts[verdict]}" for verdict in _FIRST if counts[verdict])
    verdict = f"{words} of {len(found)} cases" if len(counts) > 1 else f"{main} in {len(found)} cases"
    ends = [end for cell in judged for end in (cell.ratio.low, cell.ratio.high)]
    ratio = format_interval(format_ratio(min(ends)), format_ratio(max(ends)))
    if len(found) == 1:
        verdict = str(main)
    if len(judged) == 1:
        ratio = format_estimate(cell.ratio, format_ratio)
    ratio = ratio if cell.ratio.known else NOTHING
    return verdict, ratio, cell.case, format_duration(cell.last_ns), format_duration(cell.now_ns), cell.over_baseline


def _failures(data: RunData, asked: Asked) -> list[str]:
    """A text for each way in which cells of a variant failed or were skipped."""
    results = data.results
    mine = results[(results["workload"] == asked.workload) & (results["variant"] == asked.variant)]
    failed = mine[mine["status"] != "ok"]
    found = []
    for status, rows in failed.groupby("status", sort=False):
        first = rows.iloc[0]
        where = f"{first['case']} with {first['config']}" if first["config"] else first["case"]
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        found.append(f"{status} at {where}{more}: {first['detail']}")
    return found


def main(path: str, asked: str) -> None:
    """Print what changed. `warpladder record --watch` calls this after each recording.

    Args:
        path: folder of the run.
        asked: JSON: a list of workload, variant and `last` of `Asked` for each variant.
    """
    print(verdicts(_load(path), [Asked(*each) for each in json.loads(asked)]), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
