"""Benchmark: a workload written as plain functions on arrays.

The functions are declared by decorators. `workload` makes of them the `Workload` that is planned, verified and timed like any
other. `docs/own-kernel.md` has complete examples.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Never, TypedDict, TypeVar, Unpack, overload

from warpladder.workloads.declare.functions.arguments import (
    LIBRARIES,
    Axes,
    caller,
    check_role,
    check_takes_config,
    checked_configs,
    checked_function,
    checked_name,
    checked_outputs,
    checked_requires,
    checked_title,
    choose,
    declared_at,
    joined_axes,
    refuse_axes,
    tolerances,
)
from warpladder.workloads.declare.functions.calls import STREAM, place_of
from warpladder.workloads.declare.functions.comparisons import Comparison, comparisons
from warpladder.workloads.declare.functions.extensions import c_function
from warpladder.workloads.declare.functions.problem import Outputs, Problem
from warpladder.workloads.declare.functions.variants import Extent, Kernel, Maker, source_of_kernel
from warpladder.workloads.declare.workloads import (
    TOLERANCE,
    Params,
    Precision,
    Role,
    Variant,
    Workload,
    WorkloadError,
)

_F = TypeVar("_F", bound=Callable[..., Any])
#: How outputs are compared: all of them, or each by name.
Compare = Comparison | Callable[..., Any] | Mapping[str, Comparison | Callable[..., Any]]


class VariantOptions(TypedDict, total=False):
    """The arguments of `Benchmark.variant` without the function."""

    name: str
    title: str
    baseline: bool
    role: Role | None
    precision: Precision | None
    configs: Sequence[Params]
    arrays: str
    writes_inputs: bool
    requires: Sequence[str]
    skip: Callable[..., str | None] | None


class Benchmark:
    """Declare a problem: its axes, inputs and reference, and the functions to compare on it.

    Args:
        name: of the workload, in the data and on pages.
        axes: the axes by name, each with its values; every combination is a case. An axis may also be a keyword argument of its own,
            `n=[1024, 4096]`, unless it has the name of another argument.
        title: a few words for pages; the name by default.
        arrays: library whose arrays the variants take: `numpy`, `torch`, `cupy`, `numba` or `jax`. By default it is the library
            of the arrays that `inputs` gives.
        device: `gpu` or `cpu`; by default the GPU where there is one. NumPy's arrays are always on the host.
        flops: floating-point operations of a case, a multiply-add counted as two: a number, or a function of axes.
        bytes: that a case must read and write: a number, or a function of axes. By default, and where it is 0, the inputs and outputs are
            counted, each once.
        quick: a function of axes that tells whether a case is in the set `quick`, which `record` takes by default. The sets `report` and
            `full` have all cases. By default `quick` has too.
        tolerance: largest relative L2 error that passes: one for all, or by precision. The default is `TOLERANCE` of
            `warpladder.workloads.declare.workloads`. Outputs of whole numbers must be equal.
        gradients: whether the gradients with respect to the inputs of real numbers are outputs too, or the names of such inputs. The
            functions compute the forward pass on PyTorch's tensors; `forward` and `backward` are timed as phases.

    Raises:
        Error: an argument is wrong.
    """

    def __init__(
        self,
        name: str = "",
        /,
        *,
        axes: Mapping[str, Sequence[Any]] | None = None,
        title: str = "",
        arrays: str = "",
        device: str = "",
        flops: Callable[..., float] | int | None = None,
        bytes: Callable[..., float] | int | None = None,
        quick: Callable[..., bool] | None = None,
        tolerance: float | Mapping[str, float] | None = None,
        gradients: bool | Sequence[str] = False,
        **more: Any,
    ) -> None:
        if isinstance(more.get("name"), str) and not name:
            name = more.pop("name")
        options = {"name": more.pop("name", None), "title": title, "arrays": arrays, "device": device}
        refuse_axes({**options, "flops": flops, "bytes": bytes, "quick": quick, "tolerance": tolerance})
        self.name, self.title = checked_name("the benchmark's name", name), checked_title(name, title) or name
        self.file = caller()
        choose("arrays", arrays, ("", *LIBRARIES))
        choose("device", device, ("", "gpu", "cpu"))
        self._library, self._device = arrays, device
        self._axes = Axes(joined_axes(axes, more), flops, bytes, quick)
        self._tolerance = tolerances(tolerance)
        self._gradients = gradients
        self._inputs: Callable[..., Any] | None = None
        self._reference: Callable[..., Any] | None = None
        self._outputs: Outputs = {}
        self._compare: Comparison | Mapping[str, Comparison] | None = None
        self.rounded_reference: Callable[..., Any] | None = None  # in another precision; None for the reference in float32
        self._declared: list[Callable[[Maker], Variant]] = []
        self._names: list[str] = []
        self._baseline = ""
        self._has_kernels = False

    # -- declaring -------------------------------------------------------------------------------------------------

    def inputs(self, function: _F) -> _F:
        """Declare the function that makes the inputs.

        It is called with the axes that it has parameters for, and with `rng`, a `numpy.random.Generator`, if it has a parameter of
        this name. It returns an array, or a tuple or dict of arrays, numbers and texts. A dict names them. Arrays in host memory are
        copied to the GPU for the variants that run there. The generators of NumPy, PyTorch and CuPy are seeded before each call.
        """
        self._inputs = checked_function(function, "inputs")
        self._forget()
        return function

    @overload
    def reference(self, function: _F, *, outputs: Outputs = "", compare: Compare | None = None) -> _F: ...
    @overload
    def reference(
        self, function: None = None, *, outputs: Outputs = "", compare: Compare | None = None
    ) -> Callable[[_F], _F]: ...

    def reference(self, function: Any = None, *, outputs: Outputs = "", compare: Any = None) -> Any:
        """Declare the function that computes the right outputs.

        It takes the inputs, in float64 where they are real numbers, and the axes that it has parameters for. It returns an array, or a
        tuple or dict of arrays.

        Args:
            function: the function; without it this is a decorator.
            outputs: type of the variants' outputs, or of each output by name. By default it is the type of the first input of
                real numbers; outputs of whole numbers have the type of the reference's output. A function of axes that gives these
                types is called with those that it has parameters for.
            compare: how outputs are compared that need not be equal to the reference within the tolerance: one of `warpladder.compare`, such
                as `order_of("x")` for indices with ties, or a function of an output and its reference; for all outputs, or by name.

        Raises:
            Error: an argument is wrong.
        """
        self._compare = comparisons(compare)
        self._outputs = outputs if callable(outputs) else checked_outputs(outputs)
        return self._declare_reference if function is None else self._declare_reference(function)

    def _declare_reference(self, function: _F) -> _F:
        """Declare the reference, with the types that were given before."""
        self._reference = checked_function(function, "reference")
        self._forget()
        return function

    @overload
    def variant(self, function: _F, **options: Unpack[VariantOptions]) -> _F: ...
    @overload
    def variant(self, function: None = None, **options: Unpack[VariantOptions]) -> Callable[[_F], _F]: ...

    def variant(
        self,
        function: Any = None,
        *,
        name: str = "",
        title: str = "",
        baseline: bool = False,
        role: Role | None = None,
        precision: Precision | None = None,
        configs: Sequence[Params] = ({},),
        arrays: str = "",
        writes_inputs: bool = False,
        requires: Sequence[str] = (),
        skip: Callable[..., str | None] | None = None,
        **unknown: Any,
    ) -> Any:
        """Declare a function that is measured. Rungs stand on the ladder in the order of their declaration.

        In a notebook or at a prompt, a variant of the same name takes the place of the one before, so that a cell can be run again.

        The function takes the inputs in order, or by name if `inputs` gives a dict. It returns the outputs. A parameter named like an
        axis or a config's value is given that value. A parameter `out` is given the array that the output is written to, or a tuple
        of arrays. A parameter `stream` is given the stream that is timed.

        Args:
            function: the function; without it this is a decorator.
            name: by default the name of the function.
            title: a few words for charts; the name by default.
            baseline: speedups are counted from it; by default from the first variant.
            role: what it is compared as: a `rung`, a library's `peer`, a `ceiling` (the least that anyone must do), a `specimen` (a
                known pitfall), or `host` beside the ladder. By default it is a rung, and `host` for NumPy's arrays beside a GPU's.
            precision: arithmetic of the products, such as `tf32`; by default the precision of the first input of real numbers.
            configs: the values of its parameters to try; the best of them stands for the variant.
            arrays: library whose arrays it takes; by default the library of the benchmark.
            writes_inputs: it changes its inputs. They are restored before each execution, outside of the time. If it returns None, the
                first input is its output.
            requires: modules that must be importable.
            skip: gives the reason why a case cannot run, or None; called with the axes and config values that it has parameters for.

        Raises:
            Error: an argument is wrong.
        """
        declaration = {
            "name": name, "title": title, "baseline": baseline, "role": role, "precision": precision, "configs": configs,
            "arrays": arrays, "writes_inputs": writes_inputs, "requires": requires, "skip": skip,
        }  # fmt: skip

        def declare(function: _F) -> _F:
            self._declare(function, unknown, **declaration)
            return function

        return declare if function is None else declare(function)

    def cuda(
        self,
        source: str | Path,
        *,
        kernel: str,
        grid: Any,
        block: Any,
        args: Sequence[Any] | None = None,
        shared: Extent = 0,
        options: Sequence[str] = (),
        name: str = "",
        title: str = "",
        baseline: bool = False,
        role: Role | None = None,
        precision: Precision | None = None,
        configs: Sequence[Params] = ({},),
        skip: Callable[..., str | None] | None = None,
        **unknown: Never,
    ) -> None:
        """Declare a kernel of CUDA C++, or of PTX, that is measured. NVRTC compiles C++ as C++17; PTX is assembled.

        Arrays reach it in the order of their axes in memory, and types that NumPy lacks by their bits. An output starts as NaN.

        Args:
            source: path of a `.cu` or `.ptx` file, from the file that declares the benchmark; or the code.
            kernel: symbol of PTX, or C++ name, such as `softmax<{block}>`, in which axes and config values are filled in.
            grid, block: blocks, and threads of each: one to three extents, or a function of axes and config values that gives them. An
                extent is a number, the name of an axis or config value, or a function.
            args: arguments: names of inputs, outputs (`out`, or `out0`, `out1` and so on), axes and config values, NumPy scalars, or
                functions. An `int` is passed as int32, and a `float` as float32. By default the inputs, then the outputs.
            shared: bytes of dynamic shared memory.
            options: further options of NVRTC.
            name: by default the name of the kernel without its arguments.

        The other arguments are the same as for `variant`.

        Raises:
            Error: an argument is wrong.
        """
        name = name or kernel.partition("<")[0].rpartition("::")[2]
        check_role(name, role, unknown, self.cuda.__annotations__)
        choose(f"{name}: precision", precision or "", ("", *TOLERANCE))
        configs = checked_configs(name, configs, self._axes.values)
        code = source_of_kernel(source, self.file)
        launch = Kernel(f"{self.name}: {name}", kernel, grid, block, args, shared)

        declaration = {
            "title": title, "role": role, "precision": precision, "configs": configs, "skip": skip, "options": tuple(options),
        }  # fmt: skip
        self._has_kernels = True
        self._add(name, baseline, lambda maker: maker.kernel(name, code, launch, declaration))

    def shared_library(
        self,
        library: str | Path,
        function: str,
        *,
        args: Sequence[Any],
        types: Mapping[str, Any] | None = None,
        returns: Literal["int", "void"] = "int",
        source: str | Path = "",
        **options: Unpack[VariantOptions],
    ) -> None:
        """Declare a function of a shared library with a C interface that is measured. It gets arrays as pointers.

        Args:
            library: path of the library, from the file that declares the benchmark; or a name that the system finds.
            function: its name, which is declared `extern "C"` in C++.
            args: its arguments in order: names of inputs, axes and config values, `out` (or `out0`, `out1` and so on) for the outputs,
                `stream` for the stream that is timed, as a `cudaStream_t`; or NumPy scalars and numbers.
            types: name of an argument -> its type, NumPy's or ctypes'. An `int` is passed as int32 and a `float` as float32 otherwise.
            returns: `int` if it returns an error code, in which all but 0 is a failure; or `void`.
            source: file of its source, which is shown beside the figures.
            options: the arguments of `variant`.

        Raises:
            Error: an argument is wrong, or the library is not there.
        """
        folder = self.file.parent if self.file else None
        call = c_function(library, function, args, types=types, returns=returns, source=source, beside=folder)
        options.setdefault("name", function)
        self.variant(call, **options)

    def _declare(self, function: Callable[..., Any], unknown: Mapping[str, Any], **declaration: Any) -> None:
        checked_function(function, "variant")
        name = declaration["name"] or getattr(function, "__name__", "")
        where = place_of(function)
        if not name or name == "<lambda>":
            raise WorkloadError(f"{where} has no name; give the variant one: name='...'")
        check_role(where, declaration["role"], unknown, declaration)
        choose(f"{where}: arrays", declaration["arrays"], ("", *LIBRARIES))
        choose(f"{where}: precision", declaration["precision"] or "", ("", *TOLERANCE))
        declaration["configs"] = checked_configs(where, declaration["configs"], self._axes.values)
        check_takes_config(where, function, declaration["configs"])
        declaration["requires"] = checked_requires(where, declaration["requires"])
        checked_title(where, declaration["title"])
        if declaration["skip"] is not None:
            checked_function(declaration["skip"], "skip")
        self._add(name, declaration["baseline"], lambda maker: maker.function(function, name, declaration))

    def _add(self, name: str, baseline: bool, make: Callable[[Maker], Variant]) -> None:
        checked_name(f"{self.name}: a variant's name", name)
        if name in self._names and self.file:
            raise WorkloadError(f"{self.name}: variant {name} is declared twice; give each its own name")
        if baseline and self._baseline not in ("", name):
            raise WorkloadError(f"{self.name}: {self._baseline} and {name} are both the baseline; choose one")
        self._baseline = name if baseline else "" if self._baseline == name else self._baseline
        place = self._names.index(name) if name in self._names else len(self._names)
        at = declared_at()
        self._names[place : place + 1] = [name]
        self._declared[place : place + 1] = [lambda maker: replace(make(maker), declared_at=at)]
        self._forget()

    def _forget(self) -> None:
        """Make the workload again when it is next needed."""
        self.__dict__.pop("workload", None)

    def __repr__(self) -> str:
        axes = "".join(f", {name}={list(values)!r}" for name, values in self._axes.values.items())
        names = [f"{each} (baseline)" if each == self._baseline else each for each in self._names]
        return f"<Benchmark {self.name!r}{axes}: {', '.join(names) or 'no variants'}>"

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants that have been declared so far."""
        return tuple(self._names)

    # -- the workload underneath ---------------------------------------------------------------------------------------

    @cached_property
    def workload(self) -> Workload:
        """The workload of what has been declared so far. Inputs of the first case are made, to see whose arrays they are.

        Raises:
            Error: inputs, a reference or variants are missing, or `inputs` gives no arrays.
        """
        return self._workload()

    def beside(self, other: "Benchmark", version: str) -> Workload:
        """The workload, with the variants of another version of this benchmark after its own. They get the inputs of this one, and are
        named `NAME@version`.

        Raises:
            Error: as for `workload`.
        """
        return self._workload(other, version)

    def _workload(self, other: "Benchmark | None" = None, version: str = "") -> Workload:
        for what, declared in (("inputs", self._inputs), ("reference", self._reference), ("variant", self._declared)):
            if not declared:
                raise WorkloadError(
                    f"{self.name}: has no {what}; declare {'one' if what != 'inputs' else 'them'} with @bench.{what}"
                )
        assert self._inputs and self._reference
        special = (*self._axes.values, STREAM)
        problem = Problem(
            self._inputs, self._reference, self._outputs, special, self._gradients, self._compare, self.rounded_reference
        )
        made = self._made(problem, self._axes)
        made += [at_version(each, version) for each in other._made(problem, self._axes)] if other else []
        places = itertools.count(1)  # of the rungs, unless a name has a number
        variants = tuple(replace(each, place=next(places)) if each.role == "rung" else each for each in made)
        on_host = [variant.name for variant in variants if variant.kind == "host"]
        baseline = self._baseline or variants[0].name
        return Workload(
            self.name,
            self.title,
            self._axes.cases,
            variants,
            problem.buffers,
            problem.make_inputs,
            problem.reference,
            baseline,
            baseline if baseline in on_host else next(iter(on_host), ""),
            self._tolerance,
            axes=self._axes.declared,
            make_case=self._axes.case,
            functions=(self._inputs, self._reference, *problem.own_comparisons),
            in_single=problem.in_single,
            comparisons=problem.comparisons,
        )

    def _made(self, problem: Problem, axes: Axes) -> list[Variant]:
        """The variants, which get the inputs of a problem."""
        maker = Maker(problem, axes, self._library, self._device, self._has_kernels)
        return [make(maker) for make in self._declared]


def at_version(variant: Variant, version: str) -> Variant:
    """A variant of another version of a file, under the name that it has beside its namesake."""
    return replace(variant, name=f"{variant.name}@{version}", title=f"{variant.title}@{version}")
