"""Watches the launches of CuPy's `RawKernel` and `RawModule`, and of Triton's kernels."""

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

import numpy as np

from warpladder.collectors.capture.watch import Kernel, Memory, Refused, Watch

_SCALARS: Final[Mapping[str, Callable[[Any], np.generic]]] = {
    "i1": np.int8, "u1": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip
_THREADS_OF_WARP: Final = 32
#: Names that a benchmark uses itself.
_TAKEN: Final = frozenset({"launch", "rng", "stream", "out", "np", "bench", "kept", "warpladder"})


# -- CuPy ------------------------------------------------------------------------------------------------------------------------


class OfCupy:
    """The memory of an array of CuPy."""

    def __init__(self, array: Any) -> None:
        self._flat = array.ravel(order="K")
        if self._flat.data.ptr != array.data.ptr:
            raise Refused("the elements of an argument do not lie side by side")
        self.kind, self.shape, self.start = str(array.dtype), tuple(array.shape), int(array.data.ptr)

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

            def launch_and_wait() -> None:
                launch()
                cupy.cuda.runtime.deviceSynchronize()

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
                return Kernel("CuPy", self._name, *where, _three(grid), _three(block), int(shared_mem), kept, arguments, arrays)

            watch.take(memory, launch_and_wait, kernel, self._name)

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
        memory[name] = OfCupy(value)
        return name
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
    return [f"{each}_" if each in _TAKEN else each for each in names]


def _three(extents: Sequence[int] | int) -> tuple[int, ...]:
    every = tuple(map(int, extents)) if isinstance(extents, Sequence) else (int(extents),)
    return (*every, 1, 1)[:3]


# -- Triton ----------------------------------------------------------------------------------------------------------------------


class OfTorch:
    """The memory of a tensor of PyTorch, from its first element to its last."""

    def __init__(self, tensor: Any) -> None:
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        count = extent if math.prod(tensor.shape) else 0
        self._flat = tensor.detach().as_strided((count,), (1,))
        self.kind = str(tensor.dtype).removeprefix("torch.")
        self.shape = tuple(tensor.shape) if tensor.is_contiguous() else (count,)
        self.start = int(tensor.data_ptr())

    @property
    def nbytes(self) -> int:
        """Its size."""
        return int(self._flat.numel() * self._flat.element_size())

    def _bytes(self) -> Any:
        import torch

        return self._flat.view(torch.uint8)

    def read(self) -> np.ndarray:
        """A copy on the host, as bytes."""
        host: np.ndarray = self._bytes().cpu().numpy()
        return host.copy()

    def write(self, data: np.ndarray) -> None:
        """Fill it with bytes."""
        import torch

        self._bytes().copy_(torch.from_numpy(data))


def watch_triton(watch: Watch, jit: ModuleType, autotuner: ModuleType | None, wait: Callable[[], object]) -> None:
    """Put a function that watches in place of the one that every launch of Triton goes through.

    Args:
        jit: `triton.runtime.jit`.
        autotuner: `triton.runtime.autotuner`, whose trials do not count.
        wait: waits for the end of a launch.
    """
    run = jit.JITFunction.run

    def watched(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        def launch() -> Any:
            return run(self, *args, grid=grid, warmup=warmup, **options)

        name = self.fn.__name__
        if warmup or not watch.wants(name):
            return launch()
        values = _bound(self, args, options)
        tensors = {name: value for name, value in values.items() if hasattr(value, "data_ptr")}
        memory: dict[str, Memory] = {name: OfTorch(tensor) for name, tensor in tensors.items()}

        def launch_and_wait() -> Any:
            answer = launch()
            wait()
            return answer

        def kernel(compiled: Any, arrays: Any) -> Kernel:
            return _of_triton(self, compiled, values, options, grid, watch.counts[name], arrays)

        return watch.take(memory, launch_and_wait, kernel, name)

    jit.JITFunction.run = watched
    if autotuner is not None:
        bench = autotuner.Autotuner._bench

        def muted(self: Any, *args: Any, **options: Any) -> Any:
            before, watch.muted = watch.muted, True
            try:
                return bench(self, *args, **options)
            finally:
                watch.muted = before

        autotuner.Autotuner._bench = muted


def _bound(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a launch by name, with defaults."""
    signature = inspect.signature(function.fn)
    own = {name: value for name, value in options.items() if name in signature.parameters}
    bound = signature.bind(*args, **own)
    bound.apply_defaults()
    return dict(bound.arguments)


def _of_triton(
    function: Any, compiled: Any, values: Mapping[str, Any], options: Mapping[str, Any], grid: Any, number: int, arrays: Any
) -> Kernel:
    metadata, ptx = compiled.metadata, compiled.asm["ptx"]
    if math.prod(getattr(metadata, "cluster_dims", (1,))) > 1 or getattr(metadata, "num_ctas", 1) > 1:
        raise Refused("it is launched in clusters")
    types = {name: kind for name, kind in compiled.src.signature.items() if kind != "constexpr"}
    arguments = [_argument_of_triton(name, kind, values[name]) for name, kind in types.items()]
    entry = ptx[ptx.index(".entry") :]
    hidden = entry[: entry.index(")")].count(".param") - len(arguments)
    if hidden < 0 or getattr(metadata, "global_scratch_size", 0):
        raise Refused("it has arguments that Triton makes itself")
    extents = grid({**values, **options}) if callable(grid) else grid
    threads = metadata.num_warps * _THREADS_OF_WARP
    python, call = _python_of(function, values, options, _three(extents))
    return Kernel(
        *(
            "Triton",
            function.fn.__name__,
            number,
            ptx,
            "ptx",
            metadata.name,
            _three(extents),
            (threads, 1, 1),
            int(metadata.shared),
            (),
        ),
        arguments=(*arguments, *[np.uint64(0)] * hidden),
        arrays=arrays,
        python=python,
        call=call,
    )


def _argument_of_triton(name: str, kind: str, value: Any) -> str | np.generic:
    if kind.startswith("*"):
        return name if hasattr(value, "data_ptr") else np.uint64(0)
    if kind not in _SCALARS:
        raise Refused(f"its argument {name} is a {kind}")
    return _SCALARS[kind](value)


def _python_of(function: Any, values: Mapping[str, Any], options: Mapping[str, Any], grid: tuple[int, ...]) -> tuple[str, str]:
    """The source of the kernel and of what it uses, and its launch. Tensors stand in the launch by their names."""
    parts, imports = list[str](), dict[str, str]()
    _add_source(function, parts, imports, set())
    words = [f"{name}={name}" if hasattr(value, "data_ptr") else f"{name}={_plain(value)}" for name, value in values.items()]
    further = [
        f"{name}={value!r}"
        for name, value in options.items()
        if name not in values and isinstance(value, int | bool | float | str)
    ]
    return "\n".join([*imports.values(), "", "", *parts]), f"{function.fn.__name__}[{grid}]({', '.join([*words, *further])})"


def _plain(value: Any) -> str:
    value = getattr(value, "value", value)
    return repr(value.item() if isinstance(value, np.generic) else value)


def _add_source(function: Any, parts: list[str], imports: dict[str, str], seen: set[int]) -> None:
    """Add the source of a function of Triton behind the sources of the functions and constants that it names."""
    if id(function) in seen:
        return
    seen.add(id(function))
    python = function.fn
    for name in python.__code__.co_names:
        value = python.__globals__.get(name)
        if isinstance(value, ModuleType):
            imports[name] = f"import {value.__name__} as {name}"
        elif hasattr(value, "fn") and hasattr(value, "run"):
            _add_source(value, parts, imports, seen)
        elif isinstance(value, int | float | str) or type(value).__name__ == "constexpr":
            parts.append(
                f"{name} = {f'tl.constexpr({_plain(value)})' if type(value).__name__ == 'constexpr' else repr(value)}\n"
            )
    imports["triton"] = "import triton"
    imports["tl"] = "import triton.language as tl"
    source = textwrap.dedent(inspect.getsource(python))
    parts.append(f"@triton.jit\n{source[source.index('def ') :]}\n")


def watch_all(watch: Watch) -> None:
    """Watch every tool that is installed here."""
    with suppress(ImportError):
        import cupy

        watch_cupy(watch, cupy)
    with suppress(ImportError):
        import torch
        from triton.runtime import autotuner, jit

        watch_triton(watch, jit, autotuner, torch.cuda.synchronize)
