"""What the project's workloads are written with: cases, and rungs with their sources, launches of plain numbers and names of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Buffer, Buffers, Case, CudaVariant, HostVariant, Launch, Params, Precision, Role, Step
from warpladder.workloads.declare.cases import narrowed, widened

#: Inputs and outputs of a case, by name.
Declared = tuple[Mapping[str, Buffer], Mapping[str, Buffer]]
HostRun = Callable[[Case, Buffers, Buffers], None]

#: Of a rung on Hopper's warpgroups, clusters or TMA.
HOPPER: Final[dict[str, Any]] = {"min_compute_capability": (9, 0), "only_architecture": "sm_90a"}


def extents_of(case: Case, count: int) -> tuple[int, ...]:
    """The extents of a case `n=512`, which are equal, or of one such as `shape=80x70x90`."""
    return (case.params["n"],) * count if "n" in case.params else tuple(map(int, case.params["shape"].split("x")))


def counted(case: Case, flops: int, buffers: tuple[Mapping[str, Buffer], Mapping[str, Buffer]]) -> Case:
    """A case with its operations and its bytes: each input read once, each output written once."""
    return replace(case, flops=flops, min_bytes=sum(buffer.nbytes for side in buffers for buffer in side.values()))


def widened_inputs(buffers: Callable[[Case], Declared], case: Case, inputs: Buffers) -> Buffers:
    """The values of inputs in float32, of those whose type NumPy lacks."""
    of, _ = buffers(case)
    return {name: widened(array, of[name].dtype) for name, array in inputs.items()}


def by_float32(run: Callable[..., object], buffers: Callable[[Case], Declared]) -> HostRun:
    """The function of a host variant on buffers whose types NumPy lacks: it gets widened inputs, and its outputs are rounded.

    Args:
        run: takes and gives float32.
        buffers: of the workload.
    """

    @wraps(run)
    def converted(case: Case, inputs: Buffers, outputs: Buffers) -> None:
        _, of = buffers(case)
        wide = {name: np.zeros(array.shape, np.float32) for name, array in outputs.items()}
        run(case, widened_inputs(buffers, case, inputs), wide)
        for name, array in outputs.items():
            array[...] = narrowed(wide[name], of[name].dtype)

    return converted


def rounding(variants: Sequence[HostVariant], buffers: Callable[[Case], Declared]) -> tuple[HostVariant, ...]:
    """Host variants of float32 for a workload whose buffers have types that NumPy lacks."""
    return tuple(replace(each, run=by_float32(each.run, buffers)) for each in variants)


def rungs_in(kernels: Path) -> Callable[..., CudaVariant]:
    """A function that declares a rung whose source, in this folder, has the rung's name."""

    def rung(
        name: str,
        title: str,
        launches: Callable[[Case, Params], Sequence[Step]],
        configs: Sequence[Params] = ({},),
        precision: Precision = "fp32",
        role: Role = "rung",
        **more: Any,
    ) -> CudaVariant:
        source = kernels / f"{name}.cu"
        return CudaVariant(name, title, role, precision, tuple(configs), source=source, launches=launches, **more)

    return rung


def template(name: str, *arguments: object) -> str:
    """The kernel `name<arguments>`. A truth value is `true` or `false`, as in C++."""
    return f"{name}<{', '.join(str(each).lower() if isinstance(each, bool) else str(each) for each in arguments)}>"


def launch(
    kernel: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Any,
    shared_bytes: int = 0,
    once: bool = False,
    early: bool = False,
) -> Launch:
    """A launch. Extents that are left out of grid and block are 1; an `int` among the arguments is an int32, a `float` a float32."""
    return Launch(kernel, _three(grid), _three(block), tuple(map(_scalar, args)), shared_bytes, once, early)


def _scalar(arg: Any) -> Any:
    return np.int32(arg) if type(arg) is int else np.float32(arg) if type(arg) is float else arg


def _three(extents: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*(extents if isinstance(extents, tuple) else (extents,)), 1, 1)[:3]
    return x, y, z
