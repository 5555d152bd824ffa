"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.ladder import launch, rungs_in, template
from warpladder.workloads.tensor_transpose.problem import copy_reference, out_strides_of, perm_of, shape_of

_KERNELS: Final = Path(__file__).parent / "kernels"
TILE: Final = 8  # the student report's kernels work on cubes of 8x8x8
#: Rows and columns of the tile's array in shared memory, by permutation: those of the student report's table 2 ...
REPORT_PADDING: Final = {"012": (8, 8), "021": (8, 12), "102": (9, 8), "120": (10, 10), "201": (8, 9), "210": (12, 9)}
#: ... and the smallest with the fewest passes in all, by the count of `dashboard/views/reports/details/conflicts.py`.
FEWEST_PADDING: Final = {"012": (8, 8), "021": (8, 8), "102": (9, 8), "120": (8, 9), "201": (9, 8), "210": (12, 9)}
_PADDING: Final = {"report": REPORT_PADDING, "fewest": FEWEST_PADDING}

_COPY: Final = Constants(_KERNELS / "v01_copy.cu")
_SECTORS: Final = Constants(_KERNELS / "v13_whole_sectors.cu")
_PADDED_TILE: Final = Constants(_KERNELS / "v09_padded_tile.cu")
_SECTOR: Final = 8  # elements
_VECTORS: Final = {4: "float4", 2: "float2", 1: "float"}  # elements -> type
_BLOCKS_PER_SM: Final = {64: 16, 128: 8, 256: 6}  # by threads of the swizzled tile: what its registers allow


@dataclass(frozen=True)
class PlaneStack:
    """A permutation that moves the innermost axis, as a stack of plane transpositions.

    A plane of the input has `height` rows of `width` contiguous elements, a plane of the output `width` rows of `height`.
    Strides are in elements.
    """

    height: int
    width: int
    planes: int
    in_row: int
    in_plane: int
    out_row: int
    out_plane: int

    @property
    def vectorizes(self) -> bool:
        """Rows of both sides start at multiples of 16 bytes."""
        return self.height % 4 == 0 and self.width % 4 == 0

    @property
    def begins_with_sectors(self) -> bool:
        """Rows of the output start at multiples of 32 bytes, which memory is written in."""
        return self.out_row % _SECTOR == 0 and self.out_plane % _SECTOR == 0

    @property
    def args(self) -> tuple[object, ...]:
        """Arguments of the plane kernels that count elements in 64 bits."""
        sizes = (np.int32(self.height), np.int32(self.width))
        strides = (np.int64(self.in_row), np.int64(self.in_plane), np.int64(self.out_row), np.int64(self.out_plane))
        return ("x", "y", *sizes, *strides)


def plane_stack(case: Case) -> PlaneStack:
    """The stack of a case whose permutation moves the innermost axis."""
    dim, out_strides = shape_of(case), out_strides_of(case)
    in_strides = (dim[1] * dim[2], dim[2], 1)
    rows_axis = perm_of(case)[2]
    stack_axis = 1 - rows_axis
    return PlaneStack(
        height=dim[rows_axis],
        width=dim[2],
        planes=dim[stack_axis],
        in_row=in_strides[rows_axis],
        in_plane=in_strides[stack_axis],
        out_row=out_strides[2],
        out_plane=out_strides[stack_axis],
    )


def keeps_rows(case: Case) -> bool:
    """The innermost axis stays innermost: whole rows move."""
    return perm_of(case)[2] == 2


def _needs_planes(case: Case, config: Params) -> str | None:
    return "the innermost dimension stays in place, so there is no plane to transpose" if keeps_rows(case) else None


def _counts_in_32_bits(case: Case, config: Params) -> str | None:
    few = np.prod(shape_of(case), dtype=object) < 2**31
    return None if few else "counts elements in 32 bits; needs fewer than 2^31 of them"


def _needs_rows(case: Case, config: Params) -> str | None:
    if not keeps_rows(case):
        return "the innermost dimension moves, so that rows do not stay whole"
    return _counts_in_32_bits(case, config)


def _needs_vectors(case: Case, config: Params) -> str | None:
    reason = _needs_planes(case, config)
    if reason is None and not plane_stack(case).vectorizes:
        reason = "needs extents that are multiples of 4 in both dimensions of the plane"
    return reason


def _needs_matrices(case: Case, config: Params) -> str | None:
    return None if perm_of(case) == (0, 2, 1) else "transposes a stack of matrices; only the permutation (0,2,1) is one"


