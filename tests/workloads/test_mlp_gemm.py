"""The matrix product: its definition, its sizes, its host variants and the launches of its kernels."""

import math

import numpy as np
import pytest

from tests.emulator.emulator import Order, needs_compiler, run
from tests.workloads.declared import agreements
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.workloads.api import Case, CudaVariant, Params
from warpladder.workloads.mlp_gemm import wgmma
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA, TOLERANCES, Size, make_case, size_of
from warpladder.workloads.mlp_gemm.rungs import BlockTile
from warpladder.workloads.mlp_gemm.workload import WORKLOAD

CUDA = [variant for variant in WORKLOAD.variants if isinstance(variant, CudaVariant)]


def columns(*of: list[float]) -> np.ndarray:
    """A matrix, column after column, as the workload stores it."""
    return np.array(of, np.float32)


def test_reference_of_a_2x3_by_3x2_product_is_what_one_counts_by_hand() -> None:
    # A = (1 2 3; 4 5 6), B = (7 8; 9 10; 11 12): A B = (58 64; 139 154). C = (4 8; 12 16).
    inputs = {"a": columns([1, 4], [2, 5], [3, 6]), "b": columns([7, 9, 11], [8, 10, 12]), "c": columns([4, 12], [8, 16])}
    d = WORKLOAD.reference(make_case({"shape": "2x3x2"}), inputs)["d"]
    # 1.25 A B - 0.75 C = (72.5 - 3, 80 - 6; 173.75 - 9, 192.5 - 12), by columns.
    assert (ALPHA, BETA) == (1.25, -0.75)
    assert d.tolist() == [[69.5, 164.75], [74.0, 180.5]]
    assert d.dtype == np.float64


def test_reference_does_not_depend_on_how_many_columns_it_takes_at_once() -> None:
    case = make_case({"shape": "3x5x2050"})  # 1024 columns twice, and two more
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(1))
    whole = 1.25 * (inputs["b"].astype(np.float64) @ inputs["a"].astype(np.float64)) - 0.75 * inputs["c"].astype(np.float64)
    np.testing.assert_allclose(WORKLOAD.reference(case, inputs)["d"], whole, rtol=0, atol=1e-14)


def test_operations_and_bytes_of_a_square_of_1024() -> None:
    case = WORKLOAD.case("n=1024")
    assert case.flops == 2_147_483_648  # 2 * 1024^3
    assert case.min_bytes == 16_777_216  # A, B, C and D of 4 MiB each


def test_report_s_odd_products_are_verified_but_not_charted() -> None:
    first, second = (WORKLOAD.case(f"shape={shape}") for shape in ("80x70x90", "250x400x150"))
    assert size_of(first) == Size(m=80, n=90, k=70)
    assert first.flops == 1_008_000  # 2 * 80 * 90 * 70
    assert first.min_bytes == 105_200  # 4 * (5600 + 6300 + 2 * 7200)
    assert size_of(second) == Size(m=250, n=150, k=400)
    assert second.min_bytes == 940_000  # 4 * (100,000 + 60,000 + 2 * 37,500)
    assert first.size_rank is None
    assert second.size_rank is None


def test_buffers_hold_one_column_after_another() -> None:
    inputs, outputs = WORKLOAD.buffers(make_case({"shape": "2x3x4"}))
    assert {name: buffer.shape for name, buffer in (inputs | outputs).items()} == {
        "a": (3, 2),  # three columns of two rows
        "b": (4, 3),
        "c": (4, 2),
        "d": (4, 2),
    }


def test_sizes_double_from_64_to_8192_and_are_ranked_in_order() -> None:
    charted = [(case.params["n"], case.size_rank) for case in WORKLOAD.cases if case.size_rank is not None]
    assert charted == [(64, 0), (128, 1), (256, 2), (512, 3), (1024, 4), (2048, 5), (4096, 6), (8192, 7)]


@pytest.mark.parametrize(("of", "count", "largest"), [("quick", 2, 256), ("report", 8, 2048), ("full", 10, 8192)])
def test_sets_hold_the_sizes_that_they_should(of: str, count: int, largest: int) -> None:
    chosen = [case for case in WORKLOAD.cases if of in case.sets]
    assert len(chosen) == count
    assert max(case.params.get("n", 0) for case in chosen) == largest


