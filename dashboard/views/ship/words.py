"""The answer in one sentence, and what each choice of the page is called."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import word
from warpladder.dashboard.ui.numbers import format_percent, significant
from warpladder.dashboard.views.ship.query import Among, Contest, Judge, Shipment

AMONG: Final[Mapping[Among, str]] = {"rungs": "rungs", "peers": "rungs, peers", "hosts": "rungs, peers, hosts"}
JUDGED: Final[Mapping[Judge, str]] = {"mean": "mean loss", "worst": "worst loss"}
_MOST_DOUBTS: Final = 3
COUNTS: Final = ("one", "two", "three")


def answer(found: Contest, shipped: Shipment) -> str:
    """`Ship v10_x: at most 3 % slower than the fastest, 0.8 % on average over 5 cases.`"""
    cases = len(found.cases) - len(shipped.missing)
    over = f"over {cases} cases" if cases > 1 else f"at {shipped.worst_case}"
    if len(found.variants) == 1:
        return f"Ship {found.variants[0]}: no other variant {'can be ranked' if found.doubts else 'was timed'}."
    if shipped.worst.value <= 0:
        told = f"Ship {names(shipped)}: {_fastest(shipped)} {over}"
    else:
        told = f"Ship {names(shipped)}: at most {_loss(shipped.worst.value)} slower than the fastest"
        told += f", {_loss(shipped.mean.value)} on average {over}" if cases > 1 else f" {over}"
        if shipped.first == cases:
            told += ", each a tie or a win" if cases > 1 else ", which is a tie"
    if shipped.missing:
        told += f"; not timed in {len(shipped.missing)} more"
    return f"{told}."


def doubts(found: Contest) -> tuple[str, ...]:
    """Words about the faster cells that may not be called best, with their cases: a few, then how many more."""
    told = tuple(f"{case}: {words}" for case, words in found.doubts.items())
    left = len(told) - _MOST_DOUBTS
    return told if left <= 0 else (*told[:_MOST_DOUBTS], f"so in {left} more")


def alternatives(offers: Sequence[Shipment], shipped: Shipment) -> str:
    """The sets of other sizes: `Two, v09 and v10: at most 0.2 %, 0.1 % on average.`"""
    return " ".join(f"{_other(offer)}." for offer in offers if offer.variants != shipped.variants)


def _fastest(shipped: Shipment) -> str:
    return "the fastest" if len(shipped.variants) == 1 else "one of them is the fastest"


def _other(offer: Shipment) -> str:
    """`Two, v09 and v10: 0.2 %`."""
    without = f", without {len(offer.missing)} cases" if offer.missing else ""
    figures = f"at most {_loss(offer.worst.value)}, {_loss(offer.mean.value)} on average" if offer.worst.value > 0 else "0 %"
    return f"{COUNTS[len(offer.variants) - 1].capitalize()}, {names(offer)}: {figures}{without}"


def title(found: Contest, shipped: Shipment) -> str:
    """The title of the chart."""
    where = f"{found.workload}, {word(found.precision)}"
    if shipped.worst.value <= 0:
        return f"{where}: {names(shipped)} {'is' if len(shipped.variants) == 1 else 'are'} never slower than the best"
    return f"{where}: {names(shipped)} at most {_loss(shipped.worst.value)} slower than the best"


def crossover(size: Estimate, between: tuple[float, float]) -> str:
    """`between 100 and 880, interpolated 142 to 192`; an interval that ends at no measured size is open."""
    left, right = (f"{end:.12g}" for end in between)
    where = {(False, False): f"between {left} and {right}", (True, False): f"below {right}", (False, True): f"above {left}"}
    open_ends = between[0] == 0, math.isinf(between[1])
    if all(open_ends):
        return "at any size, by the intervals of the ratio"
    ends = [significant(end) for end in (size.low, size.high) if 0 < end < math.inf]
    found = f"{ends[0]} to {ends[1]}" if len(ends) == 2 else f"{'up to' if open_ends[0] else 'from'} {ends[0]}"
    return f"{where[open_ends]}, interpolated {found}"


def names(shipped: Shipment) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = shipped.variants
    return f"{', '.join(first)} and {last}" if first else last


def _loss(value: float) -> str:
    """A loss as in the tables, so that `at most` is not less than a figure there."""
    return format_percent(max(value, 0.0))
