"""The generator's rungs for few images: units of equal work, whose slices are the blocks of a cluster."""

import pytest

from tests.emulator.emulator import needs_compiler
from tests.workloads.declared import agreements
from warpladder.workloads.gan_tconv import few
from warpladder.workloads.gan_tconv.problem import layers, make_case
from warpladder.workloads.gan_tconv.workload import WORKLOAD

pytestmark = pytest.mark.slow

RUNGS = ("v14_few_images", "v15_few_images_tf32", "v17_few_images_bf16_corrections")


def emulated(name, case, config):
    """Result of comparing the images that the emulator makes."""
    return next(agreements(WORKLOAD, WORKLOAD.variant(name), case, config, seed=3))


def layers_of(name, case):
    """The launches of the three layers in the middle."""
    variant = WORKLOAD.variant(name)
    return [launch for launch in variant.launches(case, variant.configs[0]) if launch.kernel.startswith("layer<")]


@pytest.mark.parametrize(
    ("name", "slices"),
    [
        ("v14_few_images", [(16, 6, 96), (64, 2, 128), (64, 2, 64)]),
        ("v15_few_images_tf32", [(16, 6, 96), (32, 3, 96), (64, 2, 64)]),
        ("v17_few_images_bf16_corrections", [(16, 6, 96), (64, 2, 128), (64, 2, 64)]),
    ],
)
def test_ten_images_are_clusters_that_all_run_at_once(name, slices):
    """16 ranges of 16 channels; then 4 squares by 8 ranges, of five images or of three; then 16 squares by 4 ranges."""
    sizes = (
        18,
        18,
        18,
        18,
        18,
        16,
        16,
        10,
    )  # of GPCs, with which the numbers for 2, 4 and 8 agree that Nsight Compute says of an H200
    most = {blocks: sum(size // blocks for size in sizes) for blocks in (2, 3, 4, 6, 8)}
    assert (most[2], most[4], most[8]) == (66, 30, 15)
    launches = layers_of(name, WORKLOAD.case("images=10"))
    assert [launch.grid[0] for launch in launches] == [units * blocks for units, blocks, _ in slices]
    assert [int(launch.args[-1]) for launch in launches] == [channels for *_, channels in slices]
    assert all(units <= most[blocks] for units, blocks, _ in slices)
    assert launches[0].dynamic_shared_bytes == (10 * 36 + 25 * 16) * 64 * 4


def test_a_unit_has_as_many_images_as_there_are_up_to_ten():
    """3 images are two threads' 2 each, and 11 are two units of 6."""
    plans = {n: few.plan(case, layers(case)[0], few.FMA) for n in (1, 3, 10, 11, 33) for case in [make_case({"images": n})]}
    assert {n: plan.per for n, plan in plans.items()} == {1: 1, 3: 2, 10: 5, 11: 3, 33: 5}
    assert {n: plan.units // 16 for n, plan in plans.items()} == {1: 1, 3: 1, 10: 1, 11: 2, 33: 4}


def test_many_images_need_fewer_slices():
    """64 images are 128 units in the first layer, as many as run at once without a cluster."""
    case = make_case({"images": 64})
    assert [few.plan(case, layer, few.FMA).slices for layer in layers(case)[:3]] == [1, 1, 1]


@pytest.mark.parametrize("images", [1, 10, 20, 100, 1000])
def test_no_block_of_the_corrected_products_adds_up_more_channels_than_those_of_ten_images(images):
    case = make_case({"images": images})
    assert all(few.plan(case, layer, few.CORRECTED).slice <= 128 for layer in layers(case)[:3])


@pytest.mark.parametrize("channels", [512, 544, 1024, 32])
def test_slices_cover_the_channels_and_none_is_empty(channels):
    for layer in layers(make_case({"images": 2, "channels": channels}))[:3]:
        for arithmetic in (few.FMA, few.TENSOR_CORES):
            plan = few.plan(make_case({"images": 2, "channels": channels}), layer, arithmetic)
            assert (plan.slices - 1) * plan.slice < layer.channels <= plan.slices * plan.slice


@pytest.mark.parametrize("name", RUNGS)
def test_weights_are_read_where_they_lie(name):
    """An operation is five kernels: none rearranges weights. Each but the last asks for the weights of the next."""
    variant = WORKLOAD.variant(name)
    launches = variant.launches(WORKLOAD.case("images=10"), variant.configs[0])
    weights = [[arg for arg in launch.args if isinstance(arg, str) and arg.startswith("w")] for launch in launches]
    assert weights == [["w0", "w1"], ["w1", "w2"], ["w2", "w3"], ["w3", "w4"], ["w4"]]
    assert not set(variant.scratch(WORKLOAD.case("images=10"), {})) - {"x0", "x1", "x2", "x3"}


def test_the_last_layer_and_the_dense_one_are_in_float32():
    """Only what a product of TF32 takes is rounded: the pixels before the first three layers, not those before the last."""
    launches = WORKLOAD.variant("v15_few_images_tf32").launches(WORKLOAD.case("images=10"), {})
    assert [launch.kernel for launch in launches] == [
        "dense<true>",
        "layer<5, 6, true>",
        "layer<5, 3, true>",
        "layer<5, 2, false>",
        "last_layer",
    ]


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("images", [1, 3, 7, 9, 11, 12, 16, 33])
@pytest.mark.parametrize("name", RUNGS)
def test_any_number_of_images_is_right(name, images):
    case = make_case({"images": images, "channels": 32, "side": 1})
    for config in WORKLOAD.variant(name).configs:
        verdict = emulated(name, case, config)
        assert verdict.ok, f"{config}: {verdict.detail}"


@needs_compiler
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("v15_few_images_tf32", 5e-5, 5e-4),  # 11 bits of both operands
        ("v17_few_images_bf16_corrections", 2e-7, 8e-7),  # 8 bits of corrections
    ],
)
def test_tensor_cores_err_as_much_as_the_bits_of_their_operands_say(name, least, most):
    """Sums are rounded in the emulator, where a GPU cuts them off: the error here is that of the operands."""
    error = emulated(name, make_case({"images": 2, "channels": 64, "side": 2}), {}).rel_l2_error
    assert least < error < most


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(("channels", "side"), [(256, 1), (96, 1), (32, 3), (32, 5)])
@pytest.mark.parametrize("name", RUNGS)
def test_slices_squares_and_ranges_that_do_not_fit_are_right(name, channels, side):
    """256 channels are clusters of 6 and fewer; 96 end within a slice and a range; sides of 3 and 5 end within a square."""
    case = make_case({"images": 2, "channels": channels, "side": side})
    for config in WORKLOAD.variant(name).configs:
        verdict = emulated(name, case, config)
        assert verdict.ok, f"{config}: {verdict.detail}"


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("name", RUNGS)
def test_a_slice_longer_than_shared_memory_takes_its_stages_in_turn(name, monkeypatch):
    """As of many images: on one multiprocessor a unit is one block, whose 192 channels are three times what its stages hold."""
    monkeypatch.setattr(few, "_AT_ONCE", {1: 1})
    case = make_case({"images": 2, "channels": 192, "side": 1})
    assert [launch.grid for launch in layers_of(name, case)] == [(6, 1, 1), (3, 1, 1), (2, 1, 1)]
    for config in WORKLOAD.variant(name).configs:
        verdict = emulated(name, case, config)
        assert verdict.ok, f"{config}: {verdict.detail}"


def test_channels_that_do_not_fill_a_vector_are_skipped_with_the_reason():
    for name in RUNGS:
        skip = WORKLOAD.variant(name).skip
        assert "no multiple of 32" in skip(make_case({"images": 3, "channels": 8, "side": 2}), {})
        assert skip(WORKLOAD.case("images=10"), {}) is None
