"""The ceilings of device memory without a GPU: what each kernel moves, which one counts, and the writes that the L2 keeps."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import collectors
from tests.collectors.cuda.fake_cuda import install
from tests.emulator.emulator import needs_compiler, run
from warpladder.data.bandwidths import DEVICE_MIXES
from warpladder.workloads.api import CudaVariant, Launch

SOURCE = Path(collectors.__file__).parent / "cuda" / "kernels" / "bandwidths.cu"
THREADS = 256
#: 5 bytes a nanosecond read and 4 written, 40 MB of writes that stay in the L2.
READ_NS, WRITE_NS, KEPT = 0.2, 0.25, 40e6


@pytest.fixture
def bandwidths(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = install(monkeypatch, [], "bandwidths")
    monkeypatch.setattr(module, "compile_variant", lambda variant, names, arch: names)
    monkeypatch.setattr(module, "load", lambda names: {name: partial(enqueued, name) for name in names})
    return module


def enqueued(name: str, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> tuple[float, float, float]:
    """Bytes that a launch reads and writes, and how many times longer than the fastest it takes: two accesses, a block a tile."""
    reads, writes, accesses = map(int, re.findall(r"\d+", name))
    tiles = int(arguments[-1])
    assert block == (THREADS,) and 1 <= grid[0] <= tiles
    each = tiles * THREADS * 16 * accesses
    return reads * each, writes * each, 1 + 0.1 * abs(accesses - 2) + (0.05 if grid[0] < tiles and writes else 0)


class Device:
    """A GPU whose memory takes the same time for a byte in every mix."""

    index, arch, sm_count, l2_bytes, memory_bytes = 0, "sm_90", 132, 50 << 20, 8 << 30

    def median_ns(self, enqueue: Callable[[], Any]) -> float:
        read, written, slower = enqueue()
        return (READ_NS * read + WRITE_NS * written) * slower + 2000

    def without_events(self, duration_ns: float) -> float:
        return duration_ns - 2000

    saved = 0.0

    def median_after_flush_ns(self, enqueue: Callable[[], Any], before: Callable[[], Any] = lambda: (0, 0, 0)) -> float:
        saved = min(enqueue()[1], self.saved)
        return self.median_ns(enqueue) + WRITE_NS * (min(before()[1], KEPT) - saved)


def test_each_mix_has_the_rate_of_its_fastest_kernel_without_the_time_of_the_events(bandwidths: ModuleType) -> None:
    rows = {row["name"]: row for row in bandwidths.DeviceMemory(Device()).rows()}
    assert {name for name, row in rows.items() if row["unit"] == "GB/s"} == set(DEVICE_MIXES)
    for name, share in DEVICE_MIXES.items():
        assert rows[name]["value"] == pytest.approx(1 / (READ_NS * share + WRITE_NS * (1 - share)))
        assert rows[name]["device"] == "cuda:0"
    assert rows["device_copy"]["method"] == (
        "kernel over 1 GiB, 2 accesses of 16 bytes a thread at once, a block for each tile, median of 15 without the time of the events"
    )
    assert "8 blocks a multiprocessor" in rows["device_read"]["method"]


def test_the_arrays_of_a_mix_are_those_that_its_share_of_reads_says(bandwidths: ModuleType) -> None:
    shares = {name: reads / (reads + writes) for name, (reads, writes) in bandwidths.MIXES.items()}
    assert shares == pytest.approx(dict(DEVICE_MIXES))


def test_the_arrays_fit_the_buffers_and_no_byte_of_the_larger_side_counts_twice(bandwidths: ModuleType) -> None:
    for reads, writes in bandwidths.MIXES.values():
        for way in bandwidths.ways(reads, writes):
            assert 0.999 * 2**30 < max(reads, writes) * way.tiles(2**30) * way.tile_bytes <= 2**30
    # Two arrays of a gibibyte in all, and one of half of it.
    assert bandwidths.Way(2, 1, 1, 0).moved(2**30) == 3 * 2**29


def test_the_writes_that_the_l2_keeps_are_those_that_the_next_kernel_has_to_wait_for(bandwidths: ModuleType) -> None:
    (kept,) = [row for row in bandwidths.DeviceMemory(Device()).rows() if row["name"] == "l2_kept"]
    # 40 MB; amounts are tried in steps of a thousandth of what was written or of the L2.
    assert (kept["value"], kept["unit"]) == (pytest.approx(40.0, abs=0.06), "MB")


def test_the_writes_that_a_cold_copy_did_not_wait_for_count_where_they_are_more(
    bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "saved", 45e6)
    (kept,) = [row for row in bandwidths.DeviceMemory(Device()).rows() if row["name"] == "l2_kept"]
    assert kept["value"] == pytest.approx(45.0, abs=0.06)


def test_a_device_that_keeps_nothing_has_a_value_that_the_table_takes(
    bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "median_after_flush_ns", lambda device, enqueue, before=None: 1e9 - (before is not None))
    (kept,) = [row for row in bandwidths.DeviceMemory(Device()).rows() if row["name"] == "l2_kept"]
    assert kept["value"] == 1e-6


@needs_compiler
@pytest.mark.parametrize(("reads", "writes", "accesses", "blocks"), [(2, 1, 2, 1), (1, 2, 1, 3), (1, 1, 1, 2), (0, 1, 4, 1)])
def test_every_array_is_read_and_written_in_full(reads: int, writes: int, accesses: int, blocks: int) -> None:
    tiles = 3
    each = tiles * THREADS * accesses * 4
    rows = np.arange(max(reads, 1) * each, dtype=np.float32).reshape(-1, each)
    found = np.full((writes, each), np.nan, np.float32)
    variant = CudaVariant("own", "own", "ceiling", source=SOURCE)
    name = f"move_bytes<{reads}, {writes}, {accesses}>"
    run(variant, [Launch(name, (blocks, 1, 1), (THREADS, 1, 1), ("in", "out", np.uint32(tiles)))], {"in": rows}, {"out": found})
    expected = rows.sum(axis=0) if reads else np.tile(np.array([1, 2, 3, 4], np.float32), each // 4)
    assert (found == expected).all()
