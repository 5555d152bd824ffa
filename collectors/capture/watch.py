"""Takes the arguments of one launch of each kernel, before and after it, and finds what the kernel writes."""

import keyword
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np

#: What memory is filled with before a launch is made again: a kernel that writes all of it leaves nothing of this.
_POISON: Final = 0xFF


#: Names that a benchmark uses itself.
_TAKEN: Final = frozenset(
    {"launch", "rng", "stream", "out", "np", "bench", "kept", "kernel", "warpladder", "torch", "cuda", "cupy", "result"}
)


def free_name(name: str) -> str:
    """A name for an argument that neither a benchmark nor Python uses itself."""
    return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name


class Memory(Protocol):
    """The memory that an argument points to, in one dimension.

    Attributes:
        kind: its type, such as `float32` or `bfloat16`.
        shape: of the argument; of the memory in one dimension where its elements do not lie side by side.
        start: its address.
    """

    kind: str
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Its size."""
        ...

    def read(self) -> np.ndarray:
        """A copy of its bytes on the host, as `uint8`."""
        ...

    def write(self, data: np.ndarray) -> None:
        """Fill it with the bytes of `read`."""
        ...


def three_extents(extents: Sequence[int] | int) -> tuple[int, ...]:
    """The extents of a grid or block in three dimensions."""
    every = tuple(map(int, extents)) if isinstance(extents, Sequence) else (int(extents),)
    return (*every, 1, 1)[:3]


def place(memory: dict[str, Memory], name: str, added: Memory) -> str:
    """Add memory under a name. Returns the name that it has: that of an argument before, if the same array is given twice."""
    for known, other in memory.items():
        if (other.start, other.nbytes, other.kind, other.shape) == (added.start, added.nbytes, added.kind, added.shape):
            return known
    memory[name] = added
    return name


@dataclass(frozen=True)
class Array:
    """An argument that points to memory.

    Attributes:
        before, after: its bytes; `after` is None where the kernel leaves them as they are.
        is_read: the kernel reads what it changes, or leaves some of it.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray | None
    is_read: bool


@dataclass(frozen=True)
class Kernel:
    """A kernel with the arguments of one launch.

    Attributes:
        source: the text that is compiled: CUDA C++, or PTX.
        suffix: `cu` or `ptx`.
        symbol: the name in that text.
        arguments: a name of `arrays`, or a NumPy scalar, in the order of the kernel.
        python: source in Python that can be edited and launched, and how it is launched; empty where there is none.
    """

    tool: str
    name: str
    number: int
    source: str
    suffix: str
    symbol: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    options: tuple[str, ...]
    arguments: tuple[str | np.generic, ...]
    arrays: tuple[Array, ...]
    python: str = ""
    call: str = ""

    @property
    def files(self) -> dict[str, str]:
        """The texts to keep, by file name."""
        return {f"kernel.{self.suffix}": self.source} | ({"kernel.py": self.python} if self.python else {})


@dataclass(frozen=True)
class Operator:
    """An operator of an extension of PyTorch, with the arguments of one call.

    Attributes:
        arrays: the tensors among the arguments, and behind them those that are returned.
        files: sources and headers, by path.
        build: the call of `torch.utils.cpp_extension` that builds them, with `FOLDER` for their folder.
        call: the operator with its arguments.
        returned: how each returned tensor is found in `result`, by the names of `arrays`.
    """

    name: str
    number: int
    arrays: tuple[Array, ...]
    files: Mapping[str, str]
    build: str
    call: str
    returned: Mapping[str, str]


class Refused(Exception):
    """A launch that cannot be kept. The message says why."""


@dataclass
class Watch:
    """Counts launches, and keeps one of each kernel.

    Attributes:
        pattern: of the names that are kept.
        number: which launch is kept, from 1 on.
        most_bytes: of the arguments of a launch.
        muted: launches do not count, since an autotuner tries kernels.
    """

    pattern: re.Pattern[str]
    number: int = 1
    most_bytes: int = 1 << 28
    muted: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    kept: list[Kernel | Operator] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def wants(self, name: str) -> bool:
        """Count a launch, and whether it is the one to keep."""
        if self.muted or not self.pattern.search(name):
            return False
        self.counts[name] += 1
        return self.counts[name] == self.number

    def take(
        self,
        memory: Mapping[str, Memory],
        launch: Callable[[], Any],
        wait: Callable[[], object],
        kernel: Callable[[Any, tuple[Array, ...]], Kernel | Operator],
        name: str,
    ) -> Any:
        """Make a launch, and keep it. A launch that cannot be kept is made all the same. Returns what it returns.

        Args:
            memory: of the arguments that point to some, by their names.
            wait: waits for all work of the GPU.
            kernel: makes the kernel of what the launch returns and the arrays.
        """
        try:
            self._check(memory)
        except Refused as why:
            self.refused[name] = str(why)
            return launch()

        def read() -> dict[str, np.ndarray]:
            wait()
            return {each: there.read() for each, there in memory.items()}

        before = read()
        answer = launch()
        after = read()
        changed = [each for each in memory if not np.array_equal(before[each], after[each])]
        is_read = self._read(memory, launch, wait, after, changed)
        arrays = tuple(
            Array(each, there.kind, there.shape, before[each], after[each] if each in changed else None, each in is_read)
            for each, there in memory.items()
        )
        try:
            taken = kernel(answer, arrays)
            if all(array.after is None for array in taken.arrays):
                raise Refused(
                    "it changes none of its arguments, or they had its results before; choose another launch with --launch"
                )
            self.kept.append(taken)
        except Refused as why:
            self.refused[name] = str(why)
        return answer

    def _check(self, memory: Mapping[str, Memory]) -> None:
        if (total := sum(there.nbytes for there in memory.values())) > self.most_bytes:
            raise Refused(f"its arguments have {total:,} bytes; --most-bytes allows {self.most_bytes:,}")
        spans = sorted((there.start, there.start + there.nbytes, name) for name, there in memory.items())
        for (_, end, first), (start, _, second) in pairwise(spans):
            if start < end:
                raise Refused(f"its arguments {first} and {second} overlap in memory")

    @staticmethod
    def _read(
        memory: Mapping[str, Memory],
        launch: Callable[[], Any],
        wait: Callable[[], object],
        after: Mapping[str, np.ndarray],
        changed: list[str],
    ) -> set[str]:
        """What the kernel reads of what it changes: a launch with other contents there gives other results. The contents stay as after."""
        if not changed:
            return set()
        for name in changed:
            memory[name].write(np.full(len(after[name]), _POISON, np.uint8))
        launch()
        wait()
        is_read = {name for name in changed if not np.array_equal(memory[name].read(), after[name])}
        for name in changed:
            memory[name].write(after[name])
        return is_read
