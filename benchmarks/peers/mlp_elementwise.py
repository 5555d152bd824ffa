"""Routes to element-wise operations and reductions."""

from collections.abc import Callable

from benchmarks.peers.routes import searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.mlp_elementwise.problem import operation_of


def cupy_functions(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], object]:
    """CuPy's functions of the same names. A matrix is an array of its columns."""
    import cupy
    from cupyx.scipy.special import expit, softmax

    x, y, w = inputs["x"], outputs["y"], inputs.get("w")
    into: dict[str, Callable[[], object]] = {
        "transpose": lambda: cupy.copyto(y, x.T),
        "subtract": lambda: cupy.subtract(x, w, out=y),
        "multiply": lambda: cupy.multiply(x, w, out=y),
        "column_sum": lambda: cupy.sum(x, axis=-1, out=y),
        "sigmoid": lambda: expit(x, out=y),
    }
    if (operation := operation_of(case)) == "softmax":
        return lambda: {"y": softmax(x, axis=-1)}

    def call() -> None:
        into[operation]()

    return call


WORKLOAD = searched(
    "mlp_elementwise", LibraryVariant("cupy", "CuPy", "peer", "fp32", requires=("cupy", "cupyx"), prepare=cupy_functions)
)
