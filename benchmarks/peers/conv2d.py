"""Routes to a convolution of one image."""

from collections.abc import Callable
from functools import reduce

from benchmarks.peers.routes import AUTOTUNED, searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.conv2d.host import RADIUS, SIZE
from warpladder.workloads.torch_bridge import COMPILER


def sum_of_shifts(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """Sum of 25 shifted images, each times its weight: PyTorch's compiler makes one kernel of it."""
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    image, weights, result = (torch_bridge.as_tensor(array) for array in (inputs["b"], inputs["a"], outputs["c"]))
    height, width = image.shape

    def convolve() -> None:
        padded = functional.pad(image, (RADIUS,) * 4)
        terms = (
            weights[row, column] * padded[row : row + height, column : column + width]
            for row in range(SIZE)
            for column in range(SIZE)
        )
        result.copy_(reduce(lambda total, term: total + term, terms))

    with torch_bridge.compile_mode(mode):
        return torch_bridge.compile_for_graph(convolve)


def cupy_signal(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], Buffers]:
    """CuPy's correlation of signals."""
    from cupyx.scipy.signal import correlate2d

    a, b = inputs["a"], inputs["b"]
    return lambda: {"c": correlate2d(b, a, mode="same")}


WORKLOAD = searched(
    "conv2d",
    LibraryVariant(
        *("torch_compile", "torch.compile, sum of shifts", "peer", "fp32", ({"mode": "default"}, *AUTOTUNED)),
        requires=COMPILER,
        prepare=sum_of_shifts,
        graph=True,
    ),
    LibraryVariant("cupy_signal", "CuPy correlate2d", "peer", "fp32", requires=("cupyx",), prepare=cupy_signal),
)
