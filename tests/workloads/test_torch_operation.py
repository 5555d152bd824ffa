"""Operators of PyTorch called with the arguments of a trace."""

from math import prod
from typing import Any

import numpy as np
import pytest

from warpladder.workloads.api import WorkloadError
from warpladder.workloads.torch_operation import Call, Chain, Operation, Step, Strided, tensor, tensors, unread

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")


def inputs(operation: Operation, call: str = "call") -> tuple[Any, ...]:
    torch.manual_seed(0)
    return operation.inputs(call)


def test_inputs_have_the_strides_of_the_trace_also_where_elements_have_gaps() -> None:
    last = tensor([2, 3, 4, 5], "bfloat16", [60, 1, 15, 3])
    assert last.made().stride() == (60, 1, 15, 3)
    every_second = tensor([3, 4], "float32", [8, 2])
    expanded = tensor([3, 4], "float32", [0, 1])
    for described, stored in ((every_second, 23), (expanded, 4)):
        made = described.made()
        assert made.shape == (stored,)
        assert (described.view(made).shape, described.view(made).stride()) == ((3, 4), described.strides)


@pytest.mark.parametrize(
    ("name", "arguments", "overload"),
    [
        ("aten::sum", (tensor([2, 3], "float32", [3, 1]), [0], True, None), "dim_IntList"),
        ("aten::sum", (tensor([2, 3], "float32", [3, 1]), None), "default"),
        ("aten::add", (tensor([2], "float32", [1]), tensor([2], "float32", [1]), 1), "Tensor"),
        ("aten::mul", (tensor([2], "float32", [1]), 1.5), "Scalar"),
        ("aten::gelu", (tensor([2], "float32", [1]), "tanh"), "default"),
        ("aten::maximum", (tensor([2], "float32", [1]), tensor([], "float32", [])), "default"),
        ("aten::_to_copy", (tensor([2], "float32", [1]), 15, 0, None, None, False, None), "default"),
    ],
)
def test_the_overload_is_the_one_that_takes_the_recorded_arguments(
    name: str, arguments: tuple[Any, ...], overload: str
) -> None:
    from warpladder.workloads.torch_operation import _overload

    assert _overload(name, arguments)._overloadname == overload


def test_calls_equal_those_of_pytorch_itself_and_the_reference_has_more_digits() -> None:
    addmm = Operation(
        "aten::addmm",
        {"call": Call(tensor([3], "float32", [1]), tensor([2, 4], "float32", [4, 1]), tensor([4, 3], "float32", [1, 4]), 1, 1)},
    )
    bias, a, b = inputs(addmm)
    torch.testing.assert_close(addmm("call", bias, a, b), bias + a @ b)
    reference = addmm.reference("call", bias.double(), a.double(), b.double())
    assert reference.dtype == torch.float64
    torch.testing.assert_close(reference.float(), bias + a @ b)
    assert addmm.output_types("call") == {"out": "float32"}
    assert [type(each).__name__ for each in addmm.arguments("call", bias, a, b)] == ["Tensor", "Tensor", "Tensor", "int", "int"]


def test_outputs_that_are_left_out_are_none() -> None:
    backward = Operation(
        "aten::convolution_backward",
        {
            "call": Call(
                tensor([1, 2, 3, 3], "float32", [18, 9, 3, 1]),
                tensor([1, 4, 3, 3], "float32", [36, 9, 3, 1]),
                tensor([2, 4, 1, 1], "float32", [4, 1, 1, 1]),
                *([0], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]),
            )
        },
    )
    outputs = backward("call", *inputs(backward))
    assert [tuple(each.shape) for each in outputs] == [(1, 4, 3, 3), (2, 4, 1, 1)]
    assert backward.output_types("call") == {"out0": "float32", "out1": "float32"}


