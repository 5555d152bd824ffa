"""How many blocks of a kernel are resident on a multiprocessor, with NVIDIA's rules for each compute capability.

The limits are those of the CUDA Programming Guide ("Compute Capabilities"). The rules of allocation are those of `cuda_occupancy.h` of the
CUDA toolkit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

WARP: Final = 32
_KIB: Final = 1024

#: Resources whose lack limits the resident blocks, in the order of the pages.
REGISTERS: Final = "registers"
SHARED_MEMORY: Final = "shared memory"
WARPS: Final = "warps"
BLOCKS: Final = "blocks"


@dataclass(frozen=True)
class Limits:
    """The resources of a multiprocessor of one compute capability.

    Attributes:
        capability: such as `9.0`.
        threads: resident threads at most.
        blocks: resident blocks at most.
        shared_bytes: shared memory with the largest carve-out.
        block_shared_bytes: shared memory that a block may use after an opt-in.
        carve_outs: the sizes that the shared memory of a multiprocessor can have, rising.
        reserved_shared_bytes: shared memory that the driver takes for itself in each block.
        shared_unit: the shared memory of a block is a multiple of it.
        registers, block_registers: registers of a multiprocessor, and registers that a block may use.
        register_unit: the registers of a warp are a multiple of it.
        thread_registers: registers that a thread can be allocated; the compiler uses at most one fewer.
        block_threads: threads of a block at most.
        schedulers: parts of a multiprocessor. Each has its share of the registers, and a warp takes its registers from one part.
    """

    capability: str
    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    carve_outs: tuple[int, ...]
    reserved_shared_bytes: int = _KIB
    shared_unit: int = 128
    registers: int = 65536
    block_registers: int = 65536
    register_unit: int = 256
    thread_registers: int = 256
    block_threads: int = 1024
    schedulers: int = 4

    @property
    def warps(self) -> int:
        """Resident warps at most."""
        return self.threads // WARP


@dataclass(frozen=True)
class Occupancy:
    """The resident blocks of a kernel.

    Attributes:
        blocks: resident blocks of a multiprocessor; 0 where the kernel cannot be launched.
        warps: resident warps of a multiprocessor.
        percent: resident warps over the most that the multiprocessor can have.
        limiters: the resources that allow no further block.
        by_resource: how many blocks each resource allows.
        shared_bytes: the shared memory that a block is allocated, with what the driver reserves.
    """

    blocks: int
    warps: int
    percent: float
    limiters: tuple[str, ...]
    by_resource: Mapping[str, int]
    shared_bytes: int


class Waves(NamedTuple):
    """How often the GPU is filled with blocks.

    Attributes:
        waves: blocks of the grid over the blocks that are resident at once.
        last_share: the share of the places of the last wave that have a block, above 0 and at most 1.
    """

    waves: float
    last_share: float


def _kib(*sizes: int) -> tuple[int, ...]:
    return tuple(size * _KIB for size in sizes)


_UP_TO_100: Final = _kib(0, 8, 16, 32, 64, 100)
_UP_TO_164: Final = (*_UP_TO_100, *_kib(132, 164))
_UP_TO_228: Final = (*_UP_TO_164, *_kib(196, 228))

#: Compute capability -> its limits.
LIMITS: Final[Mapping[str, Limits]] = MappingProxyType(
    {
        each.capability: each
        for each in (
            Limits("7.5", 1024, 16, 64 * _KIB, 64 * _KIB, _kib(32, 64), reserved_shared_bytes=0, shared_unit=256),
            Limits("8.0", 2048, 32, 164 * _KIB, 163 * _KIB, _UP_TO_164),
            Limits("8.6", 1536, 16, 100 * _KIB, 99 * _KIB, _UP_TO_100),
            Limits("8.7", 1536, 16, 164 * _KIB, 163 * _KIB, _UP_TO_164),
            Limits("8.9", 1536, 24, 100 * _KIB, 99 * _KIB, _UP_TO_100),
            Limits("9.0", 2048, 32, 228 * _KIB, 227 * _KIB, _UP_TO_228),
            Limits("10.0", 2048, 32, 228 * _KIB, 227 * _KIB, _UP_TO_228),
            Limits("10.3", 2048, 32, 228 * _KIB, 227 * _KIB, _UP_TO_228),
            Limits("12.0", 1536, 24, 100 * _KIB, 99 * _KIB, _UP_TO_100),
        )
    }
)

_ARCHITECTURE: Final = re.compile(r"(?:sm|compute)_(\d+)(\d)[af]?")


def limits_of(architecture: str) -> Limits | None:
    """The limits of an architecture such as `sm_90a` or of a compute capability such as `9.0`; None for another one."""
    match = _ARCHITECTURE.fullmatch(architecture)
    return LIMITS.get(f"{match[1]}.{match[2]}" if match else architecture)


def occupancy(limits: Limits, threads: int, registers: int, shared_bytes: int, carve_out: int | None = None) -> Occupancy:
    """The resident blocks of a kernel. Raises ValueError: a block has no threads, or a number is negative.

    Args:
        limits: of the GPU.
        threads: of a block.
        registers: of a thread.
        shared_bytes: static and dynamic shared memory of a block, without what the driver reserves.
        carve_out: shared memory that the multiprocessor is configured with. Without it, the largest carve-out is taken, as the driver does
            for a kernel without a preference.
    """
    if threads < 1 or registers < 0 or shared_bytes < 0:
        raise ValueError(f"{threads} threads, {registers} registers, {shared_bytes} bytes: at least 1, 0 and 0 are needed")
    warps = _quotient_up(threads, WARP)
    allocated = _multiple(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit)
    by_resource = {
        REGISTERS: _by_registers(limits, warps, registers),
        SHARED_MEMORY: _by_shared_memory(limits, allocated, carve_out),
        WARPS: limits.warps // warps if threads <= limits.block_threads else 0,
        BLOCKS: limits.blocks,
    }
    blocks = min(by_resource.values())
    limiters = tuple(name for name, most in by_resource.items() if most == blocks)
    return Occupancy(
        blocks, blocks * warps, 100 * blocks * warps / limits.warps, limiters, MappingProxyType(by_resource), allocated
    )


def _by_registers(limits: Limits, warps: int, registers: int) -> int:
    """Blocks that the registers allow. A launch is refused as if each scheduler had as many warps as the one with the most."""
    of_warp = _multiple(registers * WARP, limits.register_unit)
    if of_warp == 0:
        return limits.blocks
    if of_warp * _multiple(warps, limits.schedulers) > limits.block_registers or registers > limits.thread_registers:
        return 0
    of_scheduler = limits.registers // limits.schedulers
    return of_scheduler // of_warp * limits.schedulers // warps


def _by_shared_memory(limits: Limits, allocated: int, carve_out: int | None) -> int:
    """Blocks that the shared memory allows. A carve-out below the need of one block is raised to the next size that has room for it."""
    if allocated > limits.block_shared_bytes + limits.reserved_shared_bytes:
        return 0
    if allocated == 0:
        return limits.blocks
    size = limits.shared_bytes if carve_out is None else carve_out
    if size < allocated:
        size = next(each for each in limits.carve_outs if each >= allocated)
    return size // allocated


def waves(grid_blocks: int, blocks: int, sms: int) -> Waves:
    """How often a grid fills the GPU.

    Args:
        grid_blocks: blocks of the grid.
        blocks: resident blocks of a multiprocessor, at least 1.
        sms: multiprocessors of the GPU.
    """
    places = blocks * sms
    rest = grid_blocks % places
    return Waves(grid_blocks / places, rest / places if rest else 1.0)


def _quotient_up(number: int, unit: int) -> int:
    return -(-number // unit)


def _multiple(number: int, unit: int) -> int:
    return _quotient_up(number, unit) * unit
