"""The variants of a benchmark: functions, and kernels of a `.cu` file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.declare.driver import has_nvidia_driver
from warpladder.workloads.declare.functions import sources
from warpladder.workloads.declare.functions.arguments import (
    Axes,
    called_with_axes,
    is_of_types,
    launches_triton,
    precision_of,
    skip_reason,
)
from warpladder.workloads.declare.functions.arrays import Form
from warpladder.workloads.declare.functions.calls import Call, call_of
from warpladder.workloads.declare.functions.problem import Problem
from warpladder.workloads.declare.locate import is_file
from warpladder.workloads.declare.sources import parse_header
from warpladder.workloads.declare.workloads import (
    Array,
    Case,
    CudaVariant,
    Launch,
    Params,
    Precision,
    Role,
    Variant,
    WorkloadError,
)

# -- functions -------------------------------------------------------------------------------------------------------------------

#: Libraries whose arrays live on the GPU only.
GPU_ONLY: Final = ("cupy", "numba")


@dataclass(frozen=True)
class FunctionVariant(Variant):
    """A function that takes arrays and returns arrays.

    Attributes:
        function: the user's function.
        on_gpu: it runs on the GPU. It then enqueues its work on the stream that its library calls the current one.
        library: whose arrays it takes: `numpy`, `torch`, `cupy`, `numba` or `jax`.
        bind: gives it the arrays of a bench: inputs and outputs by name. A bench calls it once for each case.
        requires: modules that must be importable.
        writes_inputs: it changes its inputs. It receives its own copies, which are refreshed before each execution.
    """

    function: Callable[..., Any] = field(default=lambda: None)
    on_gpu: bool = False
    library: str = "numpy"
    bind: Callable[[Case, Params, Mapping[str, Array], Mapping[str, Array]], Call] = field(
        default=lambda case, config, inputs, outputs: Call(lambda: None, lambda returned: None)
    )
    requires: tuple[str, ...] = ()
    writes_inputs: bool = False

    @property
    def kind(self) -> str:
        return "library" if self.on_gpu else "host"

    @property
    def own_stream(self) -> bool:
        """Whether its library has streams that nobody else can choose, so that CUDA events cannot time it."""
        return self.on_gpu and self.library == "jax"

    @cached_property
    def source_text(self) -> str:
        return sources.source_of(self.function)

    @cached_property
    def header(self) -> Mapping[str, str]:
        """The labelled paragraphs of the docstring; its first paragraph is the idea if it has no labels."""
        docstring = getattr(self.function, "__doc__", None) or ""
        paragraphs = parse_header(f'"""{docstring}"""')
        return (
            paragraphs if any(paragraphs.values()) else {**paragraphs, "idea": " ".join(docstring.partition("\n\n")[0].split())}
        )

    @property
    def source_file(self) -> Path | None:
        return sources.source_file_of(self.function)


# -- kernels ---------------------------------------------------------------------------------------------------------------------

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
        """The launch at a case. It has no arguments before the inputs of the case are made. Raises WorkloadError: a
        name is unknown, or an extent is no positive number."""
        values = {**case.params, **config}
        try:
            name = self.name.format(**values)
        except (KeyError, IndexError, ValueError) as error:
            raise WorkloadError(f"{self.where}: kernel={self.name!r} names {error}; it can name {_listed(values)}") from error
        grid, block = (self._extents(what, each, values) for what, each in (("grid", self.grid), ("block", self.block)))
        shared = self._number("shared", self.shared, values, least=0)
        return [Launch(name, grid, block, self._arguments(problem, case, values), shared)]

    def _extents(self, what: str, extent: Any, values: Params) -> tuple[int, int, int]:
        extent = called_with_axes(extent, values) if callable(extent) else extent
        extents = tuple(extent) if isinstance(extent, tuple | list) else (extent,)
        if not 1 <= len(extents) <= 3:
            raise WorkloadError(f"{self.where}: {what} has {len(extents)} extents; give one to three")
        x, y, z = (self._number(what, each, values) for each in (*extents, 1, 1)[:3])
        return x, y, z

    def _number(self, what: str, declared: Any, values: Params, least: int = 1) -> int:
        number = (
            called_with_axes(declared, values)
            if callable(declared)
            else values.get(declared)
            if isinstance(declared, str)
            else declared
        )
        if not (isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= least):
            raise WorkloadError(
                f"{self.where}: {what} is {number!r}; give a whole number from {least}, one of {_listed(values)}, or a function of them"
            )
        return int(number)

    def _arguments(self, problem: Problem, case: Case, values: Params) -> tuple[Any, ...]:
        if not problem.is_known(case):
            return ()
        inputs, outputs = problem.arguments(case).values, problem.outputs(case)
        args = (*inputs, *outputs) if self.args is None else self.args
        return tuple(self._argument(each, inputs, outputs, values) for each in args)

    def _argument(self, arg: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Form], values: Params) -> Any:
        if isinstance(arg, str):
            if arg in outputs or isinstance(inputs.get(arg), Form):
                return arg
            if arg not in {**inputs, **values}:
                raise WorkloadError(
                    f"{self.where}: args names {arg!r}; name one of {_listed({**inputs, **outputs, **values})}, "
                    "or give a NumPy scalar"
                )
            arg = {**inputs, **values}[arg]
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


def source_of_kernel(source: str | Path, beside: Path | None) -> Path | str:
    """The `.cu` file, by its path from the file that declares the benchmark, or the code itself. Raises WorkloadError:
    there is no such file."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source
    file = (beside.parent if beside else Path.cwd()) / source
    if not is_file(file):
        raise WorkloadError(f"{file}: no such file; give the path of a .cu file from the benchmark's own, or the code")
    return file


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "nothing"