def test_an_operator_of_cudnn_has_an_equivalent_on_the_host() -> None:
    x = tensor([4, 2, 3, 3], "float32", [18, 1, 6, 2])
    channel = [tensor([2], "float32", [1], positive=True) for _ in range(5)]
    gradient = tensor([4, 2, 3, 3], "float32", [18, 1, 6, 2])
    backward = Operation(
        "aten::cudnn_batch_norm_backward", {"call": Call(x, gradient, *channel, 1e-5, tensor([0], "uint8", [1]))}
    )
    given = inputs(backward)
    expected = torch.ops.aten.native_batch_norm_backward(given[1], given[0], *given[2:], True, 1e-5, [True, True, True])
    for mine, right in zip(backward("call", *given), expected, strict=True):
        torch.testing.assert_close(mine, right)


def test_an_operator_in_place_returns_what_it_wrote() -> None:
    relu = Operation("aten::relu_", {"call": Call(tensor([4], "float32", [1]))})
    (x,) = inputs(relu)
    before = x.clone()
    assert relu("call", x).data_ptr() == x.data_ptr()
    torch.testing.assert_close(x, before.clamp_min(0))


def test_a_type_that_an_argument_chooses_is_float64_in_the_reference() -> None:
    total = Operation("aten::sum", {"call": Call(tensor([8], "bfloat16", [1]), 6)})
    (x,) = inputs(total)
    assert total("call", x).dtype == torch.float32
    assert total.reference("call", x.double()).dtype == torch.float64
    assert total.output_types("call") == {"out": "float32"}


def test_a_chain_hands_each_output_to_the_next_operator() -> None:
    square = tensor([3, 3], "float32", [3, 1])
    steps = [
        Step("aten::mm", Call(square, tensor([3, 3], "float32", [3, 1]))),
        Step("aten::sub", Call(tensor([3, 3], "float32", [3, 1]), tensor([3, 3], "float32", [3, 1]), 1), takes=1),
        Step("aten::relu_", Call(tensor([3, 3], "float32", [3, 1])), takes=0),
    ]
    chain = Chain({"call": steps})
    torch.manual_seed(0)
    a, b, c = chain.inputs("call")
    torch.testing.assert_close(chain("call", a, b, c), (c - a @ b).clamp_min(0))
    assert chain.reference("call", a.double(), b.double(), c.double()).dtype == torch.float64
    assert chain.output_types("call") == {"out": "float32"}


