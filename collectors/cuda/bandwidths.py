"""Measures device memory by its mix of reads and writes: rates at a large size, and times by size with a cold and a hot L2."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.device import REPETITIONS, CudaDevice, batch_size, cold_executions
from warpladder.collectors.cuda.launch import graph_of, load
from warpladder.data.names import Ceiling, by_size
from warpladder.workloads.api import Constants, CudaVariant

_SOURCE: Final = Path(__file__).parent / "kernels" / "bandwidths.cu"
_CONSTANTS: Final = Constants(_SOURCE)
_BYTES: Final = 1 << 30
_ACCESS_BYTES: Final = 16
_THREADS: Final = 256
#: Ceiling -> arrays read, and arrays written.
MIXES: Final = {
    Ceiling.DEVICE_COPY: (1, 1),
    Ceiling.DEVICE_READ: (1, 0),
    Ceiling.DEVICE_WRITE: (0, 1),
    Ceiling.DEVICE_8_TO_1: (8, 1),
    Ceiling.DEVICE_2_TO_1: (2, 1),
    Ceiling.DEVICE_1_TO_2: (1, 2),
    Ceiling.DEVICE_1_TO_8: (1, 8),
}
#: Accesses of each array in flight a thread to try, and blocks per multiprocessor; 0 is one block for each tile. The fastest
#: depends on the device and the mix.
_ACCESSES: Final = (1, 2, 4, 8)
_MOST_ACCESSES: Final = 16
_BLOCKS_PER_SM: Final = (0, 8)
_KIB, _MIB = 1 << 10, 1 << 20
#: Bytes read and written of the times by size, more of them where the bytes begin to exceed an L2.
SIZES: Final = (256 * _KIB, *(mib * _MIB for mib in (1, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 1024)))
#: An array has a multiple of a power of two of bytes: the largest that a tile has, and no more than this part of it.
_LARGEST_TILE: Final = _ACCESS_BYTES * _THREADS * max(_ACCESSES)
_PART: Final = 16
#: Blocks of this many threads are tried where the bytes are few.
_SMALL_BLOCKS: Final = (64, 128)
_FEW_BYTES: Final = 32 * _MIB
#: Few blocks that take tile after tile are tried where the bytes are many.
_MANY_BYTES: Final = 8 * _MIB
_READS, _WRITES = _CONSTANTS["STREAM_READS"], _CONSTANTS["STREAM_WRITES"]
_STREAMED: Final = {
    0: "",
    _READS: ", reads streamed",
    _WRITES: ", writes streamed",
    _READS | _WRITES: ", both streamed",
}
#: What streams, and accesses to try.
_STREAMS: Final = ((_READS, 1), (_READS, 2), (_READS, 4), (_WRITES, 1), (_WRITES, 2), (_READS | _WRITES, 2))
#: Times differ with the place of the arrays. Every way is timed by a few executions at one place, the fastest ones at this many
#: places, and the fastest of these by samples.
_ROUGH: Final = 4
_FASTEST: Final = 3
_PLACES: Final = 4
_PAGE: Final = 2 * _MIB
_SAMPLES: Final = 7


@dataclass(frozen=True)
class Way:
    """One way to move bytes.

    Attributes:
        reads, writes: arrays.
        accesses: of each array in flight a thread.
        blocks_per_sm: blocks per multiprocessor; 0 is one for each tile.
        threads: of a block.
        streamed: which accesses the L2 is told to have no further use of; a key of `_STREAMED`.
    """

    reads: int
    writes: int
    accesses: int
    blocks_per_sm: int
    threads: int = _THREADS
    streamed: int = 0

    @property
    def kernel(self) -> str:
        """Its name expression."""
        return f"move_bytes<{self.reads}, {self.writes}, {self.accesses}, {self.threads}, {self.streamed}>"

    def tiles(self, nbytes: int) -> int:
        """Tiles of each array, where the arrays of the larger side have so many bytes."""
        return nbytes // (max(self.reads, self.writes) * self.tile_bytes)

    @property
    def tile_bytes(self) -> int:
        """Bytes of each array that one block moves at a time."""
        return _ACCESS_BYTES * self.threads * self.accesses

    def moved(self, nbytes: int) -> int:
        """Bytes read and written, where the arrays of the larger side have so many bytes."""
        return (self.reads + self.writes) * self.tiles(nbytes) * self.tile_bytes

    def __str__(self) -> str:
        blocks = f"{self.blocks_per_sm} blocks a multiprocessor" if self.blocks_per_sm else "a block for each tile"
        threads = f" of {self.threads} threads" if self.threads != _THREADS else ""
        return f"{self.accesses} accesses of 16 bytes a thread at once, {blocks}{threads}{_STREAMED[self.streamed]}"


def ways(reads: int, writes: int) -> Iterator[Way]:
    """The ways to try for the rate of a mix. With only reads each block reads many tiles, so that few of them add up."""
    for accesses in _ACCESSES:
        if accesses * max(reads, writes) <= _MOST_ACCESSES:
            yield from (Way(reads, writes, accesses, blocks) for blocks in _BLOCKS_PER_SM if blocks or writes)


def bytes_of_array(reads: int, writes: int, total: int) -> int:
    """Bytes of each array of a mix that reads and writes about `total` bytes, a multiple of the tiles that are tried there."""
    each = total // (reads + writes)
    tile = min(_LARGEST_TILE, 1 << (each // _PART).bit_length() - 1)
    return each // tile * tile


def ways_by_size(reads: int, writes: int, total: int) -> list[Way]:
    """The ways to try for the time of a mix at a size."""
    each = bytes_of_array(reads, writes, total)
    candidates = [Way(reads, writes, accesses, 0) for accesses in _ACCESSES]
    candidates += [Way(reads, writes, accesses, 8) for accesses in (2, 4) if total >= _MANY_BYTES]
    if total <= _FEW_BYTES:
        candidates += [Way(reads, writes, 1, 0, threads) for threads in _SMALL_BLOCKS]
    kinds = [kind for kind in _STREAMED if (reads or not kind & _READS) and (writes or not kind & _WRITES)]
    candidates += [Way(reads, writes, accesses, 0, streamed=kind) for kind, accesses in _STREAMS if kind in kinds]
    fitting = [way for way in candidates if way.accesses * max(reads, writes) <= _MOST_ACCESSES]
    return [way for way in fitting if each % way.tile_bytes == 0]


class DeviceMemory:
    """Two buffers of a GPU, and the kernels that move their bytes. `by_size`: times by size are measured too."""

    def __init__(self, device: CudaDevice, by_size: bool) -> None:
        self._device = device
        self._size = min(_BYTES, device.memory_bytes // 8)
        self._sizes = [size for size in SIZES if by_size and size <= self._size]
        every = {way for mix in MIXES.values() for way in ways(*mix)}
        every |= {way for mix in MIXES.values() for size in self._sizes for way in ways_by_size(*mix, size)}
        variant = CudaVariant("bandwidths", "bandwidths", "ceiling", source=_SOURCE)
        self._kernels = load(compile_variant(variant, sorted({way.kernel for way in every}), device.arch))
        self._source, self._target = cupy.ones(self._size // 4, cupy.float32), cupy.empty(self._size // 4, cupy.float32)
        for way in every:  # a kernel is loaded at its first launch
            self._launch(way, 1)()

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `ceilings`: a rate in GB/s for each mix, and, if asked for, its times in us by cache and size."""
        rows, rates = [], {}
        for name, mix in MIXES.items():
            rate_of_way = {way: way.moved(self._size) / self._rate_ns(way) for way in ways(*mix)}
            best = max(rate_of_way, key=lambda each: rate_of_way[each])
            rates[name] = rate_of_way[best]
            method = f"kernel over {self._size / 2**30:.3g} GiB, {best}, median of {REPETITIONS} without the time of the events"
            rows.append(self._row(name, rate_of_way[best], "GB/s", method))
        return [*rows, *self._rows_by_size(rates)]

    def _row(self, name: str, value: float, unit: str, method: str) -> dict[str, Any]:
        return {"name": name, "device": f"cuda:{self._device.index}", "value": value, "unit": unit, "method": method}

    def _launch(self, way: Way, tiles: int, offset: int = 0) -> Callable[[], object]:
        """Moves so many tiles of each array, which lie at an offset in bytes."""
        blocks = min(tiles, way.blocks_per_sm * self._device.sm_count) if way.blocks_per_sm else tiles
        buffers = self._source[offset // 4 :], self._target[offset // 4 :]
        return partial(self._kernels[way.kernel], (blocks,), (way.threads,), (*buffers, np.uint32(tiles)))

    def _rate_ns(self, way: Way) -> float:
        return self._device.without_events(self._device.median_ns(self._launch(way, way.tiles(self._size))))

    def _rows_by_size(self, rates: Mapping[str, float]) -> Iterator[dict[str, Any]]:
        """Times of each mix, cache and size: of the fastest way, as samples of a variant are taken."""
        timers = {"cold": self._cold, "hot": self._hot}
        for size in self._sizes:
            for name, mix in MIXES.items():
                each = bytes_of_array(*mix, size)
                nbytes = sum(mix) * each
                about_ns = self._device.empty_kernels.one_ns + nbytes / rates[name]
                tried = {
                    f"kernel, {way}": partial(self._launch, way, each // way.tile_bytes) for way in ways_by_size(*mix, size)
                }
                if name == Ceiling.DEVICE_COPY:
                    tried["copy by the driver"] = partial(self._copy, each)
                offsets = self._offsets(each * max(mix))
                for cache, timer in timers.items():
                    way, duration_ns = _fastest(tried, offsets, partial(timer, about_ns=about_ns))
                    method = f"{way}, with a {cache} L2, median of {_SAMPLES} samples as of a variant"
                    yield self._row(by_size(name, cache, nbytes), duration_ns / 1000, "us", method)

    def _copy(self, nbytes: int, offset: int) -> Callable[[], object]:
        """Copies so many bytes, which lie at an offset in both buffers."""
        to, source = self._target.data.ptr + offset, self._source.data.ptr + offset
        return partial(runtime.memcpyAsync, to, source, nbytes, runtime.memcpyDeviceToDevice, self._device.stream.ptr)

    def _offsets(self, nbytes: int) -> list[int]:
        """Offsets of arrays of so many bytes, which begin at other pages as far from each other as the buffers allow."""
        room = (self._size - nbytes) // _PAGE
        return sorted({room * place // max(_PLACES - 1, 1) * _PAGE for place in range(_PLACES)})

    def _cold(self, launch: Callable[[], object], about_ns: float) -> "Timed":
        def sample_ns(executions: int) -> float:
            return self._device.each_ns(launch, executions, self._device.flush_l2)[0]

        return Timed(partial(sample_ns, _ROUGH), partial(sample_ns, cold_executions(about_ns)))

    def _hot(self, launch: Callable[[], object], about_ns: float) -> "Timed":
        batch = batch_size(about_ns)
        replay = graph_of(self._device.stream, launch, batch) if batch > 1 else launch
        replay()

        def sample_ns() -> float:
            return self._device.batch_ns(replay, batch, launch)[0]

        return Timed(sample_ns, sample_ns)


def _fastest(
    tried: Mapping[str, Callable[[int], Callable[[], object]]],
    offsets: Sequence[int],
    timer: Callable[[Callable[[], object]], "Timed"],
) -> tuple[str, float]:
    """The way that takes least, and its time in ns.

    Args:
        tried: a function for each way that gives what moves bytes at an offset.
        offsets: at which the fastest ways are timed. The first is 0.
        timer: times what moves bytes.
    """
    rough = {way: timer(at(offsets[0])).rough_ns() for way, at in tried.items()}
    fastest = sorted(tried, key=lambda way: rough[way])[:_FASTEST]
    again = {(way, offset): timer(tried[way](offset)) for way in fastest for offset in offsets}
    best = min(again, key=lambda place: again[place].rough_ns())
    return best[0], again[best].median_ns()


@dataclass(frozen=True)
class Timed:
    """A mover of bytes that can be timed: roughly, and by samples in ns."""

    rough_ns: Callable[[], float]
    sample_ns: Callable[[], float]

    def median_ns(self) -> float:
        return statistics.median(self.sample_ns() for _ in range(_SAMPLES))
