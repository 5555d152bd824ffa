"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from warpladder.workloads.api import (
    Buffer,
    Case,
    Constants,
    CudaVariant,
    Launch,
    Overlapped,
    Params,
    Part,
    Pinned,
    Precision,
    ceil_div,
    up_to,
)
from warpladder.workloads.gan_tconv import few, phases, wgmma
from warpladder.workloads.gan_tconv.problem import KERNEL_SIZE, Layer, channels_of, images_of, layers, make_case, side_of
from warpladder.workloads.ladder import HOPPER, launch, rungs_in

_KERNELS: Final = Path(__file__).parent / "kernels"

REPORT_BATCH: Final = 100
_PART: Final = 512  # images whose kernels overlap the copies of others: whole tiles; fewer leave multiprocessors idle
#: Inputs that one copy brings: all but the large weights, and z of more than 1,310 images.
_TOGETHER_BYTES: Final = 512 * 1024
_MANY: Final = 2_000  # images, from which on the quickest rungs have time for larger parts
_MOST_ALONE: Final = 100  # images, one after another
_MOST_BATCHED: Final = 1_000  # by the student report's kernels, but for its last rung, with which it has generated more
_TAPS: Final = KERNEL_SIZE**2
_THREADS: Final = 128  # the student report's BLOCK_SIZE
_MATRIX_PRODUCT: Final = Constants(_KERNELS / "v03_matrix_product.cu")
_GRID_BLOCK: Final = (4, 4, 2)


def _launch(kernel: str, count: int, *args: str | int) -> Launch:
    """One thread for each of `count` elements."""
    return launch(kernel, ceil_div(count, _THREADS), _THREADS, *args)


def _batches(case: Case, batch: int) -> Iterator[tuple[int, int]]:
    """First image and number of images."""
    for first in range(0, images_of(case), batch):
        yield first, min(batch, images_of(case) - first)


def _activated(name: str, bn: str, count: int, channels: int) -> list[Launch]:
    return [_launch("batch_norm", count, name, bn, count, channels), _launch("relu", count, name, count)]


def _direct(layer: Layer, images: int) -> list[Launch]:
    """One thread an output."""
    n, (x, y, z) = layer.number, _GRID_BLOCK
    grid = (ceil_div(2 * layer.side, x), ceil_div(2 * layer.side, y), ceil_div(images * layer.out_channels, z))
    args = (f"x{n - 1}", f"w{n}", f"b{n}", f"x{n}", images, layer.side, layer.channels, layer.out_channels)
    return [launch("tconv", grid, _GRID_BLOCK, *args)]


def _flipped(case: Case, products: int) -> list[Launch]:
    """The weights of the layers that are matrix products, as matrices: once an operation."""
    launches = [
        _launch(
            "flip_weights",
            *(_TAPS * layer.channels * layer.out_channels, f"w{layer.number}", f"matrix{layer.number}"),
            *(layer.channels, layer.out_channels),
        )
        for layer in layers(case)[:products]
    ]
    return [replace(each, once=True) for each in launches]


def _product(layer: Layer, images: int) -> list[Launch]:
    """The matrix of the taps, and its product with that of the weights."""
    n, rows, depth = layer.number, images * 4 * layer.side**2, _TAPS * layer.channels
    tile = _MATRIX_PRODUCT["kT"]
    tile_columns = tile * _MATRIX_PRODUCT["kV"]
    grid = (ceil_div(rows, tile), ceil_div(layer.out_channels, tile_columns))
    return [
        _launch("expand", rows * depth, f"x{n - 1}", "taps", images, layer.side, layer.channels),
        launch("multiply", grid, tile_columns, "taps", f"matrix{n}", f"b{n}", f"x{n}", rows, depth, layer.out_channels),
    ]


def _report(case: Case, batch: int, products: int) -> Sequence[Launch]:
    """The student report's kernels, `batch` images a launch: `products` layers by matrix product, the others by one thread an
    output."""
    channels = channels_of(case)
    first_outputs = side_of(case) ** 2 * channels
    launches = _flipped(case, products)
    for first, images in _batches(case, batch):
        launches.append(_launch("dense", images * first_outputs, "z", "w0", "x0", first, images, first_outputs))
        launches += _activated("x0", "bn0", images * first_outputs, channels)
        for layer in layers(case):
            launches += _product(layer, images) if layer.number <= products else _direct(layer, images)
            n, count = layer.number, images * layer.outputs
            if layer.last:
                launches.append(_launch("tanh_layer", count, f"x{n}", "images", first, layer.outputs, count))
            else:
                launches += _activated(f"x{n}", f"bn{n}", count, layer.out_channels)
    return launches


def _report_scratch(case: Case, batch: int, products: int) -> Mapping[str, Buffer]:
    """`x0` to `x4`, the pixels between layers; for products the matrices of the weights and that of the taps."""
    images, network = min(batch, images_of(case)), layers(case)
    scratch = {"x0": Buffer((images, side_of(case), side_of(case), channels_of(case)))}
    for layer in network:
        scratch[f"x{layer.number}"] = Buffer((images, 2 * layer.side, 2 * layer.side, layer.out_channels))
    for layer in network[:products]:
        scratch[f"matrix{layer.number}"] = Buffer((_TAPS * layer.channels, layer.out_channels))
    if products:
        largest = max(4 * layer.side**2 * _TAPS * layer.channels for layer in network[:products])
        scratch["taps"] = Buffer((images * largest,))
    return scratch


