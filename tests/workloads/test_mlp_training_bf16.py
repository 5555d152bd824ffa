"""The training step in mixed precision: its reference, its launches, and the memory of its blocks."""

import numpy as np
import pytest

from tests.emulator.emulator import needs_compiler
from tests.workloads.declared import agreements
from warpladder.workloads.api import CudaVariant, TensorMap
from warpladder.workloads.declare.cases import narrowed, widened
from warpladder.workloads.mlp_training import problem as in_float32
from warpladder.workloads.mlp_training.problem import RATE, REGULARIZATION
from warpladder.workloads.mlp_training_bf16.problem import COPIES, TOLERANCES, make_case
from warpladder.workloads.mlp_training_bf16.workload import WORKLOAD

pytestmark = pytest.mark.slow

MOST_SHARED_BYTES = 232_448


def test_the_reference_is_the_step_with_rounded_samples_and_weights_whose_update_changes_the_master_weights() -> None:
    case = make_case({"batch": 6, "inputs": 8, "hidden": 16})
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(1))
    rounded = {name: widened(inputs[copy], "bfloat16") for name, copy in COPIES.items()}
    of_rounded = in_float32.reference(case, {**inputs, "x": widened(inputs["x"], "bfloat16"), **rounded})
    found = WORKLOAD.reference(case, inputs)
    keep = 1 - RATE * REGULARIZATION
    for name in COPIES:
        difference = inputs[name].astype(np.float64) - rounded[name]
        assert 0 < np.abs(difference).max() < 2.0**-9, "copies are rounded"
        np.testing.assert_allclose(found[f"new_{name}"], of_rounded[f"new_{name}"] + keep * difference, rtol=1e-12)
    np.testing.assert_allclose(found["new_b1"], of_rounded["new_b1"], rtol=1e-12)
    np.testing.assert_allclose(found["new_b2"], of_rounded["new_b2"], rtol=1e-12)


def test_a_network_of_zeros_has_the_loss_of_ten_equal_classes() -> None:
    case = make_case({"batch": 3, "inputs": 8, "hidden": 8})
    inputs = {name: np.zeros_like(array) for name, array in WORKLOAD.make_inputs(case, np.random.default_rng(2)).items()}
    inputs["y"][np.arange(3), [0, 9, 4]] = 1
    np.testing.assert_allclose(WORKLOAD.reference(case, inputs)["losses"], [np.log(10)] * 3)


def test_copies_are_the_master_weights_rounded_to_nearest() -> None:
    case = make_case({"batch": 3, "inputs": 8, "hidden": 8})
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(3))
    assert all(np.array_equal(inputs[copy], narrowed(inputs[name], "bfloat16")) for name, copy in COPIES.items())


def test_as_many_roundings_pass_as_pytorch_makes() -> None:
    # Seven values with independent errors of at most 2^-8: sqrt(7) * 2^-8.
    assert TOLERANCES["bf16"] == pytest.approx(1.0335e-2, rel=1e-3)


def launched(name: str, case: str, columns: int) -> list[tuple[str, int, int]]:
    """Kernel, blocks and threads of each launch."""
    launches = WORKLOAD.variant(name).launches(WORKLOAD.case(case), {"columns": columns})
    return [(launch.kernel, launch.grid[0], launch.block[0]) for launch in launches]


def test_activations_that_go_by_way_of_memory_take_a_launch_more() -> None:
    assert launched("v01_warpgroups", "batch=8192", 256) == [
        ("forward<2, 256, 4, 1, 3, true, false>", 256, 384),  # 64 tiles of 128 samples
        ("forward<2, 256, 4, 1, 3, false, true>", 256, 384),
        ("backward_update<256, 4, 4>", 28 * 4 + 20, 384),  # 7 x 4 tiles
    ]
    assert launched("v02_fused_forward", "batch=8192", 256) == [
        ("forward<2, 256, 4, 1, 3, true, true>", 256, 384),
        ("backward_update<256, 4, 4>", 132, 384),
    ]
    assert launched("v02_fused_forward", "batch=800", 128) == [
        ("forward<1, 128, 8, 1, 7, true, true>", 104, 256),  # 13 tiles of 64 samples
        ("backward_update<64, 1, 8>", 7 * 16 + 20, 384),
    ]


def test_clusters_of_two_tiles_have_an_even_number_of_them() -> None:
    assert launched("v04_shared_weights", "batch=8192", 256)[0] == ("forward<2, 256, 4, 2, 3, true, true>", 256, 384)
    assert launched("v04_shared_weights", "batch=37", 256)[0][1] == 8, "the second tile has no sample"
    assert launched("v04_shared_weights", "batch=800", 128) == launched("v03_early_start", "batch=800", 128)


def test_only_the_last_launch_of_the_last_rungs_starts_early() -> None:
    case = WORKLOAD.case("batch=100")
    early = {
        each.name: [launch.early for launch in each.launches(case, each.configs[0])]
        for each in WORKLOAD.variants
        if isinstance(each, CudaVariant)
    }
    assert early == {
        "v01_warpgroups": [False, False, False],
        "v02_fused_forward": [False, False],
        "v03_early_start": [False, True],
        "v04_shared_weights": [False, True],
    }


@pytest.mark.parametrize("variant", [each for each in WORKLOAD.variants if isinstance(each, CudaVariant)], ids=lambda v: v.name)
def test_a_block_has_room_and_boxes_are_lines_of_128_bytes(variant: CudaVariant) -> None:
    for config in variant.configs:
        for launch in variant.launches(WORKLOAD.case("batch=37"), config):
            assert launch.dynamic_shared_bytes <= MOST_SHARED_BYTES - 1024, "what is not dynamic is below 1 KB"
            maps = [argument for argument in launch.args if isinstance(argument, TensorMap)]
            assert {(each.box[1], each.swizzle_bytes) for each in maps} == {(64, 128)}


def test_gradients_of_a_sample_begin_with_a_line_of_l2() -> None:
    variant = WORKLOAD.variant("v03_early_start")
    assert isinstance(variant, CudaVariant)
    assert variant.scratch(WORKLOAD.case("batch=37"), {"columns": 256})["dz1"].shape == (37, 1024)


def test_rows_are_multiples_of_16_bytes_and_a_cluster_has_all_hidden_units() -> None:
    skip = WORKLOAD.variant("v02_fused_forward").skip
    assert skip(make_case({"batch": 37}), {"columns": 256}) is None
    assert "68 inputs" in (skip(make_case({"batch": 1, "inputs": 68, "hidden": 72}), {"columns": 256}) or "")
    assert "68 hidden" in (skip(make_case({"batch": 1, "inputs": 72, "hidden": 68}), {"columns": 128}) or "")
    assert skip(make_case({"batch": 1, "inputs": 8, "hidden": 1024}), {"columns": 128}) is None
    assert "at most 1024" in (skip(make_case({"batch": 1, "inputs": 8, "hidden": 1032}), {"columns": 128}) or "")


@needs_compiler
def test_what_is_left_to_round_is_below_the_tolerance() -> None:
    variant, case = WORKLOAD.variant("v02_fused_forward"), make_case({"batch": 70, "inputs": 72, "hidden": 72})
    assert isinstance(variant, CudaVariant)
    for agreement in agreements(WORKLOAD, variant, case, {"columns": 128}):
        assert 1e-3 < agreement.rel_l2_error < TOLERANCES["bf16"] / 1.5, "rounded to BF16, less often than by PyTorch"
