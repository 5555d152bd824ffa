"""Wrong outputs are caught, with the reason."""

import math

import numpy as np
import pytest

from warpladder.collectors.core.verify import compare, overlapping, poison


def verdict(output: np.ndarray, reference: np.ndarray, tolerance: float = 1e-6):  # type: ignore[no-untyped-def]
    return compare({"y": output}, {"y": reference}, tolerance)


def test_errors_are_counted_as_the_data_dictionary_says() -> None:
    # (0, 3, 4) against (0, 3, 5): the error is 1, norm(ref) is sqrt(34), max |ref| is 5.
    found = verdict(np.float32([0, 3, 4]), np.float64([0, 3, 5]), tolerance=0.2)
    assert found.ok
    assert math.isclose(found.rel_l2_error, 1 / math.sqrt(34))
    assert found.max_rel_error == 0.2
    assert found.verified_elements == 3


def test_an_error_above_the_tolerance_is_wrong() -> None:
    found = verdict(np.float32([0, 3, 4]), np.float64([0, 3, 5]), tolerance=0.17)
    assert not found.ok
    assert found.detail == "relative L2 error 0.17 is above the tolerance 0.17"


def test_an_element_never_written_shows() -> None:
    output = np.empty(4, np.float32)
    poison({"y": output})
    output[:3] = 1
    found = verdict(output, np.ones(4))
    assert not found.ok
    assert "1 of 4 elements of y are not finite" in found.detail
    assert math.isnan(found.rel_l2_error)


def test_poison_shows_in_integers_too() -> None:
    output = np.zeros(3, np.int32)
    poison({"y": output})
    assert not verdict(output, np.zeros(3, np.int64), tolerance=0).ok


def test_zero_tolerance_asks_for_equality() -> None:
    reference = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    assert verdict(reference.copy(), reference, tolerance=0).ok
    off = reference.copy()
    off[50] = np.nextafter(off[50], np.float32(9))
    assert not verdict(off, reference, tolerance=0).ok


def test_a_missing_output_and_a_wrong_shape_are_named() -> None:
    assert "output y is missing" in compare({}, {"y": np.ones(3)}, 0).detail
    assert "shape (3,), not (4,)" in verdict(np.ones(3, np.float32), np.ones(4)).detail


def test_a_reference_of_zeros_does_not_divide_by_zero() -> None:
    assert verdict(np.zeros(3, np.float32), np.zeros(3)).ok
    assert not verdict(np.ones(3, np.float32), np.zeros(3)).ok


def test_outputs_larger_than_a_chunk_are_compared_to_the_last_element() -> None:
    output = np.zeros((1 << 24) + 3, np.float32)
    reference = np.zeros((1 << 24) + 3, np.float32)
    reference[-1] = 1
    assert not verdict(output, reference).ok


def test_large_integers_that_float64_cannot_tell_apart_are_not_equal() -> None:
    found = verdict(np.array([2**60 + 1, 5]), np.array([2**60, 5]), tolerance=0)
    assert not found.ok
    assert found.detail == "1 of 2 elements are not equal to the reference, and the tolerance is 0"


def test_the_imaginary_part_counts() -> None:
    assert not verdict(np.complex64([1 + 2j]), np.complex128([1 + 3j])).ok
    assert verdict(np.complex64([1 + 2j]), np.complex128([1 + 2j])).ok


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "uint64", "complex64", "bool"])
def test_what_is_never_written_shows_at_one_of_two_poisons(dtype: str) -> None:
    for right in (0, 1):
        reference = np.full(3, right, dtype)
        seen = []
        for again in (False, True):
            output = np.empty(3, dtype)
            poison({"y": output}, again)
            seen.append(verdict(output, reference, tolerance=0).ok)
        assert not all(seen)


def test_views_are_told_from_arrays_of_their_own() -> None:
    x = np.zeros((4, 6), np.float32)
    for view in (x, x.T, x[1:, ::-1], x[::2]):
        assert overlapping({"y": view}, {"w": np.zeros(3), "x": x}) == ("y", "x")
    assert overlapping({"y": x.copy(), "z": x[:0]}, {"x": x}) is None
    assert overlapping({"y": x[:2]}, {"x": x[2:]}) is None
