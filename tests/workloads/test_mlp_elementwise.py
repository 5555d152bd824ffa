"""The element-wise steps: their definitions, sizes and bytes, and the launches of their kernels."""

import numpy as np
import pytest

from warpladder.workloads.mlp_elementwise.problem import BINARY, OPERATIONS, TOLERANCES, make_case, rows_and_columns
from warpladder.workloads.mlp_elementwise.workload import WORKLOAD

MATRIX = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 5.0]], np.float32)  # columns (1, 2, 3) and (-1, 0, 5): 3 rows, 2 columns


def result_of(op: str, x: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    columns, rows = x.shape
    inputs = {"x": x} if w is None else {"x": x, "w": w}
    return WORKLOAD.reference(make_case({"op": op, "shape": f"{rows}x{columns}"}), inputs)["y"]


def test_an_array_holds_the_columns_of_its_matrix():
    np.testing.assert_array_equal(result_of("transpose", MATRIX), [[1, -1], [2, 0], [3, 5]])
    np.testing.assert_array_equal(result_of("column_sum", MATRIX), [6, 4])


def test_subtraction_and_multiplication_are_element_by_element():
    w = np.array([[1, 0, 2], [3, 4, -1]], np.float32)
    np.testing.assert_array_equal(result_of("subtract", MATRIX, w), [[0, 2, 1], [-4, -4, 6]])
    np.testing.assert_array_equal(result_of("multiply", MATRIX, w), [[1, 0, 6], [-3, 0, -5]])


def test_sigmoid_of_logarithms_is_a_simple_fraction():
    x = np.log(np.array([[1.0, 3.0, 0.25]])).astype(np.float32)
    np.testing.assert_allclose(result_of("sigmoid", x), [[1 / 2, 3 / 4, 1 / 5]], rtol=1e-7)


def test_softmax_divides_within_a_column():
    x = np.log(np.array([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]])).astype(np.float32)
    np.testing.assert_allclose(result_of("softmax", x), [[1 / 8, 2 / 8, 5 / 8], [1 / 4, 1 / 4, 1 / 2]], rtol=1e-7)


def test_softmax_of_large_values_does_not_overflow():
    np.testing.assert_allclose(result_of("softmax", np.array([[1000.0, 1000.0]], np.float32)), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("op", "flops", "min_bytes"),
    [
        ("transpose", 0, 8_000_000),  # a million elements read and as many written, 4 bytes each
        ("subtract", 1_000_000, 12_000_000),  # two matrices read
        ("multiply", 1_000_000, 12_000_000),
        ("column_sum", 1_000_000, 4_004_000),  # a thousand sums written
        ("sigmoid", 4_000_000, 8_000_000),
        ("softmax", 5_000_000, 8_000_000),
    ],
)
def test_operations_and_bytes_at_the_report_s_size(op, flops, min_bytes):
    case = WORKLOAD.case(f"op={op},n=1000")
    assert (case.flops, case.min_bytes) == (flops, min_bytes)


def test_every_operation_of_the_report_s_table_is_a_series_and_has_an_odd_shape():
    for cases, expected in (("report", 6), ("full", 12)):
        charted = [case for case in WORKLOAD.cases if cases in case.sets and case.size_rank is not None]
        assert len(charted) == expected
        assert {case.params["op"] for case in charted} == set(OPERATIONS)
    odd = [case for case in WORKLOAD.cases if case.size_rank is None]
    assert [case.params["op"] for case in odd] == list(OPERATIONS)
    assert {case.params["shape"] for case in odd} == {"1003x517"}


