"""Launches of kernels of a few lines, for tests of the emulator."""

import numpy as np

from tests.emulator.emulator import run
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.installation import ROOT
from warpladder.workloads.api import CudaVariant, Launch, read_source

_HEADERS = tuple(
    ROOT / "workloads" / name
    for name in (
        "hopper.cuh",
        "hopper_bf16.cuh",
        "hopper_across.cuh",
        "hopper_clusters.cuh",
        "hopper_cluster_stores.cuh",
        "hopper_stores.cuh",
        "hopper_boxes.cuh",
    )
)


def emulate(
    source,
    kernel="k",
    *,
    grid=(1, 1, 1),
    block=(32, 1, 1),
    args=("x", "y"),
    x=None,
    y=None,
    dynamic=0,
    constants=None,
    order="forward",
):
    """Runs one launch of a source with an input `x` and an output `y` (32 NaN where none is given); gives `y`."""
    x = np.arange(32, dtype=np.float32) if x is None else x
    y = np.full(32, np.nan, np.float32) if y is None else y
    variant = CudaVariant(name="tiny", title="", role="rung", source=source, constants=constants or {})
    run(variant, [Launch(kernel, grid, block, args, dynamic)], {"x": x}, {"y": y}, order)
    return y


def emulate_on_hopper(source, kernel="k", *, compiled=True, **launch):
    """The same for a source after the headers of Hopper, with lines of its own; NVRTC compiles it too unless it is wrong on purpose."""
    whole = "\n".join([*map(read_source, _HEADERS), '#line 1 "tiny.cu"', source])
    if compiled:
        compile_variant(CudaVariant("tiny", "", "rung", source=whole, only_architecture="sm_90a"), [kernel], "sm_90")
    return emulate(whole, kernel, **launch)
