"""The 5x5 convolution: its reference, its sizes, its host variants and the launches of its kernels."""

import numpy as np
import pytest

from warpladder.workloads.api import CudaVariant
from warpladder.workloads.conv2d.problem import image_shape, make_case
from warpladder.workloads.conv2d.workload import FP32_TOLERANCE, WORKLOAD

CUDA = [variant for variant in WORKLOAD.variants if isinstance(variant, CudaVariant)]
CONVOLUTIONS = [variant for variant in CUDA if variant.role == "rung"]


def _reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    case = make_case({"shape": f"{b.shape[0]}x{b.shape[1]}"})
    return WORKLOAD.reference(case, {"a": a.astype(np.float32), "b": b.astype(np.float32)})["c"]


def test_reference_of_a_3x3_image_is_what_one_counts_by_hand() -> None:
    a = np.arange(1, 26).reshape(5, 5)  # the middle row is 11 12 13 14 15
    b = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5]])
    # Centre: weight 13 under 3; corners 7, 9, 17, 19 of the inner 3x3 under 1, 2, 4, 5.
    centre = 13 * 3 + 7 * 1 + 9 * 2 + 17 * 4 + 19 * 5
    # Top left: weights from the middle on: 13 under 1, 15 under 2, 19 under 3, 23 under 4, 25 under 5.
    top_left = 13 * 1 + 15 * 2 + 19 * 3 + 23 * 4 + 25 * 5
    c = _reference(a, b)
    assert c[1, 1] == centre == 227
    assert c[0, 0] == top_left == 317
    assert c.dtype == np.float64


def test_filter_is_not_flipped_so_a_weight_above_the_middle_looks_at_the_row_above() -> None:
    a = np.zeros((5, 5))
    a[1, 2] = 1.0  # one row above the middle
    b = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(_reference(a, b), [[0, 0, 0, 0], [0, 1, 2, 3], [4, 5, 6, 7]])


def test_outermost_weight_looks_two_rows_and_two_columns_away() -> None:
    a = np.zeros((5, 5))
    a[4, 0] = 1.0  # two rows below, two columns to the left
    b = np.arange(1.0, 13.0).reshape(3, 4)
    np.testing.assert_array_equal(_reference(a, b), [[0, 0, 9, 10], [0, 0, 0, 0], [0, 0, 0, 0]])


def test_reference_does_not_depend_on_how_many_rows_it_takes_at_once() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (5, 5)), rng.uniform(-1, 1, (21, 30_000))  # two rows of 30,000 fill a block of 65,536
    a32, b32 = a.astype(np.float32).astype(np.float64), b.astype(np.float32).astype(np.float64)
    padded = np.pad(b32, 2)
    whole = sum(a32[m, n] * padded[m : m + 21, n : n + 30_000] for m in range(5) for n in range(5))
    np.testing.assert_allclose(_reference(a, b), whole, rtol=0, atol=1e-14)


def test_operations_and_bytes_of_the_report_s_smallest_size() -> None:
    case = WORKLOAD.case("n=512")
    assert case.flops == 13_107_200  # 512 * 512 * 25 multiply-adds; the report's 6,553,600 count each as one
    assert case.min_bytes == 2_097_252  # 4 bytes each for 25 + 2 * 262,144 numbers


def test_odd_case_is_verified_but_not_charted() -> None:
    case = WORKLOAD.case("shape=513x1027")
    assert image_shape(case) == (513, 1027)
    assert case.flops == 26_342_550  # 526,851 pixels * 50
    assert case.size_rank is None
    assert set(case.sets) == {"report", "full"}


def test_quick_cases_have_three_sizes_in_order() -> None:
    quick = [case for case in WORKLOAD.cases if "quick" in case.sets]
    assert [(case.name, case.size_rank) for case in quick] == [("n=256", 0), ("n=512", 1), ("n=1024", 2)]


