"""Watches the launches of Numba's kernels for CUDA."""

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from warpladder.collectors.capture import python_source
from warpladder.collectors.capture.watch import Kernel, Memory, Refused, Watch, free_name, place

#: Types of scalars -> what a kernel gets of one.
_SCALARS: Final[Mapping[str, Callable[[Any], np.generic]]] = {
    "bool": np.uint8, "float16": lambda value: np.float16(value).view(np.uint16), "float32": np.float32, "float64": np.float64,
    **{f"{kind}{bits}": getattr(np, f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_PARTS_OF_COMPLEX: Final[Mapping[str, Callable[[Any], np.generic]]] = {"complex64": np.float32, "complex128": np.float64}


class OfNumba:
    """The memory of an array on the device or on the host, from its first element to its last.

    Raises:
        Refused: its elements are not numbers, or lie in reverse order.
    """

    def __init__(self, name: str, array: Any, cuda: ModuleType) -> None:
        on_device = getattr(array, "__cuda_array_interface__", None)
        interface = on_device or array.__array_interface__
        dtype, self.extents = np.dtype(interface["typestr"]), tuple(interface["shape"])
        if dtype.kind not in "biufc":
            raise Refused(f"its argument {name} has elements of type {dtype}")
        dense = tuple(dtype.itemsize * math.prod(self.extents[axis + 1 :]) for axis in range(len(self.extents)))
        self.strides = tuple(interface.get("strides") or dense)
        if min(self.strides, default=0) < 0:
            raise Refused(f"its argument {name} is a slice in reverse order")
        steps = sum((size - 1) * stride for size, stride in zip(self.extents, self.strides, strict=True))
        self.nbytes = steps + dtype.itemsize if math.prod(self.extents) else 0
        self.is_dense = self.strides == dense
        self.kind, self.itemsize = str(dtype), dtype.itemsize
        self.shape = (self.extents or (1,)) if self.is_dense else (self.nbytes // dtype.itemsize,)
        self.start = int(interface["data"][0] or 0)
        bytes_there = {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.start, False), "version": 3}
        self._device: Any = cuda.as_cuda_array(SimpleNamespace(__cuda_array_interface__=bytes_there)) if on_device else None
        self._host = None if on_device else array.ravel(order="K").view(np.uint8)

    def read(self) -> np.ndarray:
        """A copy on the host, as bytes."""
        copy: np.ndarray = self._host.copy() if self._host is not None else self._device.copy_to_host()
        return copy

    def write(self, data: np.ndarray) -> None:
        """Fill it with bytes."""
        if self._host is not None:
            self._host[...] = data
        else:
            self._device.copy_to_device(data)

    def words(self, name: str) -> Iterator[str | np.generic]:
        """What a kernel gets of it: two pointers that it does not use, elements, bytes of one, address, extents, strides."""
        yield from (np.uint64(0), np.uint64(0), np.int64(math.prod(self.extents)), np.int64(self.itemsize), name)
        yield from map(np.int64, (*self.extents, *self.strides))


def watch_numba(watch: Watch, dispatcher: ModuleType, cuda: ModuleType) -> None:
    """Put a function that watches in place of the one that every launch of a kernel goes through.

    Args:
        dispatcher: `numba.cuda.dispatcher`.
        cuda: `numba.cuda`.
    """
    run = dispatcher._Kernel.launch

    def watched(
        self: Any, args: Sequence[Any], griddim: Sequence[int], blockdim: Sequence[int], stream: Any = 0, sharedmem: int = 0
    ) -> None:
        def launch() -> None:
            run(self, args, griddim, blockdim, stream, sharedmem)

        name = _name_of(self)
        if not watch.wants(name):
            launch()
            return
        memory, words, call = dict[str, Memory](), list[str | np.generic](), list[str]()
        try:
            _check(self)
            for own, kind, value in zip(_parameters_of(self), self.argument_types, args, strict=True):
                call.append(_add(free_name(own), kind, value, memory, words, cuda))
        except Refused as why:
            watch.refused[name] = str(why)
            launch()
            return
        grid, block, shared = tuple(map(int, griddim)), tuple(map(int, blockdim)), int(sharedmem)

        def kernel(_: object, arrays: Any) -> Kernel:
            ptx = self.inspect_asm(None)
            if ".extern .func" in ptx:
                raise Refused("it is linked with other code")
            about = "Numba", name, watch.counts[name], ptx, "ptx", self.entry_name, grid, block, shared, ()
            launched = f"{name}[{grid}, {block}, stream, {shared}]({', '.join(call)})"
            is_dense = all(each.is_dense for each in memory.values() if isinstance(each, OfNumba))
            return Kernel(*about, tuple(words), arrays, _python_of(self) if is_dense else "", launched)

        watch.take(memory, launch, cuda.synchronize, kernel, name)

    dispatcher._Kernel.launch = watched


def _name_of(kernel: Any) -> str:
    """The name of its function. A kernel from Numba's cache has it in the name of its symbol only, such as `_ZN8__main__4axpyB2v1`."""
    if function := getattr(kernel, "py_func", None):
        return str(function.__name__)
    name, rest = kernel.entry_name, kernel.entry_name.removeprefix("_ZN")
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        name, rest = rest[length.end() : end], rest[end:]
    return str(name)


def _parameters_of(kernel: Any) -> list[str]:
    """The names of its parameters; `a0` and so on for a kernel from Numba's cache, or with `*args`."""
    count, function = len(kernel.argument_types), getattr(kernel, "py_func", None)
    names = list(inspect.signature(function).parameters) if function else []
    return names if len(names) == count else [f"a{number}" for number in range(count)]


def _check(kernel: Any) -> None:
    if kernel.cooperative:
        raise Refused("its blocks wait for one another: it is launched as a cooperative grid")
    if kernel.extensions:
        raise Refused("its arguments are made by an extension of Numba")


def _add(name: str, kind: Any, value: Any, memory: dict[str, Memory], words: list[str | np.generic], cuda: ModuleType) -> str:
    """Add what the kernel gets of an argument. Returns the argument as the program writes it."""
    if isinstance(value, tuple):
        parts = [
            _add(f"{name}_{place}", *each, memory, words, cuda) for place, each in enumerate(zip(kind, value, strict=True))
        ]
        return f"({', '.join(parts)},)"
    if hasattr(kind, "ndim"):
        array = OfNumba(name, getattr(value, "value", value), cuda)  # `cuda.In`, `cuda.Out` and `cuda.InOut` hold it as `value`
        known = place(memory, name, array)
        words += array.words(known)
        return known
    if part := _PARTS_OF_COMPLEX.get(str(kind)):
        words.extend((part(value.real), part(value.imag)))
        return f"np.{kind}({complex(value)!r})"
    if scalar := _SCALARS.get(str(kind)):
        words.append(scalar(value))
        return repr(bool(value)) if str(kind) == "bool" else f"np.{kind}({np.asarray(value).item()!r})"
    raise Refused(f"its argument {name} is of type {kind}")


def _python_of(kernel: Any) -> str:
    """The source of a kernel as a module; empty where there is none, as for a kernel that was made of a string or is from Numba's cache."""
    if not hasattr(kernel, "py_func"):
        return ""
    library = kernel.library
    options = {"fastmath": library._nvvm_options.get("fastmath"), "max_registers": library._max_registers}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
    with suppress(OSError):
        return python_source.module_of(kernel.py_func, python_source.NUMBA, f"({given})" if given else "")
    return ""
