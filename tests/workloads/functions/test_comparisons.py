"""Ready comparisons let ties, signs and roundings pass, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.collectors.core.judged import judged
from warpladder import compare
from warpladder.workloads.api import WorkloadError

S = np.float32


def of_few_values(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 9, (200, 32)).astype(S)


def top(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-x, axis=1, kind="stable")[:, :5]
    return np.take_along_axis(x, order, 1), order


def top_of_reversed(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, order = top(x[:, ::-1])
    return values, x.shape[1] - 1 - order


def symmetric(rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal((12, 12))
    return x + x.T


def turned(x: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(x)[1] * np.where(np.arange(len(x)) % 2, -1, 1)


def in_order(x: np.ndarray) -> np.ndarray:
    return np.unique(x.astype(np.int64))


def counts(x: np.ndarray) -> np.ndarray:
    return np.bincount((x[0] * 0 + x[0]).astype(np.int64), minlength=9)


def truth(x: np.ndarray) -> np.ndarray:
    return np.rint(10 * x).astype(np.int64)


CASES: dict[str, tuple[Any, Callable[..., Any], Callable[..., Any], Callable[..., Any], Any, str]] = {
    # inputs, reference, right, wrong, compare, what is said about the wrong one
    "order_of_argsort": (
        of_few_values,
        lambda x: np.argsort(x, axis=1, kind="stable"),
        lambda x: x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable"),
        lambda x: np.argsort(-x, axis=1),
        compare.order_of("x"),
        "elements are other values: element 0 is",
    ),
    "order_of_argmax": (
        of_few_values,
        lambda x: np.argmax(x, axis=1),
        lambda x: x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1),
        lambda x: np.argmin(x, axis=1),
        compare.order_of("x"),
        "elements are other values: element 0 is",
    ),
    "order_of_topk": (of_few_values, top, top_of_reversed, lambda x: (top(x)[0], np.zeros((200, 5), np.int64)), {"out1": compare.order_of("x")}, "there twice"),
    "order_of_what_a_function_gives": (
        of_few_values,
        lambda x: np.argmax(x @ np.ones(32), keepdims=True),
        lambda x: np.argmax(x.sum(1), keepdims=True),
        lambda x: np.argmin(x.sum(1), keepdims=True),
        compare.order_of(lambda x: x.sum(1)),
        "1 of 1 elements are other values",
    ),
    "an_index_that_there_is_not": (
        of_few_values, lambda x: np.argmax(x, axis=1), lambda x: np.argmax(x, axis=1), lambda x: np.argmax(x, axis=1) + 32, compare.order_of("x"), "are no index of 32 values"
    ),
    "up_to_sign": (symmetric, lambda x: np.linalg.eigh(x)[1], turned, lambda x: np.abs(turned(x)), compare.up_to_sign(), "relative L2 error"),
    "up_to_sign_of_rows": (
        symmetric, lambda x: np.linalg.eigh(x)[1].T, lambda x: -turned(x).T, lambda x: turned(x), compare.up_to_sign(axis=-1), "relative L2 error"
    ),
    "any_order_of_numbers": (of_few_values, in_order, lambda x: in_order(x)[::-1].copy(), lambda x: in_order(x) + 1, compare.any_order(), "out[0] is 1, not 0"),
    "any_order_of_rows": (
        of_few_values, lambda x: x, lambda x: x[::-1].copy(), lambda x: x[:, ::-1].copy(), compare.any_order(), "relative L2 error"
    ),
    "off_by": (of_few_values, truth, lambda x: truth(x) + (np.arange(x.size).reshape(x.shape) == 7), lambda x: truth(x) + 1, compare.off_by(1), "elements are off, where at most 6 may be"),
    "off_by_too_much": (of_few_values, truth, truth, lambda x: truth(x) + 2 * (x == x.max()), compare.off_by(1), "elements are off by more than 1"),
    "bins": (of_few_values, counts, lambda x: counts(x) + np.eye(9, dtype=np.int64)[0] - np.eye(9, dtype=np.int64)[1], lambda x: counts(x) + np.eye(9, dtype=np.int64)[0], compare.bins(), "the sum of the counts is wrong"),
    "bins_far_off": (of_few_values, counts, counts, lambda x: counts(x)[::-1].copy(), compare.bins(), "numbers are on the other side of an edge, where at most 1 may be"),
    "allclose": (of_few_values, lambda x: x / 3, lambda x: x / 3 + S(1e-4), lambda x: x / 3 + S(1e-2), compare.allclose(atol=1e-3), "off by more than 0.001 and 0"),
    "a_function": (of_few_values, lambda x: 2 * x, lambda x: 2 * x + S(0.1), lambda x: 3 * x, lambda out, right: bool(abs(out - right).max() < 1), "gives False"),
    "a_function_of_the_inputs": (
        of_few_values, lambda x: 2 * x, lambda x: x + x, lambda x: 3 * x,
        lambda out, right, inputs: "" if np.array_equal(out, 2 * inputs["x"]) else "is not twice x", "out: is not twice x",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_a_comparison_lets_the_right_pass_and_tells_what_is_wrong(name: str) -> None:
    inputs, reference, right, wrong, how, said = CASES[name]
    found = judged(inputs, reference, {"right": right, "wrong": wrong}, compare=how)
    assert found["status"].to_dict() == {"right": "ok", "wrong": "wrong_result"}, found["detail"].to_dict()
    assert said in found.loc["wrong", "detail"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda: compare.allclose(), "allclose(rtol=0.0, atol=0.0): give one of them a number above 0"),
        (lambda: compare.off_by(0), "off_by(0): give a whole number above 0"),
        (lambda: compare.bins(moved=2), "bins: moved is 2; give a number above 0, of at most 1"),
        (lambda: compare.order_of(3), "order_of(3): give the name of an input, or a function of the inputs"),
    ],
)
def test_wrong_arguments_of_a_comparison_are_refused(how: Callable[[], Any], said: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        how()
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (compare.off_by, "compare is off_by; call it: off_by(...)"),
        ({"y": "close"}, "compare of y is 'close'; give one of warpladder.compare"),
    ],
)
def test_what_is_no_comparison_is_refused(how: Any, said: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        judged(of_few_values, lambda x: x, {"same": lambda x: x.copy()}, compare=how)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"y": compare.off_by(1)}, "has no output y, which `compare` names; it gives out"),
        (compare.order_of("z"), "order_of: z is no input; name one of x"),
        (lambda out, right: 3, "gives 3; return True or False, or the fault as a text"),
        (lambda out, right: 1 / 0, "raises ZeroDivisionError: division by zero; mend it, then try again"),
    ],
)
def test_a_comparison_that_does_not_fit_is_a_mistake_of_the_benchmark(how: Any, said: str) -> None:
    row = judged(of_few_values, truth, {"same": truth}, compare=how).loc["same"]
    assert row["status"] == "launch_error" and said in row["detail"]
