"""The ceilings of a processor: their sizes, and that tests may have them small."""

from pathlib import Path

import pytest

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.host import ceilings
from warpladder.collectors.host.ceilings import SMALL_VARIABLE, host_ceilings
from warpladder.data.names import found_by_size


@pytest.mark.thorough
@pytest.mark.parametrize(("small", "copied", "sides"), [("", "128 MiB", (1024, 2048, 4096)), ("1", "1 MiB", (64,))])
def test_each_ceiling_says_how_much_it_moved_or_multiplied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small: str, copied: str, sides: tuple[int, ...]
) -> None:
    monkeypatch.setenv(SMALL_VARIABLE, small)
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path))
    rows = {row["name"]: row for row in host_ceilings()}
    copy, product = rows["host_copy"], rows["host_fma"]
    assert {name: row["unit"] for name, row in rows.items() if not found_by_size(name)} == {
        "host_copy": "GB/s",
        "host_fma": "TFLOP/s",
    }
    assert copy["method"].startswith(f"copy of {copied} by ") and copy["value"] > 0
    assert any(f"{side} x {side} matrices" in product["method"] for side in sides) and product["value"] > 0
    sizes = {found[2]: row["value"] for name, row in rows.items() if (found := found_by_size(name))}
    assert len(sizes) >= 3 and list(sizes) == sorted(sizes) and min(sizes.values()) > 0
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
    monkeypatch.setattr(ceilings, "_product_ns", lambda side, repetitions=0: 1e6 * next(times))
    assert ceilings._best_rate(1024, 4096) == pytest.approx(expected)
    assert next(times, None) is None


def test_the_best_ceilings_since_the_machine_was_started_are_kept_and_checked_by_a_short_copy_and_product(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SMALL_VARIABLE, "")
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path))
    measured: list[float] = []

    def rows(copy: float, product: float, us: float) -> ceilings.Rows:
        measured.append(copy)
        values = (("host_copy", copy, "GB/s"), ("host_fma", product, "TFLOP/s"), ("host_copy_64_hot", us, "us"))
        return [{"name": name, "value": value, "unit": unit} for name, value, unit in values]

    def found(check: float, *now: float, product: float = 0.0) -> list[float]:
        monkeypatch.setattr(ceilings, "_copied", lambda repetitions: check)
        monkeypatch.setattr(ceilings, "_multiplied", lambda: product)
        monkeypatch.setattr(ceilings, "_measured", lambda: rows(*now))
        return [row["value"] for row in host_ceilings()]

    assert found(10.0, 10.0, 2.0, 5.0) == [10.0, 2.0, 5.0]
    assert found(8.0, 9.0, 3.0, 4.0) == [10.0, 2.0, 5.0] and measured == [10.0], "a busy moment measures nothing again"
    assert found(0.3, 0.3, 0.1, 90.0) == [10.0, 2.0, 5.0] and measured == [10.0], "nor does a very busy one, nor lowers a rate"
    assert found(10.4, 10.5, 1.0, 4.0) == [10.5, 2.0, 4.0], "of both measurements the better ones"
    assert found(8.0, 9.0, 3.0, 6.0, product=2.1) == [10.5, 3.0, 4.0], "products were measured on a busy machine"
    changed = tmp_path / "ceilings.py"
    changed.write_text("# with other rows")
    with monkeypatch.context() as other:
        other.setattr(ceilings, "__file__", str(changed))
        assert found(4.1, 5.0, 2.0, 8.0) == [5.0, 2.0, 8.0], "rows that another version of the file measured are not kept"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert found(1.0, 20.0, 9.0, 1.0) == [20.0, 9.0, 1.0], "other threads of the BLAS have ceilings of their own"
    quota = tmp_path / "cpu.max"
    quota.write_text("50000 100000")
    monkeypatch.setattr(ceilings, "_QUOTA", str(quota))
    assert found(1.0, 4.0, 1.0, 9.0) == [4.0, 1.0, 9.0], "so has a container with another share of the processors"
