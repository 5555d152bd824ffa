"""Numbers as text: three significant digits with an SI unit, and `∞` for a number that a float64 cannot hold."""

import math
from collections.abc import Callable
from typing import Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate

NOTHING: Final = "–"
#: In place of a ratio, where the baseline is compared with itself.
ITSELF: Final = "the baseline itself"
_Units = tuple[tuple[float, str], ...]
_DURATIONS: Final[_Units] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES: Final[_Units] = ((1e3, "T"), (1.0, "G"), (1e-3, "M"), (1e-6, "k"))
_IN_NS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_IN_GIGA: Final = {"M": 1e-3, "G": 1.0, "T": 1e3}
_ENERGIES: Final[_Units] = ((1e3, "J"), (1.0, "mJ"), (1e-3, "µJ"), (1e-6, "nJ"))
_BYTES: Final[_Units] = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def format_duration(nanoseconds: float) -> str:
    """`12.3 µs`: three significant digits with an SI unit; `–` for a null."""
    return _with_unit(nanoseconds, _DURATIONS)


def format_energy(millijoules: float) -> str:
    """`273 mJ`: three significant digits with an SI unit; `–` for a null."""
    return _with_unit(millijoules, _ENERGIES)


def format_loop(nanoseconds: float, watts: float, megahertz: float) -> str:
    """`372 µs at 699 W and 1,410 MHz`: an execution in a loop; without the clock where that is not known."""
    clock = "" if pd.isna(megahertz) else f" and {megahertz:,.0f} MHz"
    return f"{format_duration(nanoseconds)} at {watts:.0f} W{clock}"


def format_rate(value: float, unit: str = "GB/s") -> str:
    """`4.22 TB/s` for 4224 GB/s; `–` for a null.

    Args:
        unit: unit of the value, `GB/s`, `GFLOP/s`, or one of them a watt, `GB/s/W`.
    """
    base = unit.removeprefix("G")
    return _with_unit(value, tuple((factor, prefix + base) for factor, prefix in _RATES))


def format_count(number: float) -> str:
    """`1.05 M`; a dash where it is not known."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{significant(number / size)} {letter}"
    return f"{number:.0f}" if number == number else "–"


def format_bytes(count: float) -> str:
    """`1.07 GB`, powers of 1000; `–` for a null."""
    if not pd.isna(count) and 0 <= count < 1000:
        return f"{count:.0f} B"
    return _with_unit(count, _BYTES)


def format_ratio(value: float) -> str:
    """`3.42×`; `–` for a null."""
    return NOTHING if pd.isna(value) else f"{significant(value)}×"


def format_over(ratio: float, variant: str, reference: str, verdict: str) -> str:
    """`3.42× v01_base`; `tied with v01_base`; `the baseline itself` for the baseline; empty where nothing is known.

    Args:
        variant: the variant that the ratio belongs to, by its fastest config.
        reference: the baseline, which has its fastest config too.
        verdict: of the ratio, by `within_run.verdict`.
    """
    if variant == reference:
        return ITSELF
    if verdict not in ("faster", "slower", "tied"):
        return ""
    return f"{'tied with' if verdict == 'tied' else format_ratio(ratio)} {reference}"


def format_percent(value: float) -> str:
    """`97.3 %` for 97.3; `–` for a null."""
    return NOTHING if pd.isna(value) else f"{significant(value)} %"


def format_error(relative: float) -> str:
    """`3.1e-4`, two digits; `0` where nothing differs; `–` for a null."""
    if pd.isna(relative):
        return NOTHING
    if math.isinf(relative):
        return significant(relative)
    mantissa, exponent = f"{relative:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if relative else "0"


def format_interval(low: str, high: str) -> str:
    """`12.2 to 12.4 µs` from `12.2 µs` and `12.4 µs`. A unit that both have is written once."""
    low_parts, high_parts = low.split(" "), high.split(" ")
    if len(low_parts) == len(high_parts) == 2 and low_parts[1] == high_parts[1]:
        return f"{low_parts[0]} to {high}"
    return f"{low} to {high}"


def format_ends(estimate: Estimate, write: Callable[[float], str]) -> str:
    """`12.2 to 12.4 µs`: the ends of an interval."""
    return format_interval(write(estimate.low), write(estimate.high))


def format_estimate(estimate: Estimate, write: Callable[[float], str]) -> str:
    """`12.3 µs (12.2 to 12.4 µs)`: a figure with its interval."""
    return f"{write(estimate.value)} ({format_ends(estimate, write)})"


def format_half_width(middle: float, low: float, high: float) -> str:
    """`±0.2 %`: half the interval, relative to the middle; `>±100 %` beyond that, where the figure tells no more; `–` for a null."""
    if pd.isna(middle) or pd.isna(low) or pd.isna(high) or middle == 0:
        return NOTHING
    percent = 50 * (high - low) / abs(middle)
    if percent >= 99.5:
        return ">±100 %"
    return f"±{significant(percent, 1 if percent < 0.95 else 2)} %"


def format_measure(value: float, unit: str) -> str:
    """A figure of table `ceilings` with its SI prefix: `4.26 TB/s` for 4258 GB/s, `2.88 µs` for 2.88 us; `–` for a null."""
    if unit in _IN_NS:
        return format_duration(value * _IN_NS[unit])
    if unit[:1] in _IN_GIGA and unit.endswith("/s"):
        return format_rate(value * _IN_GIGA[unit[0]], f"G{unit[1:]}")
    return NOTHING if pd.isna(value) else f"{significant(value)} {unit}".rstrip()


def format_counter(value: float, unit: str) -> str:
    """A counter of a profiler, whose unit is `ns`, `B`, `Hz`, `%` or anything else that is counted; `–` for a null."""
    if pd.isna(value):
        return NOTHING
    match unit:
        case "ns":
            return format_duration(value)
        case "B":
            return format_bytes(value)
        case "Hz":
            return f"{value / 1e9:.3f} GHz"
        case "%":
            return format_percent(value)
        case _:
            return f"{value:,.0f}" if value >= 1000 else significant(value)


def ranks_words(ranks: int, *, on_gpu: bool) -> str:
    """`1 GPU`, `4 GPUs`, or on the host `2 processes`."""
    one, more = ("GPU", "GPUs") if on_gpu else ("process", "processes")
    return f"{ranks} {one if ranks == 1 else more}"


def significant(value: float, digits: int = 3) -> str:
    """Significant digits without an exponent: `0.0123`, `1.23`, `123`, `1,230`; a dash where there is no number."""
    if math.isnan(value):
        return "–"
    rounded = float(f"{value:.{digits}g}")
    if math.isinf(rounded):
        return "∞" if rounded > 0 else "−∞"
    if rounded == 0:
        return "0"
    magnitude = int(f"{abs(rounded):e}".split("e")[1])
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}"


def _with_unit(value: float, units: _Units) -> str:
    if pd.isna(value):
        return NOTHING
    # Rounded first, so that 999.9 ns is 1.00 µs and not 1000 ns.
    rounded = float(f"{value:.3g}")
    factor, unit = next(((factor, unit) for factor, unit in units if abs(rounded) >= factor), units[-1])
    return f"{significant(rounded / factor)} {unit}"
