"""Wrong outputs are caught, with the reason."""

import math

import numpy as np
import pytest

from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.verify import distances, overlapping, overwrite, poison, poison_free_memory, same_for_all_inputs


def compared(output: np.ndarray, reference: np.ndarray, tolerance: float = 1e-6):  # type: ignore[no-untyped-def]
    return compare({"y": output}, {"y": reference}, tolerance)


def test_errors_are_counted_as_the_data_dictionary_says() -> None:
    # (0, 3, 4) against (0, 3, 5): the error is 1, norm(ref) is sqrt(34), max |ref| is 5.
    found = compared(np.float32([0, 3, 4]), np.float64([0, 3, 5]), tolerance=0.2)
    assert found.ok
    assert math.isclose(found.rel_l2_error, 1 / math.sqrt(34))
    assert found.max_rel_error == 0.2
    assert found.verified_elements == 3


def test_an_error_above_the_tolerance_is_wrong() -> None:
    found = compared(np.float32([0, 3, 4]), np.float64([0, 3, 5]), tolerance=0.17)
    assert not found.ok
    assert found.detail == "relative L2 error 0.17 is above the tolerance 0.17; the most at y[2]: 4, not 5"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(1.5, "1.5, not 1"), (1 + 1e-7, "1.0000001, not 1"), (1 + 1e-12, "1.0000000000010001, not 1")],
)
def test_the_text_of_a_wrong_element_is_another_one_than_that_of_the_right_one(wrong: float, told: str) -> None:
    output = np.ones(4)
    output[2] = wrong
    assert compared(output, np.ones(4), 1e-14).detail.endswith(f"; the most at y[2]: {told}")
    turned = compared(output.astype(complex), np.ones(4, complex), 1e-14).detail
    assert turned.endswith(f"; the most at y[2]: {told.replace(', ', '+0j, ')}+0j")


def test_an_element_never_written_shows() -> None:
    output = np.empty(4, np.float32)
    poison({"y": output})
    output[:3] = 1
    found = compared(output, np.ones(4))
    assert not found.ok
    assert "1 of 4 elements of y are not finite" in found.detail
    assert math.isnan(found.rel_l2_error)


def test_poison_shows_in_integers_too() -> None:
    output = np.zeros(3, np.int32)
    poison({"y": output})
    assert not compared(output, np.zeros(3, np.int64), tolerance=0).ok


def test_zero_tolerance_asks_for_equality() -> None:
    reference = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    assert compared(reference.copy(), reference, tolerance=0).ok
    off = reference.copy()
    off[50] = np.nextafter(off[50], np.float32(9))
    assert not compared(off, reference, tolerance=0).ok


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_two_rows_of_many_that_are_zero_are_wrong_though_the_norm_of_all_hardly_changes() -> None:
    reference = noise((10_000, 64))
    output = reference.astype(np.float32)
    output[[17, 4711]] = 0
    found = compared(output, reference, tolerance=1.6e-2)
    row, column = np.unravel_index(abs(output - reference).argmax(), reference.shape)
    assert f"; the most at y[{row}, {column}]: 0, not " in found.detail
    assert found.rel_l2_error < 1.6e-2  # sqrt(2 / 10,000)
    assert (
        not found.ok
        and "of elements 301056 to 302079 is above 0.096, 6 times the tolerance, as in 2 of 625 tiles" in found.detail
    )


def test_a_small_output_is_judged_beside_a_large_one() -> None:
    y, mean = noise((1000,)), np.array(0.25)
    found = compare({"y": y, "mean": np.array(0.25125)}, {"y": y, "mean": mean}, 2e-6)
    assert (found.ok, found.detail) == (
        False,
        "mean: relative L2 error 0.005 is above the tolerance 2e-06; the most at mean: 0.25125, not 0.25",
    )
    assert math.isclose(found.rel_l2_error, 0.005)


def test_one_wrong_element_of_many_is_the_largest_error() -> None:
    reference = np.ones(1 << 20)
    reference[0] = 1e3
    output = reference.copy()
    output[0] = 1e3 * (1 + 1e-2)
    reference[1:1024] = 1e3  # so that its tile does not tell
    output[1:1024] = 1e3
    found = compared(output, reference, tolerance=1e-3)
    assert (
        not found.ok
        and found.detail
        == "the largest error, 0.01 of the largest element, is above 0.008, 8 times the tolerance; the most at y[0]: 1010, not 1000"
    )


def test_an_output_that_cancels_out_is_judged_by_the_size_of_the_others() -> None:
    y, zero = noise((1000,)), 1e-17 * noise((1000,), 1)
    rounded = {"y": y, "dx": np.float32(1e-8) * noise((1000,), 2).astype(np.float32)}
    assert compare(rounded, {"y": y, "dx": zero}, 2e-6).ok
    assert not compare({"y": y, "dx": noise((1000,), 2)}, {"y": y, "dx": zero}, 2e-6).ok


