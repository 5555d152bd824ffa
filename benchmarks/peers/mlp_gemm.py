"""Routes to a matrix product."""

from collections.abc import Callable

from benchmarks.peers.routes import compiled_routes, searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA


def product(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], object]:
    """PyTorch's product, for which its compiler may take a Triton kernel of its own."""
    import torch

    from warpladder.workloads import torch_bridge

    a, b, c, d = (torch_bridge.as_tensor(array) for array in (inputs["a"], inputs["b"], inputs["c"], outputs["d"]))
    return lambda: d.copy_(torch.addmm(c, b, a, beta=BETA, alpha=ALPHA))  # arrays of columns: D^T = B^T A^T


def cupy_products(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """CuPy's product, with a kernel after it that adds C."""
    import cupy

    add = cupy.ElementwiseKernel("float32 c", "float32 d", f"d = {ALPHA}f * d + {BETA}f * c", "scaled_sum")
    a, b, c, d = inputs["a"], inputs["b"], inputs["c"], outputs["d"]

    def operation() -> None:
        cupy.matmul(b, a, out=d)
        add(c, d)

    return operation


WORKLOAD = searched(
    "mlp_gemm",
    *compiled_routes(product, "fp32", "tf32"),
    LibraryVariant("cupy", "CuPy matmul", "peer", "fp32", requires=("cupy",), prepare=cupy_products),
)
