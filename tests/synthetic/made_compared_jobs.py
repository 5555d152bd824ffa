"""Small tables of jobs with known changes, as an import of a job writes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from tests.synthetic.made_runs import row, run_row, write_tables

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@dataclass(frozen=True)
class MadeJob:
    """A job whose kernels run one after the other, and then meet in a collective that all ranks leave at once.

    Attributes:
        ranks, iterations: their numbers.
        kernels: name -> time an iteration and rank in us.
        slow: (kernel, rank) -> factor of its time; rank None for all ranks.
        jitter: standard deviation of the logarithm of the time of a kernel in an iteration on a rank.
        device: name of the GPU.
    """

    ranks: tuple[int, ...] = tuple(range(8))
    iterations: tuple[int, ...] = (3, 4, 5, 6, 7)
    kernels: Mapping[str, float] = field(
        default_factory=lambda: {f"kernel_{place:02}": 100.0 + 40 * place for place in range(24)}
    )
    slow: Mapping[tuple[str, int | None], float] = field(default_factory=dict)
    jitter: float = 0.01
    seed: int = 1
    device: str = "NVIDIA H100"

    def slower(self, kernel: str, factor: float, rank: int | None = None) -> "MadeJob":
        """The same job with a kernel that takes longer."""
        return replace(self, slow={**self.slow, (kernel, rank): factor})

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables `iterations`, `rank_kernels` and `collectives`."""
        rng = np.random.default_rng(self.seed)
        shape = len(self.kernels), len(self.ranks), len(self.iterations)
        times = 1000 * np.array(list(self.kernels.values()))[:, None, None] * np.exp(self.jitter * rng.standard_normal(shape))
        names = list(self.kernels)
        for (kernel, rank), factor in self.slow.items():
            times[names.index(kernel), slice(None) if rank is None else self.ranks.index(rank)] *= factor
        times = times.astype(np.int64)
        compute = times.sum(axis=0)
        wait = compute.max(axis=0) - compute
        transfer = (400_000 * (1 + 0.01 * rng.random(len(self.iterations)))).astype(np.int64)
        iterations, kernels, collectives = [], [], []
        for r, rank in enumerate(self.ranks):
            for t, number in enumerate(self.iterations):
                at = {"rank": rank, "iteration": number}
                reduce = int(wait[r, t] + transfer[t])
                span = int(compute[r, t]) + reduce
                start = 10**8 * number
                figures = {"busy_ns": span, "compute_ns": int(compute[r, t]), "communication_ns": reduce, "exposed_ns": reduce}
                waits = {"collectives": 1, "wait_ns": int(wait[r, t]), "last": int(wait[r, t] == 0)}
                iterations.append(
                    row("iterations", **at, start_ns=start, end_ns=start + span + 50_000, span_ns=span, **figures, **waits)
                )
                of_kernels = {**dict(zip(names, times[:, r, t].tolist(), strict=True)), REDUCE: reduce}
                kernels += [
                    row(
                        "rank_kernels",
                        **at,
                        name=name,
                        kind="communication" if name == REDUCE else "compute",
                        count=1,
                        total_ns=total,
                    )
                    for name, total in of_kernels.items()
                ]
                collectives.append(row("collectives", **at, kernel=REDUCE, match=t, wait_ns=int(wait[r, t])))
        return {
            "iterations": pd.DataFrame(iterations),
            "rank_kernels": pd.DataFrame(kernels),
            "collectives": pd.DataFrame(collectives),
        }

    def write(self, data_dir: Path, run_id: str) -> Path:
        """Write the job as a run. Its label is the id."""
        info = {**run_row(run_id, run_id), "kind": "job", "device_name": self.device}
        return write_tables(data_dir, info, self.tables())
