"""Words about faster cells that may not be called best."""

from warpladder.dashboard.core.trusted import Passed
from warpladder.dashboard.ui.numbers import format_duration


def about(passed: Passed | None, *, won: bool) -> str:
    """`v09_x is faster (1.20 µs) but distrusted: above_ceiling`; without a winner `no winner: v09_x (1.20 µs) is …`; empty for None."""
    if passed is None:
        return ""
    time = format_duration(passed.median_ns)
    more = f"; {passed.others} more like it" if passed.others else ""
    if won:
        return f"{passed.name} is faster ({time}) but {passed.doubt}{more}"
    return f"no winner: {passed.name} ({time}) is {passed.doubt}{more}"


def sentence(words: str) -> str:
    """The words as a sentence of a note; empty for none."""
    return f"{words.replace('no ', 'No ', 1) if words.startswith('no ') else words}." if words else ""
