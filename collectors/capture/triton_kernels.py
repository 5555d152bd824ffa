"""Watches the launches of Triton's kernels."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np

from warpladder.collectors.capture import python_source
from warpladder.collectors.capture.tensors import OfTorch
from warpladder.collectors.capture.watch import Kernel, Memory, Refused, Watch, free_name, place, three_extents

_SCALARS: Final[Mapping[str, Callable[[Any], np.generic]]] = {
    "i1": np.int8, "u1": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip
_THREADS_OF_WARP: Final = 32


def watch_triton(watch: Watch, jit: ModuleType, autotuner: ModuleType | None, wait: Callable[[], object]) -> None:
    """Put a function that watches in place of the one that every launch of Triton goes through.

    Args:
        jit: `triton.runtime.jit`.
        autotuner: `triton.runtime.autotuner`, whose trials do not count.
        wait: waits for all work of the GPU.
    """
    run = jit.JITFunction.run

    def watched(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        def launch() -> Any:
            return run(self, *args, grid=grid, warmup=warmup, **options)

        name = self.fn.__name__
        if warmup or not watch.wants(name):
            return launch()
        values = _bound(self, args, options)
        memory = dict[str, Memory]()
        tensors = {
            each: place(memory, free_name(each), OfTorch(value)) for each, value in values.items() if hasattr(value, "data_ptr")
        }

        def kernel(compiled: Any, arrays: Any) -> Kernel:
            return _of_triton(self, compiled, values, tensors, options, grid, watch.counts[name], arrays)

        return watch.take(memory, launch, wait, kernel, name)

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
    function: Any,
    compiled: Any,
    values: Mapping[str, Any],
    tensors: Mapping[str, str],
    options: Mapping[str, Any],
    grid: Any,
    number: int,
    arrays: Any,
) -> Kernel:
    metadata, ptx = compiled.metadata, compiled.asm["ptx"]
    if math.prod(getattr(metadata, "cluster_dims", (1,))) > 1 or getattr(metadata, "num_ctas", 1) > 1:
        raise Refused("it is launched in clusters")
    types = {name: kind for name, kind in compiled.src.signature.items() if kind != "constexpr"}
    arguments = [tensors.get(name) or _argument_of_triton(name, kind, values[name]) for name, kind in types.items()]
    entry = ptx[ptx.index(".entry") :]
    hidden = entry[: entry.index(")")].count(".param") - len(arguments)
    if hidden < 0 or getattr(metadata, "global_scratch_size", 0):
        raise Refused("it has arguments that Triton makes itself")
    extents = grid({**values, **options}) if callable(grid) else grid
    threads = metadata.num_warps * _THREADS_OF_WARP
    python = python_source.module_of(function.fn, python_source.TRITON)
    return Kernel(
        *(
            "Triton",
            function.fn.__name__,
            number,
            ptx,
            "ptx",
            metadata.name,
            three_extents(extents),
            (threads, 1, 1),
            int(metadata.shared),
            (),
        ),
        arguments=(*arguments, *[np.uint64(0)] * hidden),
        arrays=arrays,
        python=python,
        call=_call_of(function, values, tensors, options, three_extents(extents)),
    )


def _argument_of_triton(name: str, kind: str, value: Any) -> np.generic:
    if kind.startswith("*"):
        return np.uint64(0)
    if kind not in _SCALARS:
        raise Refused(f"its argument {name} is a {kind}")
    return _SCALARS[kind](value)


def _call_of(
    function: Any, values: Mapping[str, Any], tensors: Mapping[str, str], options: Mapping[str, Any], grid: tuple[int, ...]
) -> str:
    """The launch in Python. Tensors stand in it by their names."""
    words = [f"{name}={tensors.get(name) or python_source.plain(value)}" for name, value in values.items()]
    further = [
        f"{name}={value!r}"
        for name, value in options.items()
        if name not in values and isinstance(value, int | bool | float | str)
    ]
    return f"{function.fn.__name__}[{grid}]({', '.join([*words, *further])})"
