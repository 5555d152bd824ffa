"""`warpladder extract` on lists of tensors and on the backward pass of attention: optimisers, concatenation."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_extract import NONE, Made, hot, only, run, scalar, tensor
from warpladder.dashboard.core.operations.aten import Tensor, Work
from warpladder.workloads.torch_operation import Operation

ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, "
    "at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*>(float*)"
)
CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, "
    "4, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)"
)


def listed(*shapes: Sequence[int], strides: Sequence[Sequence[int]] | None = None) -> tuple[Any, ...]:
    """A list of tensors as PyTorch's profiler has it: shapes and strides, and no types."""
    dense = [tensor(*shape)[2] if shape else [] for shape in shapes]
    return [list(each) for each in shapes], "TensorList", [list(each) for each in strides or dense], ""


def trace(folder: Path, name: str, kernel: str, *arguments: tuple[Any, ...]) -> Path:
    made = Made()
    made.operator(name, 0, 90, *arguments)
    made.kernel(kernel, 5, 100, 30)
    return made.write(folder)


def adamw(folder: Path) -> Path:
    shapes = listed((64, 32), (32,))
    numbers = [scalar(each) for each in ("0.001", "0.90000000000000002", "0.999", "0.01", "1e-08", "False", "False")]
    lists = (shapes, shapes, shapes, shapes, ([], "TensorList", [], ""), listed((), ()))
    return trace(folder, "aten::_fused_adamw_", ADAM, *lists, *numbers, NONE, NONE)


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("bench_lists", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_optimizer_with_lists_of_tensors_can_be_called_again(tmp_path: Path) -> None:
    operation = only(hot(adamw(tmp_path), tmp_path))
    assert (operation.reason, operation.workload) == ("", "aten_fused_adamw_in_place_bf16")
    (form,) = operation.forms
    # 2,080 numbers of two bytes: weights, gradients and both moments are read, weights and moments written. Two steps of four bytes.
    assert form.work == Work(4 * 2 * 2080 + 8, 3 * 2 * 2080, 0)
    out = tmp_path / "bench_lists.py"
    assert run(str(adamw(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    found: Operation = imported(out).aten_fused_adamw_in_place_bf16
    (call,) = found.calls.values()
    assert [(each.dtype, each.elements) for each in call.tensors] == [*[("bfloat16", 2080)] * 4, ("float32", 2)]
    assert call.arguments[4] == [] and call.bytes == 4 * 2 * 2080 + 8 + 3 * 2 * 2080


def steps_with_long_lists(passes: int, groups: int) -> Made:
    """Two steps with gradients of (64, 32) and (32,), whose optimiser has lists that are too long for the profile."""
    made = Made()
    numbers = [scalar(each) for each in ("0.001", "0.9", "0.999", "0.01", "1e-08", "False", "False")]
    for number in range(2):
        begin = 1000 * number
        made.step(number, begin, begin + 900)
        for place in range(passes):
            at = begin + 100 * place
            made.operator("torch::autograd::AccumulateGrad", at, at + 9, tensor(32, of="c10::BFloat16"))
            made.operator("torch::autograd::AccumulateGrad", at + 10, at + 19, tensor(64, 32, of="c10::BFloat16"))
        for group in range(groups):
            at = begin + 500 + 100 * group
            made.operator("aten::_fused_adamw_", at, at + 90, *[([], "TensorList", [], "")] * 6, *numbers, NONE, NONE)
            made.kernel(ADAM, at + 5, at + 20, 30)
    return made


@pytest.mark.parametrize("passes", [1, 3])
def test_lists_that_are_too_long_for_the_profile_are_the_gradients_of_the_step(passes: int, tmp_path: Path) -> None:
    operation = only(hot(steps_with_long_lists(passes, 1).write(tmp_path), tmp_path))
    (form,) = operation.forms
    assert (operation.reason, form.calls) == ("", 2)
    assert form.arguments[0] == [Tensor((32,), "bfloat16", (1,)), Tensor((64, 32), "bfloat16", (32, 1))]
    assert form.arguments[4:6] == ([], [Tensor((), "float32", ())] * 2)
    assert form.work == Work(4 * 2 * 2080 + 8, 3 * 2 * 2080, 0)


def test_several_optimizers_of_a_step_share_the_gradients_in_an_unknown_way(tmp_path: Path) -> None:
    operation = only(hot(steps_with_long_lists(1, 2).write(tmp_path), tmp_path))
    assert operation.reason.startswith("the trace lacks the shapes of its lists of tensors")


def test_a_concatenation_has_the_type_whose_size_its_kernel_names(tmp_path: Path) -> None:
    path = trace(tmp_path, "aten::cat", CAT, listed((4, 8), (4, 3), strides=((16, 1), (3, 1))), scalar("-1"))
    (form,) = only(hot(path, tmp_path)).forms
    assert form.arguments == ([Tensor((4, 8), "bfloat16", (16, 1)), Tensor((4, 3), "bfloat16", (3, 1))], -1)
    assert form.work == Work(2 * 44, 2 * 44, 0)


@pytest.mark.parametrize(
    ("kernel", "argument", "reason"),
    [
        ("mine", listed((4, 8), (4, 3)), "neither the trace nor the names of its kernels tell the type of its lists"),
        (
            CAT,
            ([], "TensorList", [], ""),
            "the trace lacks the shapes of its lists of tensors, which record_shapes=True has from PyTorch 2.4 on",
        ),
        (CAT, ([], "GenericList", [], ""), "the trace lacks what its list of tensors and others holds"),
    ],
)
def test_what_a_list_lacks_is_said_with_what_to_do(kernel: str, argument: tuple[Any, ...], reason: str, tmp_path: Path) -> None:
    assert only(hot(trace(tmp_path, "aten::cat", kernel, argument, scalar("0")), tmp_path)).reason.startswith(reason)


def test_the_file_shows_how_to_give_what_a_list_lacks(tmp_path: Path) -> None:
    made = Made()
    made.operator("aten::cat", 0, 9, ([], "TensorList", [], ""), scalar("0"))
    made.kernel(CAT, 5, 10, 30)
    made.operator("aten::relu", 20, 29, tensor(4, 4))
    made.kernel("relu", 25, 50, 30)
    out = tmp_path / "bench_lists.py"
    assert run(str(made.write(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    text = out.read_text()
    assert 'aten_cat = Operation("aten::cat", {"a call": Call(tensors("bfloat16", [[8, 1024], [8, 512]]), ...)})' in text
    assert imported(out)


def attention(folder: Path, dropped: str = "0.") -> Path:
    """The backward pass of two texts, four heads, 16 rows of 8 numbers."""
    of_head, of_rows = tensor(2, 4, 16, 8, of="c10::BFloat16"), tensor(2, 4, 16)
    seed, offset = tensor(2, of="unsigned long"), tensor(of="unsigned long")
    more = (NONE, NONE, scalar("16"), scalar("16"), scalar(dropped), scalar("True"), seed, offset, NONE)
    name = "aten::_scaled_dot_product_flash_attention_backward"
    return trace(folder, name, "flash_bwd", *[of_head] * 5, of_rows, *more)


def test_the_backward_pass_of_attention_can_be_called_again(tmp_path: Path) -> None:
    operation = only(hot(attention(tmp_path), tmp_path))
    assert operation.reason == ""
    (form,) = operation.forms
    # Five products of 2 * 4 * 16 * 16 / 2 pairs and 8 numbers each, a multiply-add counting as two.
    assert form.work.flops == 5 * 2 * 1024 * 8
    assert form.work.written == 3 * 2 * 1024
    out = tmp_path / "bench_lists.py"
    assert run(str(attention(tmp_path)), "--data-dir", str(tmp_path), "--out", str(out)).exit_code == 0
    (bench,) = (each for each in vars(imported(out)).values() if isinstance(each, Operation))
    (call,) = bench.calls.values()
    assert [each.shape for each in call.tensors] == [*[(2, 4, 16, 8)] * 5, (2, 4, 16)]
    assert "(gradient, query, key, value, out, logsumexp, call)" in out.read_text()


def test_attention_that_drops_numbers_cannot_be_verified(tmp_path: Path) -> None:
    assert "random" in only(hot(attention(tmp_path, "0.1"), tmp_path)).reason
