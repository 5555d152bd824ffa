"""The rungs in BF16, each with its launches."""

from pathlib import Path
from typing import Final

from warpladder.workloads.api import Constants
from warpladder.workloads.cnn_conv.rungs import WholeImages, thread_an_output
from warpladder.workloads.ladder import HOPPER, rungs_in

_KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_TILE: Final = Constants(_KERNELS / "v01_parallel.cu")["kTile"]
_OF_WHOLE_IMAGES: Final = Constants(_KERNELS / "v02_whole_images.cu")

_rung: Final = rungs_in(_KERNELS)
_WHOLE_IMAGES: Final = WholeImages(
    _OF_WHOLE_IMAGES, element=2, buffers=(_OF_WHOLE_IMAGES["kInBuffers"], _OF_WHOLE_IMAGES["kOutBuffers"])
)

CUDA_VARIANTS: Final = (
    _rung(
        *("v01_parallel", "Thread an output"),
        lambda case, config: thread_an_output(case, ("x", "k", "y"), _TILE),
        precision="bf16",
    ),
    _rung(
        *("v02_whole_images", "Whole images", _WHOLE_IMAGES.launches),
        precision="bf16",
        skip=_WHOLE_IMAGES.skip,
        **HOPPER,
    ),
)
