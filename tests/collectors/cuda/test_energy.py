"""Energy by a counter, on a GPU made of a power curve: `fake_counter`."""

import statistics

import pytest

from tests.collectors.cuda.fake_counter import IDLE_W, FakeGpu, FakeLoop
from warpladder.collectors.core.bench import Energy
from warpladder.collectors.cuda import energy as metering
from warpladder.collectors.cuda.energy import EnergyError, Meter

#: A product that takes 372 us at 700 W, of which 124 W are idle: 214.272 mJ an execution.
WATTS, EXECUTION_NS = 700.0, 372_000.0
ACTIVE_MJ = (WATTS - IDLE_W) * EXECUTION_NS * 1e-6


def meter(gpu: FakeGpu) -> Meter:
    return Meter(gpu.read_mj, gpu.clock_ns, gpu.sleep)


def looped(gpu: FakeGpu, watts: float = WATTS, execution_ns: float = EXECUTION_NS, idle_w: float = IDLE_W) -> Energy:
    loop = FakeLoop(gpu, watts, execution_ns)
    energy = meter(gpu).energy(loop, idle_w)
    loop.end()
    return energy


def millijoules(energy: Energy) -> float:
    return (energy.energy_mj / energy.duration_ns - energy.idle_w * 1e-6) * energy.execution_ns


@pytest.mark.parametrize("period_s", [0.02, 0.06, 0.1])
def test_the_energy_is_that_of_the_work_above_idle_at_any_period_of_the_counter(period_s: float) -> None:
    energy = looped(FakeGpu(period_s, noise=0))
    assert millijoules(energy) == pytest.approx(ACTIVE_MJ, rel=0.003)
    assert 1.0e9 <= energy.duration_ns <= (1.0 + period_s + 0.01) * 1e9
    assert (energy.execution_ns, energy.held_clock_mhz) == (EXECUTION_NS, FakeLoop.clock_mhz)


def test_the_start_of_a_loop_and_the_time_to_the_next_update_are_not_in_its_energy() -> None:
    """Another time since the last update, and the power before the loop, change nothing."""
    found = []
    for ahead_s in (0.0, 0.013, 0.049, 0.098):
        gpu = FakeGpu(0.1, noise=0)
        gpu.sleep(1 + ahead_s)
        found.append(millijoules(looped(gpu)))
    assert max(found) / min(found) < 1.002


def test_idle_power_is_that_of_a_gpu_without_work() -> None:
    gpu = FakeGpu(0.1, noise=0)
    busy = FakeLoop(gpu, WATTS, EXECUTION_NS)
    gpu.sleep(1)
    busy.end()
    started_s = gpu.now_s
    assert meter(gpu).idle_w() == pytest.approx(IDLE_W, rel=0.002)
    least_s = metering.IDLE_SETTLE_S + metering.IDLE_S
    assert least_s <= gpu.now_s - started_s <= least_s + 0.25


def test_the_energy_of_an_execution_of_more_than_a_second_is_read_after_its_end() -> None:
    gpu = FakeGpu(0.1, noise=0)
    energy = looped(gpu, execution_ns=3.2e9)
    assert 3.2 <= gpu.now_s <= 3.4
    assert millijoules(energy) == pytest.approx((WATTS - IDLE_W) * 3200, rel=0.003)


def test_loops_of_identical_code_differ_by_less_than_1_percent() -> None:
    gpu = FakeGpu(0.1, noise=0.01, drift=0.01)
    found = [millijoules(looped(gpu)) for _ in range(12)]
    assert max(found) / min(found) < 1.02, "single loops"
    assert statistics.median(found[0::2]) / statistics.median(found[1::2]) == pytest.approx(1, abs=0.01)


def test_a_counter_that_stands_still_is_told() -> None:
    gpu = FakeGpu(stopped=True)
    with pytest.raises(EnergyError, match=r"stood still for 2 s at 1,000,000 mJ"):
        looped(gpu)
    assert gpu.now_s < 3
    with pytest.raises(EnergyError, match="stood still"):
        meter(gpu).idle_w()


def test_a_counter_that_falls_once_costs_a_part_of_a_loop_and_no_figure() -> None:
    gpu = FakeGpu(0.1, noise=0, falls=[9])
    energy = looped(gpu)
    assert gpu.now_s == pytest.approx(2.0, abs=0.1), "the stretch starts again at 1.0 s"
    assert millijoules(energy) == pytest.approx(ACTIVE_MJ, rel=0.003)


def test_a_counter_that_falls_again_and_again_is_told() -> None:
    with pytest.raises(EnergyError, match=r"went back 3 times, at last from [0-9,]+ to [0-9,]+ mJ"):
        looped(FakeGpu(0.1, falls=range(4, 100, 4)))
