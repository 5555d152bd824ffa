"""Inputs and references that are wrong. Each stands in a benchmark of its own, with a right variant; one file holds them all."""

from typing import Final, NamedTuple

INPUTS: Final = "rng.standard_normal((n, 9), np.float32)"


class Problem(NamedTuple):
    """What a benchmark's functions return, the status of its variant, what its detail says, and what a diagnostic does.

    The expressions use `n` and `rng`, and `x` in those of the reference and the variant.
    """

    inputs: str = INPUTS
    reference: str = "x * 2"
    variant: str = "x * x.dtype.type(2)"
    status: str = "launch_error"
    detail: str = ""
    diagnostic: str = ""


PROBLEMS: Final = {
    "right": Problem(status="ok"),
    "reference_raises": Problem(reference="x @ x", detail="reference raises ValueError: matmul"),
    "reference_exits": Problem(reference="sys.exit(3)", detail="reference raises SystemExit: 3"),
    "reference_gives_nothing": Problem(reference="None", detail="reference returns None; return an array"),
    "reference_gives_a_generator": Problem(
        reference="(row for row in x)", detail="reference returns a generator; return an array"
    ),
    "reference_gives_lists": Problem(reference="x.tolist()", detail="reference: out0 is a list; return an array"),
    "reference_gives_a_text": Problem(reference="'x'", detail="reference: out is a text; return an array"),
    "reference_gives_bad_names": Problem(reference="{1: x}", detail="reference: 1 names an output"),
    "reference_gives_objects": Problem(reference="x.astype(object)", detail="out: arrays of object cannot be measured"),
    "reference_gives_no_element": Problem(
        reference="x[:0]", status="wrong_result", detail=r"and the reference's has \(0, 9\)", diagnostic="out has no element"
    ),
    "reference_gives_nan": Problem(reference="x * np.nan", detail="is NaN or infinite in every element, and no input is"),
    "reference_of_nan": Problem(
        inputs=f"{INPUTS} * np.float32(np.nan)", detail="is NaN or infinite in every element, and input x has such elements too"
    ),
    "reference_in_float32": Problem(
        reference="x.astype(np.float32) * np.float32(2)", status="ok", diagnostic="out with no more digits than the variants"
    ),
    "reference_in_float16": Problem(reference="x.astype(np.float16)", detail="has type float16, which cannot verify float32"),
    "reference_of_float16_in_float32": Problem(
        inputs=f"{INPUTS}.astype(np.float16)", reference="x.astype(np.float32) * 2", status="ok"
    ),
    "reference_of_zeros": Problem(
        reference="x * 0",
        variant="x * np.float32(0)",
        status="ok",
        diagnostic="out is 0 everywhere, which a variant that computes",
    ),
    "reference_that_writes": Problem(reference="np.multiply(x, 2, out=x)", status="ok"),
    "reference_of_whole_numbers": Problem(reference="(x > 0).sum(axis=1)", variant="(x > 0).sum(axis=1)", status="ok"),
    "whole_numbers_in_int32": Problem(
        reference="(x > 0).sum(axis=1)",
        variant="(x > 0).sum(axis=1, dtype=np.int32)",
        status="wrong_result",
        detail="has type int32, not int64; convert it; a Benchmark can declare the type",
    ),
    "two_outputs_in_one_memory": Problem(
        reference="(x * 2, x * 3)",
        variant="(lambda y: (y, y))(x * x.dtype.type(2))",
        status="wrong_result",
        detail="relative L2 error",
    ),
    "outputs_by_name": Problem(
        reference="{'sum': x.sum(), 'most': x.max()}",
        variant="(x.sum(), x.max())",
        status="ok",
    ),
    "one_of_two_outputs": Problem(
        reference="(x * 2, x * 3)",
        variant="x * x.dtype.type(2)",
        status="wrong_result",
        detail="returns 1 array, and the reference 2 outputs; return a tuple of the 2 outputs",
    ),
    "constant_inputs": Problem(
        inputs="np.ones((n, 9), np.float32)", status="ok", diagnostic="inputs are the same at each call"
    ),
    "inputs_of_other_shapes": Problem(
        inputs="np.ones(rng.integers(1, 10**6), np.float32)",
        detail="x has another shape, type or library than at the first call; make it the same",
    ),
    "inputs_raise_later": Problem(
        inputs=f"{INPUTS} if count('later') < 3 else 1 / 0",
        status="ok",
        diagnostic="no other inputs could be made to verify with",
    ),
    "inputs_raise_in_the_second_call": Problem(
        inputs=f"{INPUTS} if count('second') < 2 else 1 / 0", detail="inputs raises ZeroDivisionError"
    ),
    "inputs_exit_in_the_second_call": Problem(
        inputs=f"{INPUTS} if count('exits') < 2 else sys.exit(3)", detail="inputs raises SystemExit: 3"
    ),
    "inputs_in_the_order_of_fortran": Problem(inputs=f"np.asfortranarray({INPUTS})", status="ok"),
    "inputs_of_another_processor": Problem(inputs=f"{INPUTS}.astype('>f4')", status="ok"),
    "inputs_without_an_element": Problem(inputs="np.ones((0, 9), np.float32)", status="ok", diagnostic="out has no element"),
    "inputs_of_one_element": Problem(inputs="np.float32(rng.random())", status="ok"),
}
_HEAD: Final = """
import sys
import numpy as np
import warpladder

calls = {}


def count(name):
    calls[name] = calls.get(name, 0) + 1
    return calls[name]
"""
_BENCHMARK: Final = """
NAME = warpladder.Benchmark("NAME", n=[8])


@NAME.inputs
def inputs(n, rng):
    return INPUTS


@NAME.reference
def reference(x):
    return REFERENCE


@NAME.variant
def variant(x):
    return VARIANT
"""


def text() -> str:
    """The file."""
    found = _HEAD
    for name, problem in PROBLEMS.items():
        words = {"NAME": name, "INPUTS": problem.inputs, "REFERENCE": problem.reference, "VARIANT": problem.variant}
        benchmark = _BENCHMARK
        for word, replacement in words.items():
            benchmark = benchmark.replace(word, replacement)
        found += benchmark
    return found
