"""Images of any size and a filter of 5x5: their cases, buffers and inputs."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpladder.workloads.api import Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.conv2d.host import SIZE
from warpladder.workloads.ladder import counted, extents_of

AXES: Final = (Axis("n", 1, 32768), Axis("shape", 1, 32768, extents=2, instead_of="n"))


def image_shape(case: Case) -> tuple[int, int]:
    """Height and width of the image."""
    height, width = extents_of(case, 2)
    return height, width


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes, from the definition: 25 multiply-adds a pixel, 4 bytes in and 4 out."""
    case = Case(params, 0, 0, sets, size_rank)
    height, width = image_shape(case)
    return counted(case, 2 * SIZE**2 * height * width, buffers(case))


def cases() -> tuple[Case, ...]:
    """Square images by size, and an odd one that is verified but not charted."""
    return (
        make_case({"n": 256}, ("quick",), 0),
        make_case({"n": 512}, ("quick", "report", "full"), 1),
        make_case({"n": 1024}, ("quick", "report", "full"), 2),
        make_case({"n": 2048}, ("report", "full"), 3),
        make_case({"n": 4096}, ("full",), 4),
        make_case({"n": 8192}, ("full",), 5),
        make_case({"shape": "513x1027"}, ("report", "full")),
    )


def emulation_cases() -> tuple[Case, ...]:
    """Images small enough for the CPU emulator. Their edges fall at many places of a tile, a strip and a warp."""
    return tuple(make_case({"shape": shape}) for shape in ("1x1", "3x5", "33x47", "7x132", "67x64", "12x516"))


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """The filter `a` and the image `b`; the convolved image `c`."""
    return {"a": Buffer((SIZE, SIZE)), "b": Buffer(image_shape(case))}, {"c": Buffer(image_shape(case))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    inputs, _ = buffers(case)
    return {name: rng.random(buffer.shape, np.float32) * np.float32(2) - np.float32(1) for name, buffer in inputs.items()}
