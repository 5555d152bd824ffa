"""The transposition: its definition, its cases, and the launches of its kernels."""

from functools import cache

import numpy as np
import pytest

from warpladder.dashboard.views.reports.published.conflicts import bank_conflicts
from warpladder.workloads.api import CudaVariant
from warpladder.workloads.tensor_transpose.problem import DRAWN_SHAPES, PERMUTATIONS, case, perm_of, shape_of
from warpladder.workloads.tensor_transpose.rungs import (
    FEWEST_PADDING,
    REPORT_PADDING,
    TILE,
    PlaneStack,
    plane_stack,
    reciprocal,
)
from warpladder.workloads.tensor_transpose.workload import WORKLOAD


def of(shape: str, perm: str):
    return case({"shape": shape, "perm": perm}, ("full",), None)


@pytest.mark.parametrize(
    ("perm", "element"),  # of the output that holds Input[z][y][x], as the report's section 0.2 lists them
    [
        ("012", lambda z, y, x: (z, y, x)),
        ("021", lambda z, y, x: (z, x, y)),
        ("102", lambda z, y, x: (y, z, x)),
        ("120", lambda z, y, x: (y, x, z)),
        ("201", lambda z, y, x: (x, z, y)),
        ("210", lambda z, y, x: (x, y, z)),
    ],
)
def test_the_permutations_are_the_reports(perm, element):
    tensor = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    output = WORKLOAD.reference(of("2x3x4", perm), {"x": tensor})["y"]
    assert all(output[element(z, y, x)] == tensor[z, y, x] for z in range(2) for y in range(3) for x in range(4))
    assert output.flags.c_contiguous
    assert output.dtype == np.float32


def test_a_cube_of_64_reads_and_writes_two_mebibytes():
    cube = WORKLOAD.case("n=64,perm=210")
    assert cube.min_bytes == 2_097_152  # 262,144 floats in and as many out
    assert cube.flops == 0


def test_the_odd_case_reads_and_writes_every_element_once():
    odd = WORKLOAD.case("shape=65x127x33,perm=120")
    assert odd.min_bytes == 2_179_320  # 272,415 elements
    assert odd.size_rank is None


def test_cases_are_named_after_size_and_permutation():
    names = [a_case.name for a_case in WORKLOAD.cases]
    assert len(names) == 78  # six permutations of four cubes, of an odd shape, and of eight drawn ones
    assert names[:2] == ["n=64,perm=012", "n=64,perm=021"]
    assert names[29] == "shape=65x127x33,perm=210"
    assert names[-1] == "shape=178x396x400,perm=210"


def test_the_drawn_shapes_are_the_first_of_their_kind():
    draws = np.random.default_rng(37).integers(129, 512, (100, 3))
    of_their_kind = draws[(draws % 32).all(axis=1) & (draws.prod(axis=1) >= 1 << 24)]
    assert tuple("x".join(map(str, shape)) for shape in of_their_kind[:8]) == DRAWN_SHAPES


@pytest.mark.parametrize(
    ("cases", "count", "sizes"),
    [
        ("quick", 5, {64, 128, 256}),  # (2,1,0) at three sizes, (0,2,1) at two
        ("report", 12, {64}),  # six of the report's cube, six of the odd shape
        ("full", 30, {64, 128, 256, 512}),
    ],
)
def test_the_sets_hold_the_sizes_that_they_should(cases, count, sizes):
    chosen = [a_case for a_case in WORKLOAD.cases if cases in a_case.sets]
    assert len(chosen) == count
    assert {a_case.params["n"] for a_case in chosen if "n" in a_case.params} == sizes


def test_sizes_are_ranked_in_order():
    assert {a_case.params["n"]: a_case.size_rank for a_case in WORKLOAD.cases if "n" in a_case.params} == {
        64: 0,
        128: 1,
        256: 2,
        512: 3,
    }


def test_buffers_have_the_permuted_shape():
    inputs, outputs = WORKLOAD.buffers(of("5x8x4", "201"))
    assert (inputs["x"].shape, outputs["y"].shape) == ((5, 8, 4), (4, 5, 8))


def test_planes_of_a_reversal_are_counted_by_hand():
    # x is 5x8x4; y[k, j, i] = x[i, j, k] is 4x8x5: planes along j, rows of 4 floats 32 apart become rows of 5 floats 40 apart.
    assert plane_stack(of("5x8x4", "210")) == PlaneStack(
        height=5, width=4, planes=8, in_row=32, in_plane=4, out_row=40, out_plane=5
    )


def test_planes_of_a_stack_of_matrices_are_counted_by_hand():
    # x is 5x8x4; y is 5x4x8: five matrices of 8x4, contiguous on both sides.
    assert plane_stack(of("5x8x4", "021")) == PlaneStack(
        height=8, width=4, planes=5, in_row=4, in_plane=32, out_row=8, out_plane=32
    )