def test_inputs_are_fresh_float32_of_both_signs() -> None:
    case = WORKLOAD.case("n=128")
    first, second = (WORKLOAD.make_inputs(case, np.random.default_rng(seed)) for seed in (1, 2))
    for name in ("a", "b", "c"):
        assert first[name].dtype == np.float32
        assert -1 <= first[name].min() < -0.99 < 0.99 < first[name].max() < 1
        assert not np.array_equal(first[name], second[name])


@pytest.mark.parametrize(("name", "largest"), [("numpy", "n=4096"), ("numba_serial", "n=1024"), ("numba_parallel", "n=2048")])
def test_host_variants_say_why_they_skip_what_would_take_them_long(name: str, largest: str) -> None:
    variant = WORKLOAD.variant(name)
    run = [case for case in WORKLOAD.cases if variant.skip(case, {}) is None]
    assert max(run, key=lambda case: case.flops).name == largest
    assert "its time grows with the number of GFLOP" in str(variant.skip(WORKLOAD.case("n=8192"), {}))


def test_tolerance_is_exceeded_where_c_is_left_out_or_tf32_is_passed_off_as_float32() -> None:
    case = make_case({"shape": "64x8192x64"})
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(7))
    expected = WORKLOAD.reference(case, inputs)["d"]
    norm = np.linalg.norm(expected)
    assert 0.75 * np.linalg.norm(inputs["c"]) > 5 * TOLERANCES["tf32"] * norm
    rounded = {
        name: ((inputs[name].view(np.uint32) + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32) for name in ("a", "b")
    }
    of_tf32 = np.linalg.norm(WORKLOAD.reference(case, {**inputs, **rounded})["d"] - expected) / norm
    assert 100 * TOLERANCES["fp32"] < of_tf32 < TOLERANCES["tf32"]


def test_sums_of_8192_products_one_after_another_in_float32_stay_within_the_tolerance() -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.uniform(-1, 1, (8192, 400)).astype(np.float32) for _ in range(2))
    total = np.zeros(400, np.float32)
    for of_a, of_b in zip(a, b, strict=True):
        total += of_a * of_b
    exact = (a.astype(np.float64) * b).sum(axis=0)
    error = np.linalg.norm(total - exact) / np.linalg.norm(exact)
    assert 0.5 * TOLERANCES["fp32"] < error < TOLERANCES["fp32"]  # a bound with little room, and no more


def test_every_rung_serves_the_odd_products() -> None:
    for variant in CUDA:
        for shape in ("80x70x90", "250x400x150"):
            assert any(variant.skip(WORKLOAD.case(f"shape={shape}"), config) is None for config in variant.configs), (
                variant.name
            )


@pytest.mark.parametrize(
    ("name", "config", "grid", "block"),
    [
        ("v01_one_dimensional", {"threads": 256}, (147, 1, 1), (256, 1, 1)),  # 37,500 elements of D
        ("v02_two_dimensional", {"block": 16}, (16, 10, 1), (16, 16, 1)),  # 250 rows, 150 columns
        ("v03_shared_tile", {}, (8, 5, 1), (32, 32, 1)),
        ("v04_column_strip", {}, (4, 10, 1), (16, 4, 1)),  # 64 rows and 16 columns a block
        ("v05_register_tile", {}, (2, 2, 1), (256, 1, 1)),  # 128 rows and columns a block
        ("v06_double_buffer", {}, (2, 2, 1), (256, 1, 1)),
        ("v07_warp_tile", {"tile": "128x128x16", "thread": "8x8", "stages": 3}, (4, 1, 1), (256, 1, 1)),
        ("v07_warp_tile", {"tile": "64x64x16", "thread": "8x8", "stages": 3}, (12, 1, 1), (64, 1, 1)),  # 4 by 3 tiles
        ("v09_tensor_cores_tf32", {"tile": "128x128x32", "stages": 3}, (4, 1, 1), (128, 1, 1)),  # a warp has 64 x 64
        ("v09_tensor_cores_tf32", {"tile": "256x128x32", "stages": 4}, (2, 1, 1), (256, 1, 1)),
        ("v10_tensor_cores_3xtf32", {"tile": "128x128x32", "stages": 3}, (4, 1, 1), (256, 1, 1)),
    ],
)
def test_blocks_cover_the_report_s_product_of_250x400_and_400x150(name, config, grid, block) -> None:
    (launch,) = WORKLOAD.variant(name).launches(WORKLOAD.case("shape=250x400x150"), config)
    assert (launch.grid, launch.block) == (grid, block)
    assert launch.args[4:] == (250, 150, 400, 1.25, -0.75)


