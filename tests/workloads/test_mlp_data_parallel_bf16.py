"""The shared training step in mixed precision: ranks that exchange contributions through each other's memory take the step of the whole batch."""

import numpy as np
import pytest

from tests.emulator.emulator import Program, build, needs_compiler
from warpladder.collectors.core.agreement import compare
from warpladder.collectors.core.verify import widened_outputs
from warpladder.workloads.api import Buffers, Case, CudaVariant, kernels_of
from warpladder.workloads.mlp_data_parallel_bf16.workload import WORKLOAD
from warpladder.workloads.mlp_training_bf16.problem import make_case

pytestmark = pytest.mark.slow

#: An odd number of samples, and several tiles, the last of which are not full.
CASE = make_case({"batch": 37, "inputs": 136, "hidden": 136})
INPUTS = WORKLOAD.make_inputs(CASE, np.random.default_rng(7))


def exchanging() -> CudaVariant:
    variant = WORKLOAD.variant("v02_peer_memory")
    assert isinstance(variant, CudaVariant)
    return variant


def shares(ranks: int) -> list[tuple[Case, Buffers]]:
    """The case of each rank, and its inputs."""
    found = []
    for part in WORKLOAD.shares(CASE, ranks):  # type: ignore[misc]
        rows = slice(part.first, part.first + part.case.params["batch"])
        found.append((part.case, {name: array[rows] if name in ("x", "y") else array for name, array in INPUTS.items()}))
    return found


def test_the_shares_have_the_bytes_and_the_learning_rates_of_their_rows() -> None:
    cases = [case for case, _ in shares(2)]
    assert [case.params["rate"] for case in cases] == pytest.approx([32 * 2 * 19 / 37, 32 * 2 * 18 / 37])
    assert cases[0] == make_case(cases[0].params), "in BF16"


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_definition_of_the_shares_averages_to_that_of_the_batch(ranks: int) -> None:
    expected = WORKLOAD.reference(CASE, INPUTS)
    found = [WORKLOAD.reference(case, inputs) for case, inputs in shares(ranks)]
    for name in ("new_w1", "new_b1", "new_w2", "new_b2", "new_w1_bf16"):
        np.testing.assert_allclose(sum(each[name] for each in found) / ranks, expected[name], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([each["losses"] for each in found]), expected["losses"], rtol=1e-10)


class Rank:
    """A rank in emulation, whose memory by which ranks exchange stays from step to step."""

    def __init__(self, program: Program, number: int, ranks: int, columns: int) -> None:
        self.program, self.number, self.config = program, number, {"columns": columns}
        self.case, self.inputs = shares(ranks)[number]
        self.scratch = {
            name: np.zeros(buffer.shape, buffer.storage)
            for name, buffer in program.variant.scratch(self.case, self.config).items()
        }
        inbox = self.scratch.pop("inbox")
        self.inbox = np.zeros((ranks, *inbox.shape), inbox.dtype)

    def step(self, inboxes: list[np.ndarray]) -> Buffers:
        """Run the step, which writes to the memory of all ranks. Returns the outputs."""
        outputs = {name: np.zeros(buffer.shape, buffer.storage) for name, buffer in WORKLOAD.buffers(self.case)[1].items()}
        memory = {f"inbox@{rank}": inbox for rank, inbox in enumerate(inboxes)}
        launches = kernels_of(self.program.variant.launches(self.case, self.config))
        self.program.run(launches, self.inputs, {**outputs, **self.scratch, **memory}, rank=self.number)
        return outputs


def program_of(columns: int) -> Program:
    launches = kernels_of(exchanging().launches(CASE, {"columns": columns}))
    return build(exchanging(), [launch.kernel for launch in launches])


def contributions(program: Program, ranks: int, columns: int, steps: int) -> list[np.ndarray]:
    """What each rank sends to rank 0 in the last of so many steps. The ranks run alone: every word that they wait for is there."""
    sent = []
    for number in range(ranks):
        rank = Rank(program, number, ranks, columns)
        to = [np.zeros_like(rank.inbox) for _ in range(ranks)]
        for _ in range(steps):
            to[0][...] = 0
            to[number][...] = 1
            rank.step(to)
        sent.append(to[0][number].copy() if number else np.zeros_like(rank.inbox[0]))
    return sent


@needs_compiler
@pytest.mark.parametrize(
    ("columns", "ranks", "steps"),
    [(128, 2, 2), *(pytest.param(*each, marks=pytest.mark.thorough) for each in ((128, 2, 1), (128, 3, 3), (256, 2, 1)))],
)
def test_what_ranks_send_one_another_makes_the_step_of_the_batch_and_leaves_the_memory_empty(
    columns: int, ranks: int, steps: int
) -> None:
    program = program_of(columns)
    sent = contributions(program, ranks, columns, steps)
    turn = (steps - 1) % 2
    assert all(np.any(each[turn]) and not np.any(each[1 - turn]) for each in sent[1:]), "steps take turns"
    first = Rank(program, 0, ranks, columns)
    first.scratch["turns"][...] = steps - 1
    memory = [np.stack(sent), *(np.zeros_like(first.inbox) for _ in sent[1:])]
    outputs = first.step(memory)
    assert not np.any(memory[0]), "all that came has been taken"
    expected = WORKLOAD.reference(CASE, INPUTS)
    rows = len(outputs["losses"])
    declared = WORKLOAD.buffers(first.case)[1]
    verdict = compare(
        widened_outputs(outputs, declared), {**expected, "losses": expected["losses"][:rows]}, WORKLOAD.tolerance["bf16"]
    )
    assert verdict.ok, verdict.detail
    assert verdict.rel_l2_error > 1e-3, "contributions are rounded to BF16"
