"""Measures ceilings of the current GPU: arithmetic rates, transfer rates and launch latencies. `bandwidths` has its memory's."""

import statistics
from functools import partial
from pathlib import Path
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import runtime

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.cuda.device import EMPTY_KERNELS, REPETITIONS, CudaDevice
from warpladder.collectors.cuda.launch import load
from warpladder.collectors.cuda.tensor_ceilings import tensor_ceilings
from warpladder.collectors.host.host_clock import durations_ns
from warpladder.data.names import Ceiling
from warpladder.workloads.api import CudaVariant

_KERNELS: Final = Path(__file__).parent / "kernels"
_MEDIAN: Final = f"median of {REPETITIONS}"
_ADDED: Final = "two events around one kernel of a known length up to 8 us, less its time as a node of a CUDA graph"
_TRANSFER_BYTES: Final = 1 << 28
_FMA_THREADS: Final = 256
#: Kernel -> ceiling, operations of a thread and step, steps, method. Some GPUs have few units for fp64.
_FMA: Final = {
    "ceiling_fma_uniform": (Ceiling.FP32_FMA, 512, 4000, "FFMA, one operand in uniform registers"),
    "ceiling_fma_registers": (Ceiling.FP32_FMA_REGISTERS, 512, 4000, "FFMA, all operands in registers"),
    "ceiling_fma_fp64": (Ceiling.FP64_FMA, 256, 400, "DFMA, all operands in registers"),
}
_TRANSFERS: Final = (
    (Ceiling.H2D_PAGEABLE, "pageable"),
    (Ceiling.D2H_PAGEABLE, "pageable"),
    (Ceiling.H2D_PINNED, "pinned"),
    (Ceiling.D2H_PINNED, "pinned"),
)


def cuda_ceilings(device: CudaDevice) -> list[dict[str, Any]]:
    """Rows of `ceilings` for the device, but for its memory: TFLOP/s, GB/s and us."""
    variant = CudaVariant("ceilings", "ceilings", "ceiling", source=_KERNELS / "ceilings.cu", constants={"multipliers": ""})
    kernels = load(compile_variant(variant, list(_FMA), device.arch))
    tensor_cores = [_row(device, name, value, "TFLOP/s", method) for name, value, method in tensor_ceilings(device)]
    return [*_rates(device, kernels), *tensor_cores, *_transfers(device), *_launches(device)]


def _rates(device: CudaDevice, kernels: dict[str, Any]) -> list[dict[str, Any]]:
    values = cupy.asarray(np.random.default_rng(0).standard_normal(1 << 16), cupy.float32)
    never = cupy.empty(1 << 10, cupy.float32)
    device.stream.synchronize()
    runtime.memcpy(kernels["multipliers"], values.data.ptr, 100, runtime.memcpyDeviceToDevice)
    blocks = 4 * device.sm_count
    rows = []
    for kernel, (name, operations, steps, how) in _FMA.items():
        operands = values.astype(cupy.float64) if name == Ceiling.FP64_FMA else values
        arguments = (operands, never, np.int32(steps))
        duration_ns = device.median_ns(partial(kernels[kernel], (blocks,), (_FMA_THREADS,), arguments))
        rate = blocks * _FMA_THREADS * operations * steps / duration_ns / 1000
        rows.append(_row(device, name, rate, "TFLOP/s", f"{how}, {blocks} blocks of {_FMA_THREADS} threads, {_MEDIAN}"))
    return rows


def _transfers(device: CudaDevice) -> list[dict[str, Any]]:
    target = cupy.empty(_TRANSFER_BYTES, cupy.uint8)
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(_TRANSFER_BYTES), np.uint8, _TRANSFER_BYTES)
    memories = {"pageable": np.ones(_TRANSFER_BYTES, np.uint8), "pinned": pinned}
    pinned[:] = 1
    rows = []
    for name, memory in _TRANSFERS:
        host = memories[memory].ctypes.data
        arguments = (
            (target.data.ptr, host, _TRANSFER_BYTES, runtime.memcpyHostToDevice)
            if name in (Ceiling.H2D_PAGEABLE, Ceiling.H2D_PINNED)
            else (host, target.data.ptr, _TRANSFER_BYTES, runtime.memcpyDeviceToHost)
        )
        duration_ns = statistics.median(durations_ns(partial(runtime.memcpy, *arguments), REPETITIONS))
        method = f"cudaMemcpy of {_TRANSFER_BYTES >> 20} MiB, {memory} host memory, by the host's clock, {_MEDIAN}"
        rows.append(_row(device, name, _TRANSFER_BYTES / duration_ns, "GB/s", method))
    return rows


def _launches(device: CudaDevice) -> list[dict[str, Any]]:
    empty, many = device.empty_kernels, EMPTY_KERNELS
    how = {
        Ceiling.LAUNCH: (empty.one_ns, "one empty kernel between two events, queued behind a held stream"),
        Ceiling.QUEUED_LAUNCH: (empty.queued_ns, f"each of {many} queued empty kernels"),
        Ceiling.GRAPH_NODE: (empty.graph_node_ns, f"each of {many} empty kernels in a CUDA graph"),
        Ceiling.EVENT_OVERHEAD: (
            device.event_overhead_ns,
            f"{_ADDED}; the median kernel; taken off every device time of cuda_events",
        ),
        Ceiling.EVENT_UNCERTAINTY: (
            device.event_uncertainty_ns,
            f"{_ADDED}; the largest distance of a kernel from event_overhead",
        ),
    }
    # The difference of two medians may be zero or negative; a ceiling must be positive.
    return [
        _row(device, name, max(value_ns, 1.0) / 1000, "us", f"{method}, {_MEDIAN}") for name, (value_ns, method) in how.items()
    ]


def _row(device: CudaDevice, name: str, value: float, unit: str, method: str) -> dict[str, Any]:
    return {"name": name, "device": f"cuda:{device.index}", "value": value, "unit": unit, "method": method}