def test_the_rounding_of_elements_that_cancel_out_is_no_error_of_their_tile() -> None:
    reference = np.concatenate([noise((4096,)), 1e-6 * noise((1024,), 1)])
    output = reference + 1e-7 * noise(reference.shape, 2)
    assert compared(output, reference, tolerance=1e-6).ok


@pytest.mark.parametrize("elements", [1, 1023, 1025, 5000, (1 << 16) + 7])
def test_the_last_elements_are_judged_with_their_neighbours(elements: int) -> None:
    reference = noise((elements,))
    output = reference + 1e-7 * noise((elements,), 1)
    assert compared(output, reference, tolerance=1e-6).ok
    output[-1] = reference[-1] + 9
    assert not compared(output, reference, tolerance=1e-6).ok


def same_for_all(first: dict[str, np.ndarray], second: dict[str, np.ndarray], tolerances: dict[str, float]) -> list[str]:
    return same_for_all_inputs(first, distances(first, second), tolerances)


def test_references_that_hardly_differ_between_inputs_are_named() -> None:
    first = {"sums": np.ones(100), "y": noise((100,)), "status": np.zeros(1, np.int64)}
    second = {"sums": np.ones(100) + 1e-16, "y": noise((100,), 1), "status": np.zeros(1, np.int64)}
    assert same_for_all(first, second, dict.fromkeys(first, 2e-6)) == ["sums"]
    assert same_for_all({"status": first["status"]}, {"status": second["status"]}, {"status": 0.0}) == ["status"]
    signs = [{"sign": np.array(-1.0), "found": np.empty(0), "y": noise((100,), seed)} for seed in (0, 1)]
    assert same_for_all(signs[0], signs[1], dict.fromkeys(signs[0], 2e-6)) == []
    products = [np.random.default_rng(seed).random((2, 64, 4096)) for seed in (0, 1)]
    of_positive = [{"c": a @ b.T} for a, b in products]
    assert same_for_all(of_positive[0], of_positive[1], {"c": 2e-6}) == []  # fp32 tells a guess from the product
    assert same_for_all(of_positive[0], of_positive[1], {"c": 1.6e-2}) == ["c"]  # bf16 does not


def test_memory_that_is_handed_out_next_is_poisoned_and_what_is_freed_is_overwritten() -> None:
    shape = (1 << 18,)
    kept = np.full(shape, 7, np.float32)
    overwrite({"y": kept, "x": (x := np.ones(3)), "r": np.broadcast_to(np.ones(1), (3,))}, {"x": x})
    assert np.isnan(kept).all() and (x == 1).all()
    del kept
    poison_free_memory({"y": np.empty(shape, np.float32)}, False, lambda like: np.empty(like.shape, like.dtype))
    again = np.empty(shape, np.float32)
    assert not (again == 7).any()


def test_a_missing_output_and_a_wrong_shape_are_named() -> None:
    assert "output y is missing" in compare({}, {"y": np.ones(3)}, 0).detail
    assert "shape (3,), and the reference's has (4,)" in compared(np.ones(3, np.float32), np.ones(4)).detail


def test_a_reference_of_zeros_does_not_divide_by_zero() -> None:
    assert compared(np.zeros(3, np.float32), np.zeros(3)).ok
    assert not compared(np.ones(3, np.float32), np.zeros(3)).ok


def test_outputs_larger_than_a_chunk_are_compared_to_the_last_element() -> None:
    output = np.zeros((1 << 24) + 3, np.float32)
    reference = np.zeros((1 << 24) + 3, np.float32)
    reference[-1] = 1
    assert not compared(output, reference).ok


def test_large_integers_that_float64_cannot_tell_apart_are_not_equal() -> None:
    found = compared(np.array([2**60 + 1, 5]), np.array([2**60, 5]), tolerance=0)
    assert not found.ok
    assert found.detail == (
        "1 of 2 elements are not equal to the reference, and whole numbers must be: "
        "y[0] is 1152921504606846977, not 1152921504606846976"
    )


def test_the_imaginary_part_counts() -> None:
    assert not compared(np.complex64([1 + 2j]), np.complex128([1 + 3j])).ok
    assert compared(np.complex64([1 + 2j]), np.complex128([1 + 2j])).ok


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "uint64", "complex64", "bool"])
def test_what_is_never_written_shows_at_one_of_two_poisons(dtype: str) -> None:
    for right in (0, 1):
        reference = np.full(3, right, dtype)
        seen = []
        for again in (False, True):
            output = np.empty(3, dtype)
            poison({"y": output}, again)
            seen.append(compared(output, reference, tolerance=0).ok)
        assert not all(seen)


def test_views_are_told_from_arrays_of_their_own() -> None:
    x = np.zeros((4, 6), np.float32)
    for view in (x, x.T, x[1:, ::-1], x[::2]):
        assert overlapping({"y": view}, {"w": np.zeros(3), "x": x}) == ("y", "x")
    assert overlapping({"y": x.copy(), "z": x[:0]}, {"x": x}) is None
    assert overlapping({"y": x[:2]}, {"x": x[2:]}) is None
