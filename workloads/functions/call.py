"""A function with its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpladder.workloads.api import Buffers


@dataclass(frozen=True)
class Call:
    """A function with its arguments.

    Attributes:
        run: calls it. It returns what the function returns, so that nothing is added to its time.
        outputs: turns that into the outputs by name, outside of the time. It gives None if the function wrote the bench's outputs.
            It raises WrongOutput.
        parts: parts of a call by name, in order, such as forward and backward. Each takes what the one before it returned.
        refresh: takes over inputs that changed since the call was made, for a library whose arrays are copies.
        captures: a CUDA graph can hold it. Gradients allocate in threads of PyTorch's own, where a graph does not keep the memory.
    """

    run: Callable[[], Any]
    outputs: Callable[[Any], Buffers | None]
    parts: tuple[tuple[str, Callable[..., Any]], ...] = ()
    captures: bool = True
    refresh: Callable[[], object] = lambda: None
