"""The generator: its definition, its sizes, its memory, and the launches of the report's kernels."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.emulator import build, needs_compiler
from tests.workloads.declared import agreements
from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.verify import poison
from warpladder.collectors.cuda.transfers import plan_parts
from warpladder.workloads.api import CudaVariant, Launch, Overlapped
from warpladder.workloads.gan_tconv.host import scale_and_shift
from warpladder.workloads.gan_tconv.problem import EPSILON, channels_of, images_of, layers, make_case
from warpladder.workloads.gan_tconv.rungs import parts_of
from warpladder.workloads.gan_tconv.wgmma import width_of_units
from warpladder.workloads.gan_tconv.workload import WORKLOAD

pytestmark = pytest.mark.slow

CUDA = [variant for variant in WORKLOAD.variants if isinstance(variant, CudaVariant)]
H200_BYTES = 139 * 2**30


def inputs_of(case, seed=3):
    return dict(WORKLOAD.make_inputs(case, np.random.default_rng(seed)))


def one_layer(x, w):
    """The definition, formula (9) of the report, as it stands there: x among zeros, weights from their end."""
    height, width, channels = x.shape
    j = np.zeros((2 * height + 4, 2 * width + 4, channels))
    j[3 : 3 + 2 * height : 2, 3 : 3 + 2 * width : 2] = x  # 3 before, 2 after, less the zero after the last
    out = np.zeros((2 * height, 2 * width, w.shape[2]))
    for r, s in np.ndindex(5, 5):
        out += np.einsum("xyc,kc->xyk", j[r : r + 2 * height, s : s + 2 * width], w[4 - r, 4 - s])
    return out


def test_reference_is_the_report_s_formula():
    case = make_case({"images": 2, "channels": 8, "side": 2})
    inputs = {name: array.astype(np.float64) for name, array in inputs_of(case).items()}
    expected = []
    for z in inputs["z"]:
        x = (inputs["w0"] @ z).reshape(2, 2, 8)
        for n in range(5):
            x = one_layer(x, inputs[f"w{n}"]) + inputs[f"b{n}"] if n else x
            if n == 4:
                expected.append(np.tanh(x))
            else:
                scale, shift, mean, variance = inputs[f"bn{n}"]
                x = np.maximum(scale * (x - mean) / np.sqrt(variance + EPSILON) + shift, 0.0)
    images = WORKLOAD.reference(case, inputs_of(case))["images"]
    assert images.dtype == np.float64
    np.testing.assert_allclose(images, expected, rtol=0, atol=1e-13)


def test_reference_of_many_images_is_that_of_each():
    """33 images are more than it takes at once, and the last share has one."""
    case, one = make_case({"images": 33, "channels": 8, "side": 1}), make_case({"images": 1, "channels": 8, "side": 1})
    inputs = inputs_of(case)
    images = WORKLOAD.reference(case, inputs)["images"]
    last = WORKLOAD.reference(one, inputs | {"z": inputs["z"][32:]})["images"]
    assert images.shape == (33, 16, 16, 3)
    np.testing.assert_allclose(images[32:], last, rtol=0, atol=1e-14)


def test_one_input_spreads_its_weights_as_formula_9_says():
    """Input i and weight r meet in output 2i + r - 1: the first weight of the first input falls off the image."""
    x, w = np.zeros((2, 2, 1)), np.arange(25.0).reshape(5, 5, 1, 1)
    x[0, 1] = 1.0
    out = one_layer(x, w)[:, :, 0]
    assert out.tolist() == [[0, 5, 6, 7], [0, 10, 11, 12], [0, 15, 16, 17], [0, 20, 21, 22]]


def test_batch_normalisation_folds_into_one_multiply_add():
    bn = np.array([[2.0], [0.5], [3.0], [4.0 - EPSILON]])
    scale, shift = scale_and_shift(bn, 1.0)
    assert (scale.item(), shift.item()) == pytest.approx((1.0, -1.5))  # 2 (x + 1 - 3) / 2 + 0.5 = x - 1.5


def test_operations_of_the_report_s_network():
    """Along one direction an output of 2 side has 5 side - 3 taps; 17, 37, 77 and 157 here."""
    assert [layer.products for layer in layers(WORKLOAD.case("images=1000"))] == [
        *(289 * 512 * 256, 1369 * 256 * 128, 5929 * 128 * 64),
        24_649 * 64 * 3,
    ]
    each = (819_200, 37_879_808, 44_859_392, 48_570_368, 4_732_608)  # of an image, the dense layer's 100 x 8192 first
    assert sum(each) == 136_861_376
    assert WORKLOAD.case("images=1000").flops == 273_722_752_000


def test_taps_counted_one_by_one_agree_with_the_formula():
    for side in (4, 32):
        taps = sum(0 <= y + 1 - 2 * i <= 4 for y in range(2 * side) for i in range(side))
        assert taps == 5 * side - 3


def test_bytes_of_the_report_s_network():
    inputs, outputs = WORKLOAD.buffers(WORKLOAD.case("images=1000"))
    weights = {name: buffer.nbytes for name, buffer in inputs.items()}
    assert weights["w0"] == 3_276_800  # 8192 x 100
    assert [weights[f"w{n}"] for n in (1, 2, 3, 4)] == [13_107_200, 3_276_800, 819_200, 19_200]
    assert weights["z"] == 400_000
    assert outputs["images"].nbytes == 49_152_000


def test_cases_are_those_of_table_4_and_an_odd_one():
    whole = [case for case in WORKLOAD.cases if channels_of(case) == 512]
    assert [images_of(case) for case in whole] == [10, 100, 880, 1000, 2224, 2512, 4856, 5248, 3]
    assert [case.size_rank for case in WORKLOAD.cases] == [*range(10), None]
    assert [case.name for case in WORKLOAD.cases if "quick" in case.sets] == ["images=4,channels=64", "images=16,channels=64"]


@pytest.mark.parametrize("variant", CUDA, ids=lambda variant: variant.name)
def test_buffers_and_scratch_of_the_largest_case_fit_the_device(variant):
    case = WORKLOAD.case("images=5248")
    inputs, outputs = WORKLOAD.buffers(case)
    for config in variant.configs:
        scratch = variant.scratch(case, config)
        assert sum(b.nbytes for b in (*inputs.values(), *outputs.values(), *scratch.values())) < H200_BYTES


def test_matrix_of_taps_is_that_of_a_hundred_images():
    scratch = WORKLOAD.variant("v04_batched").scratch(WORKLOAD.case("images=5248"), {})
    assert scratch["taps"].nbytes == 2_621_440_000  # 100 x 4096 pixels x 25 taps x 64 channels
    assert scratch["x4"].nbytes == 4_915_200  # 100 x 64 x 64 x 3


def test_batches_end_with_what_is_left():
    launches = WORKLOAD.variant("v04_batched").launches(WORKLOAD.case("images=2224"), {})
    dense = [launch for launch in launches if launch.kernel == "dense"]
    assert [(int(launch.args[3]), int(launch.args[4])) for launch in dense[-2:]] == [(2100, 100), (2200, 24)]
    assert len(dense) == 23


def test_report_s_grid_has_blocks_of_4_by_4_by_2():
    launches = WORKLOAD.variant("v01_naive_grid").launches(WORKLOAD.case("images=3"), {})
    convolutions = [launch for launch in launches if launch.kernel == "tconv"]
    assert [launch.grid for launch in convolutions[:4]] == [(2, 2, 128), (4, 4, 64), (8, 8, 32), (16, 16, 2)]
    assert len(convolutions) == 12


@pytest.mark.parametrize(("products", "kernels"), [(2, 2), (3, 1), (4, 0)])
def test_a_mix_has_matrix_products_first_and_loops_over_taps_after(products, kernels):
    launches = WORKLOAD.variant("v05_mixed").launches(WORKLOAD.case("images=100"), {"products": products})
    convolutions = [launch.kernel for launch in launches if launch.kernel in {"multiply", "tconv"}]
    assert convolutions == ["multiply"] * products + ["tconv"] * kernels


@pytest.mark.parametrize(
    ("names", "most", "next_case"),
    [
        (("v01_naive_grid", "v02_stride_two", "v03_matrix_product", "numpy", "numba_parallel"), 100, 880),
        (("numba_serial",), 10, 100),
    ],
)
def test_variants_that_are_slow_in_proportion_are_spared_the_largest_cases_and_say_why(names, most, next_case):
    for name in names:
        skip = WORKLOAD.variant(name).skip
        assert skip(WORKLOAD.case(f"images={most}"), {}) is None
        assert f"measured up to {most} images" in skip(WORKLOAD.case(f"images={next_case}"), {})


def test_a_network_of_fewer_channels_is_small_enough_for_one_core():
    assert WORKLOAD.variant("numba_serial").skip(WORKLOAD.case("images=16,channels=64"), {}) is None


def test_activations_stay_near_one_so_that_no_error_hides_behind_relu_or_tanh():
    case = make_case({"images": 4, "channels": 64})
    images = WORKLOAD.reference(case, inputs_of(case))["images"]
    assert 0.2 < np.sqrt(np.mean(images**2)) < 0.8


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(
    ("name", "images", "channels", "side"),
    [
        ("v08_phases", 130, 32, 1),  # tiles begin within a pixel, and cross into the next
        ("v08_phases", 2, 256, 1),  # 128 and 64 columns, and two tiles of 64 side by side
        ("v10_three_products", 2, 256, 1),
        ("v11_one_product", 2, 256, 1),
    ],
)
def test_tiles_of_whole_networks_are_right_where_small_networks_do_not_reach_them(name, images, channels, side):
    case, variant = make_case({"images": images, "channels": channels, "side": side}), WORKLOAD.variant(name)
    for config in variant.configs:
        (verdict,) = agreements(WORKLOAD, variant, case, config, seed=3)
        assert verdict.ok, f"{config}: {verdict.detail}"


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize(("name", "most"), [("v07_overlapped", 2), ("v08_phases", 3), ("v14_few_images", 3)])
def test_images_made_part_by_part_are_those_of_the_whole(name, most):
    """As the overlapped copies run them: each part's kernels on its own rows of z and of the images, in the scratch of the whole."""
    case, variant = make_case({"images": 5, "channels": 32, "side": 1}), WORKLOAD.variant(name)
    config, inputs = variant.configs[0], inputs_of(case)
    images = WORKLOAD.reference(case, inputs)["images"]
    declared = variant.scratch(case, config)
    scratch = {name: np.zeros(buffer.shape, buffer.dtype) for name, buffer in declared.items()}
    poison({name: array for name, array in scratch.items() if not declared[name].zeroed})
    made = []
    for part in plan_parts(WORKLOAD, case, replace(variant, end_to_end=Overlapped(parts_of(most))), config):
        rows = part.rows["images"]
        written = {**scratch, "images": np.full(rows.of(images).shape, np.nan, np.float32)}
        program = build(variant, sorted({launch.kernel for launch in part.launches}))
        program.run(part.launches, inputs | {"z": part.rows["z"].of(inputs["z"])}, written)
        made.append(written["images"])
    assert len(made) == {2: 3, 3: 2}[most]
    assert compare({"images": np.concatenate(made)}, {"images": images}, WORKLOAD.tolerance["fp32"]).ok