def parts_of(most: int) -> Callable[[Case, Params], Sequence[Part]]:
    """Parts of a case with `most` images each; the last part has the rest."""

    def parts(case: Case, config: Params) -> Sequence[Part]:
        return [Part(make_case({**case.params, "images": images}), first) for first, images in _batches(case, most)]

    return parts


def _parts_of_warpgroups(case: Case, config: Params) -> Sequence[Part]:
    """Smaller parts, because quick kernels wait longer, in proportion, for the first and the last copy. Two streams keep
    multiprocessors busy."""
    return parts_of(3 * _PART // 4 if images_of(case) >= _MANY else _PART // 4)(case, config)


_LARGE_WEIGHTS: Final = ("w0", "w1", "w2")  # 19.7 of the 20.5 MB of weights
_WARPGROUPS: Final = Overlapped(_parts_of_warpgroups, streams=2, gathered=_LARGE_WEIGHTS, together_bytes=_TOGETHER_BYTES)


_rung: Final = rungs_in(_KERNELS)


def _report_rung(name: str, title: str, batch: int, products: Sequence[int], **more: Any) -> CudaVariant:
    """A rung with `products` layers by matrix product; several numbers become configs."""
    return _rung(
        *(name, title, lambda case, config: _report(case, batch, config.get("products", products[0]))),
        configs=[{"products": n} for n in products] if len(products) > 1 else ({},),
        scratch=lambda case, config: _report_scratch(case, batch, config.get("products", products[0])),
        **more,
    )


def _phases_rung(
    name: str,
    title: str,
    product: phases.Product,
    configs: Sequence[Params] = ({},),
    precision: Precision = "fp32",
    **more: Any,
) -> CudaVariant:
    launches = partial(phases.launches, product=product, round_operands=precision == "tf32")
    of_phases = {"scratch": phases.scratch, "skip": phases.skip, "min_compute_capability": (8, 0), "graph": True}
    return _rung(name, title, launches, configs, precision, end_to_end=Overlapped(parts_of(_PART)), **{**of_phases, **more})


def _few_images_rung(name: str, title: str, arithmetic: few.Arithmetic, precision: Precision) -> CudaVariant:
    return _rung(
        *(name, title, lambda case, config: few.launches(case, arithmetic)),
        precision=precision,
        scratch=few.scratch,
        skip=phases.skip,
        min_compute_capability=(9, 0),
        graph=True,
        end_to_end=Overlapped(parts_of(_PART)),
    )


def _warpgroups_rung(name: str, title: str, launches: Any, precision: Precision, scratch: Any) -> CudaVariant:
    overlapped = {"graph": True, "end_to_end": _WARPGROUPS}
    return _rung(name, title, launches, precision=precision, scratch=scratch, skip=wgmma.skip, **overlapped, **HOPPER)


_TILES: Final = ({"tile": 128}, {"tile": 64})
_ALONE: Final = up_to(_MOST_ALONE, "images", images_of)
_BATCHED: Final = up_to(_MOST_BATCHED, "images", images_of)

CUDA_VARIANTS: Final = (
    _report_rung("v01_naive_grid", "Naive, 3-D grid", 1, [0], skip=_ALONE),
    _report_rung("v02_stride_two", "Without divergence", 1, [0], skip=_ALONE),
    _report_rung("v03_matrix_product", "Matrix product", 1, [4], skip=_ALONE),
    _report_rung("v04_batched", "Matrix product, 100 images", REPORT_BATCH, [4], skip=_BATCHED),
    _report_rung("v05_mixed", "Mixed methods", REPORT_BATCH, [2, 3, 4], skip=_BATCHED),
    _report_rung("v06_pinned", "Pinned host memory", REPORT_BATCH, [3], skip=_BATCHED, end_to_end=Pinned()),
    _report_rung("v07_overlapped", "Copies overlapped", REPORT_BATCH, [3], end_to_end=Overlapped(parts_of(REPORT_BATCH))),
    _phases_rung("v08_phases", "Phases, implicit product", phases.fma_product, _TILES, graph=False),
    _phases_rung("v09_graph", "Phases, one CUDA graph", phases.fma_product, _TILES),
    _phases_rung(
        "v10_three_products", "Tensor cores, 3xTF32", phases.tensor_product("ThreeProducts", False), precision="3xtf32"
    ),
    _phases_rung(
        *("v11_one_product", "Tensor cores, TF32", phases.tensor_product("OneProduct", True)),
        *(({"columns": 128}, {"columns": 64}), "tf32"),
    ),
    _warpgroups_rung("v12_warpgroups_3xtf32", "Warpgroups, 3xTF32", wgmma.three_products, "3xtf32", wgmma.scratch),
    _warpgroups_rung("v13_warpgroups_tf32", "Warpgroups, TF32", wgmma.one_product, "tf32", wgmma.scratch_of_one_product),
    _few_images_rung("v14_few_images", "Few images", few.FMA, "fp32"),
    _few_images_rung("v15_few_images_tf32", "Few images, TF32", few.TENSOR_CORES, "tf32"),
    _warpgroups_rung(
        *("v16_rounded_on_load_tf32", "Warpgroups, rounded by the TMA", wgmma.rounded_on_load, "tf32"),
        wgmma.scratch_of_pixels,
    ),
    # Its precision is that of the class whose tolerance it is held to.
    _few_images_rung("v17_few_images_bf16_corrections", "Few images, TF32 with BF16 corrections", few.CORRECTED, "3xtf32"),
)
