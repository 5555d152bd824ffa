"""Benchmark: a workload written as plain functions on arrays.

The functions are declared by decorators. `workload` makes of them the `Workload` that is planned, verified and timed like any
other. `docs/own-kernel.md` has complete examples.
"""

import inspect
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from warpladder.workloads.api import TOLERANCE, Array, Case, Params, Precision, Role, Variant, Workload, WorkloadError
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.axes import Axes, called_with_axes
from warpladder.workloads.functions.binding import STREAM, call_of, place_of
from warpladder.workloads.functions.problem import Problem
from warpladder.workloads.functions.variant import GPU_ONLY, Call, FunctionVariant

if TYPE_CHECKING:
    from warpladder.dashboard.session.run import Run

LIBRARIES: Final = ("numpy", "torch", "cupy", "numba", "jax")
#: Type of the first real input -> precision of a variant that declares none.
_PRECISIONS: Final[Mapping[str, Precision]] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}

_F = TypeVar("_F", bound=Callable[..., Any])


class Benchmark:
    """A problem, its inputs and reference, and the functions that are compared on it.

    Args:
        name: of the workload, in the data and on pages.
        title: a few words for pages; the name by default.
        arrays: library whose arrays the variants take: `numpy`, `torch`, `cupy`, `numba` or `jax`. By default it is that of the arrays
            that `inputs` gives.
        device: `gpu` or `cpu`; by default the GPU where there is one. NumPy's arrays are always on the host.
        flops: floating-point operations of a case, a multiply-add counted as two: a number, or a function of axes.
        tolerance: largest relative L2 error that passes: one for all, or by precision. The default is `TOLERANCE` of
            `warpladder.workloads.api`. Outputs of whole numbers must be equal.
        axes: the axes, each with its values; every combination is a case.

    Raises:
        WorkloadError: an argument is wrong.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str = "",
        arrays: str = "",
        device: str = "",
        flops: Callable[..., float] | int | None = None,
        tolerance: float | Mapping[str, float] | None = None,
        **axes: Sequence[Any],
    ) -> None:
        self.name, self.title = name, title or name
        self.file = _caller()
        _choose("arrays", arrays, ("", *LIBRARIES))
        _choose("device", device, ("", "gpu", "cpu"))
        self._library, self._device = arrays, device
        self._axes = Axes(axes, flops)
        self._tolerance = _tolerances(tolerance)
        self._inputs: Callable[..., Any] | None = None
        self._reference: Callable[..., Any] | None = None
        self._outputs: str | Mapping[str, str] = {}
        self._declared: list[Callable[[], Variant]] = []
        self._names: list[str] = []
        self._baseline = ""

    # -- declaring -------------------------------------------------------------------------------------------------

    def inputs(self, function: _F) -> _F:
        """Declare the function that makes the inputs.

        It is called with the axes that it has parameters for, and with `rng`, a `numpy.random.Generator`, if it has a parameter of
        this name. It returns an array, or a tuple or dict of arrays, numbers and texts. A dict names them. Arrays in host memory are
        copied to the GPU for the variants that run there. The generators of NumPy, PyTorch and CuPy are seeded before each call.
        """
        self._inputs = _function(function, "inputs")
        self._forget("workload", "_problem", "_first_forms")
        return function

    def reference(self, function: Any = None, *, outputs: str | Mapping[str, str] = "") -> Any:
        """Declare the function that computes the right outputs.

        It takes the inputs, in float64 where they are real numbers, and the axes that it has parameters for. It returns an array, or a
        tuple or dict of arrays.

        Args:
            function: the function; without it this is a decorator.
            outputs: type of the variants' outputs, or of each by name. By default it is that of the first input of real numbers, and
                for outputs of whole numbers that of the reference's own.
        """
        self._outputs = outputs or {}
        if function is None:
            return self.reference_with_types
        return self.reference_with_types(function)

    def reference_with_types(self, function: _F) -> _F:
        """Declare the reference, with the types that were given before."""
        self._reference = _function(function, "reference")
        self._forget("workload", "_problem", "_first_forms")
        return function

    def variant(
        self,
        function: Any = None,
        *,
        name: str = "",
        title: str = "",
        baseline: bool = False,
        peer: bool = False,
        ceiling: bool = False,
        specimen: bool = False,
        precision: Precision | None = None,
        configs: Sequence[Params] = ({},),
        arrays: str = "",
        writes_inputs: bool = False,
        requires: Sequence[str] = (),
        skip: Callable[..., str | None] | None = None,
    ) -> Any:
        """Declare a function that is measured. Rungs stand on the ladder in the order of their declaration.

        In a notebook or at a prompt, a variant of the same name takes the place of the one before, so that a cell can be run again.

        The function takes the inputs in order, or by name if `inputs` gives a dict. It returns the outputs. A parameter named like an
        axis or a config's value is given that value. A parameter `out` is given the array that the output is written to, or a tuple
        of arrays. A parameter `stream` is given the stream that is timed.

        Args:
            function: the function; without it this is a decorator.
            name: by default that of the function.
            title: a few words for charts; the name by default.
            baseline: speedups are counted from it; by default from the first variant.
            peer, ceiling, specimen: it is compared as a library's, as the least that anyone must do, or as a known pitfall; by
                default as a rung.
            precision: arithmetic of the products, such as `tf32`; by default that of the first input of real numbers.
            configs: the values of its parameters to try; the best of them stands for the variant.
            arrays: library whose arrays it takes; by default that of the benchmark.
            writes_inputs: it changes its inputs. They are restored before each execution, outside of the time. If it returns None, the
                first input is its output.
            requires: modules that must be importable.
            skip: gives the reason why a case cannot run, or None; called with the axes and config values that it has parameters for.

        Raises:
            WorkloadError: an argument is wrong.
        """
        roles = [role for role, given in {"peer": peer, "ceiling": ceiling, "specimen": specimen}.items() if given]
        given = {
            "name": name, "title": title, "baseline": baseline, "roles": roles, "precision": precision, "configs": tuple(configs),
            "arrays": arrays, "writes_inputs": writes_inputs, "requires": tuple(requires), "skip": skip,
        }  # fmt: skip

        def declare(function: _F) -> _F:
            self._declare(function, **given)
            return function

        return declare if function is None else declare(function)

    def _declare(self, function: Callable[..., Any], **given: Any) -> None:
        _function(function, "variant")
        name = given["name"] or getattr(function, "__name__", "")
        where = place_of(function)
        if not name or name == "<lambda>":
            raise WorkloadError(f"{where} has no name; give the variant one: name='...'")
        if len(given["roles"]) > 1:
            raise WorkloadError(f"{where} is declared as {' and '.join(given['roles'])}; choose one")
        _choose(f"{where}: arrays", given["arrays"], ("", *LIBRARIES))
        _choose(f"{where}: precision", given["precision"] or "", ("", *TOLERANCE))
        if not given["configs"]:
            raise WorkloadError(f"{where}: configs is empty; leave it out, or give at least one")
        place = self._names.index(name) if name in self._names else len(self._names)
        self._add(name, given["baseline"], partial(self._function_variant, function, name, given, place))

    def _add(self, name: str, baseline: bool, make: Callable[[], Variant]) -> None:
        if name in self._names and self.file is None:
            self._declared[self._names.index(name)] = make
            self._baseline = name if baseline else "" if self._baseline == name else self._baseline
            self._forget("workload")
            return
        if name in self._names:
            raise WorkloadError(f"{self.name}: variant {name} is declared twice; give each its own name")
        if baseline and self._baseline:
            raise WorkloadError(f"{self.name}: {self._baseline} and {name} are both the baseline; choose one")
        self._baseline = name if baseline else self._baseline
        self._names.append(name)
        self._declared.append(make)
        self._forget("workload")

    def _forget(self, *made: str) -> None:
        """What was made of declarations that have changed since."""
        for name in made:
            self.__dict__.pop(name, None)

    # -- recording -------------------------------------------------------------------------------------------------

    def record(self, **options: Any) -> "Run":
        """Verify and measure every variant, and open the run.

        Args:
            options: the keyword arguments of `warpladder.record`, such as `cases`, `axis`, `variants`, `label` and `seconds`.

        Raises:
            Exception: as `warpladder.record`.
        """
        from warpladder.session import record

        return record(self, **options)

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants that have been declared so far."""
        return tuple(self._names)

    # -- the workload underneath ---------------------------------------------------------------------------------------

    @cached_property
    def workload(self) -> Workload:
        """The workload of what has been declared so far. Inputs of the first case are made, to see whose arrays they are.

        Raises:
            WorkloadError: inputs, a reference or variants are missing, or `inputs` gives no arrays.
        """
        for what, declared in (("inputs", self._inputs), ("reference", self._reference), ("variant", self._declared)):
            if not declared:
                raise WorkloadError(f"{self.name}: has no {what}; declare {'one' if what != 'inputs' else 'them'} with @{what}")
        variants = tuple(make() for make in self._declared)
        on_host = next((variant.name for variant in variants if variant.kind == "host"), "")
        baseline = self._baseline or variants[0].name
        return Workload(
            self.name,
            self.title,
            self._axes.cases,
            variants,
            self._problem.buffers,
            self._problem.make_inputs,
            self._problem.reference,
            baseline,
            baseline if self._is_on_host(variants, baseline) else on_host,
            self._tolerance,
            axes=self._axes.declared,
            make_case=self._axes.case,
        )

    @staticmethod
    def _is_on_host(variants: Sequence[Variant], name: str) -> bool:
        return next(variant for variant in variants if variant.name == name).kind == "host"

    @cached_property
    def _problem(self) -> Problem:
        assert self._inputs and self._reference
        return Problem(self._inputs, self._reference, self._outputs, (*self._axes.values, STREAM))

    @cached_property
    def _first_forms(self) -> list[Form]:
        """The forms of the first case's inputs."""
        case = self._axes.cases[0]
        self._problem.make_inputs(case, np.random.default_rng(0))
        return list(self._problem.given(case).forms.values())

    def _function_variant(self, function: Callable[..., Any], name: str, given: Mapping[str, Any], number: int) -> Variant:
        library = given["arrays"] or self._library or self._first_forms[0].library
        on_gpu = (
            library != "numpy"
            and self._device != "cpu"
            and (library in GPU_ONLY or self._device == "gpu" or has_nvidia_driver())
        )
        role: Role = given["roles"][0] if given["roles"] else "host" if library == "numpy" and self._uses_gpu else "rung"
        bind = partial(self._bind, function, library, on_gpu, given["writes_inputs"])
        skip = given["skip"]
        return FunctionVariant(
            name,
            given["title"] or name,
            role,
            precision=given["precision"] or _precision(self._first_forms),
            configs=given["configs"],
            skip=partial(_skip, skip) if skip else FunctionVariant.skip,
            place=number + 1 if role == "rung" else None,
            function=function,
            on_gpu=on_gpu,
            library=library,
            bind=bind,
            requires=given["requires"],
            writes_inputs=given["writes_inputs"],
            of_case=None if given["precision"] else lambda case: _precision(self._problem.given(case).forms.values()),
        )

    @property
    def _uses_gpu(self) -> bool:
        """Whether the benchmark's own arrays are on the GPU, so that a variant with NumPy's stands beside the ladder."""
        return (self._library or self._first_forms[0].library) != "numpy"

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
        given, gave = self._problem.given(case), self._problem.outputs(case)
        values = {**case.params, **config}
        return call_of(function, library, on_gpu, given, gave, values, (inputs, outputs), writes_inputs)