@pytest.mark.parametrize(("images", "z"), [(1000, ["z"]), (2224, [])])
def test_small_weights_and_the_z_of_a_thousand_images_come_in_one_copy_before_the_large_weights(images, z):
    variant = WORKLOAD.variant("v16_rounded_on_load_tf32")
    first, *others = plan_parts(WORKLOAD, WORKLOAD.case(f"images={images}"), variant, {})
    small = ["bn0", "b1", "bn1", "b2", "bn2", "b3", "bn3", "w4"]
    assert [rows.name for rows in first.together] == [*small, *(z or ["b4"])]
    assert {rows.name for rows in first.waits[0]} >= {"bn0", "bn1", "bn2", "bn3", "b1", "b2", "b3"}
    assert [rows.name for rows in first.copies_in] == [*([] if z else ["z"]), "w0", "w1", "w2", "w3", *(["b4"] if z else [])]
    assert [[rows.name for rows in part.copies_in] for part in others] == [[] if z else ["z"] for _ in others]


@pytest.mark.parametrize(("name", "parts"), [("v07_overlapped", [100] * 22 + [24]), ("v11_one_product", [512] * 4 + [176])])
def test_parts_share_the_images_out_and_the_first_brings_the_weights(name, parts):
    """z, five weights, four biases and four batch normalisations; then z alone."""
    planned = plan_parts(WORKLOAD, WORKLOAD.case("images=2224"), WORKLOAD.variant(name), WORKLOAD.variant(name).configs[0])
    assert [images_of(part.case) for part in planned] == parts
    assert [len((*part.together, *part.copies_in)) for part in planned] == [14] + [1] * (len(parts) - 1)


