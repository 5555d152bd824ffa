"""Measures the rates of device memory, by its mix of reads and writes, and how many bytes written its L2 keeps."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.device import REPETITIONS, CudaDevice
from warpladder.collectors.cuda.launch import load
from warpladder.data.bandwidths import Memory, device_memory
from warpladder.data.names import Ceiling
from warpladder.workloads.api import Constants, CudaVariant

_SOURCE: Final = Path(__file__).parent / "kernels" / "bandwidths.cu"
_CONSTANTS: Final = Constants(_SOURCE)
_BYTES: Final = 1 << 30
_ACCESS_BYTES: Final = 16
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
#: For `l2_kept`, in sizes of the L2: bytes that kernels write, and bytes that one reads to evict them; and amounts to try.
_WRITTEN: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
_READ: Final = 4
_STEPS: Final = 1001
#: A ceiling must be positive.
_NO_BYTES: Final = 1.0
_LEAST_L2_BYTES: Final = 1 << 22


@dataclass(frozen=True)
class Way:
    """One way to move bytes: arrays read and written, accesses of each in flight a thread, and blocks per multiprocessor."""

    reads: int
    writes: int
    accesses: int
    blocks_per_sm: int

    @property
    def kernel(self) -> str:
        """Its name expression."""
        return f"move_bytes<{self.reads}, {self.writes}, {self.accesses}>"

    def tiles(self, nbytes: int) -> int:
        """Tiles of each array, where the arrays of the larger side have so many bytes."""
        return nbytes // (max(self.reads, self.writes) * self.tile_bytes)

    @property
    def tile_bytes(self) -> int:
        """Bytes of each array that one block moves at a time."""
        return _ACCESS_BYTES * _CONSTANTS["THREADS"] * self.accesses

    def moved(self, nbytes: int) -> int:
        """Bytes read and written, where the arrays of the larger side have so many bytes."""
        return (self.reads + self.writes) * self.tiles(nbytes) * self.tile_bytes


def ways(reads: int, writes: int) -> Iterator[Way]:
    """The ways to try for a mix. With only reads each block reads many tiles, so that few of them add up."""
    for accesses in _ACCESSES:
        if accesses * max(reads, writes) <= _MOST_ACCESSES:
            yield from (Way(reads, writes, accesses, blocks) for blocks in _BLOCKS_PER_SM if blocks or writes)


class DeviceMemory:
    """Two buffers of a GPU, and the kernels that move their bytes."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._size = min(_BYTES, device.memory_bytes // 8)
        self._l2_bytes = max(device.l2_bytes, _LEAST_L2_BYTES)
        names = {way.kernel: None for mix in MIXES.values() for way in ways(*mix)}
        variant = CudaVariant("bandwidths", "bandwidths", "ceiling", source=_SOURCE)
        self._kernels = load(compile_variant(variant, list(names), device.arch))
        self._source, self._target = cupy.ones(self._size // 4, cupy.float32), cupy.empty(self._size // 4, cupy.float32)

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `ceilings`: a rate in GB/s for each mix, and `l2_kept` in MB."""
        rates, methods, best = {}, {}, {}
        for name, mix in MIXES.items():
            found = {way: way.moved(self._size) / self._time_ns(way, self._size) for way in ways(*mix)}
            way = best[name] = max(found, key=lambda each: found[each])
            rates[name], methods[name] = found[way], self._method(way)
        how = f"by how much longer a read of {_READ} times the L2 takes after a kernel that writes, or a cold copy less than its rate says"
        methods[Ceiling.L2_KEPT] = f"{how}; the most, of medians of {REPETITIONS}"
        kept = {Ceiling.L2_KEPT: self._kept_mb(rates, best)}
        where = f"cuda:{self._device.index}"
        return [
            {"name": name, "device": where, "value": value, "unit": unit, "method": methods[name]}
            for unit, values in (("GB/s", rates), ("MB", kept))
            for name, value in values.items()
        ]

    def _method(self, way: Way) -> str:
        blocks = f"{way.blocks_per_sm} blocks a multiprocessor" if way.blocks_per_sm else "a block for each tile"
        size = f"{self._size / 2**30:.3g} GiB"
        accesses = f"{way.accesses} accesses of 16 bytes a thread at once"
        return f"kernel over {size}, {accesses}, {blocks}, median of {REPETITIONS} without the time of the events"

    def _launch(self, way: Way, nbytes: int, offset: int = 0) -> "partial[None]":
        tiles = way.tiles(nbytes)
        blocks = min(tiles, way.blocks_per_sm * self._device.sm_count) if way.blocks_per_sm else tiles
        source = self._source[offset // 4 :]
        return partial(self._kernels[way.kernel], (blocks,), (_CONSTANTS["THREADS"],), (source, self._target, np.uint32(tiles)))

    def _time_ns(self, way: Way, nbytes: int) -> float:
        return self._device.without_events(self._device.median_ns(self._launch(way, nbytes)))

    def _kept_mb(self, rates: dict[str, float], best: dict[str, Way]) -> float:
        """The most MB that a kernel left in the L2, by two ways to tell."""
        memory = device_memory(rates, 0)
        return max(_NO_BYTES, *self._left_behind(memory, best), *self._not_waited_for(memory, best)) / 1e6

    def _left_behind(self, memory: Memory, best: dict[str, Way]) -> Iterator[float]:
        """Bytes that a kernel left, by how much longer the next one takes, which evicts them."""
        read, write = best[Ceiling.DEVICE_READ], best[Ceiling.DEVICE_WRITE]
        nbytes = min(_READ * self._l2_bytes, self._size // 2)
        reading, moved = self._launch(read, nbytes, self._size // 2), read.moved(nbytes)
        clean_ns = self._device.median_after_flush_ns(reading)
        for share in _WRITTEN:
            written = int(min(share * self._l2_bytes, self._size))
            longer_ns = self._device.median_after_flush_ns(reading, self._launch(write, written)) - clean_ns
            amounts = np.linspace(0, min(written, self._l2_bytes), _STEPS)
            added_ns = memory.time_ns(moved, amounts) - memory.time_ns(moved, 0)
            yield float(np.interp(longer_ns, added_ns, amounts))

    def _not_waited_for(self, memory: Memory, best: dict[str, Way]) -> Iterator[float]:
        """Bytes that a copy with a cold L2 need not have written in its time."""
        copy = best[Ceiling.DEVICE_COPY]
        for share in _WRITTEN:
            nbytes = int(min(share * self._l2_bytes, self._size))
            took_ns = self._device.without_events(self._device.median_after_flush_ns(self._launch(copy, nbytes)))
            half = copy.moved(nbytes) / 2
            amounts = np.linspace(0, min(half, self._l2_bytes), _STEPS)
            # Rising, as interpolation wants it.
            yield float(np.interp(-took_ns, -memory.time_ns(half, half - amounts), amounts))
