"""Images of any size and a filter of 5x5: their cases, buffers and inputs."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpladder.workloads.api import Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.conv2d.host import SIZE

AXES: Final = (Axis("n", 1, 32768), Axis("shape", 1, 32768, extents=2, instead_of="n"))


def image_shape(case: Case) -> tuple[int, int]:
    """Height and width of the image."""
    if "n" in case.params:
        return case.params["n"], case.params["n"]
    height, width = case.params["shape"].split("x")
    return int(height), int(width)


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes, from the definition: 25 multiply-adds a pixel, 4 bytes in and 4 out."""
    height, width = image_shape(Case(params, flops=0, min_bytes=0))
    inputs, outputs = _buffers(height, width)
    return Case(
        params,
        flops=2 * SIZE**2 * height * width,
        min_bytes=sum(buffer.nbytes for buffer in (*inputs.values(), *outputs.values())),
        sets=sets,
        size_rank=size_rank,
    )


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
    return _buffers(*image_shape(case))


def _buffers(height: int, width: int) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    return {"a": Buffer((SIZE, SIZE)), "b": Buffer((height, width))}, {"c": Buffer((height, width))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    inputs, _ = buffers(case)
    return {name: rng.random(buffer.shape, np.float32) * np.float32(2) - np.float32(1) for name, buffer in inputs.items()}
