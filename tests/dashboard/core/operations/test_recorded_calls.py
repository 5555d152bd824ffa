"""The arguments of operators' calls in a trace, and the least work that a call must do."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpladder.dashboard.core.operations import aten
from warpladder.dashboard.core.operations.aten import Tensor, UnknownNumber, Work
from warpladder.dashboard.core.operations.recorded_calls import NotRebuilt, Recorded, arguments

NAMES = (
    *("mm", "bmm", "addmm", "linear", "matmul", "convolution", "convolution_backward", "scaled_dot_product_attention"),
    *(*aten.CONVOLUTIONS, "add", "mul_", "relu", "copy_", "fill_", "sum", "layer_norm", "batch_norm", "threshold_backward"),
)


def recorded(*each: tuple[Any, str, Any, str]) -> Recorded:
    return Recorded(*(json.dumps([argument[place] for argument in each]) for place in range(4)))


def test_scalars_lists_and_missing_arguments_are_read() -> None:
    found = arguments(
        "aten::some_operator",
        recorded(
            ([2, 3], "c10::BFloat16", [3, 1], ""),
            ([], "Scalar", [], "1.0000000000000001e-05"),
            ([], "Scalar", [], "True"),
            ([], "Scalar", [], "-inf"),
            ([], "ScalarList", [], "[1, -1]"),
            ([], "ScalarList", [], "[]"),
            ([], "", [], ""),
        ),
    )
    assert found == (Tensor((2, 3), "bfloat16", (3, 1)), 1e-5, True, float("-inf"), [1, -1], [], None)


def test_a_number_of_python_in_a_pointwise_operation_is_marked() -> None:
    x, number = ([4], "float", [1], ""), ([], "double", [], "")
    assert arguments("aten::mul", recorded(x, number))[1] == UnknownNumber(1.5)
    assert arguments("aten::atan2", recorded(x, number))[1] == Tensor((), "float64", ())
    with pytest.raises(NotRebuilt, match="the exponent"):
        arguments("aten::pow", recorded(x, number))


@pytest.mark.parametrize(
    ("name", "given_arguments", "work"),
    [
        # 2 x 3 times 3 x 5: 2 * 30 operations.
        ("aten::mm", (Tensor((2, 3), "float32", (3, 1)), Tensor((3, 5), "float32", (5, 1))), Work(84, 40, 60)),
        ("aten::linear", (Tensor((2, 3), "bfloat16", (3, 1)), Tensor((5, 3), "bfloat16", (3, 1)), None), Work(42, 20, 60)),
        # Expanded: three numbers stand for six.
        ("aten::relu", (Tensor((2, 3), "float32", (0, 1)),), Work(12, 24, 0)),
        ("aten::copy_", (Tensor((4,), "float32", (1,)), Tensor((4,), "bfloat16", (1,)), False), Work(8, 16, 0)),
        ("aten::add_", (Tensor((4,), "float32", (1,)), Tensor((4,), "float32", (1,)), 1), Work(32, 16, 0)),
        # A 3 x 3 filter on 4 x 4 without padding: 4 places, 2 channels to 1.
        (
            "aten::convolution",
            (
                Tensor((1, 2, 4, 4), "float32", (32, 16, 4, 1)),
                Tensor((1, 2, 3, 3), "float32", (18, 9, 3, 1)),
                *(None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
            ),
            Work(4 * 50, 4 * 4, 2 * 4 * 18),
        ),
    ],
)
def test_work_is_counted_by_hand(name: str, given_arguments: tuple[Any, ...], work: Work) -> None:
    assert aten.work(name, given_arguments) == work


_TEXT = st.sampled_from(["", "1", "0", "-3", "[1, 1]", "[0]", "[]", "True", "1e400", "nan", "x", "[[1]]", "[True, False]"])
_LISTS = st.lists(st.integers(-1, 9) | st.just(1 << 61) | st.none() | st.just("a"), max_size=5)
_KINDS = st.sampled_from(["float", "c10::BFloat16", "long int", "Scalar", "ScalarList", "TensorList", "", "odd"]) | st.none()
_TENSORS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5).map(
    lambda axes: ([n for n, _ in axes], "float", [step for _, step in axes], "")
)
_NUMBERS = st.sampled_from(["1", "0", "True", "2.5"]).map(lambda text: ([], "Scalar", [], text))
_NUMBER_LISTS = st.sampled_from(["[1, 1]", "[0]", "[0, 0]", "[2]", "[True, False]"]).map(
    lambda text: ([], "ScalarList", [], text)
)
_SOUND = st.lists(_TENSORS | _NUMBERS | _NUMBER_LISTS | st.just(([], "", [], "")), min_size=1, max_size=12)
_DAMAGED = st.lists(st.tuples(_LISTS, _KINDS, _LISTS, _TEXT), max_size=12)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NAMES), _SOUND | _DAMAGED)
def test_no_arguments_of_a_trace_fail_but_by_the_reason(name: str, made: list[tuple[Any, str, Any, str]]) -> None:
    try:
        found = arguments(f"aten::{name}", recorded(*made))
    except NotRebuilt:
        return
    work = aten.work(f"aten::{name}", found)
    assert min(each or 0 for each in work) >= 0
    aten.output(f"aten::{name}", found)
    assert len(set(aten.parameters(f"aten::{name}", len(found)))) == len(found)


@pytest.mark.parametrize("text", ["[" * 1500, '[["', "{}", "[1", '"x"'])
def test_a_text_that_is_cut_off_is_a_reason(text: str) -> None:
    with pytest.raises(NotRebuilt):
        arguments("aten::relu", Recorded(text, '["float"]', "[[1]]", '[""]'))