class Maker:
    """The facts that the variants of a benchmark share.

    Args:
        problem: its inputs and reference.
        axes: its axes.
        library: the library whose arrays the variants take; empty for the library of the inputs.
        device: `gpu`, `cpu`, or empty for the GPU where there is one.
        has_kernels: it has kernels of CUDA C++.
    """

    def __init__(self, problem: Problem, axes: Axes, library: str, device: str, has_kernels: bool) -> None:
        self._problem, self._axes, self._library, self._device = problem, axes, library, device
        self._has_kernels = has_kernels

    def function(self, function: Callable[..., Any], name: str, declaration: Mapping[str, Any]) -> FunctionVariant:
        """The variant that is a function; `declaration` holds the arguments of `Benchmark.variant`."""
        library = declaration["arrays"] or self._library or self._own_library
        on_gpu = self._is_on_gpu(library) or (self._device != "cpu" and launches_triton(function, declaration["requires"]))
        beside: Role = "host" if library == "numpy" and self._uses_gpu else "rung"
        return FunctionVariant(
            name,
            declaration["title"] or name,
            declaration["role"] or beside,
            **self._common(declaration),
            function=function,
            on_gpu=on_gpu,
            library=library,
            bind=partial(self._bind, function, library, on_gpu, declaration["writes_inputs"]),
            requires=declaration["requires"],
            writes_inputs=declaration["writes_inputs"],
        )

    def kernel(self, name: str, source: Path | str, launch: Kernel, declaration: Mapping[str, Any]) -> CudaVariant:
        """The variant that is a kernel of CUDA C++; `declaration` holds the arguments of `Benchmark.cuda`."""
        return CudaVariant(
            name,
            declaration["title"] or name,
            declaration["role"] or "rung",
            **self._common(declaration),
            source=source,
            launches=partial(launch.launches, self._problem),
            options=declaration["options"],
        )

    def _common(self, declaration: Mapping[str, Any]) -> dict[str, Any]:
        declared: Precision | None = declaration["precision"]

        def precision_at(case: Case) -> Precision:
            return precision_of(self._problem.arguments(case).forms.values())

        of_case = None if declared else precision_at
        skip = {"skip": partial(skip_reason, declaration["skip"])} if declaration["skip"] else {}
        return {"precision": declared or self._precision, "of_case": of_case, "configs": declaration["configs"], **skip}

    @cached_property
    def _first_forms(self) -> list[Form]:
        """The forms of the first case's inputs."""
        case = self._axes.cases[0]
        self._problem.make_inputs(case, np.random.default_rng(0))
        return list(self._problem.arguments(case).forms.values())

    @property
    def _own_library(self) -> str:
        """The library of the inputs; NumPy where they are numbers."""
        library = self._first_forms[0].library
        return "numpy" if library == "python" else library

    def _is_on_gpu(self, library: str) -> bool:
        if library == "numpy" or self._device == "cpu":
            return False
        return library in GPU_ONLY or self._device == "gpu" or has_nvidia_driver()

    @property
    def _uses_gpu(self) -> bool:
        """Whether the benchmark's own arrays are on the GPU, or kernels have them there. A variant with NumPy's then stands beside
        the ladder."""
        return self._has_kernels or (self._library or self._own_library) != "numpy"

    @property
    def _precision(self) -> Precision:
        """The precision of a variant that declares none, over all cases."""
        mixed = any(is_of_types(values) for values in self._axes.values.values())
        return "mixed" if mixed else precision_of(self._first_forms)

    def _bind(
        self,
        function: Callable[..., Any],
        library: str,
        on_gpu: bool,
        writes_inputs: bool,
        case: Case,
        config: Params,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
    ) -> Call:
        arguments, gave = self._problem.arguments(case), self._problem.outputs(case)
        values = {**case.params, **config}
        differentiated = self._problem.gradients(case)
        return call_of(function, library, on_gpu, arguments, gave, values, (inputs, outputs), writes_inputs, differentiated)