@pytest.mark.parametrize("perm", ["021", "120", "201", "210"])
def test_plane_strides_reach_every_element_of_the_transposition(perm):
    a_case = of("3x4x5", perm)
    tensor = np.arange(60)
    expected = tensor.reshape(3, 4, 5).transpose(perm_of(a_case)).reshape(-1)
    stack, output = plane_stack(a_case), np.full(60, -1)
    for plane, row, column in np.ndindex(stack.planes, stack.height, stack.width):
        output[plane * stack.out_plane + column * stack.out_row + row] = tensor[
            plane * stack.in_plane + row * stack.in_row + column
        ]
    assert output.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "config", "shape", "perm", "kernel", "grid"),
    [
        ("v01_copy", {"per_thread": 4}, "64x64x64", "210", "copy<4>", (64, 1, 1)),  # 65,536 float4, 1024 a block
        ("v01_copy", {"per_thread": 1}, "1x1x3", "210", "copy<1>", (1, 1, 1)),  # less than one float4
        ("v03_simple", {}, "65x127x33", "210", "transpose", (5, 16, 9)),  # eighths of 33, 127, 65
        ("v07_bank_padding", {"padding": "report"}, "8x8x8", "120", "transpose<1, 2, 0, 10, 10>", (1, 1, 1)),
        ("v08_matrix_tile", {"tile": 32}, "5x65x33", "021", "transpose<32>", (2, 3, 5)),
        ("v09_padded_tile", {}, "65x127x33", "201", "transpose", (2, 4, 65)),  # planes of 127x33, one for each of 65
        ("v10_register_tile", {"read": 128, "threads": 256}, "64x4x64", "210", "transpose<8, 8>", (1, 1, 4)),
        (
            "v10_register_tile",
            {"read": 64, "threads": 128},
            "64x4x64",
            "210",
            "transpose<4, 4>",
            (2, 1, 4),
        ),  # 32 across, 64 down
        (
            "v11_swizzled_tile",
            {"tile": 64, "threads": 256},
            "512x512x512",
            "210",
            "transpose<64, 64, 256, 6, true, true>",
            (8, 512, 8),
        ),
        (
            "v11_swizzled_tile",
            {"tile": 32, "threads": 64},
            "65x127x33",
            "210",
            "transpose<32, 32, 64, 16, false, true>",
            (3, 127, 2),
        ),
        ("v11_swizzled_tile", {"tile": 64, "threads": 256}, "512x512x512", "102", "copy_rows<float4, 128>", (131072, 1, 1)),
        (
            "v11_swizzled_tile",
            {"tile": 64, "threads": 256},
            "6x5x33",
            "012",
            "copy_rows<float, 64>",
            (8, 1, 1),
        ),  # 4 rows a block
        (
            "v10_register_tile",
            {"read": 256, "threads": 64},
            "64x64x128",
            "210",
            "transpose<16, 2>",
            (1, 8, 64),
        ),  # 128 across, 8 down
        ("v12_flat_rows", {"per_thread": 1, "threads": 1024}, "64x64x64", "012", "copy<1, 1024>", (64, 1, 1)),  # 65,536 float4
        ("v12_flat_rows", {"per_thread": 4, "threads": 256}, "64x64x64", "102", "copy_rows<float4, 4, 256>", (64, 1, 1)),
        ("v12_flat_rows", {"per_thread": 4, "threads": 256}, "3x5x6", "102", "copy_rows<float2, 4, 256>", (1, 1, 1)),
        ("v12_flat_rows", {"per_thread": 1, "threads": 1024}, "65x127x33", "102", "copy_rows<float, 1, 1024>", (267, 1, 1)),
        (
            "v13_whole_sectors",
            {"height": 64, "first": "across"},
            "512x512x512",
            "210",
            "transpose<64, false, false>",
            (8 * 8 * 512, 1, 1),
        ),
        (
            "v13_whole_sectors",
            {"height": 128, "first": "down"},
            "65x127x130",
            "201",
            "transpose<128, true, true>",
            (3 * 2 * 65, 1, 1),
        ),  # 127 rows, shifted by up to 7, in steps of 120
    ],
)
def test_blocks_cover_the_tensor(name, config, shape, perm, kernel, grid):
    (launch,) = WORKLOAD.variant(name).launches(of(shape, perm), config)
    assert (launch.kernel, launch.grid) == (kernel, grid)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 301, 641, 2**16 + 1, 2**30 - 1, 2**30, 2**30 + 1, 2**31 - 1])