@pytest.mark.parametrize(
    "name", ["v08_phases", "v11_one_product", "v12_warpgroups_3xtf32", "v13_warpgroups_tf32", "v16_rounded_on_load_tf32"]
)
def test_each_layer_waits_for_no_weights_of_a_later_one(name):
    variant = WORKLOAD.variant(name)
    part, *_ = plan_parts(WORKLOAD, WORKLOAD.case("images=1000"), variant, variant.configs[0])
    copied = [rows.name for rows in (*part.together, *part.copies_in) if rows.name.startswith("w")]
    alone = [rows.name for rows in part.copies_in if rows.name.startswith("w")]
    assert (sorted(copied), alone) == ([f"w{n}" for n in range(5)], sorted(alone))
    products = [number for number, launch in enumerate(part.launches) if "product<" in launch.kernel]
    for layer, number in enumerate(products):
        waited = {rows.name for waits in part.waits[: number + 1] for rows in waits}
        assert waited & set(alone) == {f"w{n}" for n in range(layer + 1)}


def products_of(name, case, config):
    launches = WORKLOAD.variant(name).launches(WORKLOAD.case(case), config)
    return [(launch.kernel, launch.grid[0]) for launch in launches if "product<" in launch.kernel]


def test_phases_of_a_thousand_images_in_tiles():
    """A phase of layer 1 has 16 pixels of 1000 images: 125 tiles of 128 rows, in four phases and two or four columns of tiles."""
    assert products_of("v08_phases", "images=1000", {"tile": 128}) == [
        ("product<128, 128, true, false>", 8 * 64),  # the dense layer: 1000 rows, 8192 columns
        ("product<128, 128, false, false>", 125 * 4 * 2),
        ("product<128, 128, false, false>", 500 * 4),
        ("product<128, 64, false, false>", 2000 * 4),
    ]
    assert products_of("v11_one_product", "images=1000", {"columns": 128})[1:] == [
        ("tensor_product<OneProduct, 128, 128, 64, true>", 125 * 4 * 2),
        ("tensor_product<OneProduct, 128, 128, 64, true>", 500 * 4),
        ("tensor_product<OneProduct, 128, 64, 32, false>", 2000 * 4),
    ]


