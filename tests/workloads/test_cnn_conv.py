"""The convolution layers: their definition, their sizes, the report's copies, and the launches of their kernels."""

from typing import get_args

import numpy as np
import pytest

from tests.emulator.emulator import Order, build, needs_compiler
from tests.workloads.declared import agreements, kernels
from warpladder.workloads.api import CudaVariant
from warpladder.workloads.cnn_conv import rungs
from warpladder.workloads.cnn_conv.problem import case, emulation_cases, shape_of
from warpladder.workloads.cnn_conv.workload import TOLERANCE, WORKLOAD

pytestmark = pytest.mark.slow

CUDA = [variant for variant in WORKLOAD.variants if isinstance(variant, CudaVariant)]


def of(layer: int, shape: str):
    return case({"layer": layer, "shape": shape})


def test_filter_is_not_flipped_and_its_first_weight_meets_the_first_pixel_of_the_window():
    x = np.arange(72.0, dtype=np.float32).reshape(1, 1, 8, 9)
    k = np.zeros((4, 1, 7, 7), np.float32)
    k[0, 0, 0, 0], k[1, 0, 6, 6], k[2, 0, 1, 2], k[3, 0, 0, 0] = 1.0, 1.0, 1.0, -2.0
    y = WORKLOAD.reference(of(1, "1x8x9"), {"x": x, "k": k})["y"]
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y[0, 0], [[0, 1, 2], [9, 10, 11]])
    np.testing.assert_array_equal(y[0, 1], [[60, 61, 62], [69, 70, 71]])  # six rows of nine and six columns on
    np.testing.assert_array_equal(y[0, 2], [[11, 12, 13], [20, 21, 22]])
    np.testing.assert_array_equal(y[0, 3], [[0, -2, -4], [-18, -20, -22]])


def test_channels_are_added_up_and_images_kept_apart():
    x = np.stack([np.full((4, 7, 7), 1.0), np.full((4, 7, 7), 10.0)]).astype(np.float32)
    x[:, 3] *= 2.0
    k = np.ones((16, 4, 7, 7), np.float32)
    k[5] = 0.0
    k[5, 3, 0, 0] = 1.0
    y = WORKLOAD.reference(of(2, "2x7x7"), {"x": x, "k": k})["y"]
    assert y.shape == (2, 16, 1, 1)
    assert (y[0, 0, 0, 0], y[1, 0, 0, 0]) == (245.0, 2450.0)  # 49 pixels of 1 + 1 + 1 + 2
    assert (y[0, 5, 0, 0], y[1, 5, 0, 0]) == (2.0, 20.0)


def test_reference_does_not_depend_on_how_many_images_it_takes_at_once(monkeypatch):
    a_case = of(2, "5x9x11")
    inputs = WORKLOAD.make_inputs(a_case, np.random.default_rng(3))
    whole = WORKLOAD.reference(a_case, inputs)["y"]
    monkeypatch.setattr("warpladder.workloads.cnn_conv.host._BLOCK_BYTES", 1)
    np.testing.assert_allclose(WORKLOAD.reference(a_case, inputs)["y"], whole, rtol=0, atol=1e-13)


def test_operations_and_bytes_of_the_report_s_batch():
    first, second = WORKLOAD.case("layer=1,batch=10000"), WORKLOAD.case("layer=2,batch=10000")
    assert first.flops == 25_088_000_000  # 10,000 images * 4 maps * 6400 outputs * 49 multiply-adds
    assert second.flops == 72_504_320_000  # 10,000 * 16 * 1156 * 196
    assert first.min_bytes == 1_319_840_784  # 295,840,000 of images, 784 of filters, 1,024,000,000 of maps
    assert second.min_bytes == 995_852_544  # 256,000,000 and 12,544 and 739,840,000


def test_copies_of_both_layers_are_the_report_s():
    """Figure 2 and milestone 3 print 538,919 KiB in, images and filters of both layers, and 1,722,500 KiB out."""
    both = [WORKLOAD.buffers(WORKLOAD.case(f"layer={layer},batch=10000")) for layer in (1, 2)]
    into = [buffer.nbytes for inputs, _ in both for buffer in inputs.values()]
    out = [buffer.nbytes for _, outputs in both for buffer in outputs.values()]
    assert sum(into) // 1024 == 538_919  # nsys cuts the fraction off: 538,919.27
    assert sum(out) / 1024 == 1_722_500
    assert [nbytes / 1024 for nbytes in into] == [288_906.25, 0.765625, 250_000, 12.25]  # its largest and smallest of 4 copies
    assert [nbytes / 1024 for nbytes in out] == [1_000_000, 722_500]