@pytest.mark.parametrize(
    ("shape", "vectors"), [("250x400x150", False), ("68x52x132", True), ("68x50x132", False), ("8x4x3", True)]
)
def test_vectors_are_used_where_columns_of_all_four_matrices_are_multiples_of_16_bytes(shape: str, vectors: bool) -> None:
    """Columns of A, C and D have m floats, those of B have k; n does not matter."""
    for name in ("v05_register_tile", "v06_double_buffer"):
        (launch,) = WORKLOAD.variant(name).launches(make_case({"shape": shape}), {})
        assert launch.kernel == f"gemm<{str(vectors).lower()}>"


BLOCK_TILE = {"tile": "128x128x16", "thread": "8x8", "stages": 3}


@pytest.mark.parametrize(
    ("shape", "whole"), [("256x48x128", True), ("192x48x128", False), ("256x40x128", False), ("256x48x64", False)]
)
def test_guards_are_left_out_where_the_sizes_are_multiples_of_the_tile_of_128x128x16(shape: str, whole: bool) -> None:
    for name, config in (("v07_warp_tile", BLOCK_TILE), ("v08_split_sums", {**BLOCK_TILE, "parts": 4})):
        for launch in WORKLOAD.variant(name).launches(make_case({"shape": shape}), config):
            assert launch.kernel.endswith("true>" if whole else "false>")


def test_tile_of_128x128x16_in_three_stages_takes_50_kb_of_shared_memory_and_two_blocks_a_multiprocessor() -> None:
    (launch,) = WORKLOAD.variant("v07_warp_tile").launches(WORKLOAD.case("n=4096"), BLOCK_TILE)
    assert launch.grid == (1024, 1, 1)
    # 2 warps of 64 rows one below the other, 3 stages, 65,536 / (128 * 256) blocks
    assert launch.kernel == "gemm<128, 128, 16, 8, 8, 2, 3, 2, true>"
    assert launch.dynamic_shared_bytes == 49_920  # 3 * 16 * (128 + 132) floats


@pytest.mark.parametrize(
    ("case", "parts", "grid", "sums", "depth"),
    [
        ("n=1024", 4, 256, 64, 256),  # 64 tiles, fewer than 132 multiprocessors: 4 parts of each
        ("n=4096", 5, 1424, 100, 832),  # 1024 = 7 * 132 + 100 tiles: 924 + 5 * 100; 4096 / 16 = 256 steps, 52 a part
        ("n=8192", 4, 4108, 4, 2048),  # 4096 = 31 * 132 + 4
        ("n=64", 5, 4, 1, 16),  # one tile, and only four steps of 16 to share out
    ],
)
def test_tiles_that_do_not_fill_a_wave_are_split_along_k(case: str, parts: int, grid: int, sums: int, depth: int) -> None:
    variant, config = WORKLOAD.variant("v08_split_sums"), {**BLOCK_TILE, "parts": parts}
    products, added = variant.launches(WORKLOAD.case(case), config)
    assert products.grid == (grid, 1, 1)
    assert products.args[-1] == depth
    assert added.grid == (sums, 16, 1)  # 64 elements a thread are 16 fours
    assert variant.scratch(WORKLOAD.case(case), config)["partial_sums"].shape == (sums * products.args[-2], 16_384)


