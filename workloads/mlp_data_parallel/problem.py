"""The training step of `mlp_training`, with its batch shared among ranks. Every rank has the whole network.

The step is linear in the gradient, and the gradient is a mean over samples. Rank r of R ranks has N_r of the batch's N rows. It
takes the step on its rows with the kernels of a single process, and its learning rate is R N_r / N times that of the batch.
Then the new weights of all ranks are averaged:

    (1 / R) sum over r of (w - rate R N_r / N (g_r + regularization w))  =  w - rate (g + regularization w)

Here g_r is the mean gradient of the rank's rows and g that of the batch. If the batch splits evenly, each rank's step is
exactly that of `mlp_training` on its rows. The all-reduce moves 3,180,040 bytes for the student report's network, the size of the
gradient.
"""

from collections.abc import Sequence
from typing import Final

from warpladder.workloads.api import TOLERANCE, Case, CaseSet, Part, split_evenly
from warpladder.workloads.mlp_training.problem import ODD_BATCH, make_case, rate_of, size_of

#: The student report has a batch of 800 for any number of processes (figure 3), and 400 for each of 1, 2 and 4 processes (figure
#: 4, table 3). With 8,192 for each process, communication takes a small share of the time.
BATCHES: Final = (100, 400, 800, 1600, 8192, 16384, 32768)
_LARGE: Final = 8192

#: As in `mlp_training`. One process sums up to 32,768 samples, in slices of at most 6,560. The error is below that of 8,192
#: samples in a row.
TOLERANCES: Final = {**TOLERANCE, "fp32": 2e-6, "3xtf32": 3e-6}


def shares(case: Case, ranks: int) -> Sequence[Part]:
    """The part of each rank: samples that follow one another. Sizes differ by one at most. Every rank has all weights.

    Raises:
        NotShareable: there are fewer samples than ranks.
    """
    batch, rate = size_of(case).batch, rate_of(case)
    return [
        Part(make_case({**case.params, "batch": rows, "rate": rate * ranks * rows / batch}), first)
        for first, rows in split_evenly(batch, ranks, "samples")
    ]


def cases() -> tuple[Case, ...]:
    """Batches, one of them for a quick look, and an odd one that is verified but not charted."""

    def sets(batch: int) -> tuple[CaseSet, ...]:
        return ("full",) if batch >= _LARGE else ("quick", "report", "full") if batch == BATCHES[0] else ("report", "full")

    charted = [make_case({"batch": batch}, sets(batch), rank) for rank, batch in enumerate(BATCHES)]
    return (*charted, make_case({"batch": ODD_BATCH}, ("report", "full")))
