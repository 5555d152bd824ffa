"""Benchmarks on JAX's arrays, on the host."""

from pathlib import Path

import pytest

from tests.workloads.functions.recording import record

pytest.importorskip("jax", reason="JAX is not installed")

SOFTMAX = """
import jax
import jax.numpy as jnp
import numpy as np

import warpladder

bench = warpladder.Benchmark("softmax", n=[32], dtype=["float32", "bfloat16"])


@bench.inputs
def inputs(n, dtype, rng):
    return jax.random.normal(jax.random.key(int(rng.integers(2**31))), (8, n), dtype=dtype)


@bench.reference
def reference(x):
    assert x.dtype == jnp.float64
    return jax.nn.softmax(x, axis=1)


@bench.variant
def eager(x):
    assert isinstance(x, jax.Array)
    return jax.nn.softmax(x, axis=1)


bench.variant(jax.jit(eager), name="jitted", role="peer")


@bench.variant(arrays="numpy")
def by_numpy(x):
    powers = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float32))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(x.dtype)


@bench.variant
def wide(x):
    return jax.nn.softmax(x, axis=1).astype(jnp.float16)
"""


def test_arrays_of_jax_are_given_taken_and_verified_in_float64(tmp_path: Path) -> None:
    results = record(tmp_path, SOFTMAX).table("results").set_index("variant")
    assert set(results.drop(index="wide")["status"]) == {"ok"}, results["detail"].tolist()
    assert set(results.loc["wide", "status"]) == {"wrong_result"}
    assert set(results.loc["eager", "tolerance"]) == {2e-6, 1.6e-2}
