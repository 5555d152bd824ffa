"""The step of `mlp_training_bf16` with its batch shared among ranks. Every rank has the whole network.

Rank r of R has a learning rate that is R N_r / N times that of the batch, as in `mlp_data_parallel`. Its contribution to the update is its rate
times its own gradient, and the update is the average of all contributions. Contributions go between ranks in BF16, as gradients do with the hook
`bf16_compress_hook` of PyTorch's DistributedDataParallel; the weights that they change are float32.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final

from warpladder.workloads.api import Case, CaseSet, Part
from warpladder.workloads.mlp_data_parallel import problem as in_float32
from warpladder.workloads.mlp_training.problem import ODD_BATCH
from warpladder.workloads.mlp_training_bf16 import problem as of_one_rank
from warpladder.workloads.mlp_training_bf16.problem import make_case

#: Roundings of a contribution besides those of a step: as it leaves a rank, and the sum of all.
_ROUNDINGS: Final = 2

#: As in `mlp_training_bf16`, with the roundings on the way between ranks.
TOLERANCES: Final = {**of_one_rank.TOLERANCES, "bf16": of_one_rank.ROUNDOFF * sqrt(of_one_rank.ROUNDINGS + _ROUNDINGS)}


def shares(case: Case, ranks: int) -> Sequence[Part]:
    """The part of each rank, as in `mlp_data_parallel`. Raises NotShareable: there are fewer samples than ranks."""
    return [Part(make_case(part.case.params), part.first) for part in in_float32.shares(case, ranks)]


def cases() -> tuple[Case, ...]:
    """Batches of 400 and 16,384 rows, one between them, and an odd one that is verified but not charted."""
    sets: tuple[tuple[int, tuple[CaseSet, ...]], ...] = (
        (400, ("quick", "report", "full")),
        (1600, ("report", "full")),
        (16384, ("full",)),
    )
    charted = [make_case({"batch": batch}, of, rank) for rank, (batch, of) in enumerate(sets)]
    return (*charted, make_case({"batch": ODD_BATCH}, ("report", "full")))