def test_a_missing_element_of_the_odd_case_is_found():
    for op in OPERATIONS:
        case = WORKLOAD.case(f"op={op},shape=1003x517")
        expected = WORKLOAD.reference(case, WORKLOAD.make_inputs(case, np.random.default_rng(1)))["y"].ravel()
        typical = np.sort(np.abs(expected))[expected.size // 2]
        assert typical / np.linalg.norm(expected) > 3 * TOLERANCES["fp32"], op


def test_two_matrices_only_where_two_are_combined():
    for op in OPERATIONS:
        case = WORKLOAD.case(f"op={op},n=1000")
        inputs = WORKLOAD.make_inputs(case, np.random.default_rng(2))
        assert list(inputs) == (["x", "w"] if op in BINARY else ["x"])
        assert all(-4.0 <= array.min() < -3.9 and 3.9 < array.max() < 4.0 for array in inputs.values())


def launch_of(name: str, op: str, **where: object):
    (launch,) = WORKLOAD.variant(name).launches(make_case({"op": op, **where}), {})
    return launch


@pytest.mark.parametrize(
    ("name", "op", "where", "kernel", "grid"),
    [
        ("v01_naive", "sigmoid", {"n": 1000}, "sigmoid", (63, 63, 1)),  # 62.5 squares of 16
        ("v01_naive", "softmax", {"n": 1000}, "softmax", (4, 1, 1)),  # 1000 threads in blocks of 256
        ("v02_coalesced", "multiply", {"shape": "65x9"}, "multiply", (3, 2, 1)),  # rows by 32, columns by 8
        ("v02_coalesced", "column_sum", {"shape": "65x9"}, "column_sum", (9, 1, 1)),
        ("v03_vectorized", "subtract", {"shape": "1003x517"}, "subtract", (507, 1, 1)),  # 518,551 elements by 1024: 506.4
        ("v03_vectorized", "transpose", {"n": 1000}, "transpose_vectors", (16, 16, 1)),
        ("v03_vectorized", "transpose", {"shape": "1000x517"}, "transpose_elements<true>", (16, 10, 1)),  # 524 by 56: 9.4
        ("v03_vectorized", "transpose", {"shape": "1001x512"}, "transpose_elements<false>", (16, 8, 1)),
        ("v03_vectorized", "column_sum", {"n": 1000}, "column_sum<true>", (250, 1, 1)),
        ("v03_vectorized", "softmax", {"n": 1000}, "softmax<1, true>", (1000, 1, 1)),
        ("v03_vectorized", "softmax", {"n": 8192}, "softmax<8, true>", (8192, 1, 1)),
        ("v03_vectorized", "softmax", {"shape": "1025x3"}, "softmax<2, false>", (3, 1, 1)),
    ],
)
def test_blocks_cover_the_matrix(name, op, where, kernel, grid):
    launch = launch_of(name, op, **where)
    assert (launch.kernel, launch.grid) == (kernel, grid)


@pytest.mark.parametrize(
    ("where", "config", "kernel"),
    [
        ({"n": 1000}, {"threads": 32, "loads": 8, "bring": 256}, "column_sum<true, 32, 8, 256>"),
        ({"shape": "1003x517"}, {"threads": 256, "loads": 5, "bring": 32}, "column_sum<false, 256, 5, 32>"),
    ],
)
def test_a_block_sums_a_column_which_may_begin_within_a_vector(where, config, kernel):
    case = make_case({"op": "column_sum", **where})
    (launch,) = WORKLOAD.variant("v04_block_a_column").launches(case, config)
    rows, columns = rows_and_columns(case)
    assert (launch.kernel, launch.grid, launch.args[-1]) == (kernel, (columns, 1, 1), rows)


def test_the_rung_of_column_sums_has_no_other_operation():
    skip = WORKLOAD.variant("v04_block_a_column").skip
    served = {op for op in OPERATIONS if skip(make_case({"op": op, "n": 1000}), {}) is None}
    assert served == {"column_sum"}


def test_columns_that_no_block_can_hold_in_registers_are_skipped_with_a_reason():
    skip = WORKLOAD.variant("v03_vectorized").skip
    assert skip(make_case({"op": "softmax", "shape": "32768x2"}), {}) is None
    assert "32768 rows" in skip(make_case({"op": "softmax", "shape": "32769x2"}), {})
    assert skip(make_case({"op": "column_sum", "shape": "32769x2"}), {}) is None