def test_a_conversion_has_the_type_that_it_converts_to_in_the_reference_too() -> None:
    convert = Operation("aten::_to_copy", {"call": Call(tensor([99], "float32", [1]), 15, 0, None, None, False, None)})
    (x,) = inputs(convert)
    assert convert.reference("call", x.double()).dtype == torch.bfloat16
    assert torch.equal(convert.reference("call", x.double()), convert("call", x))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Operation("aten::nothing", {"call": Call(tensor([1], "float32", [1]))}), "has no such operator"),
        (Operation("aten::mm", {"call": Call(tensor([1], "float32", [1]))}), "no form of it with 1 arguments"),
    ],
)
def test_what_this_pytorch_lacks_is_named(operation: Operation, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        operation("call", *inputs(operation))


def test_types_without_real_numbers_are_drawn() -> None:
    values = Strided((1000,), "int64", (1,)).made()
    assert (values.dtype, int(values.min()) >= 0, len(np.unique(values.numpy())) > 50) == (torch.int64, True, True)
    assert set(Strided((100,), "bool", (1,)).made().tolist()) == {False, True}
    assert float(Strided((1000,), "float32", (1,), positive=True).made().min()) >= 0.5


def _list(*shapes: tuple[int, ...], positive: bool = False) -> Any:
    return tensors("float32", [list(each) for each in shapes], positive=positive)


def test_an_optimizer_steps_lists_of_tensors_as_pytorch_does() -> None:
    shapes = ((64, 32), (32,), ())
    numbers = (1e-3, 0.9, 0.999, 1e-2, 1e-8, False, False, None, None)
    lists = (*[_list(*shapes)] * 3, _list(*shapes, positive=True), [], _list((), (), (), positive=True))
    adamw = Operation("aten::_fused_adamw_", {"call": Call(*lists, *numbers)})
    given = adamw.inputs("call")
    # One array for each list, in which each tensor begins at a multiple of 256 elements.
    assert [tuple(each.shape) for each in given] == [(2048 + 256 + 1,)] * 4 + [(513,)]
    weights, gradients, means, squares, _, steps = adamw.arguments("call", *given)[:6]
    right = [each.clone() for each in weights]
    moments = [(m.clone(), v.clone()) for m, v in zip(means, squares, strict=True)]
    for weight, gradient, (m, v), step in zip(right, gradients, moments, steps, strict=True):
        weight.mul_(1 - 1e-3 * 1e-2)
        m.mul_(0.9).add_(gradient, alpha=0.1)
        v.mul_(0.999).addcmul_(gradient, gradient, value=1e-3)
        bias = (1 - 0.999 ** float(step)) ** 0.5
        weight.addcdiv_(m, v.sqrt() / bias + 1e-8, value=-1e-3 / (1 - 0.9 ** float(step)))
    reference = adamw.reference("call", *[each.double() for each in given])
    written = adamw("call", *given)
    assert written[0] is given[0] and all(torch.allclose(*each, atol=1e-6) for each in zip(weights, right, strict=True))
    assert len(reference) == 4 and reference[0].dtype == torch.float64
    assert torch.allclose(written[0].double(), reference[0], atol=1e-6)


def test_a_list_is_joined_with_the_strides_of_the_trace() -> None:
    cat = Operation("aten::cat", {"call": Call(tensors("float32", [([4, 8], [16, 1]), ([4, 3], [3, 1])]), -1)})
    (stored,) = cat.inputs("call")
    first, second = cat.arguments("call", stored)[0]
    assert (first.stride(), second.stride()) == ((16, 1), (3, 1))
    assert torch.equal(cat("call", stored), torch.cat([first, second], -1))


@pytest.mark.parametrize(("name", "heads"), [("flash", 4), ("flash", 2), ("cudnn", 4), ("efficient", 4), ("cpu", 4)])
def test_the_backward_pass_of_attention_has_the_gradients_of_autograd(name: str, heads: int) -> None:
    of_query, of_key = (
        tensor([2, 4, 16, 8], "float32", [512, 128, 8, 1]),
        tensor([2, heads, 16, 8], "float32", [heads * 128, 128, 8, 1]),
    )
    sums = {"efficient": [2, 4, 32], "cudnn": [2, 4, 16, 1]}.get(name, [2, 4, 16])
    of_sums = tensor(sums, "float32", [prod(sums[place + 1 :]) for place in range(len(sums))])
    first, seeds = (of_query, of_query, of_key, of_key), (unread([2], "int64"), unread([], "int64"))
    dense = (None, None, 16, 16, 0.0, True)
    arguments = {
        "flash": (*first, of_query, of_sums, *dense, *seeds, None),
        "cudnn": (*first, of_query, of_sums, *seeds, None, *dense, None),
        "efficient": (*first, None, of_query, of_sums, *seeds, 0.0, [True, True, True, False], True, None),
        "cpu": (*first, of_query, of_sums, 0.0, True, None, None),
    }[name]
    kind = "flash_attention_for_cpu" if name == "cpu" else f"{name}_attention"
    backward = Operation(f"aten::_scaled_dot_product_{kind}_backward", {"call": Call(*arguments)})
    given = backward.inputs("call")
    query, key, value = (each.clone().requires_grad_() for each in given[1:4])
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=heads < 4)
    out.backward(given[0])
    assert torch.allclose(given[4], out, atol=1e-5)
    for found in (backward("call", *given), backward.reference("call", *[each.double() for each in given])):
        assert all(
            torch.allclose(mine.float(), each.grad, atol=1e-5) for mine, each in zip(found, (query, key, value), strict=True)
        )
