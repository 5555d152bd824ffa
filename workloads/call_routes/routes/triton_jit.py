"""Triton."""

from collections.abc import Callable
from typing import Any

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Array
from warpladder.workloads.call_routes.routes.route import Route


class TritonJit(Route):
    """The same tile in Triton's language, on PyTorch's tensors.

    Idea: A program a tile, without threads: the compiler lays out the exchange through shared memory itself.
    Bottleneck: Each launch looks up the compiled kernel by the types, the values and the alignment of its arguments.
    Next: The compiled kernel called by itself, or a CUDA graph.
    Source: triton.jit; its `warmup` compiles without a launch.
    """

    interface = "DLPack"
    caches = ("TRITON_CACHE_DIR",)

    def start(self) -> None:
        import torch

        from warpladder.workloads.call_routes.routes import triton_kernel

        self._torch, self._written = torch, triton_kernel

    def compile(self) -> None:
        # Warmed up with the types and sizes of the case: Triton compiles anew for sizes of another divisibility.
        pointer = self._torch.float32
        tile = self._written.TILE
        self._compiled = self._written.transpose.warmup(pointer, pointer, self.height, self.width, TILE=tile, grid=self.grid)

    def load(self) -> None:
        self._compiled._init_handles()  # as Triton's tutorial on the fused softmax does

    def hand_over(self, array: Array) -> Any:
        return torch_bridge.as_tensor(array)

    def address_of(self, handle: Any) -> int:
        return int(handle.data_ptr())

    def launcher(self, x: Any, y: Any) -> Callable[[], object]:
        torch_bridge.use_current_stream()
        configured, height, width, tile = self._written.transpose[self.grid], self.height, self.width, self._written.TILE
        return lambda: configured(x, y, height, width, TILE=tile)
