"""The generator of `gan_tconv` whose latent vectors, weights, pixels and images are BF16. Biases and batch normalisation stay float32, as in
training and inference by mixed precision."""

from collections.abc import Mapping
from math import sqrt
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Buffer, Case, CaseSet, Params
from warpladder.workloads.declare.cases import narrowed
from warpladder.workloads.gan_tconv import host
from warpladder.workloads.gan_tconv import problem as of_float32
from warpladder.workloads.ladder import counted, widened_inputs

_ROUNDOFF: Final = 2.0**-8  # of BF16
_ROUNDED: Final = 5  # times that a value is rounded on its way: pixels behind the dense layer and three others, and images
#: Most that sums in the tensor cores lose: an instruction cuts a float32 off, and the longest sum, 9 taps of 512 channels, takes 288.
_SUMS: Final = 4 * 288 * 2.0**-23
#: Relative L2 errors that pass. A rounding is off by `_ROUNDOFF` of a value at most. Roundings are independent of each other, so that their squares
#: add up, and a layer enlarges an error as it enlarges its inputs. Host variants compute in float32 and round the images only. If one pixel of the
#: three images of the odd case is missing, the error is 9e-3.
TOLERANCES: Final[Mapping[str, float]] = {
    **TOLERANCE,
    "bf16": sqrt(_ROUNDED) * _ROUNDOFF + _SUMS,
    "fp32": _ROUNDOFF + TOLERANCE["fp32"],
}


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Inputs and outputs, named and shaped as those of `gan_tconv`."""
    inputs, outputs = of_float32.buffers(case)
    narrow = {name: Buffer(of.shape, "bfloat16") if name[0] in "zw" else of for name, of in inputs.items()}
    return narrow, {name: Buffer(of.shape, "bfloat16") for name, of in outputs.items()}


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes; see `gan_tconv`."""
    case = of_float32.make_case(params, sets, size_rank)
    return counted(case, case.flops, buffers(case))


def cases() -> tuple[Case, ...]:
    """Those of `gan_tconv`."""
    return tuple(make_case(case.params, case.sets, case.size_rank) for case in of_float32.cases())


def emulation_cases() -> tuple[Case, ...]:
    """Networks small enough for the CPU emulator: few images, and more than a tile has."""
    return tuple(make_case({"images": images, "channels": 64, "side": 1}) for images in (3, 131))


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Those of `gan_tconv`, rounded."""
    inputs, _ = buffers(case)
    return {name: narrowed(array, inputs[name].dtype) for name, array in of_float32.make_inputs(case, rng).items()}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The images in float64."""
    return host.reference(case, widened_inputs(buffers, case, inputs))