def test_images_of_a_pixel_are_padded_to_a_vector():
    scratch = WORKLOAD.variant("v08_phases").scratch(WORKLOAD.case("images=3"), {})
    assert scratch["latent"].shape == (100, 4)
    assert scratch["x3"].shape == (32, 32, 64, 4)


def test_rungs_by_phases_say_what_channels_they_cannot_copy():
    skip = WORKLOAD.variant("v08_phases").skip
    assert "no multiple of 32" in skip(make_case({"images": 3, "channels": 8, "side": 2}), {})
    assert skip(WORKLOAD.case("images=4,channels=64"), {}) is None


def test_weights_are_prepared_within_the_operation():
    """What is timed has every transposition: z, the dense layer, 25 matrices of each of three layers, and the last layer."""
    launches = WORKLOAD.variant("v11_one_product").launches(WORKLOAD.case("images=1000"), {"columns": 128})
    prepared = {(launch.args[0], launch.grid, launch.kernel) for launch in launches if launch.kernel.startswith("transpose")}
    assert prepared == {
        ("z", (32, 4, 1), "transpose<false>"),
        ("w0", (256, 4, 1), "transpose<false>"),
        ("w1", (8, 16, 25), "transpose<true>"),
        ("w2", (4, 8, 25), "transpose<true>"),
        ("w3", (2, 4, 25), "transpose<true>"),
        ("w4", (3, 2, 1), "transpose<false>"),
    }


