"""The transposition on the host, and the pitfall of a view that moves nothing."""

from typing import Any

import numpy as np

from warpladder.workloads.api import Array, Buffers, Case, Params
from warpladder.workloads.call_routes.problem import calls_of
from warpladder.workloads.numba_loops import compiled, prange


def one_call_only(case: Case, config: Params) -> str | None:
    """The reason to skip many calls in a row, for `Variant.skip`."""
    return "nothing is queued on the host: a call has ended when it returns" if calls_of(case) > 1 else None


def numpy_copy(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """NumPy's strided copy out of a transposed view.

    Idea: `x.T` only renames the axes; `copyto` then moves every element.
    Bottleneck: One core, and one of the two sides is walked with a stride of a whole row.
    Next: All cores, tile by tile: `numba_parallel`.
    Source: The report's reference, with the copy that np.transpose leaves out.
    """
    np.copyto(outputs["y"], inputs["x"].T)


def _arguments(case: Case, inputs: Buffers, outputs: Buffers) -> tuple[Any, ...]:
    return inputs["x"], outputs["y"]


@compiled(_arguments)
def numba_serial(x: Array, y: Array) -> None:
    """The report's sequential code for two dimensions: one element after another, on one core.

    Idea: Two nested loops over the input.
    Bottleneck: Each write goes to a cache line of its own, a whole row apart from the one before.
    Next: Tiles that use a cache line while it is there, on all cores: `numba_parallel`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3, `host`.
    """
    height, width = x.shape
    for row in range(height):
        for column in range(width):
            y[column, row] = x[row, column]


@compiled(_arguments, parallel=True)
def numba_parallel(x: Array, y: Array) -> None:
    """Tiles of 32x32, shared out among the cores.

    Idea: A tile's cache lines stay in the first-level cache until all of their elements are used.
    Bottleneck: Memory bandwidth, with stores that first read the line that they replace.
    Next: A GPU.
    Source: Own work, after the tile of `v01_padded_tile`.
    """
    tile = 32
    height, width = x.shape
    for strip in prange((height + tile - 1) // tile):
        top = strip * tile
        bottom = min(top + tile, height)
        for left in range(0, width, tile):
            for column in range(left, min(left + tile, width)):
                for row in range(top, bottom):
                    y[column, row] = x[row, column]


def numpy_view(case: Case, inputs: Buffers, outputs: Buffers) -> Buffers:
    """A pitfall, kept as a specimen: the lazy view. What looks like a transposition in no time has moved nothing.

    Idea: Time `np.transpose` by itself, as if it transposed.
    Bottleneck: None: it makes a new header for the same memory, in the same time at any size.
    Next: Copy out of the view, or the elements never move: `numpy`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.4, where 100x100 and 10000x10000 take the same time.
    """
    return {"y": np.transpose(inputs["x"])}