def test_tiles_stay_whole_where_splitting_them_would_not_shorten_the_last_wave() -> None:
    """2048: 256 = 132 + 124 tiles, and 4 * 124 parts take four waves of a quarter, as long as one wave of whole tiles."""
    (launch,) = WORKLOAD.variant("v08_split_sums").launches(WORKLOAD.case("n=2048"), {**BLOCK_TILE, "parts": 4})
    assert launch.grid == (256, 1, 1)


def test_a_product_of_one_step_is_not_split() -> None:
    (launch,) = WORKLOAD.variant("v08_split_sums").launches(make_case({"shape": "131x16x67"}), {**BLOCK_TILE, "parts": 4})
    assert launch.grid == (2, 1, 1)
    assert launch.args[-3:] == (2, 1, 16)  # both tiles whole


def test_two_blocks_of_a_cluster_share_the_steps_and_their_sums_take_the_place_of_the_stages() -> None:
    variant = WORKLOAD.variant("v16_cluster_sums")
    (launch,) = variant.launches(WORKLOAD.case("n=1024"), {**BLOCK_TILE, "parts": 2})
    assert launch.kernel == "gemm_cluster<128, 128, 16, 8, 8, 2, 3, 2, true, 2>"
    assert launch.grid == (128, 1, 1)  # 64 tiles
    assert launch.args[-1] == 512
    assert launch.dynamic_shared_bytes == 65_536  # 128 * 128 floats, more than the stages


def test_only_an_a_whose_columns_are_no_multiple_of_16_bytes_is_padded_where_b_is_turned() -> None:
    variant, config = WORKLOAD.variant("v17_turned_columns"), {"tile": "128x128x32", "thread": "8x8", "stages": 3, "apart": 1}
    turn, product = variant.launches(WORKLOAD.case("n=4096"), config)
    assert turn.grid == (128, 128, 1)  # squares of 32 x 32
    assert product.kernel == "gemm_turned<128, 128, 32, 8, 8, 2, 3, 2, true, 1>"
    assert product.grid == (1024, 1, 1)
    assert product.dynamic_shared_bytes == 98_304  # 3 * 32 * (128 + 128) floats
    odd = make_case({"shape": "131x37x67"})
    assert [launch.kernel.partition("<")[0] for launch in variant.launches(odd, config)] == ["pad", "turn", "gemm_turned"]
    shapes = {name: buffer.shape for name, buffer in variant.scratch(odd, config).items()}
    assert shapes == {"b_turned": (37, 68), "a_padded": (37, 132)}


def test_64_clusters_of_two_blocks_have_tiles_of_128x128_of_the_tf32_product_of_1024() -> None:
    variant, config = WORKLOAD.variant("v18_cluster_sums_tf32"), {"columns": 128, "stages": 6, "parts": 2}
    (launch,) = variant.launches(WORKLOAD.case("n=1024"), config)
    assert launch.kernel == "gemm<128, 6, 2>"
    assert (launch.grid, launch.block) == ((128, 1, 1), (288, 1, 1))  # 8 warps multiply, one loads
    # 6 stages of 32 * (128 + 128) floats, 128 * 64 sums of the other block, and what alignment takes
    assert launch.dynamic_shared_bytes == 196_608 + 32_768 + 1024
    a, b = launch.args[:2]
    assert (a.buffer, a.box, b.buffer, b.box) == ("a", (32, 32), "b", (128, 32))
    padded = variant.launches(make_case({"shape": "131x37x67"}), config)
    assert [launch.kernel.partition("<")[0] for launch in padded] == ["pad", "pad", "gemm"]


@pytest.mark.sampled(1)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("config", WORKLOAD.variant("v18_cluster_sums_tf32").configs, ids=str)
@pytest.mark.parametrize("shape", ["250x400x150", "131x37x67", "5x300x9", "256x512x128"])
def test_parts_along_k_of_a_tf32_product_are_added_up_in_a_cluster(shape: str, config: Params, order: Order) -> None:
    """Of 37 steps along k, blocks but the first have none; 512 are more than the stages hold."""
    assert 2e-4 < _error("v18_cluster_sums_tf32", make_case({"shape": shape}), config, order) < 3e-4


