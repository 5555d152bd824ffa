"""Routes to a matrix product."""

from collections.abc import Callable

from benchmarks.peers.routes import AUTOTUNED, searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA
from warpladder.workloads.torch_bridge import COMPILER


def compiled(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """PyTorch's compiler, which may take a Triton kernel of its own for the product."""
    return _compiled(inputs, outputs, mode, allow_tf32=False)


def compiled_tf32(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed."""
    return _compiled(inputs, outputs, mode, allow_tf32=True)


def _compiled(inputs: Buffers, outputs: Buffers, mode: str, *, allow_tf32: bool) -> Callable[[], None]:
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    a, b, c, d = (torch_bridge.as_tensor(array) for array in (inputs["a"], inputs["b"], inputs["c"], outputs["d"]))
    product = lambda: d.copy_(torch.addmm(c, b, a, beta=BETA, alpha=ALPHA))  # noqa: E731 -- arrays of columns: D^T = B^T A^T
    with torch_bridge.compile_mode(mode):
        return torch_bridge.compile_for_graph(product, allow_tf32=allow_tf32)


def cupy_products(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """CuPy's product, with a kernel after it that adds C."""
    import cupy

    add = cupy.ElementwiseKernel("float32 c", "float32 d", f"d = {ALPHA}f * d + {BETA}f * c", "scaled_sum")
    a, b, c, d = inputs["a"], inputs["b"], inputs["c"], outputs["d"]

    def operation() -> None:
        cupy.matmul(b, a, out=d)
        add(c, d)

    return operation


_MODES = ({"mode": "default"}, *AUTOTUNED)
WORKLOAD = searched(
    "mlp_gemm",
    LibraryVariant("torch_compile", "torch.compile", "peer", "fp32", _MODES, requires=COMPILER, prepare=compiled, graph=True),
    LibraryVariant(
        "torch_compile_tf32",
        "torch.compile, TF32",
        "peer",
        "tf32",
        _MODES,
        requires=COMPILER,
        prepare=compiled_tf32,
        graph=True,
    ),
    LibraryVariant("cupy", "CuPy matmul", "peer", "fp32", requires=("cupy",), prepare=cupy_products),
)
