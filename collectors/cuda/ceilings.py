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
from warpladder.collectors.cuda.launch import bind, load
from warpladder.collectors.host.host_clock import durations_ns
from warpladder.data.names import Ceiling
from warpladder.workloads.api import Constants, CudaVariant, Launch
from warpladder.workloads.launches import ALIGNMENT_BYTES, WARPGROUP_THREADS

_KERNELS: Final = Path(__file__).parent / "kernels"
_MEDIAN: Final = f"median of {REPETITIONS}"
_ADDED: Final = "two events around one kernel of a known length up to 8 us, less its time as a node of a CUDA graph"
_TRANSFER_BYTES: Final = 1 << 28
_FMA_STEPS: Final = 4000
_TENSOR_CORES_TF32: Final = (8, 0)
_OF_WGMMA: Final = Constants(_KERNELS / "wgmma_ceiling.cu")
_TRANSFERS: Final = (
    (Ceiling.H2D_PAGEABLE, "pageable"),
    (Ceiling.D2H_PAGEABLE, "pageable"),
    (Ceiling.H2D_PINNED, "pinned"),
    (Ceiling.D2H_PINNED, "pinned"),
)


def cuda_ceilings(device: CudaDevice) -> list[dict[str, Any]]:
    """Rows of `ceilings` for the device, but for its memory: TFLOP/s, GB/s and us."""
    variant = CudaVariant("ceilings", "ceilings", "ceiling", source=_KERNELS / "ceilings.cu", constants={"multipliers": ""})
    names = ["ceiling_fma_uniform", "ceiling_fma_registers"]
    if device.compute_capability >= _TENSOR_CORES_TF32:
        names.append("ceiling_mma_tf32")
    kernels = load(compile_variant(variant, names, device.arch))
    rates = [*_rates(device, kernels), *([_wgmma_rate(device)] if device.arch == "sm_90" else [])]
    return [*rates, *_transfers(device), *_launches(device)]


def _rates(device: CudaDevice, kernels: dict[str, Any]) -> list[dict[str, Any]]:
    values = cupy.asarray(np.random.default_rng(0).standard_normal(1 << 16), cupy.float32)
    never = cupy.empty(1 << 10, cupy.float32)
    device.stream.synchronize()
    runtime.memcpy(kernels["multipliers"], values.data.ptr, 100, runtime.memcpyDeviceToDevice)
    blocks = 4 * device.sm_count
    # kernel -> ceiling, threads per block, operations per thread and step, method
    kinds = {
        "ceiling_fma_uniform": (Ceiling.FP32_FMA, 256, 512, "FFMA, one operand in uniform registers"),
        "ceiling_fma_registers": (Ceiling.FP32_FMA_REGISTERS, 256, 512, "FFMA, all operands in registers"),
        "ceiling_mma_tf32": (Ceiling.TF32_MMA, 128, 2 * 16 * 8 * 8 * 32 // 32, "mma.sync m16n8k8"),
    }
    rows = []
    for kernel, (name, threads, operations, how) in kinds.items():
        if kernel not in kernels:
            continue
        arguments = (values, never, np.int32(_FMA_STEPS))
        duration_ns = device.median_ns(partial(kernels[kernel], (blocks,), (threads,), arguments))
        rate = blocks * threads * operations * _FMA_STEPS / duration_ns / 1000
        rows.append(_row(device, name, rate, "TFLOP/s", f"{how}, {blocks} blocks of {threads} threads, {_MEDIAN}"))
    return rows


def _wgmma_rate(device: CudaDevice) -> dict[str, Any]:
    """Measure the tensor rate of `wgmma`, which is higher than the rate of `mma.sync` on Hopper."""
    rows, columns, depth = (_OF_WGMMA[name] for name in ("kRows", "kColumns", "kDepth"))
    threads = 2 * WARPGROUP_THREADS
    variant = CudaVariant("wgmma", "wgmma", "ceiling", source=_KERNELS / "wgmma_ceiling.cu", only_architecture="sm_90a")
    operands = (2 * rows + columns) * depth
    buffers = {
        "in": cupy.asarray(np.random.default_rng(0).standard_normal(operands), cupy.float32),
        "never": cupy.empty(threads, cupy.float32),
    }
    name, grid = "ceiling_wgmma_tf32", (device.sm_count, 1, 1)
    launch = Launch(name, grid, (threads, 1, 1), ("in", "never", np.int32(_FMA_STEPS)), 4 * operands + ALIGNMENT_BYTES)
    duration_ns = device.median_ns(bind(launch, load(compile_variant(variant, [name], device.arch))[name], buffers))
    rate = device.sm_count * 2 * (2 * rows * columns * depth) * _FMA_STEPS / duration_ns / 1000
    method = f"wgmma m64n256k8 by two warpgroups a block, operands in shared memory, {device.sm_count} blocks, {_MEDIAN}"
    return _row(device, Ceiling.TF32_WGMMA, rate, "TFLOP/s", method)


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
    empty, events, many = device.empty_kernels, device.event_overhead, EMPTY_KERNELS
    how = {
        Ceiling.LAUNCH: (empty.one_ns, "one empty kernel between two events, queued behind a held stream"),
        Ceiling.QUEUED_LAUNCH: (empty.queued_ns, f"each of {many} queued empty kernels"),
        Ceiling.GRAPH_NODE: (empty.graph_node_ns, f"each of {many} empty kernels in a CUDA graph"),
        Ceiling.EVENT_OVERHEAD: (events.ns, f"{_ADDED}; the median kernel; taken off every device time of cuda_events"),
        Ceiling.EVENT_UNCERTAINTY: (events.uncertainty_ns, f"{_ADDED}; the largest distance of a kernel from event_overhead"),
    }
    # The difference of two medians may be zero or negative; a ceiling must be positive.
    return [
        _row(device, name, max(value_ns, 1.0) / 1000, "us", f"{method}, {_MEDIAN}") for name, (value_ns, method) in how.items()
    ]


def _row(device: CudaDevice, name: str, value: float, unit: str, method: str) -> dict[str, Any]:
    return {"name": name, "device": f"cuda:{device.index}", "value": value, "unit": unit, "method": method}
