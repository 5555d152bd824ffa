"""Verdicts about planted differences, of runs of `planted.py`."""

from collections import Counter

from warpladder.dashboard.compare.changes import Options, Side, compare
from warpladder.dashboard.core.run_data import RunData

#: Times from which more of the planted differences must be found, in nanoseconds.
LONG_NS = 20_000
OPTIONS = Options(scope="device")


def called(a: RunData, b: RunData, of_a: str = "", of_b: str = "", least_ns: float = 0, most_ns: float = 1e12) -> Counter[str]:
    """How many cells of device time have each verdict: of B, against A."""
    found = compare(Side(a, of_a), Side(b, of_b), OPTIONS)
    return Counter(change.verdict for change in found.changes if least_ns <= change.a_ns.value < most_ns)


def check(a: RunData, b: RunData) -> None:
    """Identical code differs in at most 2 % of the cells. 3 % more work is found in 95 % of the long cells and 80 % of the short."""
    identical = called(a, b) + called(a, b, "base", "same")
    assert identical["tied"] >= 0.98 * identical.total(), identical
    long = called(a, b, "base", "plus_3", least_ns=LONG_NS)
    short = called(a, b, "base", "plus_3", most_ns=LONG_NS)
    assert long["slower"] >= 0.95 * long.total() > 0, long
    assert short["slower"] >= 0.8 * short.total() > 0, short
    faster = called(a, b, "plus_10", "base")
    assert faster["faster"] >= 0.95 * faster.total() > 0, faster
