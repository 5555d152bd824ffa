"""The rungs of the convolution: how each kernel is launched."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Case, Constants, CudaVariant, Launch, Params, ceil_div
from warpladder.workloads.conv2d.problem import image_shape
from warpladder.workloads.ladder import launch, rungs_in, template

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_BLOCKS: Final = tuple({"block": block} for block in (8, 16, 32))
_FLOAT4: Final = 4
_COPY: Final = Constants(KERNELS / "v01_copy.cu")
_REGISTER_TILE: Final = Constants(KERNELS / "v07_register_tile.cu")


def _copy_of_b(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    return {"c": inputs["b"]}


def _copy(case: Case, config: Params) -> Sequence[Launch]:
    per_thread, count, threads = config["per_thread"], int(np.prod(image_shape(case))), _COPY["kThreads"]
    blocks = max(1, ceil_div(count // _FLOAT4, threads * per_thread))
    return [launch(template("copy", per_thread, config["loads"] == "streaming"), blocks, threads, "b", "c", np.int64(count))]


def _naive(case: Case, config: Params) -> Sequence[Launch]:
    """Blocks run down the rows of the image, as the student report's do."""
    block, (height, width) = config["block"], image_shape(case)
    return [launch("conv2d", (ceil_div(height, block), ceil_div(width, block)), (block, block), "a", "b", "c", height, width)]


def _cover(
    case: Case, kernel: str, block: tuple[int, int], tile: tuple[int, int], args: Sequence[str] = ("b", "c")
) -> Sequence[Launch]:
    """One launch of `block` (x, y) threads a block, each block computing `tile` (columns, rows) of the image."""
    height, width = image_shape(case)
    return [launch(kernel, (ceil_div(width, tile[0]), ceil_div(height, tile[1])), block, *args, height, width)]


def _from_global(case: Case, config: Params) -> Sequence[Launch]:
    square = (config["block"], config["block"])
    return _cover(case, "conv2d", square, square, ("a", "b", "c"))


def _shared(case: Case, config: Params) -> Sequence[Launch]:
    square = (config["block"], config["block"])
    return _cover(case, f"conv2d<{config['block']}>", square, square)


def _register_tile(case: Case, config: Params) -> Sequence[Launch]:
    threads = (_REGISTER_TILE["kColumns"], _REGISTER_TILE["kThreadRows"])
    return _cover(case, f"conv2d<{config['rows']}>", threads, (threads[0], threads[1] * config["rows"]))


def _has_vectors(case: Case) -> bool:
    """Whether rows are 16-byte aligned, so that float4 loads and stores may be used."""
    return image_shape(case)[1] % _FLOAT4 == 0


def _side_by_side(case: Case, config: Params, of: Constants) -> Sequence[Launch]:
    """A block is one row of threads, each with a strip four columns wide."""
    rows, threads = config["rows"], of["kThreads"]
    return _cover(case, template("conv2d", rows, _has_vectors(case)), (threads, 1), (threads * of["kColumns"], rows))


def _stacked(case: Case, config: Params, of: Constants) -> Sequence[Launch]:
    """A block is a stack of warps, one above the other."""
    rows, warps, lanes = config["rows"], config["warps"], of["kLanes"]
    kernel = template("conv2d", rows, warps, _has_vectors(case))
    return _cover(case, kernel, (lanes, warps), (lanes * of["kColumns"], warps * rows))


_global_rung: Final = partial(rungs_in(KERNELS), configs=_BLOCKS)
_rung: Final = partial(rungs_in(KERNELS), constants={"filter": "a"})  # with the filter in constant memory


def _strip_rung(
    name: str, title: str, configs: tuple[Params, ...], launches: Callable[..., Sequence[Launch]], **more: Any
) -> CudaVariant:
    """A rung whose threads have a strip of the image each. Its launches read the kernel's constants."""
    return _rung(name, title, partial(launches, of=Constants(KERNELS / f"{name}.cu")), configs, **more)


def _strips(rows: Sequence[int], warps: Sequence[int] = ()) -> tuple[Params, ...]:
    if not warps:
        return tuple({"rows": r} for r in rows)
    return tuple({"rows": r, "warps": w} for r, w in product(rows, warps))


CUDA_VARIANTS: Final = (
    CudaVariant(
        name="v01_copy",
        title="Copy (ceiling)",
        role="ceiling",
        configs=tuple({"per_thread": n, "loads": loads} for n, loads in ((1, "plain"), (4, "plain"), (4, "streaming"))),
        reference=_copy_of_b,
        source=KERNELS / "v01_copy.cu",
        launches=_copy,
    ),
    _global_rung("v02_naive_global", "Naive, global memory", launches=_naive),
    _global_rung("v03_coalesced", "Coalesced", launches=_from_global),
    _global_rung("v04_single_precision", "Single precision", launches=_from_global),
    _rung("v05_constant_shared", "Constant filter, shared tile", _shared, _BLOCKS),
    _rung("v06_shared_halo", "Shared tile with halo", _shared, _BLOCKS),
    _rung("v07_register_tile", "Register tile", _register_tile, _strips([4, 8])),
    _strip_rung("v08_sliding_window", "Sliding window", _strips([15, 30, 60]), _side_by_side),
    _strip_rung("v09_loads_first", "All loads first", _strips([4, 10, 16]), _side_by_side),
    _strip_rung("v10_stacked_warps", "Stacked warps", _strips([1, 2, 4, 5], [4]), _stacked),
    _strip_rung("v11_shuffled_halo", "Shuffled halo", _strips([2, 3], [2, 4]), _stacked),
)