@needs_compiler
@pytest.mark.parametrize("side", [1, 2, 3])
@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_inputs_of_a_tile_on_warpgroups_meet_its_outputs_by_the_taps_of_formula_9(outputs, side):
    """Each once: output (y, x) and input (i, j) by weight (y + 1 - 2i, x + 1 - 2j), where there is one."""
    met = np.zeros((2 * side, 2 * side, side, side), np.int32)
    program = CudaVariant("output_tiles", "Tiles", "rung", source=Path(__file__).parent / "output_tiles.cu")
    launch = Launch(f"meet<{outputs}>", (1, 1, 1), (1, 1, 1), ("met", np.int32(side)))
    build(program, [launch.kernel]).run([launch], {}, {"met": met})
    expected = np.zeros_like(met)
    for y, x, i, j in np.ndindex(met.shape):
        row, column = y + 1 - 2 * i, x + 1 - 2 * j
        if 0 <= row < 5 and 0 <= column < 5:
            expected[y, x, i, j] = 1000 + 5 * row + column
    np.testing.assert_array_equal(met, expected)


def test_tiles_on_warpgroups_are_128_images_by_256_sums():
    """Of TF32; 3xTF32 has 128. Three images are one block of rows: 16 pixels in four phases, and so on; never more blocks than 132."""
    assert products_of("v13_warpgroups_tf32", "images=880", {}) == [
        ("layer_product<1, 256, true, 4>", 132),
        ("layer_product<1, 256, false, 4>", 132),
        ("layer_product<2, 128, false, 4>", 132),
        ("layer_product<4, 64, false, 4>", 132),
    ]
    assert products_of("v13_warpgroups_tf32", "images=3", {}) == [
        ("layer_product<1, 256, true, 4>", 8192 // 256),
        ("layer_product<1, 128, false, 4>", 4 * 16 * 2),  # of few images half the width, so that there are enough
        ("layer_product<2, 128, false, 4>", 2 * 64),
        ("layer_product<4, 64, false, 4>", 132),
    ]
    assert products_of("v12_warpgroups_3xtf32", "images=3", {}) == [
        ("layer_product<1, 128, true, 4>", 8192 // 128),
        ("layer_product<1, 128, false, 4>", 4 * 16 * 2),
        ("layer_product<1, 128, false, 4>", 132),
        ("layer_product<2, 64, false, 4>", 132),
    ]


def test_a_block_of_the_last_layer_walks_as_far_as_lets_all_end_soonest():
    """1000 images are 8 blocks of 128 by 16 pairs of rows, 128 units of 32 columns for 132 multiprocessors; 512 are 64, and 128 of 16 and
    two more columns; 100 are 16, and 128 of 4 and two more."""
    assert [width_of_units(32, images) for images in (1000, 512, 100)] == [32, 16, 4]
