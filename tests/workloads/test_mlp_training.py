"""The training step: its definition, its data, its launches, the program of the host, and what the network learns by it."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.emulator import build, needs_compiler
from warpladder.workloads.api import CudaVariant, HostVariant, Launch, TensorMap, read_source
from warpladder.workloads.mlp_training import fused, programs, wgmma
from warpladder.workloads.mlp_training.digits import DEV, enlarged, one_hot, training_and_dev
from warpladder.workloads.mlp_training.problem import (
    OUTPUTS,
    RATE,
    REGULARIZATION,
    TOLERANCES,
    Size,
    emulation_cases,
    make_case,
)
from warpladder.workloads.mlp_training.whole_matrices import Matrix, matrices, product_arguments
from warpladder.workloads.mlp_training.workload import WORKLOAD

pytestmark = pytest.mark.slow


def relative_error(outputs: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    difference = sum(float(np.sum((outputs[name] - expected[name]) ** 2)) for name in expected)
    return float(np.sqrt(difference / sum(float(np.sum(expected[name] ** 2)) for name in expected)))


def loss(inputs: dict[str, np.ndarray]) -> float:
    """Cross-entropy averaged over the batch, and half the squared weights, in float64: what the step goes down."""
    x, y, w1, b1, w2, b2 = (inputs[name].astype(np.float64) for name in ("x", "y", "w1", "b1", "w2", "b2"))
    z2 = 1 / (1 + np.exp(-(x @ w1 + b1))) @ w2 + b2
    log_p = z2 - np.log(np.exp(z2).sum(axis=1, keepdims=True))
    return float(-(y * log_p).sum() / len(x) + REGULARIZATION / 2 * ((w1**2).sum() + (w2**2).sum()))


@pytest.mark.parametrize("name", ["w1", "b1", "w2", "b2"])
def test_reference_goes_down_the_gradient_of_the_regularised_cross_entropy(name):
    case = make_case({"batch": 4, "inputs": 6, "hidden": 5})
    inputs = {key: array.astype(np.float64) for key, array in WORKLOAD.make_inputs(case, np.random.default_rng(3)).items()}
    gradient = (inputs[name] - WORKLOAD.reference(case, inputs)[f"new_{name}"]) / RATE
    for place in ((0,) * gradient.ndim, tuple(extent - 1 for extent in gradient.shape)):
        around = []
        for step in (-1e-5, 1e-5):
            moved = inputs[name].copy()
            moved[place] += step
            around.append(loss({**inputs, name: moved}))
        assert gradient[place] == pytest.approx((around[1] - around[0]) / 2e-5, rel=1e-5, abs=1e-10)


def test_a_network_of_zeros_moves_by_what_can_be_counted_by_hand():
    case = make_case({"batch": 1, "inputs": 1, "hidden": 1})
    zeros = {"w1": np.zeros((1, 1)), "b1": np.zeros(1), "w2": np.zeros((1, 10)), "b2": np.zeros(10)}
    found = WORKLOAD.reference(case, {"x": np.ones((1, 1)), "y": one_hot(np.array([3])), **zeros})
    # All classes are 1/10 probable, the activation is 1/2; with rate 32, a class that is not meant loses 3.2, the one that is gains 28.8.
    np.testing.assert_allclose(found["new_b2"], [-3.2, -3.2, -3.2, 28.8, -3.2, -3.2, -3.2, -3.2, -3.2, -3.2])
    np.testing.assert_allclose(found["new_w2"][0, [0, 3]], [-1.6, 14.4])
    np.testing.assert_array_equal([found["new_w1"][0, 0], found["new_b1"][0]], [0, 0])  # no way back through weights of zero


def test_operations_and_bytes_of_the_report_s_batch():
    case = WORKLOAD.case("batch=800")
    assert case.flops == 2_556_800_000  # 2 * 800 * 1000 * (2 * 784 + 3 * 10)
    assert case.min_bytes == 8_900_880  # 4 * (800 * 794 samples and labels + 2 * 795,010 weights)


def test_batches_are_ranked_and_the_odd_one_is_not_charted():
    ranks = {case.params["batch"]: case.size_rank for case in WORKLOAD.cases}
    assert ranks == {100: 0, 400: 1, 800: 2, 8192: 3, 37: None}
    assert [case.name for case in WORKLOAD.cases if "quick" in case.sets] == ["batch=100"]


def test_update_is_as_large_as_the_weights_so_that_an_error_of_the_gradient_shows():
    case = WORKLOAD.case("batch=800")
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(4))
    new = WORKLOAD.reference(case, inputs)
    for name in ("w1", "w2"):
        moved = np.linalg.norm(new[f"new_{name}"] - inputs[name]) / np.linalg.norm(new[f"new_{name}"])
        assert 0.2 < moved < 1.5, name


@pytest.mark.sampled(1)
@pytest.mark.parametrize("batch", [37, 8192])
def test_a_sample_left_out_is_found(batch):
    case = make_case({"batch": batch})
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(5))
    expected = WORKLOAD.reference(case, inputs)
    blank = inputs["x"].copy()
    blank[-1] = 0.0
    assert relative_error(WORKLOAD.reference(case, {**inputs, "x": blank}), expected) > 10 * TOLERANCES["3xtf32"]


# ---- Digits


def test_digits_are_split_once_and_none_is_in_both_parts():
    training, dev = training_and_dev()
    assert (len(training.labels), len(dev.labels)) == (1497, DEV)
    assert training.images.shape == (1497, 784)
    assert set(dev.labels) == set(range(10))
    assert not {image.tobytes() for image in training.images} & {image.tobytes() for image in dev.images}


def test_an_image_is_enlarged_between_the_centres_of_its_pixels():
    pixels = np.zeros((1, 8, 8), np.uint8)
    pixels[0, 0, 0], pixels[0, 7, 7] = 16, 8
    large = enlarged(pixels).reshape(28, 28)
    assert (large[0, 0], large[27, 27]) == (1.0, 0.5)
    # The centre of the third of 28 pixels lies at 2.5 * 8 / 28 - 0.5 = 3/14 of the way from the first small pixel to the second.
    assert large[2, 0] == pytest.approx(11 / 14)
    assert large[2, 2] == pytest.approx((11 / 14) ** 2)
    assert large[14, 14] == 0.0


def test_a_batch_larger_than_the_training_digits_repeats_them():
    training, _ = training_and_dev()
    x = WORKLOAD.make_inputs(make_case({"batch": 3000}), np.random.default_rng(6))["x"]
    counts = np.unique([row.tobytes() for row in x], return_counts=True)[1]
    whole = np.unique([row.tobytes() for row in training.images], return_counts=True)[1]
    assert len(x) == 3000
    assert 2 <= counts.max() <= 3 * whole.max()
    assert counts.min() >= 2  # 3000 are two times 1497, and six


# ---- The program of the host and the report's products


def test_the_first_version_computes_the_reference_with_any_product():
    case = make_case({"batch": 37, "inputs": 20, "hidden": 32})
    inputs = dict(WORKLOAD.make_inputs(case, np.random.default_rng(8)))
    outputs = {name: np.full(buffer.shape, np.nan, np.float32) for name, buffer in WORKLOAD.buffers(case)[1].items()}
    phases: list[str] = []

    def product(phase: str, a: Matrix, b: Matrix, c: str, c_column: int, beta: float, d: Matrix) -> None:
        assert phases[-1] == phase
        left, right = ((host[m.name].T if m.transposed else host[m.name]) for m in (a, b))
        added = beta * (host[c].reshape(d.columns, d.rows) if c_column else host[c][: d.rows]) if beta else 0.0
        host[d.name][...] = right @ left + added

    def phase(name: str) -> nullcontext[None]:
        phases.append(name)
        return nullcontext()

    host, step = programs.program(case, {**inputs, **outputs}, product, phase)
    step()
    assert phases == ["forward", "backward", "update"]
    assert relative_error(outputs, WORKLOAD.reference(case, inputs)) < TOLERANCES["fp32"]


@needs_compiler
def test_the_first_version_s_product_is_right_for_transposed_operands_and_a_bias():
    variant = CudaVariant("v01", "algorithm 1", "rung", source=programs.SOURCE)
    program = build(variant, ["forward_gemm", "backward_gemm"])
    of = matrices(Size(batch=21, inputs=18, hidden=19))
    rng = np.random.default_rng(9)
    arrays = {name: rng.random((m.columns, m.rows), np.float32) for name, m in of.items()} | {"b1": rng.random(19, np.float32)}
    for kernel, a, b, c, c_column, beta, d, expected in (
        ("forward_gemm", of["w1"], of["x"], "b1", 0, 1.0, of["a1"], arrays["x"] @ arrays["w1"] + arrays["b1"]),
        ("backward_gemm", of["w2"].t, of["dz2"], "w2", 0, 0.0, of["dz1"], arrays["dz2"] @ arrays["w2"].T),
        ("backward_gemm", of["dz1"], of["x"].t, "w1", 19, 0.5, of["dw1"], arrays["x"].T @ arrays["dz1"] + 0.5 * arrays["w1"]),
    ):
        output = {d.name: np.full((d.columns, d.rows), np.nan, np.float32)}
        grid = (-(-d.rows // 16), -(-d.columns // 16), 1)
        inputs = {name: array for name, array in arrays.items() if name != d.name}
        program.run([Launch(kernel, grid, (16, 16, 1), product_arguments(a, b, c, c_column, beta, d))], inputs, output)
        np.testing.assert_allclose(output[d.name], expected, rtol=1e-5)


# ---- Launches


@pytest.mark.parametrize("name", ["v02_on_the_gpu", "v03_final"])
def test_the_report_s_step_is_fifteen_launches_in_three_phases(name):
    launches = WORKLOAD.variant(name).launches(WORKLOAD.case("batch=800"), {})
    phases = [launch.kernel.split("_")[0] for launch in launches]
    assert phases == ["forward"] * 4 + ["backward"] * 7 + ["update"] * 4


def test_a_fused_step_is_four_launches():
    launches = WORKLOAD.variant("v04_fused").launches(WORKLOAD.case("batch=800"), {"blocks": 528})
    assert [launch.kernel for launch in launches] == [
        "forward_hidden<true>",
        "forward_output<4>",
        "backward_weights<true>",
        "update<true>",
    ]
    # 8 tiles across 1000 hidden units; 13 down 800 samples and 13 down 784 inputs; 5 slices of each. The other gradients are
    # 32 blocks for each of 13 x 64 samples: 416, or four layers of 104.
    assert [launch.grid for launch in launches] == [(8, 13, 5), (396, 1, 1), (8, 13, 4 + 5), (766 + 44, 1, 1)]


@pytest.mark.parametrize(
    ("extents", "blocks", "expected"),
    [
        ((800, 1000, 784), 528, fused.Slices(5, 160, 104)),  # 528 / 104 = 5.08; 784 / 5 = 157, up to a multiple of 16
        ((100, 1000, 784), 528, fused.Slices(17, 48, 16)),  # 32 steps at least: 24 slices of 33, up to 48, are 17
        ((8192, 1000, 784), 528, fused.Slices(1, 784, 1024)),  # blocks enough without
        ((784, 1000, 37), 528, fused.Slices(1, 48, 104)),
    ],
)
def test_slices_fill_the_gpu_without_becoming_too_short(extents, blocks, expected):
    assert fused.slices_of(*extents, blocks) == expected


@pytest.mark.parametrize("steps", [1, 37, 64, 65, 784, 8192])
def test_slices_cover_the_sum_and_none_is_empty(steps):
    for rows in (1, 100, 8192):
        found = fused.slices_of(rows, 1000, steps, 528)
        assert (found.count - 1) * found.depth < steps <= found.count * found.depth


def test_emulated_networks_reach_several_slices_of_both_products():
    counts = {
        (fused.forward_slices(fused.size_of(case), {"blocks": 528}).count > 1,
         fused.backward_slices(fused.size_of(case), {"blocks": 528}).count > 1)
        for case in emulation_cases()
    }  # fmt: skip
    assert (True, True) in counts


def test_parts_of_the_output_layer_s_gradient_are_neither_small_nor_many():
    assert [fused.chunk_of(Size(batch, 784, 1000)) for batch in (1, 800, 2048, 8192)] == [64, 64, 64, 256]


@needs_compiler
def test_a_block_may_have_several_samples_one_after_another():
    case, variant, config = make_case({"batch": 9, "inputs": 8, "hidden": 12}), WORKLOAD.variant("v04_fused"), {"blocks": 528}
    launches = list(variant.launches(case, config))
    assert launches[1].grid == (9, 1, 1)
    launches[1] = replace(launches[1], grid=(2, 1, 1))
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(11))
    outputs = {name: np.full(buffer.shape, np.nan, np.float32) for name, buffer in WORKLOAD.buffers(case)[1].items()}
    scratch = {name: np.full(buffer.shape, np.nan, np.float32) for name, buffer in variant.scratch(case, config).items()}
    build(variant, sorted({launch.kernel for launch in launches})).run(launches, inputs, {**outputs, **scratch}, "backward")
    assert relative_error(outputs, WORKLOAD.reference(case, inputs)) < TOLERANCES["fp32"]


# ---- Warpgroups


def test_a_step_on_warpgroups_is_three_launches_that_fill_the_gpu_once():
    launches = WORKLOAD.variant("v07_warpgroups_3xtf32").launches(WORKLOAD.case("batch=800"), {})
    assert [launch.kernel for launch in launches] == ["forward_hidden<64, 6>", "forward_output<4>", "backward_update<64, 6>"]
    # 8 tiles of 128 hidden units by 13 of 64 samples; 200 fours of samples, two a block; 7 tiles of 128 inputs by 16 of 64 hidden
    # units, and 20 blocks more for the other weights.
    assert [launch.grid for launch in launches] == [(104, 1, 1), (100, 1, 1), (112 + 20, 1, 1)]
    # Six stages of 32 steps of 128 rows and twice 64 columns, and 1024 to align them.
    assert launches[0].dynamic_shared_bytes == launches[2].dynamic_shared_bytes == 6 * 32 * 256 * 4 + 1024
    maps = [argument for launch in launches for argument in launch.args if isinstance(argument, TensorMap)]
    assert [(m.buffer, m.box) for m in maps] == [("w1", (32, 32)), ("x", (64, 32)), ("x", (32, 32)), ("dz1", (64, 32))]


@pytest.mark.parametrize(("batch", "columns", "grid", "parts"), [(37, 64, 8, 10), (1024, 64, 128, 128), (8192, 128, 132, 128)])
def test_tiles_are_wider_where_there_are_more_than_two_for_each_multiprocessor(batch, columns, grid, parts):
    case, variant = make_case({"batch": batch}), WORKLOAD.variant("v07_warpgroups_3xtf32")
    forward, output, _ = variant.launches(case, {})
    assert forward.kernel == f"forward_hidden<{columns}, {6 if columns == 64 else 4}>"
    assert (forward.grid, output.grid) == ((grid, 1, 1), (parts, 1, 1))
    assert forward.dynamic_shared_bytes == 197_632  # of 232,448


def test_rows_that_the_tensor_memory_accelerator_takes_are_multiples_of_four_floats():
    size = Size(batch=37, inputs=784, hidden=1000)
    assert (wgmma.pitch_of(size), wgmma.chunk_of(size)) == (40, 4)
    assert fused.skip(make_case({"batch": 37}), {}) is None
    assert "67 inputs" in (fused.skip(make_case({"batch": 19, "inputs": 67, "hidden": 132}), {}) or "")
    assert "131 hidden" in (fused.skip(make_case({"batch": 19, "inputs": 68, "hidden": 131}), {}) or "")


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "backward"])
def test_the_output_layer_of_blocks_of_samples_gives_transposed_gradients_and_all_small_weights(order):
    case, name = make_case({"batch": 19, "inputs": 8, "hidden": 260}), "v07_warpgroups_3xtf32"
    size, chunk, pitch, parts = fused.size_of(case), 8, 20, 3  # blocks of two fours, the last one of one
    header = Path(str(WORKLOAD.variant(name).source_file)).with_name("output_layer.cuh")
    update = """
