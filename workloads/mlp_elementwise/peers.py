"""PyTorch's functions of the same names, and CuPy's sum."""

from collections.abc import Callable
from functools import partial
from typing import Any

from warpladder.workloads.api import Buffers, Case, Params
from warpladder.workloads.mlp_elementwise.problem import operation_of


def torch_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """PyTorch's kernel for the operation, one call, into memory that is there already.

    Idea: What most people would call: `sub`, `mul`, `sum`, `sigmoid`, `softmax`, and `copy_` out of a transposed view.
    Bottleneck: Memory at large sizes, where its vectorised kernels come near the device's bandwidth; at 1000 x 1000 the launch.
        Its transposition is a general strided copy.
    Next: Several of these in one kernel, which is what a training step can do (workload mlp_training).
    Source: PyTorch, torch.ops.aten.
    """
    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    x, y = torch_bridge.as_tensor(inputs["x"]), torch_bridge.as_tensor(outputs["y"])
    w = torch_bridge.as_tensor(inputs["w"]) if "w" in inputs else None
    call = _call(operation_of(case), x, w, y)

    def operation() -> None:
        call()

    return operation


def _call(op: str, x: Any, w: Any, y: Any) -> Callable[[], Any]:
    """A matrix is an array of its columns, so that a column runs along the last dimension."""
    import torch

    aten = torch.ops.aten
    calls: dict[str, Callable[[], Any]] = {
        "transpose": partial(y.copy_, x.t()),
        "subtract": partial(torch.sub, x, w, out=y),
        "multiply": partial(torch.mul, x, w, out=y),
        "column_sum": partial(torch.sum, x, dim=-1, out=y),
        "sigmoid": partial(torch.sigmoid, x, out=y),
        "softmax": partial(aten._softmax.out, x, -1, False, out=y),
    }
    return calls[op]


def torch_compiled(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The Triton kernel that PyTorch's compiler writes for the operation, in a CUDA graph.

    Idea: One kernel for these shapes, reductions included. Python launches nothing.
    Bottleneck: Memory bandwidth at large sizes; at 1000 x 1000 the launch and the latency of one pass.
    Next: Several of these in one kernel, which is what a training step can do (workload mlp_training).
    Source: torch.compile, TorchInductor.
    """
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    x, y = torch_bridge.as_tensor(inputs["x"]), torch_bridge.as_tensor(outputs["y"])
    w = torch_bridge.as_tensor(inputs["w"]) if "w" in inputs else None
    results: dict[str, Callable[[], Any]] = {
        "transpose": lambda: x.t(),
        "subtract": lambda: x - w,
        "multiply": lambda: x * w,
        "column_sum": lambda: x.sum(-1),
        "sigmoid": lambda: torch.sigmoid(x),
        "softmax": lambda: torch.softmax(x, -1),
    }
    result = results[operation_of(case)]
    return torch_bridge.compile_for_graph(lambda: y.copy_(result()))


def torch_autotuned(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same in the mode `max-autotune`, whose compiler times more tiles.

    Idea: As `torch_compile`, with the fastest of several kernels.
    Bottleneck: As for `torch_compile`.
    Next: As for `torch_compile`.
    Source: torch.compile with mode="max-autotune-no-cudagraphs", TorchInductor.
    """
    from warpladder.workloads import torch_bridge

    with torch_bridge.compile_mode("max-autotune-no-cudagraphs"):
        return torch_compiled(case, inputs, outputs)


def cub_sum(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The sum of each column by CUB, NVIDIA's library of primitives, through CuPy.

    Idea: CuPy hands a sum along the last axis to CUB's segmented reduction.
    Bottleneck: Memory bandwidth at large sizes.
    Next: Parts of a column, so that more blocks read at a time.
    Source: cupy.sum with the accelerator cub, cub::DeviceSegmentedReduce.
    """
    x, y = inputs["x"], outputs["y"]

    def operation() -> None:
        x.sum(axis=-1, out=y)

    return operation


def sums_only(case: Case, config: Params) -> str | None:
    return None if operation_of(case) == "column_sum" else "CUB's reductions are for sums"