def test_copies_of_the_report_s_constant_memory_are_larger_because_each_layer_fills_the_whole_symbol():
    """Figures 6 and 11 print 538,930 KiB: 12.25 KiB of 16 x 4 x 7 x 7 weights for layer 1 too, whose filters are 0.77."""
    images = [WORKLOAD.buffers(WORKLOAD.case(f"layer={layer},batch=10000"))[0]["x"].nbytes for layer in (1, 2)]
    assert (sum(images) + 2 * 16 * 4 * 7 * 7 * 4) // 1024 == 538_930


def test_odd_cases_are_verified_but_not_charted():
    first, second = WORKLOAD.case("layer=1,shape=3x37x41"), WORKLOAD.case("layer=2,shape=3x37x41")
    assert first.flops == 1_275_960  # 3 images * 4 maps * 31 * 35 outputs * 98
    assert second.flops == 20_415_360  # 3 * 16 * 1085 * 392
    assert {first.size_rank, second.size_rank} == {None}
    assert shape_of(second).out_width == 35


@pytest.mark.parametrize(
    ("cases", "batches"), [("quick", {10}), ("report", {100, 1000, 10_000}), ("full", {100, 1000, 10_000})]
)
def test_sets_hold_both_layers_at_the_batches_that_they_should(cases, batches):
    chosen = [a_case for a_case in WORKLOAD.cases if cases in a_case.sets and "batch" in a_case.params]
    assert {(a_case.params["layer"], a_case.params["batch"]) for a_case in chosen} == {(n, b) for n in (1, 2) for b in batches}


def test_batches_are_ranked_in_order_for_both_layers():
    ranks = {(c.params["layer"], c.params["batch"]): c.size_rank for c in WORKLOAD.cases if "batch" in c.params}
    assert [ranks[1, batch] for batch in (10, 100, 1000, 10_000)] == [0, 1, 2, 3]
    assert [ranks[2, batch] for batch in (10, 100, 1000, 10_000)] == [0, 1, 2, 3]


def test_inputs_are_fresh_float32_of_both_signs():
    a_case = of(1, "3x37x41")
    first, second = (WORKLOAD.make_inputs(a_case, np.random.default_rng(seed)) for seed in (1, 2))
    assert {name: (array.shape, array.dtype.name) for name, array in first.items()} == {
        "x": ((3, 1, 37, 41), "float32"),
        "k": ((4, 1, 7, 7), "float32"),
    }
    assert -1.0 <= first["x"].min() < -0.9 < 0.9 < first["x"].max() < 1.0
    assert not np.array_equal(first["x"], second["x"])


def test_one_core_is_spared_large_batches_and_says_why():
    serial = WORKLOAD.variant("numba_serial")
    assert serial.skip(WORKLOAD.case("layer=2,batch=100"), {}) is None
    assert "measured up to 100 images" in serial.skip(WORKLOAD.case("layer=2,batch=1000"), {})


@pytest.mark.parametrize("precision", TOLERANCE)
def test_tolerance_is_exceeded_by_one_missing_output_of_the_odd_case(precision):
    a_case = of(2, "3x37x41")
    expected = WORKLOAD.reference(a_case, WORKLOAD.make_inputs(a_case, np.random.default_rng(7)))["y"]
    missing = expected.copy()
    missing[2, 15, 30, 34] = 0.0
    assert np.linalg.norm(missing - expected) > 3 * TOLERANCE[precision] * np.linalg.norm(expected)


