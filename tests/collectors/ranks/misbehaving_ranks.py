"""A workload shared among ranks whose variants do on one of them what none should, for the tests of containment."""

import os
import signal
import time
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, HostVariant, Part, Workload, split_evenly
from warpladder.workloads.declare.launches import ALONE


def world() -> Any:
    """Only where a variant runs: it starts MPI in its process."""
    from mpi4py import MPI

    return MPI.COMM_WORLD


def good(case: Case, inputs: Any, outputs: Any) -> None:
    np.multiply(inputs["x"], 2, out=outputs["y"])


def on_rank_1(does: Any) -> Any:
    def run(case: Case, inputs: Any, outputs: Any) -> Any:
        return (does if world().rank == 1 else good)(case, inputs, outputs)

    return run


def raises(case: Case, inputs: Any, outputs: Any) -> None:
    raise ValueError("no such tile")


def is_killed(case: Case, inputs: Any, outputs: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(case: Case, inputs: Any, outputs: Any) -> None:
    raise SystemExit(3)


def aborts(case: Case, inputs: Any, outputs: Any) -> None:
    os.abort()


def hangs(case: Case, inputs: Any, outputs: Any) -> None:
    time.sleep(3600)


def does_nothing(case: Case, inputs: Any, outputs: Any) -> None:
    pass


def wrong_shape(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {"y": 2 * inputs["x"][:-1]}


def raises_between_collectives(case: Case, inputs: Any, outputs: Any, communicator: Any = ALONE) -> None:
    """Rank 0 waits for rank 1, which does not come to the second one."""
    good(case, inputs, outputs)
    communicator.average([np.zeros(3, np.float32)])
    if communicator.rank == 1:
        raise ValueError("no gradient")
    communicator.average([np.zeros(3, np.float32)])


def sleeps(case: Case, inputs: Any, outputs: Any) -> None:
    """Rank 1 takes 20 ms longer."""
    time.sleep(0.001 + 0.02 * (world().rank == 1))
    good(case, inputs, outputs)


ON_RANK_1 = (raises, is_killed, leaves, aborts, hangs, does_nothing, wrong_shape)

WORKLOAD = Workload(
    name="misbehaving_ranks",
    title="Doubling, done badly by one rank",
    cases=tuple(Case({"n": n}, flops=n, min_bytes=8 * n, sets=("quick",), size_rank=n) for n in (1000, 2)),
    variants=(
        HostVariant("good", "good", "host", run=good),
        *(HostVariant(does.__name__, does.__name__, "host", run=on_rank_1(does)) for does in ON_RANK_1),
        HostVariant("raises_between", "raises between", "host", run=raises_between_collectives, communicates=True),
        HostVariant("sleeps", "sleeps", "host", run=sleeps),
    ),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    host_baseline="good",
    shares=lambda case, ranks: [
        Part(Case({"n": n}, flops=n, min_bytes=8 * n), first) for first, n in split_evenly(case.params["n"], ranks, "numbers")
    ],
)
