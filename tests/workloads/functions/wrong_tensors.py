"""Variants on PyTorch's tensors that are wrong, in one file between right ones. Name -> body, status, and what the detail says."""

from typing import Final

HEAD: Final = """
import asyncio
import ctypes
import numpy as np
import torch
import warpladder

bench = warpladder.Benchmark("wrong", n=[8], device="cpu")
calls = {}


@bench.inputs
def inputs(n):
    return torch.randn(n, n + 1, requires_grad=True)


@bench.reference
def reference(x):
    assert x.dtype == torch.float64
    return x.float() * 2


@bench.variant(baseline=True)
def first(x):
    return x * 2
"""
LAST: Final = """
@bench.variant
def last(x):
    return x + x
"""
WRONG: Final[dict[str, tuple[str, str, str]]] = {
    "nothing": ("x * 2", "wrong_result", "returns None; return the output"),
    "a_coroutine": ("return asyncio.sleep(0)", "wrong_result", "returns a coroutine; return an array"),
    "a_module": ("return torch.nn.Linear(2, 2)", "wrong_result", "returns a Linear of torch; return an array"),
    "a_type": ("return torch.float32", "wrong_result", "returns a dtype of torch; return an array"),
    "a_future": ("return torch.futures.Future()", "wrong_result", "returns a Future of torch; return an array"),
    "numbers": ("return (x * 2).tolist()", "wrong_result", "returns a list that holds a list; return an array"),
    "float64": (
        "return x.double() * 2",
        "wrong_result",
        "has type float64, not float32; convert it; a Benchmark can declare the type",
    ),
    "bfloat16": ("return (x * 2).bfloat16()", "wrong_result", "has type bfloat16, not float32; convert it"),
    "transposed": ("return (x * 2).T", "wrong_result", r"has shape \(9, 8\), and the reference's has \(8, 9\); transpose it"),
    "sparse": ("return (x * 2).to_sparse()", "wrong_result", "output out is a sparse tensor; return a dense one"),
    "without_data": ("return torch.empty_like(x, device='meta')", "wrong_result", "output out is on the device meta"),
    "a_view_of_the_input": ("return x.view(8, 9)", "wrong_result", "output out is a view of input x: nothing was computed"),
    "writes_its_input": ("return x.mul_(2).clone()", "wrong_result", "changes its input x, which the other variants read"),
    "keeps_its_first_output": ("return calls.setdefault('y', x * 2)", "wrong_result", "gives the outputs of the first ones"),
    "of_a_class_of_its_own": (
        "return (x * 2).detach().as_subclass(type('Lazy', (torch.Tensor,), {}))",
        "wrong_result",
        "a Lazy; return an array",
    ),
    "with_a_method_of_its_own": (
        "y = torch.zeros_like(x); y.detach = lambda: x.detach() * 2; return y",
        "wrong_result",
        "relative L2 error 1 is above",
    ),
    "raises": ("return x @ x", "launch_error", r"bench\.py:\d+: RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    "another_device": ("return x.to('cuda') * 2", "launch_error", "(AssertionError|RuntimeError)"),
    "differentiable": ("return x.requires_grad_() * 2", "ok", ""),
    "conjugated": ("return torch.conj(x * 2)", "ok", ""),
    "in_other_types": ("torch.set_default_dtype(torch.float64); return x * 2", "ok", ""),
    "without_gradients": ("torch.set_grad_enabled(False); return x * 2", "ok", ""),
    "in_tf32": ("torch.set_float32_matmul_precision('high'); return x * 2", "ok", ""),
}
#: What the diagnostics say of variants that change PyTorch's settings.
SETTINGS: Final = {
    "in_other_types": "PyTorch's default type",
    "without_gradients": "PyTorch's gradient mode",
    "in_tf32": "PyTorch's precision of products",
}
#: What a function `inputs` may return by mistake, and what is said.
INPUTS: Final = {
    "torch.empty(8, device='meta')": "inputs: x cannot be read (NotImplementedError: Cannot copy out of meta tensor",
    "torch.eye(8).to_sparse()": "inputs: x: it is a sparse tensor; make it dense",
    "torch.nn.Linear(2, 2)": "inputs: x is a Linear of torch; give arrays, numbers or texts",
    "torch.randn(8, 8)[::2]": "inputs: x: its elements do not lie side by side in memory; make it contiguous",
    "torch.ones(1).expand(8)": "inputs: x: its elements do not lie side by side in memory; make it contiguous",
    "torch.quantize_per_tensor(torch.ones(8), 0.1, 0, torch.qint8)": "inputs: x: arrays of qint8 cannot be measured",
}


def text() -> str:
    """The file."""
    return HEAD + "".join(f"\n@bench.variant\ndef {name}(x):\n    {body}\n" for name, (body, *_) in WRONG.items()) + LAST
