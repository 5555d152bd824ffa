"""Makes the variants of a benchmark from what it declares."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from warpladder.workloads.api import Array, Case, CudaVariant, Params, Precision, Role
from warpladder.workloads.driver import has_nvidia_driver
from warpladder.workloads.functions.arguments import is_of_types, launches_triton, precision_of, skip_reason
from warpladder.workloads.functions.arrays import Form
from warpladder.workloads.functions.axes import Axes
from warpladder.workloads.functions.binding import call_of
from warpladder.workloads.functions.call import Call
from warpladder.workloads.functions.kernels import Kernel
from warpladder.workloads.functions.problem import Problem
from warpladder.workloads.functions.variant import GPU_ONLY, FunctionVariant


class Maker:
    """What the variants of a benchmark have in common.

    Args:
        problem: its inputs and reference.
        axes: its axes.
        library: the one whose arrays the variants take; empty for that of the inputs.
        device: `gpu`, `cpu`, or empty for the GPU where there is one.
        has_kernels: it has kernels of CUDA C++.
    """

    def __init__(self, problem: Problem, axes: Axes, library: str, device: str, has_kernels: bool) -> None:
        self._problem, self._axes, self._library, self._device = problem, axes, library, device
        self._has_kernels = has_kernels

    def function(self, function: Callable[..., Any], name: str, given: Mapping[str, Any]) -> FunctionVariant:
        """The variant that is a function; `given` holds the arguments of `Benchmark.variant`."""
        library = given["arrays"] or self._library or self._first_forms[0].library
        on_gpu = self._is_on_gpu(library) or (self._device != "cpu" and launches_triton(function, given["requires"]))
        beside: Role = "host" if library == "numpy" and self._uses_gpu else "rung"
        return FunctionVariant(
            name,
            given["title"] or name,
            given["roles"][0] if given["roles"] else beside,
            **self._common(given),
            skip=partial(skip_reason, given["skip"]) if given["skip"] else FunctionVariant.skip,
            function=function,
            on_gpu=on_gpu,
            library=library,
            bind=partial(self._bind, function, library, on_gpu, given["writes_inputs"]),
            requires=given["requires"],
            writes_inputs=given["writes_inputs"],
        )

    def kernel(self, name: str, source: Path | str, launch: Kernel, given: Mapping[str, Any]) -> CudaVariant:
        """The variant that is a kernel of CUDA C++; `given` holds the arguments of `Benchmark.cuda`."""
        return CudaVariant(
            name,
            given["title"] or name,
            given["roles"][0] if given["roles"] else "rung",
            **self._common(given),
            skip=partial(skip_reason, given["skip"]) if given["skip"] else CudaVariant.skip,
            source=source,
            launches=partial(launch.launches, self._problem),
            options=given["options"],
        )

    def _common(self, given: Mapping[str, Any]) -> dict[str, Any]:
        declared: Precision | None = given["precision"]
        of_case = None if declared else self._precision_at
        return {"precision": declared or self._precision, "of_case": of_case, "configs": given["configs"]}

    @cached_property
    def _first_forms(self) -> list[Form]:
        """The forms of the first case's inputs."""
        case = self._axes.cases[0]
        self._problem.make_inputs(case, np.random.default_rng(0))
        return list(self._problem.given(case).forms.values())

    def _is_on_gpu(self, library: str) -> bool:
        if library == "numpy" or self._device == "cpu":
            return False
        return library in GPU_ONLY or self._device == "gpu" or has_nvidia_driver()

    @property
    def _uses_gpu(self) -> bool:
        """Whether the benchmark's own arrays are on the GPU, or kernels have them there. A variant with NumPy's then stands beside
        the ladder."""
        return self._has_kernels or (self._library or self._first_forms[0].library) != "numpy"

    @property
    def _precision(self) -> Precision:
        """The precision of a variant that declares none, over all cases."""
        mixed = any(is_of_types(values) for values in self._axes.values.values())
        return "mixed" if mixed else precision_of(self._first_forms)

    def _precision_at(self, case: Case) -> Precision:
        return precision_of(self._problem.given(case).forms.values())

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
        differentiated = self._problem.gradients(case)
        return call_of(function, library, on_gpu, given, gave, values, (inputs, outputs), writes_inputs, differentiated)
