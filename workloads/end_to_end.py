"""How an operation that starts and ends in host memory copies its inputs and outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from warpladder.workloads.cases import Case, Params, Part


def _whole(case: Case, config: Params) -> Sequence[Part]:
    return [Part(case, 0)]


@dataclass(frozen=True)
class Pageable:
    """From and to ordinary host memory, before and after the kernels."""

    transfer: ClassVar = "pageable"


@dataclass(frozen=True)
class Pinned:
    """The same with page-locked host memory, which the device reads and writes directly."""

    transfer: ClassVar = "pinned"


@dataclass(frozen=True)
class Overlapped:
    """From and to page-locked memory, in streams beside the kernels. A kernel waits only for the inputs that it names.

    The outputs of a part leave as soon as its kernels are done.

    Attributes:
        parts: the parts of a case, in order; by default one part, which is the case. A part uses the beginning of the scratch of the
            whole case, in the shape that its own case asks for.
        streams: streams of kernels that the parts take in turn. With two, kernels of one part fill the multiprocessors that the last
            blocks of another part leave idle. Each stream has scratch of its own, except for scratch that launches with `once` take and
            that is not `zeroed`.
        gathered: inputs that are the same on all ranks that share the case. Each rank copies a piece of them from its host, and NCCL
            gathers the other pieces: links between GPUs are wider than those to the host.
        together_bytes: inputs of at most so many bytes are copied whole, in one copy before all others. A copy takes some µs,
            however small it is, and the first kernels often wait for several small inputs. 0 copies each input by itself.
    """

    parts: Callable[[Case, Params], Sequence[Part]] = _whole
    streams: int = 1
    gathered: tuple[str, ...] = ()
    together_bytes: int = 0
    transfer: ClassVar = "overlapped"


EndToEnd: TypeAlias = Pageable | Pinned | Overlapped
