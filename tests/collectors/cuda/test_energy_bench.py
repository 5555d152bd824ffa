"""The loop of batches that a bench keeps queued, on a made queue, and what it asks of NVML. A real GPU is in `test_energy_on_gpu`."""

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda.fake_counter import IDLE_W, FakeGpu
from tests.collectors.cuda.fake_cuda import compiled, install
from warpladder.collectors import cuda as ours
from warpladder.collectors.core.bench import NO_GPU_STATE, Energy, Failed, Unavailable
from warpladder.collectors.cuda.energy import EnergyError, Meter
from warpladder.workloads import registry
from warpladder.workloads.api import LibraryVariant

WATTS = 650.0
NAME = "warpladder.collectors.cuda.gpu_state"


class QueuedGpu(FakeGpu):
    """A made GPU that draws power while its queue holds work, and lowers its clock from 1,980 to 1,410 MHz after `BOOST_S`."""

    BOOST_S = 0.2
    ends_s = 0.0
    stream, sm_count = "the stream", 2

    def enqueue(self, seconds: float) -> None:
        self.ends_s = max(self.now_s, self.ends_s) + seconds

    def sleep(self, seconds: float) -> None:
        while seconds > 0:
            step = min(seconds, 0.0002)
            self.work_w = WATTS if self.now_s < self.ends_s else None
            super().sleep(step)
            seconds -= step

    def event(self) -> "_Event":
        return _Event(self)

    def read_clocks(self, into: np.ndarray) -> None:
        at_s = max(self.now_s, self.ends_s)
        cycles = 1.98e9 * min(at_s, self.BOOST_S) + 1.41e9 * max(at_s - self.BOOST_S, 0)
        into[:] = [(1 + round(cycles), 1 + round(at_s * 1e9))] * self.sm_count

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()


class _OnDevice(np.ndarray):
    def get(self) -> np.ndarray:
        return np.asarray(self)


class _Event:
    """Done when the work that was queued before it is."""

    def __init__(self, gpu: QueuedGpu) -> None:
        self._gpu, self.at_s = gpu, 0.0

    def record(self, stream: object) -> None:
        self.at_s = max(self._gpu.now_s, self._gpu.ends_s)

    @property
    def done(self) -> bool:
        return self._gpu.now_s >= self.at_s


def looped(monkeypatch: pytest.MonkeyPatch, gpu: QueuedGpu, *, batch: int, execution_s: float, host_s: float = 10e-6) -> Any:
    """A loop of batches, each of which the host needs `host_s` to queue."""
    bench = install(monkeypatch, [], "energy_bench")
    monkeypatch.setattr(bench.cupy.cuda, "Event", gpu.event)
    monkeypatch.setattr(bench.cupy, "zeros", lambda shape, dtype: np.zeros(shape, dtype).view(_OnDevice))
    monkeypatch.setattr(bench.cupy.cuda, "get_elapsed_time", lambda first, last: (last.at_s - first.at_s) * 1e3)

    def replay() -> None:
        gpu.sleep(host_s)
        gpu.enqueue(batch * execution_s)

    return bench._BatchLoop(gpu, SimpleNamespace(replay=replay, batch=batch, once_ns=execution_s * 1e9))


@pytest.mark.parametrize(("batch", "execution_s"), [(64, 2e-6), (1, 372e-6), (1, 0.08)])
def test_a_loop_keeps_the_device_at_work_and_knows_the_time_of_an_execution(
    monkeypatch: pytest.MonkeyPatch, batch: int, execution_s: float
) -> None:
    gpu = QueuedGpu(0.1, noise=0)
    loop = looped(monkeypatch, gpu, batch=batch, execution_s=execution_s)
    energy = Meter(gpu.read_mj, gpu.clock_ns, gpu.sleep).energy(loop, IDLE_W)
    assert not energy.starved
    assert energy.execution_ns == pytest.approx(execution_s * 1e9, rel=0.001)
    assert energy.energy_mj / energy.duration_ns * 1e6 == pytest.approx(WATTS, rel=0.003)
    left_s = gpu.ends_s - gpu.now_s
    assert 0 < left_s < 0.11 + 2.1 * batch * execution_s, "a few chunks are left, which the bench waits for"
    assert energy.held_clock_mhz == pytest.approx(1410, abs=0.1), "without what came before the first reading of the counter"