def test_a_reciprocal_divides_every_number_below_2_to_the_31(divisor):
    factor, shift = reciprocal(divisor)
    quotients = [0, 1, 2, (2**31 - 1) // divisor]
    numbers = [q * divisor + near for q in quotients for near in (-1, 0, 1)] + [2**31 - 1]
    assert factor < 2**32
    assert all(n * factor >> shift == n // divisor for n in numbers if 0 <= n < 2**31)


def test_rows_begin_with_sectors_where_they_and_the_planes_of_the_output_are_multiples_of_32_bytes():
    # (2,1,0): rows of dim1 * dim0 elements, planes dim0 apart. (0,2,1): rows of dim1, planes dim2 * dim1 apart.
    assert plane_stack(of("8x3x5", "210")).begins_with_sectors
    assert not plane_stack(of("12x2x5", "210")).begins_with_sectors  # rows of 24, planes 12 apart
    assert plane_stack(of("5x16x3", "021")).begins_with_sectors
    assert not plane_stack(of("2x4x4", "021")).begins_with_sectors


@pytest.mark.parametrize(
    ("name", "shape", "served"),
    [
        ("v08_matrix_tile", "65x127x33", {"021"}),
        ("v09_padded_tile", "65x127x33", {"021", "120", "201", "210"}),
        ("v10_register_tile", "64x64x64", {"021", "120", "201", "210"}),
        ("v10_register_tile", "8x6x4", {"120", "210"}),  # those that transpose planes of 8x4, and not of 6x4
        ("v11_swizzled_tile", "65x127x33", set(PERMUTATIONS)),
        ("v12_flat_rows", "65x127x33", {"012", "102"}),
        ("v12_flat_rows", "2048x1024x1024", set()),  # 2^31 elements
        ("v13_whole_sectors", "65x127x33", {"021", "120", "201", "210"}),
        ("v13_whole_sectors", "2048x1024x1024", set()),
    ],
)
def test_a_rung_skips_what_it_cannot_serve_and_says_why(name, shape, served):
    variant = WORKLOAD.variant(name)
    reasons = {perm: variant.skip(of(shape, perm), variant.configs[0]) for perm in PERMUTATIONS}
    assert {perm for perm, reason in reasons.items() if reason is None} == served
    assert all(reason is None or len(reason) > 20 for reason in reasons.values())


def test_one_of_the_last_two_rungs_that_are_no_drafts_serves_every_case():
    last = [variant for variant in WORKLOAD.variants if isinstance(variant, CudaVariant) and not variant.draft][-2:]
    for a_case in WORKLOAD.cases:
        assert any(all(rung.skip(a_case, config) is None for config in rung.configs) for rung in last)


def test_only_the_ceilings_compute_something_else_than_the_transposition():
    others = {variant.name for variant in WORKLOAD.variants if variant.reference is not None}
    assert (
        others
        == {variant.name for variant in WORKLOAD.variants if variant.role == "ceiling"}
        == {"v01_copy", "v02_copy_shared"}
    )


def test_the_specimens_are_the_reports_two_pitfalls():
    assert {variant.name for variant in WORKLOAD.variants if variant.role == "specimen"} == {
        "numpy_view",
        "cupy_unsynchronized",
    }
    tensor = {"x": np.ones((4, 4, 4), np.float32)}
    view = WORKLOAD.variant("numpy_view").run(of("4x4x4", "210"), tensor, {})["y"]
    assert np.shares_memory(view, tensor["x"])


conflicts = cache(bank_conflicts)  # the load is the same for all permutations


def passes(perm, rows, columns):
    """Passes of a warp's store into the tile, permuted, and of its load from it; 1 is free of conflicts."""
    tile = (TILE, rows, columns)
    return 1 + conflicts(tile, perm), 1 + conflicts(tile, (0, 1, 2))


def test_a_tile_of_8x8x8_conflicts_as_counted_by_hand():
    # (2,1,0): a warp's 32 threads (z, y, x) with y in 4 rows and x in 0..7 store to word 64x + 8y + z: banks 8y + z, 4 in all.
    assert passes((2, 1, 0), 8, 8) == (8.0, 1.0)
    assert passes((0, 1, 2), 8, 8) == (1.0, 1.0)
    # (0,2,1): word 64z + 8x + y: 8x meets 4 different banks and y shifts them by up to 3, so 16 in all.
    assert passes((0, 2, 1), 8, 8) == (2.0, 1.0)


def test_the_reports_padding_takes_away_most_passes_but_not_all():
    in_all = {perm: sum(passes(perm_of(of("8x8x8", perm)), *size)) for perm, size in REPORT_PADDING.items()}
    assert in_all == {"012": 2.0, "021": 3.0, "102": 2.0, "120": 5.0, "201": 4.0, "210": 3.0}  # 2.0 is free of conflicts


@pytest.mark.slow
@pytest.mark.parametrize("perm", PERMUTATIONS)
def test_the_fewest_passes_are_the_fewest_of_all_paddings_of_up_to_one_row_of_banks(perm):
    axes = perm_of(of("8x8x8", perm))
    sizes = [(rows, columns) for rows in range(TILE, 20) for columns in range(TILE, 33)]
    best = min((sum(passes(axes, *size)), size[0] * size[1], size) for size in sizes)
    chosen = FEWEST_PADDING[perm]
    assert (sum(passes(axes, *chosen)), chosen[0] * chosen[1]) == best[:2]


def test_inputs_are_random_and_differ_by_seed():
    a_case = of("8x8x8", "210")
    first, second = (WORKLOAD.make_inputs(a_case, np.random.default_rng(seed))["x"] for seed in (1, 2))
    assert first.shape == shape_of(a_case)
    assert len(np.unique(first)) > 500
    assert not np.array_equal(first, second)
