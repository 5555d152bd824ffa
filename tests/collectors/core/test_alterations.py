"""Inputs with other last digits find results that are kept, whoever computed them; outputs that were right are compared byte for byte."""

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.collectors.core.judged import judged
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.judge import KnownOutputs
from warpladder.collectors.core.kept_results import Durations
from warpladder.collectors.core.rounds import Limits
from warpladder.collectors.core.verify import alterable, altered, multiply, part_of

CELL = Cell("w", "v", "", "n=1")
MANY = Limits(seconds=0.2, min_rounds=40, max_rounds=40)
SOME = np.linspace(0.1, 1, 50)


def test_arrays_of_whole_numbers_are_left_as_they_are() -> None:
    inputs = {
        "x": SOME,
        "z": SOME * 1j,
        "labels": np.arange(5.0),
        "index": np.arange(5),
        "no": np.empty(0),
        "mask": np.array([0.0, -np.inf]),
    }
    assert alterable(inputs) == ("x", "z")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_every_number_changes_and_keeps_its_sign_and_its_place(dtype: str) -> None:
    x = np.sort(np.random.default_rng(1).standard_normal(1000)).astype(dtype)
    other = x.copy()
    multiply(other, part_of(Random(1), True))
    assert (other != x).all() and not np.allclose(other, x)
    assert (np.sign(other.real) == np.sign(x.real)).all() and (np.diff(other.real) >= 0).all()
    assert abs(other / x - 1).max() < (1e-2 if dtype == "float16" else 3e-4)


def test_inputs_that_stay_as_they_are_keep_every_bit() -> None:
    x = np.array([-0.0, 1.5, np.nan, np.inf, 5e-324])
    same = x.copy()
    multiply(same, part_of(Random(1), False))
    assert same.tobytes() == x.tobytes()


def test_new_inputs_of_two_variants_differ_and_the_given_ones_stay() -> None:
    given = {"x": SOME.copy(), "labels": np.arange(5.0)}
    first, second = (altered(given, Random(seed)) for seed in (1, 2))
    assert (first["x"] != second["x"]).all() and (first["x"] != SOME).all() and (given["x"] == SOME).all()
    assert first["labels"] is given["labels"]


def test_longer_times_with_altered_inputs_are_proof_where_no_other_cell_has_them_too() -> None:
    pairs = Durations(usual=list(range(100, 112)), altered=list(range(130, 142)))
    assert pairs.proves([1.0]) and not pairs.proves([1.25, 1.3])
    assert not Durations(usual=pairs.usual, altered=pairs.usual).proves([])
    assert not Durations(usual=[100, 102, 300, 310], altered=[280, 290, 299, 101]).is_suspicious
    assert not Durations(usual=[1, 2, 3]).is_suspicious


def work(x: Any) -> Any:
    return np.tanh(np.sqrt(x * x + 1)) ** 3


@pytest.mark.slow
def test_results_that_the_function_for_the_inputs_left_are_found() -> None:
    left: dict[bytes, Any] = {}

    def inputs(rng: np.random.Generator) -> Any:
        x = rng.standard_normal(20_000, np.float32)
        left[x[:4].tobytes()] = work(x)
        return x

    def finds(x: Any) -> Any:
        found = left.get(x[:4].tobytes())
        return work(x) if found is None else found.copy()

    results = judged(inputs, work, {"honest": work, "finds": finds}, MANY)
    assert results["status"].to_dict() == {"honest": "ok", "finds": "wrong_result"}
    assert "where the inputs differ in their last digits" in results.loc["finds", "detail"]


@pytest.mark.slow
def test_a_variant_that_refuses_such_inputs_is_timed_with_the_others() -> None:
    def inputs(rng: np.random.Generator) -> Any:
        p = rng.random(64)
        return p / p.sum()

    def entropy(p: Any) -> Any:
        if abs(p.sum() - 1) > 1e-9:
            raise ValueError("probabilities do not add up to 1")
        return -(p * np.log(p)).sum(keepdims=True)

    def unchecked(p: Any) -> Any:
        return -(p * np.log(p)).sum(keepdims=True)

    assert set(judged(inputs, entropy, {"honest": entropy, "other": unchecked}, MANY)["status"]) == {"ok"}


@pytest.mark.slow
def test_a_fault_in_one_of_thirty_calls_is_found_in_large_outputs() -> None:
    calls = [0]

    def now_and_then(x: Any) -> Any:
        calls[0] += 1
        y = x * 2
        y[-1, -1] += calls[0] % 30 == 29
        return y

    # A quarter of the samples have altered inputs and are not compared: five calls of these are faulty.
    rounds = Limits(seconds=0.2, min_rounds=150, max_rounds=150)
    variants = {"honest": lambda x: x * 2, "faulty": now_and_then}
    results = judged(lambda rng: rng.random((150, 150)), lambda x: x * 2, variants, rounds)
    assert results["status"].to_dict() == {"honest": "ok", "faulty": "wrong_result"}


def test_known_outputs_are_compared_byte_for_byte() -> None:
    known, y = KnownOutputs(), np.array([[1.0, np.nan], [3.0, 4.0]])
    known.keep(CELL, 0, {"y": y})
    assert known.has(CELL, 0) and not known.has(CELL, 1)
    assert known.are(CELL, 0, {"y": y.copy()}) and known.are(CELL, 0, {"y": np.asfortranarray(y)}) is False
    for place in ((0, 0), (1, 1)):
        other = y.copy()
        other[place] = 9
        assert not known.are(CELL, 0, {"y": other})
    assert not known.are(CELL, 0, None) and not known.are(CELL, 0, {"y": y.tolist()}) and not known.are(CELL, 0, {"z": y})


def test_a_cell_whose_right_outputs_differ_each_time_is_compared_so_no_more() -> None:
    known = KnownOutputs()
    for step in range(5):
        known.keep(CELL, 0, {"y": np.array([1.0 + step])})
    assert not known.has(CELL, 0)
