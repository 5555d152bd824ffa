"""Benchmarks on PyTorch's tensors, on the host."""

from pathlib import Path

import pytest

from tests.workloads.functions.recording import record

pytest.importorskip("torch", reason="PyTorch is not installed")

LAYER_NORM = '''
import torch
import warpladder

bench = warpladder.Benchmark("layer_norm", gradients=True, dtype=["float32", "bfloat16"])


@bench.inputs
def inputs(dtype):
    return torch.randn(8, 32).to(getattr(torch, dtype)), torch.randn(32).to(getattr(torch, dtype))


@bench.reference
def reference(x, weight):
    assert x.dtype == torch.float64
    return torch.nn.functional.layer_norm(x, (32,), weight)


@bench.variant
def native(x, weight):
    return torch.nn.functional.layer_norm(x, (32,), weight)


@bench.variant
def detached(x, weight):
    """Its backward pass lacks the part through the mean."""
    mean = x.mean(1, keepdim=True).detach()
    return (x - mean) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5) * weight
'''

MATMUL = """
import torch
import warpladder

bench = warpladder.Benchmark("matmul", n=[16], dtype=["float32", "bfloat16", "float16", "float64"])


@bench.inputs
def inputs(n, dtype):
    kind = getattr(torch, dtype)
    return {"a": torch.randn(n, n).to(kind), "b": torch.randn(n, n).to(kind).t()}


@bench.reference
def reference(a, b):
    return a @ b


@bench.variant
def returned(a, b):
    assert not b.is_contiguous()
    return a @ b


@bench.variant
def into(b, a, out):
    torch.matmul(a, b, out=out)


@bench.variant
def too_wide(a, b):
    return (a @ b).double()


@bench.variant
def transposed(a, b):
    return b.t() @ a.t()
"""


def test_gradients_are_verified_and_both_passes_are_timed(tmp_path: Path) -> None:
    run = record(tmp_path, LAYER_NORM)
    status = run.table("results").groupby("variant")["status"].unique().map(list)
    assert status["native"] == ["ok"] and status["detached"] == ["wrong_result"]
    samples = run.table("samples").query("variant == 'native' and scope in ('phase:forward', 'phase:backward')")
    assert set(samples["case"]) == {"dtype=float32", "dtype=bfloat16"} and set(samples["scope"].value_counts()) == {
        2 * 2 * 2
    }  # cases, rounds, and the twin
    cases = run.table("cases").set_index("case")
    assert cases.loc["dtype=float32", "d2h_bytes"] == 4 * (8 * 32 + 8 * 32 + 32)  # the output and two gradients


def test_types_and_the_order_of_axes_reach_a_function_as_they_were_given(tmp_path: Path) -> None:
    run = record(tmp_path, MATMUL)
    results = run.table("results").set_index(["variant", "case"])
    for dtype, tolerance in {"float32": 2e-6, "bfloat16": 1.6e-2, "float16": 2e-3, "float64": 1e-12}.items():
        for variant in ("returned", "into"):
            found = results.loc[variant, f"n=16,dtype={dtype}"]
            assert (found["status"], found["tolerance"]) == ("ok", tolerance)
        assert results.loc[("transposed", f"n=16,dtype={dtype}"), "status"] == "wrong_result"
    said = results.loc[("too_wide", "n=16,dtype=bfloat16"), "detail"]
    assert "output out has type float64, not bfloat16" in said and "@bench.reference(outputs='float64')" in said
    assert set(run.table("variants")["precision"]) == {"mixed"}


COMPILED = """
import torch
import torch._dynamo
import warpladder

bench = warpladder.Benchmark("compiled", n=list(range(20, 30)))
bench.inputs(lambda n: torch.randn(2, n))
bench.reference(torch.nn.functional.normalize)
compiled = torch.compile(torch.nn.functional.normalize, dynamic=False, backend="eager")


@bench.variant
def each_size(x):
    out = compiled(x)
    assert not any("limit" in text for text in torch._dynamo.utils.counters["unimplemented"]), "called uncompiled"
    return out
"""


def test_a_function_of_a_library_is_compiled_for_each_size_however_many_there_are(tmp_path: Path) -> None:
    results = record(tmp_path, COMPILED).table("results")
    assert set(results["status"]) == {"ok"} and len(results) == 10, results["detail"].tolist()