EQUAL_SHARES = WORKLOAD.variant("v19_equal_shares_tf32")
WIDE, WIDE_CLUSTERS, CLUSTERS = EQUAL_SHARES.configs


@pytest.mark.parametrize(
    ("config", "grid", "line", "added", "parts"),
    [
        (WIDE, 108, (0, 27, 81), (36, 32, 1), 143),  # 36 tiles of 79 pairs of steps, three parts each
        (WIDE_CLUSTERS, 108, (0, 27, 81), (36, 32, 1), 142),  # 18 tiles of clusters, three parts of two blocks each
        (CLUSTERS, 132, (0, 40, 80), (66, 16, 1), 196),  # 33 tiles, two parts each
    ],
    ids=str,
)
def test_tiles_of_a_tf32_product_that_do_not_fill_the_multiprocessors_are_cut(config, grid, line, added, parts) -> None:
    case = make_case({"shape": "700x5000x1300"})
    product, sums = EQUAL_SHARES.launches(case, config)
    assert (product.grid, product.block, product.dynamic_shared_bytes) == ((grid, 1, 1), (384, 1, 1), 197_632)
    assert (sums.grid, sums.block) == (added, (256, 1, 1))
    assert product.args[-3:] == sums.args[-3:] == line
    assert EQUAL_SHARES.scratch(case, config)["parts"].shape == (parts, 128 * config["columns"])


@pytest.mark.parametrize(("columns", "blocks"), [(256, 1), (256, 2), (128, 2)])
def test_sums_of_cut_tiles_compile_without_spills_for_eight_warps(columns: int, blocks: int) -> None:
    """No quick case, which the kernels of one architecture are compiled for, has cut tiles."""
    kernel = f"add_parts<{columns}, {blocks}>"
    compiled = compile_variant(EQUAL_SHARES, [kernel], "sm_90").kernels[kernel]
    assert compiled.spill_bytes == 0
    assert compiled.registers <= 40, "six blocks a multiprocessor"


@pytest.mark.parametrize(("case", "whole"), [("n=256", 2), ("n=2048", 128), ("n=4096", 512), ("shape=1536x8192x2816", 132)])
def test_tf32_tiles_are_not_cut_where_waves_are_full_or_shares_would_save_less_than_they_cost(case: str, whole: int) -> None:
    of = WORKLOAD.case(case)
    (launch,) = EQUAL_SHARES.launches(of, WIDE)
    (of_whole_tiles,) = WORKLOAD.variant("v12_wgmma_tf32").launches(of, {"columns": 256, "stages": 4})
    assert (launch.grid, launch.block) == (of_whole_tiles.grid, of_whole_tiles.block)
    assert launch.args[-3] == whole


@pytest.mark.parametrize(
    ("shape", "kernel", "blocks"),
    [
        ("131x37x67", "pad_two", 5 + 9),  # 37 rows of A, 67 of B, eight a block
        ("259x36x67", "pad_one", 5 * 2),  # a row of A, 260 floats, is two segments of 256
        ("260x37x67", "pad_one", 9),
    ],
)
def test_operands_whose_columns_are_no_multiple_of_16_bytes_are_padded_in_one_launch(
    shape: str, kernel: str, blocks: int
) -> None:
    pad, product = EQUAL_SHARES.launches(make_case({"shape": shape}), CLUSTERS)
    assert (pad.kernel, pad.grid, pad.block) == (kernel, (blocks, 1, 1), (32, 8, 1))
    assert product.kernel == "gemm<128, 6, 2>"


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("shape", ["131x37x67", "259x36x67", "5x517x3", "1023x3x4", "1x1x1"])
def test_padded_operands_are_the_operands_and_zeros(shape: str, order: Order) -> None:
    case = make_case({"shape": shape})
    inputs = dict(WORKLOAD.make_inputs(case, np.random.default_rng(3)))
    padded = {
        name: np.full(buffer.shape, np.nan, np.float32)
        for name, buffer in EQUAL_SHARES.scratch(case, CLUSTERS).items()
        if name != "parts"
    }
    run(EQUAL_SHARES, EQUAL_SHARES.launches(case, CLUSTERS)[:1], inputs, padded, order)
    for name, copy in padded.items():
        of = inputs[name.removesuffix("_padded")]
        np.testing.assert_array_equal(copy[:, : of.shape[1]], of)
        assert (copy[:, of.shape[1] :] == 0).all()


