"""Times the steps of a variant's first use, each in a fresh process: what is imported, compiled, loaded and handed over.

`python -m warpladder.collectors.cuda.first_use WORKLOAD VARIANT CASE` is such a process. Python, NumPy and the workload are there before
its clock starts. Then come the CUDA context, and the steps of the variant's `warpladder.workloads.declare.stepwise.Stepwise`.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import FirstUse
from warpladder.data.names import Phase
from warpladder.installation import IMPORT_ROOT
from warpladder.workloads import registry
from warpladder.workloads.declare.stepwise import Stepwise

#: Fresh processes with empty caches, and as many with the caches that they left; fewer once they took so many seconds.
MOST_PROCESSES: Final = 3
_ENOUGH_S: Final = 5.0
#: A process is ended after this many seconds.
LIMIT_S: Final = 110.0
#: Hand-overs of all arrays that the mean is taken of.
_HAND_OVERS: Final = 100
#: Where the driver keeps what it compiles of PTX; emptied with the caches of every route.
_DRIVER_CACHE: Final = "CUDA_CACHE_PATH"
#: Set by tools that look at every process; they would trace the fresh ones too.
_TOOLS: Final = ("NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH")


class FirstUseError(Exception):
    """A fresh process failed. The message says why."""


def first_uses(workload: str, variant: str, case: str, caches: tuple[str, ...]) -> Iterator[FirstUse]:
    """Time the first use in fresh processes: with empty caches, then with what those left there. Raises FirstUseError:
    a process failed.

    Args:
        workload, variant, case: names; the workload is one of the project's.
        caches: variables of the environment that name the variant's caches of compiled code.
    """
    if any(name in os.environ for name in _TOOLS):
        return
    command = [sys.executable, "-m", __name__, workload, variant, case]
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        place = Path(folder)
        for cache in ("cold", "hot"):
            started = time.monotonic()
            for number in range(MOST_PROCESSES):
                if cache == "cold":  # with its own empty folders; the hot processes share the folders of the last cold process
                    place = Path(folder, str(number))
                yield FirstUse(number, cache, _in_a_process(command, place, (*caches, _DRIVER_CACHE)))
                if time.monotonic() - started > _ENOUGH_S:
                    break


def _in_a_process(command: list[str], folder: Path, caches: tuple[str, ...]) -> Mapping[str, int]:
    """The times in ns by scope that a process prints."""
    environment = {**os.environ, **{name: str(folder / name.lower()) for name in caches}}
    for name in caches:
        Path(environment[name]).mkdir(parents=True, exist_ok=True)
    try:
        completed = subprocess.run(
            command,
            cwd=IMPORT_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FirstUseError(f"a fresh process was not done after {LIMIT_S:g} s") from None
    lines = completed.stdout.strip().splitlines()
    if completed.returncode or not lines:
        last = next(iter(completed.stderr.strip().splitlines()[-1:]), "it printed nothing")
        raise FirstUseError(f"a fresh process ended with status {completed.returncode}: {last[:300]}")
    times: Mapping[str, int] = json.loads(lines[-1])
    return times


# -- in the fresh process --------------------------------------------------------------------------------------------------


def time_steps(steps: Stepwise, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, Any], reference: Any) -> dict[str, int]:
    """Times in ns by scope of the steps of a first use, and of its first call. Raises FirstUseError: the outputs are
    wrong.

    CuPy makes the arrays. It is imported after the steps that need no array, so that none of them finds its libraries loaded.

    Args:
        steps: the variant, made for the case alone.
        reference: the right outputs by name.
    """
    times: dict[str, int] = {}

    def timed(scope: str, step: Callable[[], object]) -> None:
        started = time.perf_counter_ns()
        step()
        times[scope] = time.perf_counter_ns() - started

    timed(Phase.CONTEXT, _make_context)
    timed(Phase.IMPORT, steps.start)
    timed(Phase.COMPILE, steps.compile)
    if steps.loads:
        timed(Phase.LOAD, steps.load)
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    device_inputs = {name: cupy.asarray(array) for name, array in inputs.items()}
    device_outputs = {name: cupy.full(buffer.shape, np.nan, buffer.storage) for name, buffer in outputs.items()}
    stream.synchronize()

    def first_call() -> None:
        steps.take(device_inputs, device_outputs)
        steps()
        stream.synchronize()

    timed(Phase.FIRST_CALL, first_call)
    for name, right in reference.items():
        if not np.array_equal(device_outputs[name].get(), right):
            raise FirstUseError(f"output {name} of the first call is wrong")
    arrays = (*device_inputs.values(), *device_outputs.values())
    timed(Phase.HAND_OVER, lambda: [steps.hand_over(array) for _ in range(_HAND_OVERS) for array in arrays])
    times[Phase.HAND_OVER] //= _HAND_OVERS
    return times


def _make_context() -> None:
    """Make the context that all libraries share the current one, by the driver's own library. Raises FirstUseError: the
    driver refuses."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    calls: tuple[Callable[[], int], ...] = (
        lambda: driver.cuInit(0),
        lambda: driver.cuDeviceGet(ctypes.byref(device), 0),
        lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        lambda: driver.cuCtxSetCurrent(context),
    )
    for call in calls:
        if status := call():
            raise FirstUseError(f"the driver gives status {status}")


def main(workload_name: str, variant_name: str, case_name: str) -> None:
    """Print the times of the first use as JSON."""
    workload = registry.load(workload_name)
    variant, case = workload.variant(variant_name), workload.case(case_name)
    inputs = workload.make_inputs(case, np.random.default_rng(0))
    _, outputs = workload.buffers(case)
    steps = getattr(variant, "prepare")(case)  # noqa: B009
    print(json.dumps(time_steps(steps, inputs, outputs, workload.reference(case, inputs))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
