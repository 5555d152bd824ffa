"""Parts of an output that are small beside others are judged too, though a norm does not see them."""

import numpy as np
import pytest

from tests.collectors.core.judged import judged
from warpladder import compare
from warpladder.collectors.core.plan import Request, make_plan

S = np.float32


def test_elements_that_are_never_computed_show_beside_far_larger_ones() -> None:
    def zero_below_one(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, S(0), np.exp(6 * x))

    def of_the_wrong_sign(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, -np.exp(6 * x), np.exp(6 * x))

    variants = {
        "right": lambda x: np.exp(6 * x),
        "powers": lambda x: np.exp(x) ** 6,
        "zero": zero_below_one,
        "sign": of_the_wrong_sign,
    }
    found = judged(lambda rng: rng.standard_normal(50_000, S), lambda x: np.exp(6 * x), variants)
    assert found["status"].to_dict() == {"right": "ok", "powers": "ok", "zero": "wrong_result", "sign": "wrong_result"}
    assert "small elements of out have too few right digits: out[" in found.loc["zero", "detail"]


def rows_of_two_sizes(rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal((64, 1024), S)
    x[32:] *= S(1e-6)
    return x


def first_half(x: np.ndarray, factor: float) -> np.ndarray:
    out = np.zeros_like(x)
    out[:32] = x[:32] * S(factor)
    return out


def test_rows_in_other_units_show_where_the_reference_rounds_and_where_it_does_not() -> None:
    for factor in (3, 2):  # 2 x has no rounding error
        found = judged(
            rows_of_two_sizes,
            lambda x, by=factor: by * x,
            {"right": lambda x, by=factor: x * S(by), "half": lambda x, by=factor: first_half(x, by)},
        )
        assert found["status"].to_dict() == {"right": "ok", "half": "wrong_result"}, factor


def test_half_of_each_row_shows_beside_one_ten_million_times_as_large() -> None:
    def large_and_small(rng: np.random.Generator) -> np.ndarray:
        x = rng.standard_normal((64, 512), S)
        x[:, 256:] *= S(1e-7)
        return x

    def left(x: np.ndarray) -> np.ndarray:
        out = x * S(3)
        out[:, 256:] = 0
        return out

    found = judged(large_and_small, lambda x: 3 * x, {"right": lambda x: x * S(3), "left": left})
    assert found["status"].to_dict() == {"right": "ok", "left": "wrong_result"}


def test_an_output_in_far_smaller_units_is_judged_by_itself() -> None:
    def both(x: np.ndarray) -> dict[str, np.ndarray]:
        return {"count": S(1e6) * x, "joule": S(1.38e-23) * x * x}

    found = judged(
        lambda rng: rng.standard_normal(10_000, S),
        lambda x: {"count": 1e6 * x, "joule": 1.38e-23 * x * x},
        {"right": both, "zero": lambda x: both(x) | {"joule": np.zeros_like(x)}},
    )
    assert found["status"].to_dict() == {"right": "ok", "zero": "wrong_result"}
    assert found.loc["zero", "detail"].startswith("joule: relative L2 error 1 is above the tolerance 2e-06; the most at joule[")


@pytest.mark.slow
def test_elements_that_cancel_out_are_no_fault_of_other_orders_of_a_sum() -> None:
    def backwards(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.zeros((len(a), b.shape[1]), S)
        for k in range(a.shape[1] - 1, -1, -1):
            out += a[:, k : k + 1] * b[k]
        return out

    def second_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a @ b - b @ a

    def matrices(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal((96, 96), S), rng.standard_normal((96, 96), S)

    found = judged(matrices, lambda a, b: a @ b, {"backwards": backwards})
    assert found.loc["backwards", "status"] == "ok"
    commuting = judged(
        lambda rng: (np.diag(rng.standard_normal(96)).astype(S), np.diag(rng.standard_normal(96)).astype(S)),
        second_differences,
        {"same": second_differences},
    )
    assert commuting.loc["same", "status"] == "ok"


def test_what_cancels_out_of_a_number_as_large_as_the_input_is_no_fault_in_few_elements() -> None:
    def exact(x: np.ndarray) -> np.ndarray:
        return np.logaddexp(x, x.dtype.type(0))

    variants = {
        "exact": exact,
        "from_one": lambda x: np.log(1 + np.exp(x)),
        "cut": lambda x: np.where(x < -8, S(0), exact(x)),
    }
    for width, of_from_one in ((7, "ok"), (24, "wrong_result")):
        found = judged(lambda rng, width=width: S(width) * rng.uniform(-2, 2, 20_000).astype(S), exact, variants)
        assert found["status"].to_dict() == {"exact": "ok", "from_one": of_from_one, "cut": "wrong_result"}, width


def test_who_needs_absolute_errors_alone_says_so() -> None:
    def by_tanh(x: np.ndarray) -> np.ndarray:
        return S(0.5) + S(0.5) * np.tanh(S(0.5) * x)

    def far_from_zero(rng: np.random.Generator) -> np.ndarray:
        return 20 * rng.standard_normal(20_000, S)

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    refused = judged(far_from_zero, sigmoid, {"by_tanh": by_tanh})
    assert (
        "where only absolute errors count, declare compare=warpladder.compare.allclose(atol=...)"
        in refused.loc["by_tanh", "detail"]
    )
    found = judged(far_from_zero, sigmoid, {"by_tanh": by_tanh}, compare=compare.allclose(atol=1e-6))
    assert found.loc["by_tanh", "status"] == "ok"


@pytest.mark.slow
def test_small_elements_are_judged_by_the_digits_that_they_can_have() -> None:
    def rough(x: np.ndarray) -> np.ndarray:
        return np.where(abs(x) < 1e-3, x * S(1.1), np.sinh(x))

    def by_exp(x: np.ndarray) -> np.ndarray:
        return (np.exp(x) - np.exp(-x)) / 2

    found = judged(rows_of_two_sizes, np.sinh, {"right": np.sinh, "by exp": by_exp, "rough": rough})
    assert found["status"].to_dict() == {"right": "ok", "by exp": "wrong_result", "rough": "wrong_result"}
    found = judged(lambda rng: rng.standard_normal((64, 1024), S), np.sinh, {"right": np.sinh, "by exp": by_exp})
    assert found["status"].to_dict() == {"right": "ok", "by exp": "ok"}, "of 1,000 numbers hardly one is small"


def test_small_elements_of_float64_that_were_computed_in_float32_show() -> None:
    def partly(x: np.ndarray) -> np.ndarray:
        out = np.tanh(x)
        out[32:] = np.tanh(x[32:].astype(S))
        return out

    def tall(rng: np.random.Generator) -> np.ndarray:
        return rows_of_two_sizes(rng).astype(np.float64) * np.float64(1.1)

    found = judged(tall, np.tanh, {"right": np.tanh, "partly": partly})
    assert found["status"].to_dict() == {"right": "ok", "partly": "wrong_result"}


def test_a_budget_begins_with_the_largest_cases_on_a_gpu_and_with_the_smallest_ones_on_a_host() -> None:
    planned = make_plan(Request(["conv2d", "mlp_elementwise"]))
    cases = [(job.workload.name, job.case) for job in planned.jobs]
    on_host = [(job.workload.name, job.case) for job in planned.on_host("no driver").jobs]
    assert cases[:2] == [("conv2d", "n=1024"), ("mlp_elementwise", "op=softmax,n=1000")]
    assert on_host[:2] == [("conv2d", "n=256"), ("mlp_elementwise", "op=softmax,n=256")]
    assert sorted(cases) == sorted(on_host)
