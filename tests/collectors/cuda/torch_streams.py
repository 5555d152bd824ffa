"""A workload whose PyTorch variants take the timed stream, or do not; for the tests of what is said of that on a GPU."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Buffer, Case, LibraryVariant, Workload

Enqueue = Callable[[], Any]


def _tensors(inputs: Any, outputs: Any) -> tuple[Any, Any]:
    return torch_bridge.as_tensor(inputs["x"]), torch_bridge.as_tensor(outputs["y"])


def uses_current_stream(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    import torch

    torch_bridge.use_current_stream()
    x, y = _tensors(inputs, outputs)

    def run() -> None:
        torch.mul(x, 2, out=y)

    return run


def returns_its_own(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    import cupy
    import torch

    torch_bridge.use_current_stream()
    x, _ = _tensors(inputs, outputs)
    return lambda: {"y": cupy.from_dlpack(torch.mul(x, 2))}


def joins_its_own_stream(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    import torch

    torch_bridge.use_current_stream()
    x, y = _tensors(inputs, outputs)
    timed, own = torch.cuda.current_stream(), torch.cuda.Stream()

    def run() -> None:
        own.wait_stream(timed)
        with torch.cuda.stream(own):
            torch.mul(x, 2, out=y)
        timed.wait_stream(own)

    return run


def takes_no_stream(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    import torch

    x, y = _tensors(inputs, outputs)

    def run() -> None:
        torch.mul(x, 2, out=y)

    return run


def takes_no_stream_and_returns_its_own(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    import cupy
    import torch

    x, _ = _tensors(inputs, outputs)
    return lambda: {"y": cupy.from_dlpack(torch.mul(x, 2))}


def takes_no_stream_in_a_graph(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    return takes_no_stream(case, inputs, outputs)


def waits_for_none(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    """The timed stream waits for its own, which waits for nothing."""
    import torch

    torch_bridge.use_current_stream()
    x, y = _tensors(inputs, outputs)
    timed, own = torch.cuda.current_stream(), torch.cuda.Stream()

    def run() -> None:
        with torch.cuda.stream(own):
            torch.mul(x, 2, out=y)
        timed.wait_stream(own)

    return run


def is_not_waited_for(case: Case, inputs: Any, outputs: Any) -> Enqueue:
    """Its own stream waits for the timed one, which does not wait for it."""
    import torch

    torch_bridge.use_current_stream()
    x, y = _tensors(inputs, outputs)
    timed, own = torch.cuda.current_stream(), torch.cuda.Stream()

    def run() -> None:
        own.wait_stream(timed)
        with torch.cuda.stream(own):
            torch.mul(x, 2, out=y)

    return run


def library(prepare: Callable[..., Enqueue], **options: Any) -> LibraryVariant:
    return LibraryVariant(prepare.__name__, prepare.__name__, "peer", requires=("torch",), prepare=prepare, **options)


HONEST: Final = {"uses_current_stream", "returns_its_own", "joins_its_own_stream"}
_ELSEWHERE = "its work is not on the timed stream: output y is written while that stream is held; "
_CALL = "call warpladder.workloads.torch_bridge.use_current_stream() in `prepare`"
_JOIN = "let your own stream wait for it first"
#: What the verdict says of the others, in pieces.
FAULTS: Final = {
    "takes_no_stream": (_ELSEWHERE, _CALL),
    "takes_no_stream_and_returns_its_own": (_ELSEWHERE, _CALL),
    "takes_no_stream_in_a_graph": (_ELSEWHERE, _CALL),
    "waits_for_none": (_ELSEWHERE, _JOIN),
    "is_not_waited_for": ("its work is not all on the timed stream: output y is written after that stream is done; ", _JOIN),
}

SIZES: Final = (1 << 24, 1001)
WORKLOAD = Workload(
    name="torch_streams",
    title="Doubling by PyTorch",
    cases=tuple(Case({"n": n}, flops=n, min_bytes=8 * n, sets=("quick",), size_rank=n) for n in SIZES),
    variants=(
        library(takes_no_stream),  # before and after one that does: no variant depends on another
        library(uses_current_stream),
        library(waits_for_none),
        library(is_not_waited_for),
        library(takes_no_stream_and_returns_its_own),
        library(returns_its_own),
        library(takes_no_stream_in_a_graph, graph=True),
        library(joins_its_own_stream),
    ),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    baseline="uses_current_stream",
)
