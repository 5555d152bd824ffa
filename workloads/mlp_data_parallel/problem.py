"""The training step of `mlp_training`, its batch shared among ranks that all have the whole network.

The step is linear in the gradient, and the gradient is a mean over samples. So each of R ranks takes the step of its own rows, N_r of the
batch's N, by the kernels that one process has, at the learning rate R N_r / N times the batch's; what all ranks have then for new
weights is averaged:

    (1 / R) sum over r of (w - rate R N_r / N (g_r + regularization w))  =  w - rate (g + regularization w)

with g_r the mean gradient of the rank's rows and g that of the batch. Where the batch splits evenly, each rank's step is exactly that
of `mlp_training` on its rows. As many bytes are summed as of the gradient: 4 times 795,010 for the report's network.
"""

from collections.abc import Sequence
from typing import Final

from warpladder.workloads.api import TOLERANCE, Case, CaseSet, Part, split_evenly
from warpladder.workloads.mlp_training.problem import ODD_BATCH, make_case, rate_of, size_of

#: The report's: a batch of 800 for any number of processes (its figure 3), and 400 for each of 1, 2 and 4 (figure 4, table 3); and 8,192 for
#: each, which leaves communication a small share.
BATCHES: Final = (100, 400, 800, 1600, 8192, 16384, 32768)
_LARGE: Final = 8192

#: As in `mlp_training`: one process sums up to 32768 samples, cut into slices of at most 6,560, within what 8192 in a row err by.
TOLERANCES: Final = {**TOLERANCE, "fp32": 2e-6, "3xtf32": 3e-6}


def shares(case: Case, ranks: int) -> Sequence[Part]:
    """Samples one after another, a share a rank, sizes one apart at most; every rank has all weights.

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