def _precision(inputs: Iterable[Form]) -> Precision:
    """That of the first input of real numbers."""
    return next((_PRECISIONS.get(form.dtype, "fp32") for form in inputs if form.is_real), "int")


def has_nvidia_driver() -> bool:
    """Whether this machine has a driver of NVIDIA. Creates no CUDA context."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists()


def _skip(function: Callable[..., str | None], case: Case, config: Params) -> str | None:
    reason: str | None = called_with_axes(function, {**case.params, **config})
    return reason


def _function(function: Any, what: str) -> Any:
    """The function itself. Raises WorkloadError where it is none, or one that gives no arrays when it is called."""
    if not callable(function):
        raise WorkloadError(f"{what} is {type(function).__name__}; decorate a function")
    inner = inspect.unwrap(function)
    if inspect.iscoroutinefunction(inner) or inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        kind = "a generator" if inspect.isgeneratorfunction(inner) else "a coroutine"
        raise WorkloadError(f"{place_of(function)} gives {kind}; write a plain function that returns arrays")
    return function


def _choose(what: str, given: str, among: Sequence[str]) -> None:
    if given not in among:
        raise WorkloadError(f"{what}={given!r}: choose one of {', '.join(filter(None, among))}")


def _tolerances(given: float | Mapping[str, float] | None) -> dict[str, float]:
    if given is None:
        return dict(TOLERANCE)
    if isinstance(given, Mapping):
        return {**TOLERANCE, **given}
    return {**dict.fromkeys(TOLERANCE, float(given)), "int": 0.0}


def _caller() -> Path | None:
    """The file that declares the benchmark; None in an interactive session."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("warpladder"):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    return file.resolve() if file.is_file() else None