def test_a_loop_that_outlasts_the_readings_of_the_clocks_has_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = QueuedGpu(0.1, noise=0)
    loop = looped(monkeypatch, gpu, batch=1, execution_s=372e-6)
    monkeypatch.setitem(type(loop)._mark.__globals__, "_KEPT", 64)
    assert Meter(gpu.read_mj, gpu.clock_ns, gpu.sleep).energy(loop, IDLE_W).held_clock_mhz is None


def test_a_counter_that_is_slow_to_read_leaves_no_gap_in_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = QueuedGpu(0.1, noise=0)
    loop = looped(monkeypatch, gpu, batch=1, execution_s=2.7e-3)

    def read_mj() -> int:
        gpu.sleep(0.009)
        return gpu.read_mj()

    energy = Meter(read_mj, gpu.clock_ns, gpu.sleep).energy(loop, IDLE_W)
    assert not energy.starved
    assert energy.execution_ns == pytest.approx(2.7e6, rel=0.001)
    assert energy.energy_mj / energy.duration_ns * 1e6 == pytest.approx(WATTS, rel=0.02)


def test_a_host_that_launches_too_slowly_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = QueuedGpu(0.1, noise=0)
    loop = looped(monkeypatch, gpu, batch=1, execution_s=5e-6, host_s=20e-6)
    energy = Meter(gpu.read_mj, gpu.clock_ns, gpu.sleep).energy(loop, IDLE_W)
    assert energy.starved
    assert energy.execution_ns > 3 * 5_000


class NVMLError(Exception):
    """As pynvml raises it."""


