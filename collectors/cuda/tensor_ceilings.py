"""Measures the rates of the GPU's tensor cores by precision, at the clock that the device sustains, on random numbers.

Ampere, Ada and the GeForce parts of Blackwell do most by `mma.sync`, Hopper by `wgmma`. The data-centre parts of Blackwell have units that
neither uses, so that a product of cuBLAS is timed there.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Final, NamedTuple

import cupy
import numpy as np
import numpy.typing as npt

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.device import CudaDevice
from warpladder.collectors.cuda.launch import bind, load
from warpladder.data.names import Ceiling
from warpladder.workloads.api import Constants, CudaVariant, Launch
from warpladder.workloads.declare.cases import STORAGE, narrowed
from warpladder.workloads.declare.launches import ALIGNMENT_BYTES, WARPGROUP_THREADS

_KERNELS: Final = Path(__file__).parent / "kernels"
_OF_MMA: Final = Constants(_KERNELS / "mma_ceilings.cu")
_OF_WGMMA: Final = Constants(_KERNELS / "wgmma_ceilings.cu")
#: Bytes along k that one instruction multiplies.
_DEPTH_BYTES: Final = 32
_BLOCKS_PER_SM: Final = 4
#: ns. A launch takes about so long; the device is at work so long before the clock starts, and so long after that.
_LAUNCH_NS, _HEAT_NS, _TIMED_NS = 2_000_000, 200_000_000, 100_000_000
_HOW: Final = f"random operands, mean of {_TIMED_NS // 1_000_000} ms after {_HEAT_NS // 1_000_000} ms of the same work"
_LIBRARY_SIZE: Final = 8192
_HOPPER, _BLACKWELL = 9, 10
_FP64_SINCE: Final = (8, 0)


Bytes = npt.NDArray[np.uint8]
#: How the operands of a kind are stored.
_TYPES: Final = {
    "Fp8": "float8_e4m3fn",
    "Int8": "int8",
    "Fp16": "float16",
    "Bf16": "bfloat16",
    "Tf32": "float32",
    "Fp64": "float64",
}


def random_operands(kind: str, nbytes: int, seed: int = 0) -> Bytes:
    """Bytes of normally distributed numbers of a kind. Whole numbers have a standard deviation of 32."""
    dtype = _TYPES[kind]
    values = np.random.default_rng(seed).standard_normal(nbytes // np.dtype(STORAGE.get(dtype, dtype)).itemsize)
    if dtype == "int8":
        return np.clip(np.rint(32 * values), -127, 127).astype(np.int8).view(np.uint8)
    found: Bytes = narrowed(values if dtype == "float64" else values.astype(np.float32), dtype).view(np.uint8)
    return found


class _Kind(NamedTuple):
    """A precision of tensor cores.

    Attributes:
        name: of its struct in the kernels' sources.
        element_bytes: of an operand.
        mma, wgmma, library: its ceilings; `library` is empty where CuPy cannot call cuBLAS for it.
        since: the first compute capability that multiplies so.
        types: cuBLAS's types of operands and of sums, and its kind of computation.
    """

    name: str
    element_bytes: int
    mma: str
    wgmma: str
    library: str
    since: tuple[int, int]
    types: tuple[int, int, int] = (0, 0, 0)


#: The numbers are values of cudaDataType and of cublasComputeType_t.
_KINDS: Final = (
    _Kind("Tf32", 4, Ceiling.TF32_MMA, Ceiling.TF32_WGMMA, Ceiling.TF32_CUBLAS, (8, 0), (0, 0, 77)),
    _Kind("Fp16", 2, Ceiling.FP16_MMA, Ceiling.FP16_WGMMA, Ceiling.FP16_CUBLAS, (8, 0), (2, 2, 68)),
    _Kind("Bf16", 2, Ceiling.BF16_MMA, Ceiling.BF16_WGMMA, Ceiling.BF16_CUBLAS, (8, 0), (14, 14, 68)),
    _Kind("Fp8", 1, Ceiling.FP8_MMA, Ceiling.FP8_WGMMA, "", (8, 9)),
    _Kind("Int8", 1, Ceiling.INT8_MMA, Ceiling.INT8_WGMMA, Ceiling.INT8_CUBLAS, (8, 0), (3, 10, 72)),
)


#: A ceiling: its name, its value in TFLOP/s, and its method. Operations on whole numbers count likewise.
Rate = tuple[str, float, str]


def tensor_ceilings(device: CudaDevice) -> Iterator[Rate]:
    """The rates of the precisions that the device's tensor cores have."""
    major = device.compute_capability[0]
    for kind in _KINDS:
        if device.compute_capability < kind.since:
            continue
        if kind.mma == Ceiling.TF32_MMA or major not in (_HOPPER, _BLACKWELL):
            shape = (16, 8, _DEPTH_BYTES // kind.element_bytes)
            operands = random_operands(kind.name, 1 << 14)
            yield _by_warps(device, f"ceiling_mma<{kind.name}>", kind.mma, shape, operands)
        if device.arch == "sm_90":
            yield _by_wgmma(device, kind)
        if major == _BLACKWELL and kind.library:
            yield by_library(device, kind)
    if device.compute_capability >= _FP64_SINCE:
        shape = (16, 8, 16) if device.compute_capability >= (_HOPPER, 0) else (8, 8, 4)
        yield _by_warps(device, "ceiling_mma_fp64", Ceiling.FP64_MMA, shape, random_operands("Fp64", 1 << 14))


def _by_warps(device: CudaDevice, kernel: str, name: str, shape: tuple[int, int, int], operands: Bytes) -> Rate:
    """The rate of `mma.sync` of a shape: rows, columns, and steps along k."""
    threads, products = _OF_MMA["THREADS"], _OF_MMA["PRODUCTS"]
    variant = CudaVariant("mma", "mma", "ceiling", source=_KERNELS / "mma_ceilings.cu")
    function = load(compile_variant(variant, [kernel], device.arch))[kernel]
    given, never = cupy.asarray(operands), cupy.empty(threads, cupy.float64)
    blocks = _BLOCKS_PER_SM * device.sm_count

    def launches(steps: int) -> Callable[[], object]:
        return partial(function, (blocks,), (threads,), (given, never, np.int32(steps)))

    rate = _sustained(device, launches, blocks * threads // 32 * products * 2 * prod(shape))
    return name, rate, f"mma.sync m{shape[0]}n{shape[1]}k{shape[2]}, {blocks} blocks of {threads} threads, {_HOW}"


def _by_wgmma(device: CudaDevice, kind: _Kind) -> Rate:
    rows, columns, width = (_OF_WGMMA[name] for name in ("kRows", "kColumns", "kBytes"))
    threads, nbytes = 2 * WARPGROUP_THREADS, (2 * rows + columns) * width
    name = f"ceiling_wgmma<{kind.name}>"
    variant = CudaVariant("wgmma", "wgmma", "ceiling", source=_KERNELS / "wgmma_ceilings.cu", only_architecture="sm_90a")
    function = load(compile_variant(variant, [name], device.arch))[name]
    buffers = {"in": cupy.asarray(random_operands(kind.name, nbytes)), "never": cupy.empty(threads, cupy.float32)}

    def launches(steps: int) -> Callable[[], object]:
        grid, block, arguments = (device.sm_count, 1, 1), (threads, 1, 1), ("in", "never", np.int32(steps))
        return bind(Launch(name, grid, block, arguments, nbytes + ALIGNMENT_BYTES), function, buffers)

    rate = _sustained(device, launches, device.sm_count * 2 * 2 * rows * columns * width // kind.element_bytes)
    shape = f"m{rows}n{columns}k{_DEPTH_BYTES // kind.element_bytes}"
    how = f"wgmma {shape} by two warpgroups a block, operands in shared memory, {device.sm_count} blocks, {_HOW}"
    return kind.wgmma, rate, how


def by_library(device: CudaDevice, kind: _Kind) -> Rate:
    """The rate of a product of cuBLAS."""
    from cupy.cuda import cublas

    n = _LIBRARY_SIZE
    operand, sums, computation = kind.types
    a, b = (
        cupy.tile(cupy.asarray(random_operands(kind.name, 1 << 20, seed)), n * n * kind.element_bytes >> 20) for seed in (0, 1)
    )
    c = cupy.empty(n * n, cupy.float32)
    handle = cupy.cuda.device.get_cublas_handle()
    one, zero = (np.array(value, np.int32 if kind.name == "Int8" else np.float32) for value in (1, 0))

    def launches(steps: int) -> Callable[[], object]:
        def enqueue() -> None:
            for _ in range(steps):
                cublas.gemmEx(
                    handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, n, n, n, one.ctypes.data, a.data.ptr, operand, n,
                    b.data.ptr, operand, n, zero.ctypes.data, c.data.ptr, sums, n, computation, -1,
                )  # fmt: skip

        return enqueue

    rate = _sustained(device, launches, 2 * n**3, first_steps=1)
    return kind.library, rate, f"cublasGemmEx of {n} x {n} x {n}, {_HOW}"


def _sustained(
    device: CudaDevice, launches: Callable[[int], Callable[[], object]], operations: int, first_steps: int = 100
) -> float:
    """The rate in TFLOP/s once the device has settled at the clock that its power limit allows.

    Args:
        launches: number of steps -> a function that enqueues work of so many.
        operations: of a step.
    """
    enqueue = launches(first_steps)
    enqueue()
    first_ns, _ = device.time_queued(enqueue)
    steps = max(1, round(first_steps * _LAUNCH_NS / first_ns))
    enqueue = launches(steps)
    a_launch_ns, _ = device.time_queued(enqueue)
    heat, timed = (max(1, round(ns / a_launch_ns)) for ns in (_HEAT_NS, _TIMED_NS))
    duration_ns, _ = device.time_queued(partial(_repeat, enqueue, timed), timed, first=partial(_repeat, enqueue, heat))
    return operations * steps * timed / duration_ns / 1000


def _repeat(enqueue: Callable[[], object], times: int) -> None:
    for _ in range(times):
        enqueue()
