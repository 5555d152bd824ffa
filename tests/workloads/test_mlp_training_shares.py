"""Products of the training step whose blocks have shares of a line of tiles: the shares, the launches, and the kernels on several tiles."""

import numpy as np
import pytest

from tests.emulator.emulator import build, needs_compiler
from tests.workloads.test_mlp_training import relative_error
from warpladder.workloads.api import CudaVariant, TensorMap
from warpladder.workloads.mlp_training import full_waves, wide_tiles
from warpladder.workloads.mlp_training.problem import TOLERANCES, Size, make_case, size_of
from warpladder.workloads.mlp_training.workload import WORKLOAD
from warpladder.workloads.shares import Line

pytestmark = pytest.mark.slow

BATCHES = (1, 37, 100, 333, 400, 800, 1024, 2048, 5000, 8192, 8193, 65536)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("columns", [None, 64, 256])  # of a wide tile, or full waves
def test_every_share_has_a_stage_and_the_line_has_all_of_them(columns, batch):
    size, config = Size(batch, 784, 1000), {"columns": columns}
    if columns:
        forward, backward = wide_tiles.forward_line(size, config), wide_tiles.backward_line(size, config)
    else:
        forward, backward = full_waves.forward_line(size), full_waves.backward_line(size)
    for line, steps in ((forward, 784), (backward, batch)):
        depth = -(-steps // (32 if columns else 16))
        assert line.span >= depth, "no stage is left out"
        assert line.span == depth or line.span - line.share < depth, "the last part of a tile has a stage"
        assert line.has_whole_tiles or line.span % line.share == 0 or line.span == depth, (
            "a share may cross tiles only without padding"
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch", BATCHES)
def test_blocks_of_tf32_fit_the_multiprocessors_at_once(batch):
    variant = WORKLOAD.variant("v08_warpgroups_tf32")
    for config in variant.configs:
        products = [launch for launch in variant.launches(make_case({"batch": batch}), config) if launch.dynamic_shared_bytes]
        assert len(products) == 2
        assert max(launch.grid[0] for launch in products) <= 132
        assert {launch.dynamic_shared_bytes for launch in products} == {197_632}  # of 232,448, a block a multiprocessor


def test_a_step_in_tf32_at_8192_rows_and_at_800():
    variant = WORKLOAD.variant("v08_warpgroups_tf32")
    large = variant.launches(make_case({"batch": 8192}), {"columns": 256})
    assert [(launch.kernel, launch.grid[0]) for launch in large] == [
        ("forward_hidden<256, 4>", 128),  # 8 x 32 tiles, two a block
        ("output_layer<4, true, true>", 128),
        ("backward_slices<256, 4>", 112),  # 7 x 4 tiles in 4 parts
        ("update<128, 256>", 766 + 44),
    ]
    small = variant.launches(make_case({"batch": 800}), {"columns": 64})
    assert [(launch.kernel, launch.grid[0]) for launch in small] == [
        ("forward_hidden<64, 8>", 104),
        ("output_layer<4, true, true>", 100),
        ("backward_update<64, 8>", 112 + 20),
    ]
    maps = [argument for launch in (*large, *small) for argument in launch.args if isinstance(argument, TensorMap)]
    assert len(maps) == 8
    assert all(tensor_map.tf32 for tensor_map in maps), "the tensor cores would cut off what the TMA does not round"


def test_a_step_in_full_waves_has_two_blocks_a_multiprocessor():
    variant = WORKLOAD.variant("v09_full_waves")
    launches = variant.launches(make_case({"batch": 8192}), {})
    assert [(launch.kernel, launch.grid[0], launch.block[0]) for launch in launches] == [
        ("forward_hidden<8, 4, 2>", 512, 256),  # 8 x 64 tiles: 1.94 rounds of 264
        ("output_layer<4, false, true>", 128, 256),
        ("backward_weights<14, 2, 2>", 264, 128),  # 8 x 7 tiles of 512 stages, in shares of 109
        ("update<112, 128>", 766 + 44, 256),
    ]
    # Three stages of 16 steps of 128 rows, and of 128 columns and 4 more, or of 112.
    assert [launch.dynamic_shared_bytes for launch in launches] == [49_920, 0, 46_080, 0]


def test_both_want_multiples_of_four_inputs_and_hidden_units():
    for name in ("v08_warpgroups_tf32", "v09_full_waves"):
        variant = WORKLOAD.variant(name)
        assert variant.skip(make_case({"batch": 37}), {}) is None
        assert "67 inputs" in (variant.skip(make_case({"batch": 19, "inputs": 67, "hidden": 132}), {}) or "")
        assert "131 hidden" in (variant.skip(make_case({"batch": 19, "inputs": 68, "hidden": 131}), {}) or "")


def emulated_error(name: str, size: dict[str, int], config: dict, order: str) -> float:
    case, variant = make_case(size), WORKLOAD.variant(name)
    assert isinstance(variant, CudaVariant)
    launches, inputs = list(variant.launches(case, config)), WORKLOAD.make_inputs(case, np.random.default_rng(14))
    outputs = {key: np.full(buffer.shape, np.nan, np.float32) for key, buffer in WORKLOAD.buffers(case)[1].items()}
    scratch = {key: np.full(buffer.shape, np.nan, np.float32) for key, buffer in variant.scratch(case, config).items()}
    build(variant, sorted({launch.kernel for launch in launches})).run(launches, inputs, {**outputs, **scratch}, order)
    return relative_error(outputs, WORKLOAD.reference(case, inputs))


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_tiles_of_float32_whose_shares_begin_and_end_in_the_middle_of_tiles(monkeypatch, order):
    size = {"batch": 150, "inputs": 132, "hidden": 260}
    for line, steps in (("forward_line", 9), ("backward_line", 10)):
        tiles = getattr(full_waves, line)(size_of(make_case(size))).tiles
        monkeypatch.setattr(full_waves, line, lambda size, tiles=tiles, steps=steps: Line(tiles, steps, 7))
        assert tiles == 6
    assert emulated_error("v09_full_waves", size, {}, order) < TOLERANCES["fp32"] / 5


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("columns", [64, 256])
def test_tiles_of_tf32_whose_shares_begin_and_end_in_the_middle_of_tiles(monkeypatch, columns, order):
    size, config = {"batch": 200, "inputs": 132, "hidden": 260}, {"columns": columns}
    line = wide_tiles.backward_line(size_of(make_case(size)), config)
    monkeypatch.setattr(wide_tiles, "backward_line", lambda size, config: Line(line.tiles, 7, 5))
    error = emulated_error("v08_warpgroups_tf32", size, config, order)
    assert error < 8e-5, "about 5e-5 where all operands are rounded, 1.5e-4 where they are cut off"


@needs_compiler
def test_whole_tiles_of_tf32_one_after_another_with_the_update(monkeypatch):
    size, config = {"batch": 70, "inputs": 132, "hidden": 260}, {"columns": 64}
    monkeypatch.setattr(wide_tiles, "backward_line", lambda size, config: Line(10, 3, 6))
    monkeypatch.setattr(wide_tiles, "forward_line", lambda size, config: Line(6, 5, 10))
    kernels = [launch.kernel for launch in WORKLOAD.variant("v08_warpgroups_tf32").launches(make_case(size), config)]
    assert kernels == ["forward_hidden<64, 8>", "output_layer<2, true, true>", "backward_update<64, 8>"]
    assert emulated_error("v08_warpgroups_tf32", size, config, "backward") < 8e-5


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(
    ("name", "config", "most"),
    [("v08_warpgroups_tf32", {"columns": 64}, 8e-5), ("v09_full_waves", {}, TOLERANCES["fp32"] / 5)],
)
def test_blocks_of_the_output_layer_have_samples_one_after_another(name, config, most, order):
    size = {"batch": 1101, "inputs": 12, "hidden": 260}
    launch = WORKLOAD.variant(name).launches(make_case(size), config)[1]
    assert (launch.kernel.split("<")[0], launch.grid[0]) == ("output_layer", 92)  # 276 fours, three a block
    assert emulated_error(name, size, config, order) < most
