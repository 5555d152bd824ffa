"""The ceilings of a processor: their sizes, and that tests may have them small."""

import pytest

from warpladder.collectors.host import ceilings
from warpladder.collectors.host.ceilings import SMALL_VARIABLE, host_ceilings
from warpladder.data.names import found_by_size


@pytest.mark.parametrize(("small", "copied", "sides"), [("", "128 MiB", (1024, 2048, 4096)), ("1", "1 MiB", (64,))])
def test_each_ceiling_says_how_much_it_moved_or_multiplied(
    monkeypatch: pytest.MonkeyPatch, small: str, copied: str, sides: tuple[int, ...]
) -> None:
    monkeypatch.setenv(SMALL_VARIABLE, small)
    copy, product, *by_bytes = host_ceilings()
    assert (copy["name"], copy["unit"]) == ("host_copy", "GB/s")
    assert copy["method"].startswith(f"copy of {copied} by ") and copy["value"] > 0
    assert (product["name"], product["unit"]) == ("host_fma", "TFLOP/s")
    assert any(f"{side} x {side} matrices" in product["method"] for side in sides) and product["value"] > 0
    sizes = {found[2]: row["value"] for row in by_bytes if (found := found_by_size(row["name"]))}
    assert len(sizes) == len(by_bytes) >= 3 and list(sizes) == sorted(sizes) and min(sizes.values()) > 0
    largest = max(sizes)
    assert sizes[largest] == pytest.approx(largest / copy["value"] / 1000), "at the size of the rate it is the rate"


def test_a_share_takes_no_longer_than_all_of_it() -> None:
    """Which thread of a pool starts when is left out, so that a variant with quicker threads is not ahead of it."""
    nbytes = 1 << 24
    assert 0 < ceilings._share_ns(nbytes, 8) < ceilings._share_ns(nbytes, 1)


@pytest.mark.parametrize(
    ("durations_ms", "expected"),
    [
        ([2.0, 10.0, 90.0], (2 * 2048**3 / 10e6 / 1000, 2048)),  # the largest is not the quickest
        ([2.0, 9.0, 60.0], (2 * 4096**3 / 60e6 / 1000, 4096)),
        ([16.0], (2 * 1024**3 / 16e6 / 1000, 1024)),  # on few cores a larger product would take too long
    ],
)
def test_the_rate_is_that_of_the_quickest_product_among_short_ones(
    monkeypatch: pytest.MonkeyPatch, durations_ms: list[float], expected: tuple[float, int]
) -> None:
    times = iter(durations_ms)
    monkeypatch.setattr(ceilings, "_product_ns", lambda side: 1e6 * next(times))
    assert ceilings._best_rate(1024, 4096) == pytest.approx(expected)
    assert next(times, None) is None
