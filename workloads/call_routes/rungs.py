"""The kernel that all routes call, launched by the recorder itself: what the routes are compared with."""

from pathlib import Path
from typing import Final

from warpladder.workloads.api import Case, Constants, CudaVariant, Launch, Params, ceil_div
from warpladder.workloads.call_routes.problem import calls_of, shape_of
from warpladder.workloads.ladder import launch

#: The one text of the kernel, and the name that it has in compiled code.
KERNEL: Final = Path(__file__).parent / "kernels" / "v01_padded_tile.cu"
NAME: Final = "transpose"
_CONSTANTS: Final = Constants(KERNEL)


Triple = tuple[int, int, int]


def block() -> Triple:
    """Threads of a block, along x, y and z."""
    return _CONSTANTS["kTile"], _CONSTANTS["kRowsAtOnce"], 1


def grid_of(case: Case) -> Triple:
    """Blocks along x, y and z: a tile each."""
    height, width = shape_of(case)
    tile = _CONSTANTS["kTile"]
    return ceil_div(width, tile), ceil_div(height, tile), 1


def _launches(case: Case, config: Params) -> tuple[Launch, ...]:
    height, width = shape_of(case)
    return (launch(NAME, grid_of(case), block(), "x", "y", height, width),) * calls_of(case)


CUDA_VARIANTS: Final = (
    CudaVariant(name="v01_padded_tile", title="The recorder's own launch", role="rung", source=KERNEL, launches=_launches),
)
