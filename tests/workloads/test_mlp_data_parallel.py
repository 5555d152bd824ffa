"""The shared training step: what all ranks write, averaged, is the step of the whole batch."""

import numpy as np
import pytest

from tests.emulator.emulator import build, needs_compiler
from warpladder.collectors.core.agreement import compare
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CudaVariant, kernels_of
from warpladder.workloads.mlp_data_parallel.workload import WORKLOAD
from warpladder.workloads.mlp_training.problem import make_case

pytestmark = pytest.mark.slow

#: Odd in all directions, and vectors over several tiles.
SIZES = ({"batch": 19, "inputs": 67, "hidden": 131}, {"batch": 37, "inputs": 196, "hidden": 36})


def averaged_over(ranks: int, case: Case, step) -> dict[str, np.ndarray]:  # type: ignore[no-untyped-def]
    """The ranks' outputs averaged. `step(case of a share, its inputs)` gives those of one."""
    inputs = WORKLOAD.make_inputs(case, np.random.default_rng(7))
    total: dict[str, np.ndarray] = {}
    for part in WORKLOAD.shares(case, ranks):  # type: ignore[misc]
        rows = slice(part.first, part.first + part.case.params["batch"])
        share = {name: array[rows] if name in ("x", "y") else array for name, array in inputs.items()}
        for name, array in step(part.case, share).items():
            total[name] = total.get(name, 0) + array / ranks
    return total


def reference_of(case: Case) -> dict[str, np.ndarray]:
    return dict(WORKLOAD.reference(case, WORKLOAD.make_inputs(case, np.random.default_rng(7))))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("params", SIZES)
def test_the_definition_of_the_shares_averages_to_that_of_the_batch(params: dict[str, int], ranks: int) -> None:
    case = make_case(params)
    expected = reference_of(case)
    for name, array in averaged_over(ranks, case, WORKLOAD.reference).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-10, atol=1e-12)


def test_without_its_own_learning_rate_an_uneven_share_would_be_wrong() -> None:
    case = make_case(SIZES[0])
    wrong = averaged_over(2, case, lambda share, inputs: WORKLOAD.reference(case, inputs))
    assert not compare(wrong, reference_of(case), 100 * WORKLOAD.tolerance["fp32"]).ok


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("chunks", [1, 2])
def test_the_overlapped_kernels_of_all_ranks_average_to_the_step_of_the_batch(chunks: int) -> None:
    check_kernels(WORKLOAD.variant("v03_overlapped"), {"blocks": 528, "chunks": chunks})


@needs_compiler
def test_the_fused_kernels_of_all_ranks_average_to_the_step_of_the_batch() -> None:
    check_kernels(registry.load("mlp_training").variant("v04_fused"), {"blocks": 528})  # which v01 and v02 include


def check_kernels(variant, config) -> None:  # type: ignore[no-untyped-def]
    assert isinstance(variant, CudaVariant)
    cases = [make_case(params) for params in SIZES]
    program = build(variant, sorted({each.kernel for case in cases for each in kernels_of(variant.launches(case, config))}))

    def step(share: Case, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        buffers = {**WORKLOAD.buffers(share)[1], **variant.scratch(share, config)}
        written = {name: np.full(buffer.shape, np.nan, buffer.dtype) for name, buffer in buffers.items()}
        program.run(kernels_of(variant.launches(share, config)), inputs, written)
        return {name: written[name].astype(np.float64) for name in WORKLOAD.buffers(share)[1]}

    for case in cases:
        for ranks in (2, 3):
            verdict = compare(averaged_over(ranks, case, step), reference_of(case), WORKLOAD.tolerance["fp32"])
            assert verdict.ok, f"{case.name} among {ranks}: {verdict.detail}"


def test_batches_are_the_reports_and_8192_a_rank_on_one_two_and_four() -> None:
    ranks = {case.params["batch"]: case.size_rank for case in WORKLOAD.cases}
    assert ranks == {100: 0, 400: 1, 800: 2, 1600: 3, 8192: 4, 16384: 5, 32768: 6, 37: None}
    assert {n * each for n in (1, 2, 4) for each in (400, 8192)} <= ranks.keys()


def test_the_host_leaves_large_batches_out() -> None:
    skip = WORKLOAD.variant("numpy").skip
    assert skip(make_case({"batch": 8192}), {}) is None
    assert skip(make_case({"batch": 16384}), {}) == (
        "too slow for this case: its time grows with the number of rows, so it is measured up to 8,192 rows"
    )
