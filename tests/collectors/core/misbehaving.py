"""A workload whose variants do everything that a variant should not, for the tests of containment."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, HostVariant, Workload


def good(case: Case, inputs: Any, outputs: Any) -> None:
    np.multiply(inputs["x"], 2, out=outputs["y"])


def better(case: Case, inputs: Any, outputs: Any) -> None:
    np.add(inputs["x"], inputs["x"], out=outputs["y"])


def does_nothing(case: Case, inputs: Any, outputs: Any) -> None:
    pass


def forgets_the_last(case: Case, inputs: Any, outputs: Any) -> None:
    outputs["y"][:-1] = 2 * inputs["x"][:-1]


def wrong_type(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {"y": (2 * inputs["x"]).astype(np.float16)}


def wrong_shape(case: Case, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {"y": 2 * inputs["x"][:-1]}


def raises(case: Case, inputs: Any, outputs: Any) -> None:
    raise ValueError("no such tile")


def out_of_memory(case: Case, inputs: Any, outputs: Any) -> None:
    raise MemoryError("64 GiB wanted")


def aborts(case: Case, inputs: Any, outputs: Any) -> None:
    os.abort()


def is_killed(case: Case, inputs: Any, outputs: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(case: Case, inputs: Any, outputs: Any) -> None:
    time.sleep(3600)


_calls = 0


def raises_later(case: Case, inputs: Any, outputs: Any) -> None:
    global _calls
    _calls += 1
    if _calls > 8:
        raise RuntimeError("the ninth call fails")
    good(case, inputs, outputs)


def remembers_on_disk(case: Case, inputs: Any, outputs: Any) -> None:
    """Right in the first process, which keeps its answer in the file that the variable names; a later process reads it."""
    name = os.environ.get("WARPLADDER_TEST_ANSWER", "")
    file = Path(name) / f"{case.name}.npy"
    if name and file.exists() and not (file.parent / str(os.getpid())).exists():
        outputs["y"][:] = np.load(file)
        return
    good(case, inputs, outputs)
    if name:
        (file.parent / str(os.getpid())).touch()
        np.save(file, outputs["y"])


FUNCTIONS = (
    good,
    better,
    does_nothing,
    forgets_the_last,
    wrong_type,
    wrong_shape,
    raises,
    out_of_memory,
    aborts,
    is_killed,
    hangs,
    raises_later,
    remembers_on_disk,
)


def make_inputs(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal(case.params["n"], dtype=np.float32)}


def no_inputs(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    if case.params["n"] == 7:
        raise RuntimeError("no inputs for 7")
    return make_inputs(case, rng)


WORKLOAD = Workload(
    name="misbehaving",
    title="Doubling, done badly",
    cases=tuple(Case({"n": n}, flops=n, min_bytes=8 * n, sets=("quick",), size_rank=n) for n in (1000, 7)),
    variants=tuple(HostVariant(function.__name__, function.__name__, "host", run=function) for function in FUNCTIONS),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=no_inputs,
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    host_baseline="good",
)