@pytest.mark.sampled(1)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("variant", ["v19_equal_shares_tf32", "v22_staged_shares_tf32"])
@pytest.mark.parametrize(
    ("config", "shape", "blocks", "line"),
    [
        (WIDE, "300x417x67", 4, (0, 6, 7)),  # three tiles of seven pairs of steps, each of two blocks
        (WIDE, "133x417x67", 3, (0, 5, 7)),  # two tiles, each of two blocks; the second block has parts of both
        (WIDE, "133x417x67", 6, (0, 3, 9)),  # two tiles, each of three blocks
        (WIDE, "389x417x67", 3, (3, 3, 9)),  # three whole tiles, and one of three blocks
        *(
            (config, *of)
            for config in (WIDE_CLUSTERS, CLUSTERS)
            for of in (
                ("133x417x67", 8, (0, 2, 8)),  # one tile of 256 rows, of four clusters
                ("300x417x67", 6, (0, 5, 7)),  # two tiles for three clusters; the last 128 rows are outside
                ("300x417x67", 8, (0, 4, 8)),  # two tiles, each of two clusters
                ("600x417x67", 4, (2, 4, 8)),  # two whole tiles, and one of two clusters
            )
        ),
    ],
    ids=str,
)
def test_parts_of_tf32_tiles_by_blocks_and_clusters_are_added_up(
    config: Params,
    shape: str,
    blocks: int,
    line: tuple[int, int, int],
    variant: str,
    order: Order,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wgmma, "MULTIPROCESSORS", blocks)
    monkeypatch.setattr(wgmma, "_LEAST_TURNS", 1)
    case = make_case({"shape": shape})
    launches = WORKLOAD.variant(variant).launches(case, config)
    assert [launch.args[-3:] for launch in launches[-2:]] == [line, line]
    assert 2e-4 < _error(variant, case, config, order) < 3e-4


@pytest.mark.parametrize(("shape", "boxed"), [("300x417x67", True), ("301x417x67", False)])
def test_c_and_d_go_by_the_tma_where_their_columns_are_multiples_of_16_bytes(shape: str, boxed: bool) -> None:
    case = make_case({"shape": shape})
    of_shares = WORKLOAD.variant("v22_staged_shares_tf32").launches(case, WIDE)[-1]
    of_parts = WORKLOAD.variant("v21_early_loads_tf32").launches(case, _early("64x64", 2))[-1]
    assert of_shares.kernel.endswith(", true>" if boxed else ", false>")
    assert of_parts.kernel.endswith(", 1>" if boxed else ", 0>"), "kBoxes, or kValues"
    for launch in (of_shares, of_parts):
        assert [of.buffer for of in launch.args[2:4]] == (["c", "d"] if boxed else [launch.args[0].buffer] * 2)


def _early(tile: str, parts: int) -> Params:
    configs = WORKLOAD.variant("v21_early_loads_tf32").configs
    return next(each for each in configs if (each["tile"], each["parts"]) == (tile, parts))


@pytest.mark.parametrize(
    ("tile", "parts", "case", "blocks"),
    [
        ("64x32", 2, "n=128", 16),
        ("64x64", 2, "n=512", 128),
        ("64x128", 1, "n=1024", 128),
        ("128x128", 2, "n=1024", 128),
        ("64x64", 4, "shape=250x400x150", 48),
    ],
)
def test_small_tf32_tiles_have_a_warpgroup_for_64_rows_and_their_parts_along_k_a_block_each(
    tile: str, parts: int, case: str, blocks: int
) -> None:
    (launch,) = WORKLOAD.variant("v21_early_loads_tf32").launches(WORKLOAD.case(case), _early(tile, parts))[-1:]
    assert launch.kernel.startswith(f"gemm<{tile.replace('x', ', ')}, ")
    assert math.prod(launch.grid) == blocks
    assert launch.block == (288 if tile.startswith("128") else 160, 1, 1)


