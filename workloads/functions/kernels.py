"""Kernels of a `.cu` file as a variant of a benchmark: their names, grids and arguments from axes and config values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Case, Launch, Params, WorkloadError
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.axes import called_with_axes
from warpladder.workloads.functions.problem import Problem

#: A number of blocks, threads or bytes: itself, the name of an axis or config value, or a function of them.
Extent = int | str | Callable[..., int]
_INT: Final = np.iinfo(np.int32)


@dataclass(frozen=True)
class Kernel:
    """One launch, written for all cases and configs.

    Attributes:
        where: for messages.
        name: C++ name of the kernel, such as `softmax<{block}>`, in which axes and config values are filled in.
        grid, block: one extent, up to three, or a function that gives them.
        args: arguments: names of inputs, outputs, axes and config values, NumPy scalars, or numbers. None for the inputs and then the
            outputs.
        shared: bytes of dynamic shared memory.
    """

    where: str
    name: str
    grid: Any
    block: Any
    args: Sequence[Any] | None
    shared: Extent

    def launches(self, problem: Problem, case: Case, config: Params) -> list[Launch]:
        """The launch at a case. It has no arguments before the inputs of the case are made.

        Raises:
            WorkloadError: a name is unknown, or an extent is no positive number.
        """
        values = {**case.params, **config}
        try:
            name = self.name.format(**values)
        except (KeyError, IndexError, ValueError) as error:
            raise WorkloadError(f"{self.where}: kernel={self.name!r} names {error}; it can name {_listed(values)}") from error
        grid, block = (self._extents(what, each, values) for what, each in (("grid", self.grid), ("block", self.block)))
        shared = self._number("shared", self.shared, values, least=0)
        return [Launch(name, grid, block, self._arguments(problem, case, values), shared)]

    def _extents(self, what: str, given: Any, values: Params) -> tuple[int, int, int]:
        given = called_with_axes(given, values) if callable(given) else given
        extents = tuple(given) if isinstance(given, tuple | list) else (given,)
        if not 1 <= len(extents) <= 3:
            raise WorkloadError(f"{self.where}: {what} has {len(extents)} extents; give one to three")
        x, y, z = (self._number(what, each, values) for each in (*extents, 1, 1)[:3])
        return x, y, z

    def _number(self, what: str, given: Any, values: Params, least: int = 1) -> int:
        number = called_with_axes(given, values) if callable(given) else values.get(given) if isinstance(given, str) else given
        if not (isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= least):
            raise WorkloadError(
                f"{self.where}: {what} is {number!r}; give a whole number from {least}, one of {_listed(values)}, or a function of them"
            )
        return int(number)

    def _arguments(self, problem: Problem, case: Case, values: Params) -> tuple[Any, ...]:
        if not problem.is_known(case):
            return ()
        given, outputs = problem.given(case).values, problem.outputs(case)
        args = (*given, *outputs) if self.args is None else self.args
        return tuple(self._argument(each, given, outputs, values) for each in args)

    def _argument(self, arg: Any, given: Mapping[str, Any], outputs: Mapping[str, Form], values: Params) -> Any:
        if isinstance(arg, str):
            if arg in outputs or isinstance(given.get(arg), Form):
                return arg
            if arg not in {**given, **values}:
                raise WorkloadError(
                    f"{self.where}: args names {arg!r}; name one of {_listed({**given, **outputs, **values})}, or give a NumPy scalar"
                )
            arg = {**given, **values}[arg]
        arg = called_with_axes(arg, values) if callable(arg) and not isinstance(arg, np.generic) else arg
        if isinstance(arg, np.generic):
            return arg
        if isinstance(arg, bool):
            return np.bool_(arg)
        if isinstance(arg, float):
            return np.float32(arg)
        if isinstance(arg, int) and _INT.min <= arg <= _INT.max:
            return np.int32(arg)
        raise WorkloadError(f"{self.where}: argument {arg!r} is no float or int; give a NumPy scalar of the parameter's type")


def source_of_kernel(given: str | Path, beside: Path | None) -> Path | str:
    """The `.cu` file, by its path from the file that declares the benchmark, or the code itself.

    Raises:
        WorkloadError: there is no such file.
    """
    if isinstance(given, str) and "\n" in given:
        return given
    file = (beside.parent if beside else Path.cwd()) / given
    if not file.is_file():
        raise WorkloadError(f"{file}: no such file; give the path of a .cu file from the benchmark's own, or the code")
    return file


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "nothing"
