"""The second layer of `cnn_conv` whose images, filters and results are BF16."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.cnn_conv import host
from warpladder.workloads.cnn_conv import problem as of_float32
from warpladder.workloads.declare.cases import narrowed
from warpladder.workloads.ladder import counted, widened_inputs

_LAYER: Final = 2
_ROUNDOFF: Final = 2.0**-8  # of BF16
#: Most that sums in the tensor cores lose: an instruction cuts a float32 off, and 4 x 7 x 8 products, one of eight with a zero, take 14.
_SUMS: Final = 14 * 2.0**-23
#: Relative L2 errors that pass. Products of BF16, in TF32 too, are exact in float32, and a result is rounded once, by `_ROUNDOFF` of it at most. If one of the
#: 52,080 results of the odd case is missing, the error is 4e-3.
TOLERANCES: Final[Mapping[str, float]] = {
    **TOLERANCE,
    **dict.fromkeys(("bf16", "tf32"), _ROUNDOFF + _SUMS),
    "fp32": _ROUNDOFF + TOLERANCE["fp32"],
}

AXES: Final = (Axis("layer", _LAYER, _LAYER, default=str(_LAYER)), *of_float32.AXES[1:])


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Inputs and outputs, named and shaped as those of `cnn_conv`."""
    inputs, outputs = ({name: Buffer(of.shape, "bfloat16") for name, of in side.items()} for side in of_float32.buffers(case))
    return inputs, outputs


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes; see `cnn_conv`."""
    case = of_float32.case(params, sets, size_rank)
    return counted(case, case.flops, buffers(case))


def _of_layer(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(make_case(case.params, case.sets, case.size_rank) for case in cases if case.params["layer"] == _LAYER)


def cases() -> tuple[Case, ...]:
    """Those of the layer."""
    return _of_layer(of_float32.cases())


def emulation_cases() -> tuple[Case, ...]:
    """Those of the layer, small enough for the CPU emulator."""
    return _of_layer(of_float32.emulation_cases())


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Uniform in [-1, 1), rounded."""
    return {name: narrowed(array, "bfloat16") for name, array in of_float32.make_inputs(case, rng).items()}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The results in float64."""
    return host.reference(case, widened_inputs(buffers, case, inputs))