def test_inputs_are_fresh_float32_of_both_signs() -> None:
    case = WORKLOAD.case("n=256")
    first, second = (WORKLOAD.make_inputs(case, np.random.default_rng(seed)) for seed in (1, 2))
    assert {name: (array.shape, array.dtype.name) for name, array in first.items()} == {
        "a": ((5, 5), "float32"),
        "b": ((256, 256), "float32"),
    }
    assert first["b"].min() < -0.9 < 0.9 < first["b"].max()
    assert not np.array_equal(first["b"], second["b"])


def test_tolerance_is_exceeded_by_one_missing_pixel_of_the_odd_case() -> None:
    case = WORKLOAD.case("shape=513x1027")
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(7))
    expected = WORKLOAD.reference(case, inputs)["c"]
    missing = expected.astype(np.float32)
    missing[512, 1026] = 0.0
    assert np.linalg.norm(missing - expected) > 10 * FP32_TOLERANCE * np.linalg.norm(expected)


def test_blocks_of_the_naive_rung_run_down_the_rows() -> None:
    naive = WORKLOAD.variant("v02_naive_global")
    (launch,) = naive.launches(WORKLOAD.case("shape=513x1027"), {"block": 16})
    assert launch.grid == (33, 65, 1)  # 33 * 16 = 528 rows, 65 * 16 = 1040 columns
    assert launch.args == ("a", "b", "c", 513, 1027)


@pytest.mark.parametrize(
    ("name", "config", "kernel", "grid"),
    [
        ("v04_single_precision", {"block": 32}, "conv2d", (33, 17, 1)),
        ("v05_constant_shared", {"block": 8}, "conv2d<8>", (129, 65, 1)),
        ("v07_register_tile", {"rows": 4}, "conv2d<4>", (33, 17, 1)),  # 32 columns and 8 * 4 rows a block
        ("v08_sliding_window", {"rows": 30}, "conv2d<30, false>", (3, 18, 1)),  # 128 * 4 columns a block
        ("v09_loads_first", {"rows": 10}, "conv2d<10, false>", (3, 52, 1)),
        ("v10_stacked_warps", {"rows": 4, "warps": 4}, "conv2d<4, 4, false>", (9, 33, 1)),  # 32 * 4 columns, 16 rows
    ],
)
def test_blocks_cover_the_odd_image(name: str, config: dict[str, int], kernel: str, grid: tuple[int, int, int]) -> None:
    (launch,) = WORKLOAD.variant(name).launches(WORKLOAD.case("shape=513x1027"), config)
    assert (launch.kernel, launch.grid) == (kernel, grid)


def test_float4_path_is_taken_only_where_rows_are_a_multiple_of_four() -> None:
    rung = WORKLOAD.variant("v11_shuffled_halo")
    for shape, path in (("5x8", "true"), ("8x5", "false"), ("8x6", "false"), ("1x4", "true")):
        (launch,) = rung.launches(make_case({"shape": shape}), {"rows": 3, "warps": 2})
        assert launch.kernel == f"conv2d<3, 2, {path}>"


def test_copy_launches_a_block_even_for_an_image_of_one_pixel() -> None:
    copy = WORKLOAD.variant("v01_copy")
    (one,) = copy.launches(make_case({"shape": "1x1"}), {"per_thread": 4, "loads": "plain"})
    assert one.grid == (1, 1, 1)
    (many,) = copy.launches(WORKLOAD.case("n=512"), {"per_thread": 4, "loads": "plain"})
    assert many.grid == (64, 1, 1)  # 65,536 float4, 256 threads * 4 a block
    assert many.args == ("b", "c", 262_144)


def test_copy_is_compared_with_its_own_definition() -> None:
    case = WORKLOAD.case("n=256")
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(7))
    copy = WORKLOAD.variant("v01_copy")
    assert copy.reference is not None
    np.testing.assert_array_equal(copy.reference(case, inputs)["c"], inputs["b"])
    assert all(variant.reference is None for variant in CONVOLUTIONS)
