"""A workload whose variants leave processes behind, in every way there is, and print."""

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

_SPIN = "while True: pass"
_left = False


def leaves_processes(case: Case, inputs: Any, outputs: Any) -> None:
    """A child, one in a session of its own, and one that a process which is gone has started: a daemon."""
    global _left
    if not _left:
        _left = True
        subprocess.Popen([sys.executable, "-S", "-c", _SPIN])
        subprocess.Popen([sys.executable, "-S", "-c", _SPIN], start_new_session=True)
        daemon = f"import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n{_SPIN}"
        subprocess.run([sys.executable, "-S", "-c", daemon], check=True)
        os.write(1, b"printed without a line feed")
    np.multiply(inputs["x"], 2, out=outputs["y"])


def hangs(case: Case, inputs: Any, outputs: Any) -> None:
    time.sleep(3600)


WORKLOAD = Workload(
    name="forking",
    title="Doubling",
    cases=(
        Case({"n": 100}, flops=100, min_bytes=800, sets=("quick",)),
        Case({"n": 101}, flops=101, min_bytes=808, sets=("quick",)),
    ),
    variants=tuple(HostVariant(run.__name__, run.__name__, "host", run=run) for run in (leaves_processes, hangs)),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    host_baseline="leaves_processes",
)
