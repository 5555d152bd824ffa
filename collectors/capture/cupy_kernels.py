"""Watches the launches of CuPy's `RawKernel` and `RawModule`."""

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from warpladder.collectors.capture.watch import Kernel, Memory, Refused, Watch, free_name, place, three_extents


class OfCupy:
    """The memory of an array of CuPy."""

    def __init__(self, array: Any) -> None:
        self._flat = array.ravel(order="K")
        if self._flat.data.ptr != array.data.ptr:
            raise Refused("the elements of an argument do not lie side by side")
        self.kind, self.shape, self.start = str(array.dtype), tuple(array.shape) or (1,), int(array.data.ptr)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._flat.nbytes)

    def read(self) -> np.ndarray:
        """A copy on the host, as bytes."""
        host: np.ndarray = self._flat.get()
        return host.view(np.uint8).copy()

    def write(self, data: np.ndarray) -> None:
        """Fill it with bytes."""
        self._flat.set(data.view(self._flat.dtype))


def watch_cupy(watch: Watch, cupy: ModuleType) -> None:
    """Put classes that watch in place of CuPy's."""
    raw_kernel, raw_module = cupy.RawKernel, cupy.RawModule

    class WatchedKernel:
        """A kernel of CuPy that is watched. All but its call is CuPy's own."""

        def __init__(self, kernel: Any, code: str, name: str, options: Sequence[str]) -> None:
            self._kernel, self._code, self._name, self._options = kernel, code, name, tuple(options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._kernel, name)

        def __setattr__(self, name: str, value: Any) -> None:
            (object.__setattr__ if name.startswith("_") else setattr)(
                self if name.startswith("_") else self._kernel, name, value
            )

        def __call__(
            self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0, **options: Any
        ) -> None:
            def launch() -> None:
                self._kernel(grid, block, args, shared_mem=shared_mem, **options)

            if not watch.wants(self._name):
                launch()
                return

            names = _names_of_cuda(self._code, self._name, len(args))
            memory = dict[str, Memory]()
            try:
                if not self._code:
                    raise Refused("it has no source: it was loaded as machine code")
                arguments = tuple(_argument_of_cupy(name, value, memory) for name, value in zip(names, args, strict=True))
            except Refused as why:
                watch.refused[self._name] = str(why)
                launch()
                return

            def kernel(_: object, arrays: Any) -> Kernel:
                where = watch.counts[self._name], self._code, "cu", self._name
                kept = tuple(option for option in self._options if "std=" not in option)
                return Kernel(
                    "CuPy",
                    self._name,
                    *where,
                    three_extents(grid),
                    three_extents(block),
                    int(shared_mem),
                    kept,
                    arguments,
                    arrays,
                )

            watch.take(memory, launch, cupy.cuda.runtime.deviceSynchronize, kernel, self._name)

    class WatchedModule:
        """A module of CuPy whose kernels are watched."""

        def __init__(self, *args: Any, **options: Any) -> None:
            self._module = raw_module(*args, **options)
            self._code = options.get("code") or (args[0] if args else "") or ""
            self._options = options.get("options", ())

        def __getattr__(self, name: str) -> Any:
            return getattr(self._module, name)

        def get_function(self, name: str) -> WatchedKernel:
            return WatchedKernel(self._module.get_function(name), self._code, name, self._options)

    def watched(code: str, name: str, options: Sequence[str] = (), *args: Any, **further: Any) -> WatchedKernel:
        return WatchedKernel(raw_kernel(code, name, options, *args, **further), code, name, options)

    cupy.RawKernel, cupy.RawModule = watched, WatchedModule  # type: ignore[attr-defined]


def _argument_of_cupy(name: str, value: Any, memory: dict[str, Memory]) -> str | np.generic:
    if hasattr(value, "__cuda_array_interface__"):
        return place(memory, name, OfCupy(value))
    if isinstance(value, np.generic):
        return value
    # As CuPy passes Python's numbers.
    kinds: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
    if type(value) in kinds:
        return kinds[type(value)](value)
    raise Refused(f"its argument {name} is {type(value).__name__}: neither an array nor a number")


def _names_of_cuda(code: str, name: str, count: int) -> list[str]:
    """The names of a kernel's parameters in its source, where they are found; else `a0` and so on."""
    short = re.escape(name.partition("<")[0].rpartition("::")[2])
    found = re.search(rf"\b{short}\s*\(([^()]*)\)\s*\{{", code)
    names = [re.findall(r"\w+", each)[-1] if re.findall(r"\w+", each) else "" for each in found[1].split(",")] if found else []
    if len(names) != count or len(set(names)) != count or not all(name.isidentifier() for name in names):
        names = [f"a{number}" for number in range(count)]
    return [free_name(each) for each in names]
