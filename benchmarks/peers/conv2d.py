"""Routes to a convolution of one image."""

from collections.abc import Callable
from functools import reduce

from benchmarks.peers.routes import compiled_routes, searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.conv2d.host import RADIUS, SIZE


def sum_of_shifts(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], object]:
    """Sum of 25 shifted images, each times its weight: PyTorch's compiler makes one kernel of it."""
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    image, weights, result = (torch_bridge.as_tensor(array) for array in (inputs["b"], inputs["a"], outputs["c"]))
    height, width = image.shape

    def convolve() -> object:
        padded = functional.pad(image, (RADIUS,) * 4)
        terms = (
            weights[row, column] * padded[row : row + height, column : column + width]
            for row in range(SIZE)
            for column in range(SIZE)
        )
        return result.copy_(reduce(lambda total, term: total + term, terms))

    return convolve


def cupy_signal(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], Buffers]:
    """CuPy's correlation of signals."""
    from cupyx.scipy.signal import correlate2d

    a, b = inputs["a"], inputs["b"]
    return lambda: {"c": correlate2d(b, a, mode="same")}


WORKLOAD = searched(
    "conv2d",
    *compiled_routes(sum_of_shifts, "fp32"),
    LibraryVariant("cupy_signal", "CuPy correlate2d", "peer", "fp32", requires=("cupyx",), prepare=cupy_signal),
)
