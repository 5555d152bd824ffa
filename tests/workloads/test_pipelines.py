"""Rungs for Hopper, in emulation, where a pipeline's stages are filled again: more steps along a product than stages."""

from dataclasses import replace
from typing import get_args

import pytest

from tests.emulator.emulator import EmulationError, Order, build, needs_compiler
from tests.workloads.declared import CUDA, WORKLOADS, agreements, cells, kernels, name_of, same_as
from warpladder.collectors.core.agreement import Agreement
from warpladder.workloads.mlp_gemm import problem as gemm
from warpladder.workloads.mlp_training import problem as training

#: Cases whose products have more than 8 steps of 32. The blocks of gan_tconv fill stages again at its emulation cases already.
CASES = {
    "mlp_gemm": gemm.make_case({"shape": "5x300x9"}),
    "mlp_training": training.make_case({"batch": 260, "inputs": 260, "hidden": 8}),
}
FOR_HOPPER = [(workload, variant) for workload, variant in CUDA if variant.only_architecture and workload.name in CASES]

pytestmark = [needs_compiler, pytest.mark.slow]


def of_configs(workload, variant) -> list[Agreement]:
    """Of every config, in both orders, at the workload's case."""
    case = CASES[workload.name]
    program = build(variant, kernels(variant, [case]))
    return [
        agreement
        for _, config, _ in cells(variant, [case])
        for agreement in agreements(workload, variant, case, config, get_args(Order), program=program)
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("workload", "variant"), FOR_HOPPER, ids=name_of)
def test_a_stage_that_is_filled_again_was_free(workload, variant):
    if original := same_as(variant, lambda of, each: of.name in CASES):
        pytest.skip(f"{workload.name} {variant.name} is the code of {original}")
    found = of_configs(workload, variant)
    assert found
    for agreement in found:
        assert agreement.ok, agreement.detail


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "left_out", "instead", "what"),
    [
        ("v12_wgmma_tf32", "mbarrier_wait(&pipeline.empty[ring.stage], ring.parity ^ 1);", "", "deadlock"),
        ("v12_wgmma_tf32", "mbarrier_wait(&pipeline.full[ring.stage], ring.parity);", "", "deadlock"),
        ("v12_wgmma_tf32", "wgmma_wait<1>();", "", "relative L2 error"),
        ("v12_wgmma_tf32", "if (step + turn > 0) release(previous);", "release(ring.stage);", "relative L2 error"),
        ("v12_wgmma_tf32", "sizeof now", "sizeof now + 16", "deadlock"),
        ("v12_wgmma_tf32", "operand + 2 * i", "operand + 4 * i", "relative L2 error"),
        ("v16_cluster_sums", "cluster_sync();  // the sums of all blocks are there", "", "not finite"),
        ("v16_cluster_sums", "cluster_sync();  // before a block ends", "//", "block 0 of the cluster has ended"),
        ("v18_cluster_sums_tf32", "mbarrier_wait_of_cluster(&summed, 0);", "", "of the cluster has ended"),
        ("v18_cluster_sums_tf32", "sizeof memory.sums", "sizeof memory.sums + 16", "deadlock"),
        ("v18_cluster_sums_tf32", "steps_of((k + parts - 1) / parts)", "steps_of(k / parts / 2)", "relative L2 error"),
        ("v17_turned_columns", "mbarrier_wait(&pipeline.empty[before.stage], before.parity);", "", "deadlock"),
        ("v17_turned_columns", "pipeline.empty[before.stage]", "pipeline.empty[ring.stage]", "deadlock"),
        ("v17_turned_columns", "fetch(number - 1 + kStages, ", "fetch(number + kStages, ", "relative L2 error"),
        ("v20_equal_shares", "other < block; ++other", "other < block - 1; ++other", "relative L2 error"),
    ],
)
def test_a_rung_that_lacks_a_wait_or_counts_wrongly_does_not_pass(name, left_out, instead, what):
    workload = next(workload for workload in WORKLOADS if workload.name == "mlp_gemm")
    right = workload.variant(name)
    assert left_out in right.source_text
    wrong = replace(right, source=right.source_text.replace(left_out, instead), configs=right.configs[:1])
    try:
        details = "".join(agreement.detail for agreement in of_configs(workload, wrong))
    except EmulationError as error:
        details = str(error)
    assert what in details