@pytest.mark.parametrize(
    ("shape", "tile", "parts", "grid"),
    [
        ("256x8000x128", "64x128", 4, (16, 1, 7)),  # 30 clusters of four at once, 4 tiles
        ("256x8000x128", "128x128", 2, (4, 1, 8)),  # 66 clusters of two, 2 tiles: more than the most
        ("2112x4544x256", "64x128", 2, (66, 2, 1)),  # 66 tiles: one each
        ("456x4155x227", "128x128", 2, (8, 2, 8)),
        ("256x400x128", "64x128", 2, (8, 1, 1)),  # four turns a part: halves would save two, and a second launch costs more
    ],
)
def test_clusters_of_the_same_tf32_tile_have_as_many_slices_of_k_as_run_at_once(
    shape: str, tile: str, parts: int, grid: tuple[int, int, int]
) -> None:
    variant, case, config = WORKLOAD.variant("v21_early_loads_tf32"), make_case({"shape": shape}), _early(tile, parts)
    *_, product = (each for each in variant.launches(case, config) if each.kernel.startswith("gemm<"))
    assert product.grid == grid
    slices, last = grid[2], variant.launches(case, config)[-1]
    assert (last.kernel == "add_slices") == (slices > 1)
    if slices > 1:
        size = size_of(case)
        assert product.kernel.endswith(", 2>"), "kSlices"
        assert last.early and last.args[5] == slices
        assert variant.scratch(case, config)["slices"].shape == (slices * -(-size.n // 16) * 16, -(-size.m // 4) * 4)


@pytest.mark.parametrize("variant", ["v21_early_loads_tf32", "v22_staged_shares_tf32"])
def test_padded_copies_have_whole_lines_and_the_product_starts_while_they_are_filled(variant: str) -> None:
    rung, case = WORKLOAD.variant(variant), make_case({"shape": "301x417x67"})
    pad, product = rung.launches(case, rung.configs[1])[:2]
    copies = {name: buffer.shape for name, buffer in rung.scratch(case, rung.configs[1]).items() if name.endswith("_padded")}
    assert copies == {"a_padded": (417, 320), "b_padded": (67, 448)}
    assert pad.kernel == "pad_two" and not pad.early
    assert product.early
    aligned = WORKLOAD.case("n=512")
    assert not rung.launches(aligned, rung.configs[1])[0].early, "nothing is padded"


@pytest.mark.sampled(1)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(("tile", "parts", "shape"), [("64x128", 2, "67x833x37"), ("128x192", 2, "132x833x209")])
def test_slices_of_k_add_up(tile: str, parts: int, shape: str, order: Order) -> None:
    case, config = make_case({"shape": shape}), _early(tile, parts)
    assert WORKLOAD.variant("v21_early_loads_tf32").launches(case, config)[-1].kernel == "add_slices"
    assert _error("v21_early_loads_tf32", case, config, order) < 4e-4


def _shares_config(tile: str, blocks: int) -> Params:
    configs = WORKLOAD.variant("v20_equal_shares").configs
    return next(each for each in configs if (each["tile"], each["blocks"]) == (tile, blocks))


@pytest.mark.parametrize(
    ("tile", "blocks", "grid", "line", "left"),
    [
        ("64x128x16", 4, 527, (0, 72, 313), 121),  # 121 tiles of 313 stages: 37,873 stages, 72 a block
        ("128x128x32", 2, 264, (0, 40, 160), 66),  # four parts a tile
    ],
)
def test_float32_tiles_that_do_not_fill_the_multiprocessors_are_cut(tile, blocks, grid, line, left) -> None:
    variant, case = WORKLOAD.variant("v20_equal_shares"), make_case({"shape": "700x5000x1300"})
    config = _shares_config(tile, blocks)
    prepare, product = variant.launches(case, config)
    assert prepare.grid == (157 * 21, 1, 1), "B is turned, 32 steps of 64 columns a block; 700 rows need no padding"
    assert product.grid == (grid, 1, 1)
    assert product.args[-3:] == line
    scratch = variant.scratch(case, config)
    assert scratch["parts"].shape[0] == grid
    assert scratch["counters"].shape == (1 + left,)
    assert prepare.args[-1] == 1 + left


def test_one_launch_turns_b_and_pads_an_a_whose_columns_are_no_multiple_of_16_bytes() -> None:
    prepare, product = WORKLOAD.variant("v20_equal_shares").launches(
        make_case({"shape": "1337x2209x901"}), _shares_config("64x128x16", 4)
    )
    turns, pads = 70 * 15, 277 * 6  # 32 steps of 64 columns; 8 rows of A over 256 columns
    assert prepare.grid == (turns + pads, 1, 1)
    assert prepare.args[-2] == turns
    assert [each.buffer for each in product.args[:2]] == ["a_padded", "b_turned"]


@pytest.mark.parametrize(
    ("case", "tile", "blocks"),
    [
        ("n=2048", "128x128x32", 2),
        ("n=2048", "128x64x16", 4),
        ("shape=3001x517x2750", "128x64x16", 4),
        ("n=64", "128x128x32", 1),
    ],
)
def test_float32_tiles_are_not_cut_where_shares_would_save_less_than_they_cost(case: str, tile: str, blocks: int) -> None:
    of, config = WORKLOAD.case(case), _shares_config(tile, blocks)
    _, product = WORKLOAD.variant("v20_equal_shares").launches(of, config)
    whole, share, span = product.args[-3:]
    assert whole == BlockTile.of(config).count(size_of(of))
    assert share == span


@pytest.mark.sampled(3)
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(("tile", "of_one"), [("128x128x32", 2), ("64x128x16", 4), ("128x64x16", 4)])
@pytest.mark.parametrize(
    ("shape", "multiprocessors"),
    [
        ("300x217x67", 2),  # tiles of two blocks; with 64 x 128 a block has the end of one tile and the beginning of the next
        ("133x217x67", 5),  # parts of three to five blocks
        ("389x217x67", 1),  # whole tiles before
        ("256x160x128", 1),  # whole tiles only, and nothing needs a guard
        ("256x160x192", 2),  # the same with parts
        ("131x37x67", 2),
        ("5x300x9", 3),
    ],
)
def test_the_block_of_a_float32_tile_s_end_adds_the_parts_of_all_others(
    shape: str, multiprocessors: int, tile: str, of_one: int, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wgmma, "MULTIPROCESSORS", multiprocessors)
    monkeypatch.setattr(wgmma, "_LEAST_TURNS_FP32", 1)
    assert _error("v20_equal_shares", make_case({"shape": shape}), _shares_config(tile, of_one), order) < 3e-7


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_whole_waves_and_split_tiles_of_one_product_come_together(order: Order) -> None:
    """135 tiles of 64 x 64: 132 of them whole, the others in two parts of 16 and 1 steps."""
    case, config = make_case({"shape": "3x17x8577"}), {"tile": "64x64x16", "thread": "8x8", "stages": 3, "parts": 4}
    variant = WORKLOAD.variant("v08_split_sums")
    launches = variant.launches(case, config)
    assert [launch.grid for launch in launches] == [(132 + 3 * 2, 1, 1), (3, 16, 1)]
    assert _error("v08_split_sums", case, config, order) < 2e-7


def _error(name: str, case: Case, config: Params, order: Order = "forward") -> float:
    """The relative L2 error of a rung's D in emulation."""
    variant = WORKLOAD.variant(name)
    assert isinstance(variant, CudaVariant)
    (found,) = agreements(WORKLOAD, variant, case, config, [order], seed=3)
    assert found.rel_l2_error is not None
    return found.rel_l2_error


@needs_compiler
def test_3xtf32_is_as_accurate_as_float32_and_tf32_is_not() -> None:
    case, config = make_case({"shape": "128x128x128"}), {"tile": "128x128x32", "stages": 3}
    assert _error("v10_tensor_cores_3xtf32", case, config) < 2e-7
    assert 1e-4 < _error("v09_tensor_cores_tf32", case, config) < 4e-4  # 2.9e-4 of two roundings to 11 bits
