"""Kernels that are known to be wrong, one way each: what rejects them is what the recordings rely on.

Each stands in for the rung v04_simple_template of tensor_transpose, whose launches it is given.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.emulator import Order, needs_compiler, run
from tests.workloads.declared import inputs_and_outputs
from warpladder.collectors.core.agreement import Agreement, compare
from warpladder.collectors.core.verify import poison
from warpladder.workloads.api import CudaVariant
from warpladder.workloads.tensor_transpose.problem import case
from warpladder.workloads.tensor_transpose.workload import WORKLOAD

pytestmark = needs_compiler

FOLDER = Path(__file__).parent / "wrong_kernels"
RIGHT = WORKLOAD.variant("v04_simple_template")
REJECTED = {
    "no_op": "not finite",
    "last_column_missing": "not finite",
    "stale_output": "not finite",
    "wrong_type": "not finite",
    "missing_barrier": "not finite",
    "half_precision": "1833 of 1836 elements are not equal to the reference",
    "cubes_only": "not finite",
}


def emulated(variant: CudaVariant, shape: str = "12x9x17", order: Order = "forward", *, poisoned: bool = True) -> Agreement:
    of = case({"shape": shape, "perm": "210"}, ("full",), None)
    inputs, outputs = inputs_and_outputs(WORKLOAD, of)
    if poisoned:
        poison(outputs)
    run(variant, variant.launches(of, {}), inputs, outputs, order)
    return compare(outputs, WORKLOAD.reference(of, inputs), WORKLOAD.tolerance["fp32"])


def wrong(name: str) -> CudaVariant:
    assert isinstance(RIGHT, CudaVariant)
    return replace(RIGHT, name=name, source=FOLDER / f"{name}.cu")


def test_every_wrong_kernel_is_tested():
    assert {file.stem for file in FOLDER.glob("*.cu")} == {*REJECTED, "keeps_what_is_there"}


def test_the_right_kernel_passes_where_the_wrong_ones_fail():
    assert emulated(RIGHT).ok


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(("name", "detail"), REJECTED.items())
def test_a_wrong_kernel_is_rejected(name, detail, order):
    agreement = emulated(wrong(name), order=order)
    assert not agreement.ok
    assert detail in agreement.detail


def test_without_poison_a_kernel_that_adds_to_its_output_would_pass():
    assert emulated(wrong("stale_output"), poisoned=False).ok


def test_on_a_cube_a_kernel_for_cubes_would_pass():
    assert emulated(wrong("cubes_only"), shape="16x16x16").ok


def test_a_kernel_that_keeps_the_last_output_is_rejected_with_the_next_input():
    variant = wrong("keeps_what_is_there")
    of = case({"shape": "8x8x8", "perm": "210"}, ("full",), None)
    inputs, outputs = inputs_and_outputs(WORKLOAD, of)
    poison(outputs)
    run(variant, variant.launches(of, {}), inputs, outputs)
    assert compare(outputs, WORKLOAD.reference(of, inputs), 0.0).ok
    fresh = WORKLOAD.make_inputs(of, np.random.default_rng(6))
    run(variant, variant.launches(of, {}), fresh, outputs)
    assert not compare(outputs, WORKLOAD.reference(of, fresh), 0.0).ok
