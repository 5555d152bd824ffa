"""The clock that multiprocessors held, of readings written by hand; `test_cuda_events` has that of a GPU."""

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import install_events
from warpladder.collectors.cuda.held_clock import mean_clock_mhz
from warpladder.workloads import registry
from warpladder.workloads.api import LibraryVariant


def test_a_clock_is_the_mean_of_the_multiprocessors_that_both_readings_have() -> None:
    """In 1 s, one makes 1.4e9 cycles, and another one 1.5e9. The third has no second reading, and the fourth no first."""
    first = np.array([(7, 100), (10**12, 100), (5, 100), (0, 0)], np.uint64)
    last = np.array([(7 + 14 * 10**8, 10**9 + 100), (10**12 + 15 * 10**8, 10**9 + 100), (0, 0), (9, 10**9)], np.uint64)
    assert mean_clock_mhz(first, last) == pytest.approx(1450)
    assert mean_clock_mhz(first[2:], last[2:]) is None


def test_a_hot_sample_has_the_clock_that_was_held_and_a_cold_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5e6 cycles in 1 ms on each of 132 multiprocessors."""
    events = install_events(monkeypatch, [])
    workload = registry.load("gan_tconv")
    case = workload.case("images=3")
    monkeypatch.setattr(events.CudaBench, "checks_stream", False)
    bench = events.CudaBench(workload, case, workload.make_inputs(case, np.random.default_rng(0)))
    library = LibraryVariant("cudnn", "cuDNN", "peer", prepare=lambda *arguments: lambda: None)
    operation = bench.prepare(library, {})
    bench.device._clocks.values[:] = [[(1_000, 1_000)] * 132, [(1_501_000, 1_001_000)] * 132]
    assert bench.sample(operation, events.HOT, None).state["held_clock_mhz"] == 1500
    assert bench.sample(operation, events.COLD, None).state.get("held_clock_mhz") is None