def test_operands_of_10_bits_would_fail_as_fp32_and_as_3xtf32():
    a_case = of(2, "3x37x41")
    inputs = WORKLOAD.make_inputs(a_case, np.random.default_rng(7))
    expected = WORKLOAD.reference(a_case, inputs)["y"]
    rounded = {name: ((array.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for name, array in inputs.items()}
    error = np.linalg.norm(WORKLOAD.reference(a_case, rounded)["y"] - expected) / np.linalg.norm(expected)
    assert TOLERANCE["3xtf32"] * 50 < error < TOLERANCE["tf32"]


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("v10_toeplitz_tf32", 2e-4, 3e-4),  # 11 bits of both operands
        ("v11_toeplitz_3xtf32", 5e-8, 2e-7),  # 22 bits: what is left are the sums, rounded once for 8 products
        ("v12_bf16_corrections", 3e-7, 7e-7),  # 8 bits of corrections that are 2.6e-4 of an output
    ],
)
def test_tensor_cores_err_as_much_as_the_bits_of_their_operands_say(name, least, most):
    """Sums are rounded in the emulator, where a GPU cuts them off: the error here is that of the operands."""
    variant, a_case = WORKLOAD.variant(name), emulation_cases()[-1]
    program = build(variant, kernels(variant, emulation_cases()))
    (found,) = agreements(WORKLOAD, variant, a_case, {}, seed=7, program=program)
    assert least < found.rel_l2_error < most


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("v13_warpgroups_tf32", 2e-4, 3e-4),
        ("v14_warpgroups_3xtf32", 5e-8, 3e-7),
        ("v15_warpgroups_bf16_corrections", 3e-7, 7e-7),
    ],
)
def test_warpgroups_meet_the_reference_where_their_products_are_emulated(name, least, most, monkeypatch):
    """Not on a GPU: one block for all tiles, the last of which has few images; bands that overlap, and threads without a pair."""
    monkeypatch.setattr(rungs, "MULTIPROCESSORS", 1)
    variant = WORKLOAD.variant(name)
    cases = [of(2, shape) for shape in ("8x14x40", "2x14x40", "13x14x15")]  # 17 pairs across, and 5
    launches = [variant.launches(a_case, {})[0] for a_case in cases]
    assert [(launch.kernel, launch.grid, launch.block[0]) for launch in launches] == [
        ("conv_layer<14, 40, 6, 7>", (1, 1, 1), 256),
        ("conv_layer<14, 40, 6, 3>", (1, 1, 1), 128),
        ("conv_layer<14, 15, 6, 25>", (1, 1, 1), 256),
    ]
    program = build(variant, [launch.kernel for launch in launches])
    for a_case in cases:
        (found,) = agreements(WORKLOAD, variant, a_case, {}, seed=7, program=program)
        assert least < found.rel_l2_error < most, a_case.name


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("shape", ["5x40x40", "5x24x40", "5x18x16"])
def test_a_block_takes_image_after_image_in_bands_the_last_of_which_overlaps(shape, monkeypatch):
    """34 rows in seven bands of five, 18 in six of three, and 12 bands of a row, whose planes need not be exchanged for the banks."""
    monkeypatch.setattr(rungs, "MULTIPROCESSORS", 2)
    variant, a_case = WORKLOAD.variant("v16_whole_images_tf32"), of(2, shape)
    assert variant.launches(a_case, {})[0].grid == (2, 1, 1)
    for found in agreements(WORKLOAD, variant, a_case, {}, get_args(Order), seed=7):
        assert 2e-4 < found.rel_l2_error < 3e-4


def test_whole_images_say_which_shapes_they_do_not_serve():
    variant = WORKLOAD.variant("v16_whole_images_tf32")
    assert "made for layer 2" in variant.skip(of(1, "3x24x40"), {})
    assert "a width that is a multiple of 4" in variant.skip(of(2, "3x24x42"), {})
    assert "shared memory" in variant.skip(of(2, "3x44x40"), {})
    assert "at once" in variant.skip(of(2, "3x68x8"), {})
    assert "at most 7 rows" in variant.skip(of(2, "3x14x136"), {})
    assert variant.skip(of(2, "3x23x40"), {}) is None


