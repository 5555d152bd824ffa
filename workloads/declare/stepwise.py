"""The steps that a call from Python takes before it can be made: import, compilation, load, hand-over of the arrays.

A library variant whose `prepare` is a `Stepwise` class runs them all at once. A collector can run them one by one in a fresh process,
and time each.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from warpladder.workloads.declare.cases import Array, Buffers, Case


@dataclass(frozen=True)
class HandOver:
    """How the arrays of a case came to a route.

    Attributes:
        zero_copy: the route works on the memory of the arrays themselves: every address is the same.
        interface: what tells it the address, e.g. `DLPack`.
    """

    zero_copy: bool
    interface: str


class Stepwise(ABC):
    """A route from Python to a kernel. An instance is the function that enqueues one operation on the current stream.

    Given as `prepare` of a `LibraryVariant`, the class is called with the case, the inputs and the outputs, and goes through all
    steps. Called with the case alone, it leaves the steps to the caller, who makes them in this order: `start`, `compile`, `load`, `take`.

    Attributes:
        case: the case.
        handed_over: how the arrays came to the route; None before `take`.
        interface: what tells the route the address of an array.
        caches: variables of the environment that name the folders of its compiled code; empty if it keeps none on disk.
    """

    interface: ClassVar[str]
    caches: ClassVar[tuple[str, ...]] = ()

    def __init__(self, case: Case, inputs: Buffers | None = None, outputs: Buffers | None = None) -> None:
        self.case = case
        self.handed_over: HandOver | None = None
        self._enqueue: Callable[[], object] | None = None
        if inputs is not None and outputs is not None:
            self.start()
            self.compile()
            self.load()
            self.take(inputs, outputs)

    @abstractmethod
    def start(self) -> None:
        """Import what the route needs. Raises NotInstalled."""

    @abstractmethod
    def compile(self) -> None:
        """Compile the kernel, or find it in the cache on disk. A route that does both in one also loads it here."""

    def load(self) -> None:  # noqa: B027
        """Load the compiled code. A route that loads in `compile`, or at the first launch, leaves this out."""

    @abstractmethod
    def hand_over(self, array: Array) -> Any:
        """The object that stands for a CuPy array in the route's calls."""

    @abstractmethod
    def address_of(self, handle: Any) -> int:
        """The address in device memory of what `hand_over` gave."""

    @abstractmethod
    def bind(self, handles: Mapping[str, Any]) -> Callable[[], object]:
        """A function that enqueues one operation on CuPy's current stream. `handles`: inputs and outputs by name, as
        `hand_over` gave them."""

    @property
    def loads(self) -> bool:
        """Whether loading is a separate step."""
        return type(self).load is not Stepwise.load

    def take(self, inputs: Buffers, outputs: Buffers) -> None:
        """Take over the arrays and the current stream, so that the instance can be called."""
        arrays = {**inputs, **outputs}
        handles = {name: self.hand_over(array) for name, array in arrays.items()}
        same = all(self.address_of(handles[name]) == array.data.ptr for name, array in arrays.items())
        self.handed_over = HandOver(same, self.interface)
        self._enqueue = self.bind(handles)

    def __call__(self) -> None:
        assert self._enqueue is not None, "call `take` first"
        self._enqueue()
