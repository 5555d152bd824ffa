"""The problem: y[b, m, h, w] = sum over c, p, q of x[b, c, h + p, w + q] * k[m, c, p, q], valid, stride 1, 7x7.

The two layers are the student report's: one channel of 86x86 into 4 maps of 80x80, and 4 channels of 40x40 into 16 maps of 34x34.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.workloads.api import Axis, AxisError, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import counted, extents_of

SIZE: Final = 7  # of the filters, along both sides
ODD_SHAPE: Final = "3x37x41"  # batch, height and width: no multiple of any tile
BATCHES: Final = (10, 100, 1000, 10_000)  # the student report has the last three

_LAYERS: Final = {1: (1, 4, 86), 2: (4, 16, 40)}  # input channels, output maps, side of the image
_SETS: Final[Mapping[int, tuple[CaseSet, ...]]] = {10: ("quick",)}


@dataclass(frozen=True)
class Shape:
    """Extents of a layer: `batch` images of `channels` planes become as many images of `maps` planes."""

    batch: int
    channels: int
    maps: int
    height: int
    width: int

    @property
    def out_height(self) -> int:
        return self.height - SIZE + 1

    @property
    def out_width(self) -> int:
        return self.width - SIZE + 1

    @property
    def taps(self) -> int:
        """Products added up for an output."""
        return self.channels * SIZE**2


def shape_of(case: Case) -> Shape:
    """The extents of a case: `batch` images of the layer's own size, or images as `shape` says."""
    channels, maps, side = _LAYERS[case.params["layer"]]
    if "batch" in case.params:
        return Shape(case.params["batch"], channels, maps, side, side)
    batch, height, width = extents_of(case, 3)
    return Shape(batch, channels, maps, height, width)


AXES: Final = (
    Axis("layer", 1, 2),
    Axis("batch", 1, 100_000),
    Axis("shape", 1, 8192, extents=3, instead_of="batch"),
)


def case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes, from the definition: each tap of an output is a multiply-add."""
    plain = Case(params, 0, 0, sets, size_rank)
    shape = shape_of(plain)
    if min(shape.out_height, shape.out_width) < 1:
        raise AxisError(f"images of {shape.height}x{shape.width} are smaller than a filter of {SIZE}x{SIZE}")
    outputs = shape.batch * shape.maps * shape.out_height * shape.out_width
    return counted(plain, 2 * shape.taps * outputs, buffers(plain))


def cases() -> tuple[Case, ...]:
    """Both layers at every batch, and small odd images through both, which are verified but not charted."""
    by_batch = [
        case({"layer": layer, "batch": batch}, _SETS.get(batch, ("report", "full")), size_rank)
        for size_rank, batch in enumerate(BATCHES)
        for layer in _LAYERS
    ]
    return (*by_batch, *(case({"layer": layer, "shape": ODD_SHAPE}, ("report", "full")) for layer in _LAYERS))


def emulation_cases() -> tuple[Case, ...]:
    """Images small enough for the CPU emulator: sides odd and even, more columns than a tile of 16, rows of every alignment."""
    shapes = {1: ("2x14x14", "3x23x29"), 2: ("1x24x41", "2x23x40", "2x24x40")}
    return tuple(case({"layer": layer, "shape": shape}) for layer, of_layer in shapes.items() for shape in of_layer)


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Images `x` and filters `k` in, images `y` out."""
    shape = shape_of(case)
    images = Buffer((shape.batch, shape.channels, shape.height, shape.width))
    filters = Buffer((shape.maps, shape.channels, SIZE, SIZE))
    return {"x": images, "k": filters}, {"y": Buffer((shape.batch, shape.maps, shape.out_height, shape.out_width))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Uniform in [-1, 1)."""
    inputs, _ = buffers(case)
    return {name: 2.0 * rng.random(buffer.shape, np.float32) - np.float32(1.0) for name, buffer in inputs.items()}