def _copy(case: Case, config: Params) -> list[Launch]:
    count, threads, per_thread = int(np.prod(shape_of(case))), _COPY["THREADS"], config["per_thread"]
    return [launch(template("copy", per_thread), max(1, ceil_div(count // 4, threads * per_thread)), threads, "x", "y", count)]


def _cubes(kernel: str, case: Case, tile: int, *more: int) -> list[Launch]:
    """One thread an element, in cubic blocks over the input."""
    dim0, dim1, dim2 = shape_of(case)
    grid = (ceil_div(dim2, tile), ceil_div(dim1, tile), ceil_div(dim0, tile))
    return [launch(kernel, grid, (tile, tile, tile), "x", "y", dim0, dim1, dim2, *more)]


def _tile_of(name: str) -> int:
    """Side of the cube that a kernel keeps in shared memory."""
    return Constants(_KERNELS / f"{name}.cu")["TILE"]


def _run_time_permutation(case: Case, tile: int) -> list[Launch]:
    return _cubes("transpose", case, tile, *perm_of(case))


def _compile_time_permutation(case: Case, tile: int) -> list[Launch]:
    return _cubes(template("transpose", *perm_of(case)), case, tile)


def _bank_padding(case: Case, config: Params) -> list[Launch]:
    rows, columns = _PADDING[config["padding"]][case.params["perm"]]
    return _cubes(template("transpose", *perm_of(case), rows, columns), case, _tile_of("v07_bank_padding"))


def _matrix_tile(case: Case, config: Params) -> list[Launch]:
    (planes, height, width), tile = shape_of(case), config["tile"]
    grid = (ceil_div(width, tile), ceil_div(height, tile), planes)
    return [launch(template("transpose", tile), grid, (tile, tile), "x", "y", height, width)]


def _padded_tile(case: Case, config: Params) -> list[Launch]:
    stack, tile = plane_stack(case), _PADDED_TILE["TILE"]
    grid = (ceil_div(stack.width, tile), ceil_div(stack.height, tile), stack.planes)
    return [launch("transpose", grid, (tile, _PADDED_TILE["ROWS_AT_ONCE"]), *stack.args)]


def _register_tile(case: Case, config: Params) -> list[Launch]:
    stack = plane_stack(case)
    warps, lanes_across = config["threads"] // 32, config["read"] // 16
    across, down = 2 * lanes_across * 4, warps // 2 * (32 // lanes_across) * 4
    grid = (ceil_div(stack.width, across), ceil_div(stack.height, down), stack.planes)
    return [launch(template("transpose", lanes_across, warps), grid, config["threads"], *stack.args)]


def _swizzled_tile(case: Case, config: Params) -> list[Launch]:
    if keeps_rows(case):
        return _copy_rows(case)
    stack, tile, threads = plane_stack(case), config["tile"], config["threads"]
    across, down = ceil_div(stack.width, tile), ceil_div(stack.height, tile)
    columns_last = stack.out_row > stack.out_plane
    grid = (down, stack.planes, across) if columns_last else (across, down, stack.planes)
    kernel = template("transpose", tile, tile, threads, _BLOCKS_PER_SM[threads], stack.vectorizes, columns_last)
    return [launch(kernel, grid, threads, *stack.args)]


def _copy_rows(case: Case) -> list[Launch]:
    """(1,0,2) moves rows. (0,1,2) is the same with one long first dimension and a second dimension of extent one."""
    dim0, dim1, dim2 = shape_of(case)
    dim_a, dim_b = (dim1, dim0) if perm_of(case) == (1, 0, 2) else (dim0 * dim1, 1)
    element, columns = ("float4", dim2 // 4) if dim2 % 4 == 0 else ("float", dim2)
    lanes = min(256, 1 << (columns - 1).bit_length())
    blocks = ceil_div(dim_a * dim_b, 256 // lanes)
    return [launch(template("copy_rows", element, lanes), blocks, 256, "x", "y", dim_a, dim_b, columns)]


def reciprocal(divisor: int) -> tuple[int, int]:
    """Factor and shift that divide by a number: n // divisor == n * factor >> shift for 0 <= n < 2^31.

    The factor is below 2^32 and exceeds 2^shift / divisor by at most one. So the product, shifted, exceeds the quotient by less than
    1 / divisor, too little to reach the next whole number (Granlund and Montgomery, Division by Invariant Integers using Multiplication,
    PLDI 1994).
    """
    shift = 31 + (divisor - 1).bit_length()
    return 2**shift // divisor + 1, shift


def _flat_rows(case: Case, config: Params) -> list[Launch]:
    """(0,1,2) and (1,0,2): the output from end to end, `per_thread` vectors a thread."""
    (dim0, dim1, dim2), per_thread, threads = shape_of(case), config["per_thread"], config["threads"]
    count = dim0 * dim1 * dim2
    if perm_of(case) == (0, 1, 2):
        blocks = max(1, ceil_div(count // 4, per_thread * threads))
        return [launch(template("copy", per_thread, threads), blocks, threads, "x", "y", np.uint32(count))]
    vector, element = next((width, name) for width, name in _VECTORS.items() if dim2 % width == 0)
    columns = dim2 // vector
    args = (count // vector, dim1, dim0, columns, *reciprocal(dim0), *reciprocal(columns))
    blocks = ceil_div(count // vector, per_thread * threads)
    return [launch(template("copy_rows", element, per_thread, threads), blocks, threads, "x", "y", *map(np.uint32, args))]


def _whole_sectors(case: Case, config: Params) -> list[Launch]:
    stack, height, shifted = plane_stack(case), config["height"], not plane_stack(case).begins_with_sectors
    across = ceil_div(stack.width, _SECTORS.within("transpose")["WIDTH"])
    down = ceil_div(stack.height + _SECTOR - 1, height - _SECTOR) if shifted else ceil_div(stack.height, height)
    kernel = template("transpose", height, shifted, config["first"] == "down")
    strides = map(np.uint32, (stack.in_row, stack.in_plane, stack.out_row, stack.out_plane))
    args = ("x", "y", stack.height, stack.width, *strides, across, down)
    return [launch(kernel, across * down * stack.planes, 256, *args)]


_rung: Final = rungs_in(_KERNELS)

CUDA_VARIANTS: Final = (
    _rung(
        *("v01_copy", "Copy (ceiling)", _copy, ({"per_thread": 4}, {"per_thread": 1})),
        role="ceiling",
        reference=copy_reference,
    ),
    _rung(
        "v02_copy_shared",
        "Copy through shared memory",
        lambda case, config: _cubes("copy_shared", case, _tile_of("v02_copy_shared")),
        role="ceiling",
        reference=copy_reference,
    ),
    _rung("v03_simple", "Simple", lambda case, config: _run_time_permutation(case, TILE)),
    _rung("v04_simple_template", "Simple, template", lambda case, config: _compile_time_permutation(case, TILE)),
    _rung("v05_shared", "Shared 8x8x8", lambda case, config: _run_time_permutation(case, _tile_of("v05_shared"))),
    _rung(
        "v06_shared_template",
        "Shared 8x8x8, template",
        lambda case, config: _compile_time_permutation(case, _tile_of("v06_shared_template")),
    ),
    _rung("v07_bank_padding", "Shared 8x8x8, padded", _bank_padding, ({"padding": "report"}, {"padding": "fewest"})),
    _rung("v08_matrix_tile", "Stack of matrices", _matrix_tile, ({"tile": 8}, {"tile": 32}), skip=_needs_matrices),
    _rung("v09_padded_tile", "Padded 32x32 plane tile", _padded_tile, skip=_needs_planes),
    _rung(
        *("v10_register_tile", "4x4 register tiles", _register_tile),
        configs=[{"read": read, "threads": threads} for read in (128, 64) for threads in (256, 128)],
        skip=_needs_vectors,
    ),
    _rung(
        *("v11_swizzled_tile", "Swizzled float4 tile", _swizzled_tile),
        configs=[{"tile": 64, "threads": 256}, {"tile": 64, "threads": 128}, {"tile": 32, "threads": 64}],
    ),
    _rung(
        *("v12_flat_rows", "Rows end to end", _flat_rows),
        configs=[{"per_thread": count, "threads": threads} for count, threads in ((1, 1024), (1, 256), (4, 256))],
        skip=_needs_rows,
    ),
    _rung(
        *("v13_whole_sectors", "Whole sectors of the output", _whole_sectors),
        configs=[{"height": 64, "first": "across"}, {"height": 128, "first": "down"}],
        skip=lambda case, config: _needs_planes(case, config) or _counts_in_32_bits(case, config),
    ),
)