def state_of(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> ModuleType:
    """The module `gpu_state` on an NVML with one GPU that gives these answers; an exception is raised."""

    def ask(name: str) -> Any:
        def answer(*arguments: object) -> Any:
            if isinstance(answers[name], Exception):
                raise answers[name]
            return answers[name](*arguments) if callable(answers[name]) else answers[name]

        return answer

    nvml = ModuleType("pynvml")
    usual = {
        "nvmlInit": None,
        "nvmlDeviceGetHandleByPciBusId": "a GPU",
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "a GPU",
    }
    answers = {
        **usual,
        "nvmlDeviceGetTotalEnergyConsumption": 12_345,
        "nvmlDeviceGetMigMode": NVMLError("Not Supported"),
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetGraphicsRunningProcesses": NVMLError("Not Supported"),
        "nvmlSystemGetProcessName": lambda pid: f"/bin/p{pid}",
        **answers,
    }
    vars(nvml).update({name: ask(name) for name in answers}, NVMLError=NVMLError, NVML_DEVICE_MIG_ENABLE=1)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    monkeypatch.delattr(ours, "gpu_state", raising=False)
    found = importlib.import_module(NAME)
    sys.modules.pop(NAME, None)
    vars(ours).pop("gpu_state", None)
    return found


def test_the_counter_is_read_in_millijoules(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(monkeypatch).GpuState("0000:01:00.0")
    assert (state.energy_mj(), state.energy_problem()) == (12_345, "")


def test_a_gpu_without_a_counter_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(monkeypatch, nvmlDeviceGetTotalEnergyConsumption=NVMLError("Not Supported")).GpuState("0000:01:00.0")
    assert state.energy_problem() == (
        "NVML reads no energy of this GPU (Not Supported); GPUs of compute capability 7.0 or more have a counter"
    )


@pytest.mark.parametrize(("mode", "divided"), [([1, 1], True), ([0, 1], False), (NVMLError("Not Supported"), False)])
def test_a_gpu_that_mig_divides_is_refused(monkeypatch: pytest.MonkeyPatch, mode: Any, divided: bool) -> None:
    module = state_of(monkeypatch, nvmlDeviceGetMigMode=mode)
    assert module.all_divided() == divided
    assert bool(module.GpuState("0000:01:00.0").energy_problem()) == divided


def test_other_processes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    using = [SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=7)]
    graphics = [SimpleNamespace(pid=3), SimpleNamespace(pid=7)]
    module = state_of(monkeypatch, nvmlDeviceGetComputeRunningProcesses=using, nvmlDeviceGetGraphicsRunningProcesses=graphics)
    assert module.GpuState("").others() == ("/bin/p3 (process 3)", "/bin/p7 (process 7)")


def test_in_a_container_a_single_process_of_another_number_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = SimpleNamespace(pid=os.getpid() + 1)
    assert state_of(monkeypatch, nvmlDeviceGetComputeRunningProcesses=[one]).GpuState("").others() == ()
    nameless = state_of(
        monkeypatch,
        nvmlDeviceGetComputeRunningProcesses=[one, SimpleNamespace(pid=5)],
        nvmlSystemGetProcessName=NVMLError("Not Found"),
    )
    assert "a process (process 5)" in nameless.GpuState("").others()


def bench_on(monkeypatch: pytest.MonkeyPatch, meter: Callable[[], Any]) -> Any:
    """A bench of energy on a CuPy that computes nothing, with `meter` in place of the meter of its GPU."""
    module = install(monkeypatch, [], "energy_bench")
    events = module.CudaBench.__init__.__globals__
    device = events["current_device"].__globals__
    state = SimpleNamespace(read=lambda: dict.fromkeys(NO_GPU_STATE, 4), others=lambda: ("/bin/p7 (process 7)",))
    for where in (events, device):
        monkeypatch.setitem(where, "compile_variant", compiled)
    monkeypatch.setitem(device, "GpuState", lambda bus: state)
    monkeypatch.setattr(device["CudaDevice"], "fingerprint", lambda device, array: 0)
    monkeypatch.setattr(module, "_meter", meter)
    workload = registry.load("gan_tconv")
    case = workload.case("images=3")
    return module.EnergyBench(workload, case, workload.make_inputs(case, np.random.default_rng(0)))


def library(**options: Any) -> LibraryVariant:
    return LibraryVariant("cudnn", "cuDNN", "peer", prepare=lambda *arguments: lambda: None, **options)


def test_a_sample_has_the_energy_of_its_loop_the_state_of_the_gpu_and_its_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meter = SimpleNamespace(energy=lambda loop, idle_w: Energy(700_000, 10**9, loop.advance() + 33_000.4, idle_w))
    bench = bench_on(monkeypatch, lambda: (meter, IDLE_W))
    operation = bench.prepare(library(), {})
    reading = bench.sample(operation, bench.passes[0], 1)
    assert reading.energy == Energy(700_000, 10**9, 33_000.4, IDLE_W, beside=("/bin/p7 (process 7)",))
    assert (reading.duration_ns, reading.inputs, reading.throttled) == (33_000, None, False), "a power limit slows a long loop"
    assert reading.state["throttle_reasons"] == 4


@pytest.mark.parametrize(("starved", "loops"), [([True, False], 2), ([True] * 4, 3)])
def test_a_loop_whose_device_ran_out_of_work_is_taken_again_at_most_twice(
    monkeypatch: pytest.MonkeyPatch, starved: list[bool], loops: int
) -> None:
    readings = [Energy(number, 10**9, 33_000.0, IDLE_W, each) for number, each in enumerate(starved)]
    taken = iter(readings)
    bench = bench_on(monkeypatch, lambda: (SimpleNamespace(energy=lambda loop, idle_w: next(taken)), IDLE_W))
    reading = bench.sample(bench.prepare(library(), {}), bench.passes[0], 1)
    assert reading.energy is not None
    assert (reading.energy.energy_mj, reading.energy.starved) == (loops - 1, starved[loops - 1])


def test_without_a_counter_no_variant_can_run_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise EnergyError("NVML reads no energy of this GPU")

    with pytest.raises(Unavailable, match="NVML reads no energy of this GPU"):
        bench_on(monkeypatch, missing).prepare(library(), {})


def test_a_counter_that_fails_in_a_loop_skips_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(loop: Any, idle_w: float) -> Energy:
        raise EnergyError("it stood still")

    bench = bench_on(monkeypatch, lambda: (SimpleNamespace(energy=fail), IDLE_W))
    operation = bench.prepare(library(), {})
    with pytest.raises(Failed, match="it stood still") as caught:
        bench.sample(operation, bench.passes[0], 1)
    assert caught.value.status == "skipped"
