"""The ceilings of device memory without a GPU: what each kernel moves, which one counts, and that no copy beats the floors."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import collectors
from tests.collectors.cuda.fake_cuda import install
from tests.emulator.emulator import needs_compiler, run
from warpladder.data.limits import DEVICE_MIXES, device_memory
from warpladder.data.names import found_by_size
from warpladder.workloads.api import CudaVariant, Launch

pytestmark = pytest.mark.slow

SOURCE = Path(collectors.__file__).parent / "cuda" / "kernels" / "bandwidths.cu"
#: 5,000 bytes a nanosecond read and 4,000 written, after 2 us of the kernel; 1.5 us of the events.
READ_NS, WRITE_NS, START_NS, EVENTS_NS = 0.0002, 0.00025, 2000.0, 1500.0
#: What is written is twice as fast with a hot L2.
HOT_WRITE_NS = WRITE_NS / 2


@pytest.fixture
def bandwidths(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = install(monkeypatch, [], "bandwidths")
    monkeypatch.setattr(module, "compile_variant", lambda variant, names, arch: names)
    monkeypatch.setattr(module, "load", lambda names: {name: partial(enqueued, name) for name in names})
    monkeypatch.setattr(module, "runtime", SimpleNamespace(memcpyAsync=copied_by_driver, memcpyDeviceToDevice=3))
    monkeypatch.setattr(module, "graph_of", lambda stream, enqueue, batch: lambda: [enqueue() for _ in range(batch)])
    return module


#: Added to how many times longer a launch takes, where its arrays lie at the beginning of the buffers.
AT_BEGINNING = {"slower": 0.0}
#: How many times longer than the fastest kernel the copy by the driver takes.
DRIVER = {"slower": 1.2}


def copied_by_driver(to: int, source: int, nbytes: int, kind: int, stream: int) -> tuple[float, float, float]:
    """As `enqueued`, of the copy by the driver."""
    assert (kind, stream) == (3, Device.stream.ptr)
    return nbytes, nbytes, DRIVER["slower"]


def enqueued(name: str, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> tuple[float, float, float]:
    """Bytes that a launch reads and writes, and how many times longer than the fastest it takes: two accesses, a block a tile."""
    reads, writes, accesses, threads, streamed = map(int, re.findall(r"\d+", name))
    tiles = int(arguments[-1])
    assert block == (threads,) and 1 <= grid[0] <= tiles
    each = tiles * threads * 16 * accesses
    source, target = (array.data.ptr - array.data.of.data.ptr for array in arguments[:2])
    assert source == target and target + max(reads, writes) * each <= 2**30
    slower = (
        1 + AT_BEGINNING["slower"] * (source == 0) + 0.1 * abs(accesses - 2) + 0.1 * (threads != 256) + 0.1 * (streamed > 0)
    )
    return reads * each, writes * each, slower + (0.05 if grid[0] < tiles and writes else 0)


class Device:
    """A GPU whose memory takes the same time for a byte in every mix, and whose hot L2 is twice as fast at writes."""

    index, arch, sm_count, l2_bytes, memory_bytes = 0, "sm_90", 132, 50 << 20, 8 << 30
    stream: ClassVar = SimpleNamespace(ptr=7)
    empty_kernels: ClassVar = SimpleNamespace(one_ns=4000.0)
    cold_executions: ClassVar[list[int]] = []
    #: How much of the difference between the kernels it shows.
    differs = 1.0

    def median_ns(self, enqueue: Callable[[], Any]) -> float:
        read, written, slower = enqueue()
        return (READ_NS * read + WRITE_NS * written) * slower + EVENTS_NS

    def without_events(self, duration_ns: float) -> float:
        return duration_ns - EVENTS_NS

    def flush_l2(self) -> None: ...

    def each_ns(self, enqueue: Callable[[], Any], executions: int, between: Any) -> tuple[float, bool]:
        assert between == self.flush_l2
        self.cold_executions.append(executions)
        read, written, slower = enqueue()
        return START_NS + (READ_NS * read + WRITE_NS * written) * slower**self.differs, True

    def batch_ns(self, replay: Callable[[], Any], executions: int, first: Callable[[], Any]) -> tuple[float, bool]:
        read, written, slower = first()
        replayed = replay()
        assert replayed == (first() if executions == 1 else [first()] * executions)
        return START_NS + (READ_NS * read + HOT_WRITE_NS * written) * slower**self.differs, True


def rows_of(bandwidths: ModuleType, by_size: bool = True) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in bandwidths.DeviceMemory(Device(), by_size).rows()}


def test_where_times_by_size_are_not_asked_for_there_are_the_rates_alone(bandwidths: ModuleType) -> None:
    assert set(rows_of(bandwidths, by_size=False)) == set(DEVICE_MIXES)


@pytest.mark.thorough
def test_each_mix_has_the_rate_of_its_fastest_kernel_without_the_time_of_the_events(bandwidths: ModuleType) -> None:
    rows = rows_of(bandwidths)
    assert {name for name, row in rows.items() if row["unit"] == "GB/s"} == set(DEVICE_MIXES)
    for name, share in DEVICE_MIXES.items():
        assert rows[name]["value"] == pytest.approx(1 / (READ_NS * share + WRITE_NS * (1 - share)))
        assert rows[name]["device"] == "cuda:0"
    assert rows["device_copy"]["method"] == (
        "kernel over 1 GiB, 2 accesses of 16 bytes a thread at once, a block for each tile, median of 15 without the time of the events"
    )
    assert "8 blocks a multiprocessor" in rows["device_read"]["method"]


def test_each_mix_has_the_time_of_its_fastest_kernel_at_each_size_cold_and_hot(bandwidths: ModuleType) -> None:
    rows = {name: row for name, row in rows_of(bandwidths).items() if name not in DEVICE_MIXES}
    assert len(rows) == 7 * 2 * 13 and {row["unit"] for row in rows.values()} == {"us"}
    # 8 MiB read and 8 written: 2 us, and 8.388608 MB at 0.2 and 0.25 or 0.125 us a megabyte.
    assert rows["device_copy_cold_16777216_bytes"]["value"] == pytest.approx(2 + 8.388608 * 0.45)
    assert rows["device_copy_hot_16777216_bytes"]["value"] == pytest.approx(2 + 8.388608 * 0.325)
    assert rows["device_copy_hot_16777216_bytes"]["method"] == (
        "kernel, 2 accesses of 16 bytes a thread at once, a block for each tile, with a hot L2, median of 7 samples as of a variant"
    )
    # Of 2:1, 16 MiB are three arrays of 170 times 32 KiB.
    assert rows["device_2_to_1_cold_16711680_bytes"]["value"] == pytest.approx(2 + 5.57056 * 2 * 0.2 + 5.57056 * 0.25)


@pytest.mark.thorough
def test_a_copy_of_a_device_with_a_latency_and_a_rate_meets_its_floor_at_every_size(
    bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "differs", 0)
    rows = rows_of(bandwidths)
    values = {name: row["value"] for name, row in rows.items()}
    for cache, write_ns in (("cold", WRITE_NS), ("hot", HOT_WRITE_NS)):
        memory = device_memory(values, cache)
        sizes = [found[2] for found in map(found_by_size, values) if found and found[:2] == ("device_copy", cache)]
        assert len(sizes) == 13
        for nbytes in sizes:
            took_ns = START_NS + (READ_NS + write_ns) * nbytes / 2
            assert memory.time_ns(nbytes / 2, nbytes / 2) / took_ns == pytest.approx(1.0)
        # In every mix, at every size from a byte on. The largest size of some mixes is a little less than 1 GiB.
        for share in np.linspace(0, 1, 37):
            nbytes = np.geomspace(1, 0.99 * sizes[-1], 999)
            took_ns = START_NS + (READ_NS * share + write_ns * (1 - share)) * nbytes
            percent = 100 * memory.time_ns(share * nbytes, (1 - share) * nbytes) / took_ns
            assert percent.max() <= 100 + 1e-9
            assert percent[nbytes >= sizes[0]].min() >= 100 - 1e-9


@pytest.mark.thorough
def test_a_copy_by_the_driver_counts_where_it_is_faster_than_all_kernels(
    bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DRIVER, "slower", 0.9)
    rows = rows_of(bandwidths)
    by_driver = {name for name, row in rows.items() if row["method"].startswith("copy by the driver, with a ")}
    assert by_driver == {name for name in rows if name.startswith("device_copy_")}
    assert rows["device_copy_cold_16777216_bytes"]["value"] == pytest.approx(2 + 8.388608 * 0.45 * 0.9)


@pytest.mark.thorough
def test_the_fastest_place_counts_where_the_arrays_leave_room_for_several(
    bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AT_BEGINNING, "slower", 0.07)
    rows = rows_of(bandwidths)
    assert rows["device_copy_cold_16777216_bytes"]["value"] == pytest.approx(2 + 8.388608 * 0.45)
    # The array of 1 GiB fills its buffer.
    assert rows["device_read_cold_1073741824_bytes"]["value"] == pytest.approx(2 + 1073.741824 * 0.2 * 1.07)


@pytest.mark.thorough
def test_small_samples_hold_several_executions_and_ways_are_tried_by_a_few(bandwidths: ModuleType) -> None:
    Device.cold_executions.clear()
    rows_of(bandwidths)
    # With the events, an execution of 256 KiB takes a little more than 4 us, so that nine fit 40 us; one of 1 GiB exceeds them.
    # Four tell roughly.
    assert set(Device.cold_executions) >= {1, 4, 9}
    assert max(Device.cold_executions) == 9


def test_the_arrays_of_a_mix_are_those_that_its_share_of_reads_says(bandwidths: ModuleType) -> None:
    shares = {name: reads / (reads + writes) for name, (reads, writes) in bandwidths.MIXES.items()}
    assert shares == pytest.approx(dict(DEVICE_MIXES))


def test_the_arrays_fit_the_buffers_and_no_byte_of_the_larger_side_counts_twice(bandwidths: ModuleType) -> None:
    for reads, writes in bandwidths.MIXES.values():
        for way in bandwidths.ways(reads, writes):
            assert 0.999 * 2**30 < max(reads, writes) * way.tiles(2**30) * way.tile_bytes <= 2**30
    # Two arrays of a gibibyte in all, and one of half of it.
    assert bandwidths.Way(2, 1, 1, 0).moved(2**30) == 3 * 2**29


def test_every_way_moves_the_bytes_of_its_row_and_few_bytes_are_tried_in_small_blocks(bandwidths: ModuleType) -> None:
    for mix in bandwidths.MIXES.values():
        for size in bandwidths.SIZES:
            each, tried = bandwidths.bytes_of_array(*mix, size), bandwidths.ways_by_size(*mix, size)
            assert 0.98 * size < sum(mix) * each <= size
            assert tried and all(each % way.tile_bytes == 0 for way in tried)
            assert ({way.threads for way in tried} >= {64, 128}) == (size <= 32 << 20)


@pytest.mark.thorough
def test_a_small_gpu_measures_the_sizes_that_its_buffers_hold(bandwidths: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "memory_bytes", 1 << 30)  # buffers of an eighth of a gibibyte
    sizes = [found[2] for found in map(found_by_size, rows_of(bandwidths)) if found]
    assert max(sizes) == 128 << 20


@needs_compiler
@pytest.mark.parametrize(
    ("reads", "writes", "accesses", "blocks", "threads", "streamed"),
    [(2, 1, 2, 1, 256, 0), (1, 2, 1, 3, 64, 3), (1, 1, 1, 2, 128, 1), (0, 1, 4, 1, 256, 2)],
)
def test_every_array_is_read_and_written_in_full(
    reads: int, writes: int, accesses: int, blocks: int, threads: int, streamed: int
) -> None:
    tiles = 3
    each = tiles * threads * accesses * 4
    rows = np.arange(max(reads, 1) * each, dtype=np.float32).reshape(-1, each)
    found = np.full((writes, each), np.nan, np.float32)
    variant = CudaVariant("own", "own", "ceiling", source=SOURCE)
    name = f"move_bytes<{reads}, {writes}, {accesses}, {threads}, {streamed}>"
    run(variant, [Launch(name, (blocks, 1, 1), (threads, 1, 1), ("in", "out", np.uint32(tiles)))], {"in": rows}, {"out": found})
    expected = rows.sum(axis=0) if reads else np.tile(np.array([1, 2, 3, 4], np.float32), each // 4)
    assert (found == expected).all()
