"""Routes to a convolution layer."""

from collections.abc import Callable

from benchmarks.peers.routes import AUTOTUNED, searched
from warpladder.workloads.api import Buffers, Case, LibraryVariant
from warpladder.workloads.torch_bridge import COMPILER


def compiled(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """PyTorch's compiler, which may take a Triton kernel of its own for the convolution."""
    return _compiled(inputs, outputs, mode, allow_tf32=False)


def compiled_tf32(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Callable[[], None]:
    """The same with TensorFloat-32 allowed."""
    return _compiled(inputs, outputs, mode, allow_tf32=True)


def _compiled(inputs: Buffers, outputs: Buffers, mode: str, *, allow_tf32: bool) -> Callable[[], None]:
    from torch.nn import functional

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    images, filters, result = (torch_bridge.as_tensor(array) for array in (inputs["x"], inputs["k"], outputs["y"]))
    layer = lambda: result.copy_(functional.conv2d(images, filters))  # noqa: E731
    with torch_bridge.compile_mode(mode):
        return torch_bridge.compile_for_graph(layer, allow_tf32=allow_tf32)


_MODES = ({"mode": "default"}, *AUTOTUNED)
WORKLOAD = searched(
    "cnn_conv",
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
)
