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
from warpladder.data.bandwidths import device_memory
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
#: For `l2_kept`: bytes that the kernel before writes, as shares of the L2, and bytes that the timed kernel reads, in sizes of the L2.
_WRITTEN: Final = (0.5, 1.0, 2.0, 4.0)
_READ: Final = 4
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
        written = f"kernel that writes before one that reads {_READ} times the L2, by how much longer that takes"
        methods[Ceiling.L2_KEPT] = f"{written}, median of {REPETITIONS}"
        kept = {Ceiling.L2_KEPT: self._kept_mb(rates, best[Ceiling.DEVICE_READ], best[Ceiling.DEVICE_WRITE])}
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

    def _kept_mb(self, rates: dict[str, float], read: Way, write: Way) -> float:
        """The most MB that a kernel left in the L2, by how much longer the next one takes, which evicts them."""
        device, memory = self._device, device_memory(rates, 0)
        l2_bytes = max(device.l2_bytes, _LEAST_L2_BYTES)
        nbytes = min(_READ * l2_bytes, self._size // 2)
        reading = self._launch(read, nbytes, self._size // 2)
        moved = read.moved(nbytes)
        clean_ns = device.median_after_flush_ns(reading)
        kept = [1e-6]
        for share in _WRITTEN:
            written = int(min(share * l2_bytes, self._size))
            longer_ns = device.median_after_flush_ns(reading, self._launch(write, written)) - clean_ns
            amounts = np.linspace(0, min(written, l2_bytes), 1001)
            added_ns = memory.time_ns(moved, amounts) - memory.time_ns(moved, 0)
            kept.append(float(np.interp(longer_ns, added_ns, amounts)) / 1e6)
        return max(kept)
