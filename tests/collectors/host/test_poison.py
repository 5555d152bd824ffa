"""Memory of the host that is poisoned before an execution."""

import os
import subprocess
import sys

import numpy as np
import pytest

from warpladder.collectors.host import host_clock
from warpladder.collectors.host.host_clock import HostBench
from warpladder.workloads.api import Buffer, Case, Workload

MIB = 1 << 20
#: Prints whether a block of 40 MiB comes back with what it held, and what is found of smaller ones.
PROBE = """
import numpy as np
from warpladder.collectors.host import host_clock

np.full(40 << 20, 7, np.uint8)
print(np.empty(40 << 20, np.uint8).any(), host_clock.large_blocks_come_back())
"""


def blocks_filled(monkeypatch: pytest.MonkeyPatch, mib: int) -> list[int]:
    """Bytes of the outputs for which free memory is filled, where an output has so many MiB."""
    filled: list[int] = []
    monkeypatch.setattr(host_clock, "poison_free_memory", lambda like, *_: filled.extend(each.nbytes for each in like.values()))
    case = Case({"n": 1}, 0, None)
    buffers = {"x": Buffer((1,), "float32")}, {"y": Buffer((mib * MIB,), "uint8")}
    workload = Workload("copies", "Copies", (case,), (), lambda _: buffers, lambda *_: {}, lambda *_: {}, {})
    bench = HostBench(workload, case, {"x": np.zeros(1, np.float32)})
    bench.poison(False)
    assert (bench.outputs["y"] == 255).all()
    return filled


@pytest.mark.parametrize(("mib", "comes_back", "filled"), [(1, False, [MIB]), (40, False, []), (40, True, [40 * MIB])])
def test_large_blocks_that_go_back_to_the_system_are_not_filled(
    monkeypatch: pytest.MonkeyPatch, mib: int, comes_back: bool, filled: list[int]
) -> None:
    monkeypatch.setattr(host_clock, "large_blocks_come_back", lambda: comes_back)
    assert blocks_filled(monkeypatch, mib) == filled


#: Prints whether the memory of the outputs was written before each sample, of a variant that takes them and of one that allocates.
SAMPLES = """
import numpy as np
from warpladder.collectors.host.host_clock import HostBench, HostOperation
from warpladder.workloads.api import Buffer, Case, Workload

case, buffers = Case({"n": 1}, 0, None), ({"x": Buffer((1,), "float32")}, {"y": Buffer((100_000,), "float64")})
workload = Workload("sums", "Sums", (case,), (), lambda _: buffers, lambda *_: {}, lambda *_: {}, {})
bench = HostBench(workload, case, {"x": np.zeros(1, np.float32)})
before = []

def takes():
    before.append(np.isnan(bench.outputs["y"]).all())
    bench.outputs["y"][:] = 1

def allocates():
    result = np.empty(100_000)
    before.append(np.isnan(result).all())
    result[:] = 1
    return {"y": result}

for run in (takes, allocates):
    operation = HostOperation(run, outputs=lambda returned: returned)
    bench.run(operation)
    before.clear()
    for _ in range(4):
        np.full(100_000, 1.0)  # what other work leaves behind
        bench.sample(operation, bench.passes[0], None)
        bench.release()
    print(*before)
"""


@pytest.mark.slow
def test_the_outputs_of_a_sample_were_written_right_before_it_whether_it_takes_them_or_allocates() -> None:
    """Else a variant that takes `out` finds its memory in no cache, where one that allocates is handed the block that was overwritten last, and
    `np.add(x, x, out=out)` takes twice as long as `x + x`."""
    ended = subprocess.run([sys.executable, "-c", SAMPLES], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True"] * 8


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tunables", "come_back"), [({}, False), ({"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "4294967295"}, True)]
)
def test_what_is_found_of_large_blocks_is_true_of_larger_ones(tunables: dict[str, str], come_back: bool) -> None:
    """In a process of its own, for each block that is freed may change where the next one comes from."""
    found = subprocess.run(
        [sys.executable, "-c", PROBE], env={**os.environ, **tunables}, capture_output=True, text=True, check=True
    ).stdout
    assert found.split() == [str(come_back)] * 2


#: Prints the pages of which the memory of 8 MiB consists when it is taken for the second time.
FAULTS = """
import resource
import numpy as np
from warpladder.collectors.host.host_clock import HostBench
from warpladder.workloads.api import Case, Workload

HostBench(Workload("w", "W", (), (), lambda _: ({}, {}), lambda *_: {}, lambda *_: {}, {}), Case({"n": 1}, 0, None), {})
np.full(8 << 20, 1, np.uint8)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.full(8 << 20, 1, np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
def test_a_process_keeps_the_memory_of_large_temporary_arrays() -> None:
    """Without a large block that was freed before, the system gives 2,048 new pages each time."""
    ended = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 100
