"""The time in which other programs have the processor of a sample."""

import subprocess
import sys
from dataclasses import replace

from warpladder.collectors.core.bench import Reading
from warpladder.collectors.host.host_clock import HostBench, HostOperation
from warpladder.workloads.api import Case, Workload


def sampled() -> Reading:
    """A sample of no work, as if others had taken the processor for most of it."""
    case = Case({"n": 1}, 0, None)
    bench = HostBench(Workload("w", "W", (case,), (), lambda _: ({}, {}), lambda *_: {}, lambda *_: {}, {}), case, {})
    reading = bench.sample(HostOperation(dict), bench.passes[0], None)
    return replace(reading, duration_ns=1000, processor_ns=10, interrupted=True)


def test_the_time_of_others_does_not_count_where_no_child_process_can_have_worked_in_it() -> None:
    assert min(sampled().without_others().duration_ns for _ in range(20)) == 10
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert {sampled().without_others().duration_ns for _ in range(20)} == {1000}
    child.communicate()
    assert min(sampled().without_others().duration_ns for _ in range(20)) == 10