__global__ void update(const float* b1, const float* w2, const float* b2, float* new_b1, float* new_w2, float* new_b2,
                       const float* parts, int count, int hidden, float rate, float keep) {
  update_small(b1, w2, b2, new_b1, new_w2, new_b2, parts, count, hidden, rate, keep, blockIdx.x * blockDim.x + threadIdx.x,
               gridDim.x * blockDim.x);
}
"""
    inputs = dict(WORKLOAD.make_inputs(case, np.random.default_rng(12)))
    x, w1, b1, w2, y = (inputs[key].astype(np.float64) for key in ("x", "w1", "b1", "w2", "y"))
    a1 = 1 / (1 + np.exp(-(x @ w1 + b1)))
    inputs["a1"] = a1.astype(np.float32)
    shapes = {"dz1": (260, pitch), "parts": (parts, 11, 261), "new_b1": (260,), "new_w2": (260, 10), "new_b2": (10,)}
    outputs = {key: np.full(shape, np.nan, np.float32) for key, shape in shapes.items()}
    launches = [
        Launch("forward_output<2>", (parts, 1, 1), (256, 1, 1),
               ("a1", "w2", "b2", "y", "dz1", "parts", *map(np.int32, (size.batch, size.hidden, pitch, chunk)))),
        Launch("update", (3, 1, 1), (384, 1, 1),
               ("b1", "w2", "b2", "new_b1", "new_w2", "new_b2", "parts", np.int32(parts), np.int32(size.hidden),
                np.float32(RATE), np.float32(1 - RATE * REGULARIZATION))),
    ]  # fmt: skip
    variant = CudaVariant(name, "output layer", "rung", source=read_source(header) + update)
    build(variant, ["forward_output<2>", "update"]).run(launches, inputs, outputs, order)
    expected = WORKLOAD.reference(case, {key: inputs[key] for key in ("x", "y", "w1", "b1", "w2", "b2")})
    assert relative_error(outputs, {key: expected[key] for key in ("new_b1", "new_w2", "new_b2")}) < TOLERANCES["fp32"]
    z2 = a1 @ w2 + inputs["b2"]
    p = np.exp(z2) / np.exp(z2).sum(axis=1, keepdims=True)
    dz1 = ((p - y) / 19 @ w2.T) * a1 * (1 - a1)
    assert relative_error({"dz1": outputs["dz1"][:, :19]}, {"dz1": dz1.T}) < TOLERANCES["fp32"]
    np.testing.assert_array_equal(outputs["dz1"][:, 19], 0.0)  # not NaN, which zeros of the samples would not take away


# ---- Training


@pytest.mark.thorough
@pytest.mark.xdist_group("numba")
@pytest.mark.parametrize(
    "variant",
    # `numba_parallel` is compiled for a further test; to compile this one too takes longer than the rest of the file.
    [
        pytest.param(each, marks=pytest.mark.thorough) if each.name == "numba_serial" else each
        for each in WORKLOAD.variants
        if isinstance(each, HostVariant)
    ],
    ids=lambda v: v.name,
)
def test_host_variant_leaves_its_inputs_alone(variant):
    case = make_case({"batch": 5, "inputs": 7, "hidden": 9})
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(10))
    before = {name: array.copy() for name, array in inputs.items()}
    outputs = {name: np.full(buffer.shape, np.nan, np.float32) for name, buffer in WORKLOAD.buffers(case)[1].items()}
    variant.run(case, inputs, outputs)
    assert all(np.array_equal(inputs[name], before[name]) for name in inputs)
    assert all(np.isfinite(outputs[name]).all() for name in OUTPUTS)


@pytest.mark.thorough
@pytest.mark.xdist_group("numba")
def test_all_cores_add_a_batch_of_8192_up_in_blocks():
    pytest.importorskip("numba")
    case, variant = make_case({"batch": 8192, "inputs": 16, "hidden": 8}), WORKLOAD.variant("numba_parallel")
    assert isinstance(variant, HostVariant)
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(13))
    outputs = {name: np.full(buffer.shape, np.nan, np.float32) for name, buffer in WORKLOAD.buffers(case)[1].items()}
    variant.run(case, inputs, outputs)
    # One sample after another: 1e-6 and more. 32 blocks of 256 have an eighth of the rounding of a sum of 8192, and less.
    assert relative_error(outputs, WORKLOAD.reference(case, inputs)) < 4e-7