@pytest.mark.parametrize(
    ("name", "config", "a_case", "kernel", "grid"),
    [
        ("v01_milestone3", {}, "layer=1,batch=100", "conv_layer", (100, 1, 1)),
        ("v02_parallel", {}, "layer=1,batch=10000", "conv_layer", (10_000, 4, 25)),  # 80 = 5 tiles of 16
        ("v02_parallel", {}, "layer=2,batch=100", "conv_layer", (100, 16, 9)),  # 34 columns take 3 tiles
        ("v03_constant_weights", {"over": "loops"}, "layer=2,batch=100", "loops", (100, 1, 1)),
        ("v03_constant_weights", {"over": "grid"}, "layer=2,shape=3x37x41", "grid", (3, 16, 6)),  # 31x35: 2 by 3 tiles
        ("v04_shared_tile", {}, "layer=1,shape=3x37x41", "conv_layer", (3, 4, 6)),
        ("v05_register_tile", {}, "layer=2,batch=100", "conv_layer<true>", (64, 16, 1)),  # 100 * 9 * 9 tiles, 128 a block
        ("v05_register_tile", {}, "layer=1,shape=3x37x41", "conv_layer<false>", (2, 4, 1)),  # 3 * 8 * 9 tiles
        (
            "v06_sliding_rows",
            {"prefetch": 6},
            "layer=1,batch=100",
            "conv_layer<6, true>",
            (63, 1, 1),
        ),  # 2000 strips, 32 a block
        ("v06_sliding_rows", {"prefetch": 0}, "layer=1,shape=3x37x41", "conv_layer<0, false>", (1, 1, 1)),  # 27 strips
        ("v07_map_a_lane", {}, "layer=2,batch=1000", "conv_layer<40, 40>", (250, 1, 1)),  # a warp an image
        ("v07_map_a_lane", {}, "layer=2,shape=3x37x41", "conv_layer<37, 41>", (2, 1, 1)),  # 2 strips an image
        ("v08_uniform_weights", {"columns": 8}, "layer=1,batch=10000", "conv_layer<86, 86, 8>", (3125, 1, 1)),
        ("v08_uniform_weights", {"columns": 4}, "layer=1,shape=3x37x41", "conv_layer<37, 41, 4>", (1, 1, 1)),
        ("v09_channel_at_a_time", {"rows": 17}, "layer=2,batch=10000", "conv_layer<40, 40, 17>", (42_500, 1, 1)),  # 4 * 10,625
        ("v09_channel_at_a_time", {"rows": 9}, "layer=2,shape=3x37x41", "conv_layer<37, 41, 9>", (28, 1, 1)),  # 216 tiles
        (
            "v10_toeplitz_tf32",
            {},
            "layer=1,batch=10000",
            "conv_layer<1, 4, 86, 86, 40>",
            (12_500, 1, 1),
        ),  # 2 * 40 pairs an image
        ("v11_toeplitz_3xtf32", {}, "layer=2,batch=10000", "conv_layer<4, 16, 40, 40, 17>", (21_250, 1, 1)),  # 2 * 17 pairs
        ("v11_toeplitz_3xtf32", {}, "layer=2,shape=3x37x41", "conv_layer<4, 16, 37, 41, 17>", (7, 1, 1)),  # 3 * 2 * 18 pairs
        ("v13_warpgroups_tf32", {}, "layer=2,batch=10000", "conv_layer<40, 40, 34, 7>", (132, 1, 1)),
        ("v13_warpgroups_tf32", {}, "layer=2,batch=100", "conv_layer<40, 40, 34, 3>", (34, 1, 1)),  # 33.3 times 3
        ("v15_warpgroups_bf16_corrections", {}, "layer=2,batch=1000", "conv_layer<40, 40, 34, 7>", (132, 1, 1)),
        ("v16_whole_images_tf32", {}, "layer=2,batch=10000", "conv_layer<40, 40, 5>", (132, 1, 1)),  # 7 bands of 34 rows
        ("v16_whole_images_tf32", {}, "layer=2,batch=100", "conv_layer<40, 40, 5>", (100, 1, 1)),
        (
            "v14_warpgroups_3xtf32",
            {},
            "layer=2,shape=3x37x41",
            "conv_layer<37, 41, 27, 3>",
            (2, 1, 1),
        ),  # two bands
    ],
)
def test_blocks_cover_the_output(name, config, a_case, kernel, grid):
    (launch,) = WORKLOAD.variant(name).launches(WORKLOAD.case(a_case), config)
    assert (launch.kernel, launch.grid) == (kernel, grid)


def test_a_rung_made_for_one_layer_says_why_it_skips_the_other():
    first, second = (WORKLOAD.case(f"layer={layer},batch=100") for layer in (1, 2))
    sliding, tile = WORKLOAD.variant("v08_uniform_weights"), WORKLOAD.variant("v09_channel_at_a_time")
    assert sliding.skip(first, {"columns": 8}) is None
    assert "made for layer 1" in sliding.skip(second, {"columns": 8})
    assert tile.skip(second, {"rows": 17}) is None
    assert "made for layer 2" in tile.skip(first, {"rows": 17})


def test_maps_smaller_than_a_thread_s_share_are_skipped():
    tile, small = WORKLOAD.variant("v09_channel_at_a_time"), of(2, "1x22x40")  # 16 rows of outputs
    assert tile.skip(small, {"rows": 9}) is None
    assert "17x2 outputs" in tile.skip(small, {"rows": 17})


def test_tensor_cores_take_maps_of_any_height_in_bands_of_the_rows_that_registers_hold():
    toeplitz = WORKLOAD.variant("v10_toeplitz_tf32")
    assert "17x2 outputs" in toeplitz.skip(of(2, "1x22x40"), {})
    assert toeplitz.skip(of(2, "1x23x40"), {}) is None
    (launch,) = toeplitz.launches(of(2, "1x41x40"), {})  # 35 rows of outputs, three bands of 17 rows and 17 pairs
    assert launch.args[-1] == 51
    assert toeplitz.skip(of(1, "1x7x8"), {}) is None


def test_a_rung_keeps_its_weights_in_constant_memory_or_takes_them_as_an_argument():
    for variant in CUDA:
        assert variant.constants in ({}, {"weights": "k"})
        for a_case in emulation_cases():
            for config in variant.configs:
                if variant.skip(a_case, config) is None:
                    takes = any("k" in launch.args for launch in variant.launches(a_case, config))
                    assert takes != bool(variant.constants), variant.name
