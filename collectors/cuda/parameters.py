"""The parameters of a compiled kernel, against the arguments of its launches. A driver that gets too few reads past their end."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from warpladder.collectors.cuda.compiler import CompiledModule
from warpladder.data.words import counted
from warpladder.workloads.api import Launch, TensorMap, WorkloadError
from warpladder.workloads.declare.launches import PeerMemory

_POINTER_BYTES: Final = 8
_TENSOR_MAP_BYTES: Final = 128
_PEER_MEMORY_BYTES: Final = 72
_KINDS: Final = {"f": "a floating-point number", "u": "an integer or a pointer", "": "a value"}
#: Type of a parameter in PTX, such as `.u32`, and its elements where it is a structure. Source: PTX ISA, Kernel Function Parameters.
_PARAMETER: Final = re.compile(r"\.([busf])(\d+)\b[^\[]*(?:\[(\d+)\])?")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, or an argument for one.

    Attributes:
        nbytes: its size.
        kind: `f` of a floating-point number, `u` of an integer or a pointer; empty for what may hold either.
    """

    nbytes: int
    kind: str = ""

    def takes(self, other: "Parameter") -> bool:
        """Whether an argument fits."""
        return self.nbytes == other.nbytes and (not self.kind or not other.kind or self.kind == other.kind)

    def __str__(self) -> str:
        return f"{_KINDS[self.kind]} of {self.nbytes} bytes"


def parameters(ptx: str, symbol: str) -> tuple[Parameter, ...] | None:
    """The parameters of a kernel in the PTX of its module; None if the kernel is not there."""
    found = re.search(rf"\.entry\s+{re.escape(symbol)}\s*(?:\(([^)]*)\))?", ptx)
    if found is None:
        return None
    return tuple(_parameter(each) for each in (found[1] or "").split(",") if each.strip())


def _parameter(declared: str) -> Parameter:
    kind, bits, elements = _PARAMETER.search(declared).groups()  # type: ignore[union-attr]
    return Parameter(int(bits) // 8 * int(elements or 1), {"f": "f", "b": ""}.get(kind, "u"))


def check(launches: Iterable[Launch], module: CompiledModule) -> None:
    """Refuse launches whose arguments are not those that their kernels take. Raises WorkloadError."""
    for launch in launches:
        takes = parameters(module.ptx, module.kernels[launch.kernel].symbol)
        if takes is None:
            continue
        gets = [(_name(value), _argument(value)) for value in launch.args]
        if len(takes) != len(gets):
            named = ", ".join(name for name, _ in gets) or "none"
            counts = (
                f"has {counted(len(takes), 'parameter')}, and the launch gives it {counted(len(gets), 'argument')} ({named})"
            )
            raise WorkloadError(f"{launch.kernel} {counts}; name one for each parameter in args")
        for number, (parameter, (name, argument)) in enumerate(zip(takes, gets, strict=True), 1):
            if not parameter.takes(argument):
                wrong = f"parameter {number} is {parameter}, and args gives it {name}, {argument}"
                raise WorkloadError(f"{launch.kernel}: {wrong}; name the arguments in the kernel's order, with its types")


def _argument(value: Any) -> Parameter:
    if isinstance(value, TensorMap):
        return Parameter(_TENSOR_MAP_BYTES)
    if isinstance(value, PeerMemory):
        return Parameter(_PEER_MEMORY_BYTES)
    if isinstance(value, np.ndarray):  # a structure
        return Parameter(value.nbytes)
    if isinstance(value, np.generic):
        return Parameter(value.dtype.itemsize, {"f": "f", "i": "u", "u": "u", "b": "u"}.get(value.dtype.kind, ""))
    return Parameter(_POINTER_BYTES, "u")


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value
    return getattr(value, "buffer", None) or repr(value)
