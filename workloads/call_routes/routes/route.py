"""Parts that the routes share: the kernel's text, its launch, and the calls in a row."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from warpladder.workloads.api import Array, Buffers, Case, read_source
from warpladder.workloads.call_routes.problem import calls_of, shape_of
from warpladder.workloads.call_routes.rungs import KERNEL, block, grid_of
from warpladder.workloads.declare.stepwise import Stepwise


class Route(Stepwise):
    """A route to the transposition. Everything that can be prepared once is prepared once; a call is one launch.

    Attributes:
        height, width: extents of the input.
        grid, block: of the launch.
    """

    def __init__(self, case: Case, inputs: Buffers | None = None, outputs: Buffers | None = None) -> None:
        self.height, self.width = shape_of(case)
        self.grid, self.block = grid_of(case), block()
        super().__init__(case, inputs, outputs)

    @abstractmethod
    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        """A function that launches the kernel once on CuPy's current stream.

        Args:
            x, y: input and output, as `hand_over` gave them.
        """

    def bind(self, handles: Mapping[str, Any]) -> Callable[[], object]:
        launch, calls = self.launcher(handles["x"], handles["y"]), calls_of(self.case)
        if calls == 1:
            return launch

        def in_a_row() -> None:
            for _ in range(calls):
                launch()

        return in_a_row


def kernel_text() -> str:
    """The one text of the kernel, in CUDA C++."""
    return read_source(KERNEL)


def address_by_interface(array: Array) -> int:
    """The address that an array gives by `__cuda_array_interface__`, for routes that take a number."""
    address: int = array.__cuda_array_interface__["data"][0]
    return address


def current_stream() -> int:
    """The address of the stream that CuPy enqueues on."""
    import cupy

    stream: int = cupy.cuda.get_current_stream().ptr
    return stream
