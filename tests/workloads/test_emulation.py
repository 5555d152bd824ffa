"""Every CUDA variant on the CPU at small odd sizes, every host variant beside it, against the reference."""

import math
from typing import get_args

import pytest

from tests.emulator.emulator import Order, build, needs_compiler
from tests.workloads.declared import (
    CUDA,
    HOST,
    WORKLOADS,
    agreements,
    cells,
    emulation_cases,
    inputs_and_outputs,
    kernels,
    name_of,
    same_as,
)
from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.verify import poison, widened_outputs

pytestmark = pytest.mark.slow


@pytest.mark.sampled(1)
@needs_compiler
@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_a_kernel_computes_the_reference_whatever_the_order_of_its_threads(workload, variant):
    if original := same_as(variant, lambda of, each: str(list(cells(each, emulation_cases(of))))):
        pytest.skip(f"{workload.name} {variant.name} is the code of {original}, launched alike")
    cases = emulation_cases(workload)
    program = build(variant, kernels(variant, cases))
    for case, config, _ in cells(variant, cases):
        elements = sum(math.prod(buffer.shape) for buffer in workload.buffers(case)[1].values())
        orders = get_args(Order)
        for order, verdict in zip(orders, agreements(workload, variant, case, config, orders, program=program), strict=True):
            assert verdict.ok, f"{case.name} {dict(config)} {order}: {verdict.detail}"
            assert verdict.verified_elements == elements


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_every_config_of_every_kernel_has_an_emulation_case(workload):
    cases = emulation_cases(workload)
    for variant in (variant for of, variant in CUDA if of is workload):
        for config in variant.configs:
            assert any(variant.skip(case, config) is None for case in cases), f"{variant.name} {dict(config)}"


@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_emulation_cases_are_small_and_are_not_those_that_are_measured(workload):
    measured = {case.name for case in workload.cases}
    for case in emulation_cases(workload):
        assert case.name not in measured
        assert case.min_bytes < 1_000_000


@pytest.mark.xdist_group("numba")  # compiled once, not by each worker
@pytest.mark.parametrize(
    ("workload", "variant"),
    [
        # Numba compiles most of them for seconds.
        pytest.param(of, each, marks=pytest.mark.thorough if "numba" in each.name and of.name != "conv2d" else ())
        for of, each in HOST
    ],
    ids=name_of,
)
def test_a_host_variant_computes_the_reference(workload, variant):
    for case in emulation_cases(workload):
        inputs, outputs = inputs_and_outputs(workload, case)
        references = (variant.reference or workload.reference)(case, inputs)
        poison(outputs)
        returned = variant.run(case, inputs, outputs)
        given = widened_outputs(outputs if returned is None else returned, workload.buffers(case)[1])
        verdict = compare(given, references, workload.tolerance[variant.precision])
        assert verdict.ok, f"{case.name}: {verdict.detail}"
