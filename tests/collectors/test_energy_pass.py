"""`record --energy`: a further pass of loops, here of functions of the host on a GPU made of a power curve."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.core.test_threads import LIMITS_HERE, total, workload_of
from tests.collectors.cuda.fake_counter import IDLE_W, FakeGpu, FakeLoop
from tests.doc_pages import ROOT
from tests.synthetic import made_runs
from warpladder.collectors import choice, further_passes
from warpladder.collectors.core import threads
from warpladder.collectors.core.bench import NO_GPU_STATE, Failed, Operation, Pass, Reading, Unavailable
from warpladder.collectors.core.plan import HeldWorkload, PlanError, Request, held, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.cuda.energy import EnergyError, Meter
from warpladder.collectors.further_passes import FurtherPass
from warpladder.collectors.host.host_clock import HostBench
from warpladder.collectors.wiring import collector_of
from warpladder.dashboard.compare import within_run as energies
from warpladder.dashboard.core.run_data import load
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.workloads.api import Params, Variant

ROUNDS = 6
HOT = Pass("device", "hot")
WATTS, EXECUTION_NS = 700.0, 372_000.0


def same_code(case: Any, inputs: Any, outputs: Any) -> Any:
    return total(case, inputs, outputs)


def more_work(case: Any, inputs: Any, outputs: Any) -> Any:
    return total(case, inputs, outputs)


def unmetered(case: Any, inputs: Any, outputs: Any) -> Any:
    return total(case, inputs, outputs)


#: Nanoseconds of an execution. `more_work` does 3 % more, at the same power.
EXECUTIONS_NS = {"total": EXECUTION_NS, "same_code": EXECUTION_NS, "more_work": 1.03 * EXECUTION_NS}


class MeteredBench(HostBench):
    """Reads the energy of the made GPU `gpu`; a variant that is not in `EXECUTIONS_NS` finds its counter standing still.

    Attributes:
        at_case: called with the case's name before each sample.
    """

    gpu = FakeGpu()
    at_case: Callable[[str], object] = staticmethod(lambda case: None)
    passes = (HOT,)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._name = arguments[1].name
        self._variants: dict[int, str] = {}

    def prepare(self, variant: Variant, config: Params) -> Operation:
        operation = super().prepare(variant, config)
        self._variants[id(operation)] = variant.name
        return operation

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        type(self).at_case(self._name)
        gpu, variant = self.gpu, self._variants[id(operation)]
        gpu.stopped = variant not in EXECUTIONS_NS
        loop = FakeLoop(gpu, WATTS, EXECUTIONS_NS.get(variant, EXECUTION_NS))
        try:
            energy = Meter(gpu.read_mj, gpu.clock_ns, gpu.sleep).energy(loop, IDLE_W)
        except EnergyError as error:
            raise Failed("skipped", str(error)) from error
        finally:
            gpu.stopped = False
            loop.end()
        return Reading(round(energy.execution_ns), state=NO_GPU_STATE, energy=energy)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> type[MeteredBench]:
    """A bench on a GPU that gets warm, with a noisy counter that is updated every 100 ms."""
    monkeypatch.setattr(MeteredBench, "gpu", FakeGpu(0.1, noise=0.006, drift=0.02))
    return MeteredBench


def recorded(folder: Path, bench: type[MeteredBench], *variants: Callable[..., Any], stop: Stop | None = None) -> store.Run:
    """A run with times by the host's clock and the energies of a further pass."""
    workload = workload_of(*variants)
    loaded = [(workload, HeldWorkload(workload.name))]
    stop = stop or Stop()

    def passed(data_dir: Path, collector: Any, limits: Any) -> str:
        plan = make_plan(Request(), limits, loaded)
        recorder = Recorder(plan, collector, start_child=lambda modules: threads.start(collector, modules))
        return recorder.record(data_dir, "", [], stop)[0]

    metered = replace(collector_of("host_clock"), name=choice.ENERGY, make_benches=lambda: {"host": bench})
    loops = replace(LIMITS_HERE, max_rounds=ROUNDS, seconds=0.01, cell_timeout_s=30.0)
    further = FurtherPass("--energy", "reads energy", choice.ENERGY, ("energy",), frozenset({Source.ENERGY}))
    with held([workload]):
        run_id = further_passes.record(
            folder,
            "",
            lambda data_dir: passed(data_dir, collector_of("host_clock"), LIMITS_HERE),
            {further: lambda run, data_dir: passed(data_dir, metered, loops)},
            stop,
        )
    return store.open_run(folder / run_id)


def findings(run: store.Run) -> list[str]:
    return list(run.table("diagnostics").query("source == 'energy'")["text"])


@pytest.mark.thorough
def test_identical_code_is_tied_within_1_percent_and_3_percent_more_work_is_seen(
    tmp_path: Path, bench: type[MeteredBench]
) -> None:
    run = recorded(tmp_path, bench, total, same_code, more_work)
    rows = run.table("energy")
    assert len(rows) == 2 * ROUNDS * 4, "two cases, three variants and the twin of the first"
    assert set(run.table("samples")["scope"]) != {"device"}, "the samples are those of the pass that takes the times"
    for case in ("n=10", "n=1000"):
        by_variant = energies.energies_of_case(load(run), "sums", case).set_index("variant")
        assert by_variant["energy_verdict"].to_dict() == {"total": "", "same_code": "tied", "more_work": "more"}
        assert by_variant.loc["same_code", "energy_ratio"] == pytest.approx(1, abs=0.01)
        assert by_variant.loc["more_work", "energy_ratio"] == pytest.approx(1.03, abs=0.01)
        assert 1 < by_variant["energy_noise"].iloc[0] < 1.01
        assert by_variant.loc["total", "energy_mj"] == pytest.approx((WATTS - IDLE_W) * EXECUTION_NS * 1e-6, rel=0.03)
    assert findings(run) == []
    (told,) = run.table("diagnostics").query("source == 'tracing'")["text"]
    assert told == "the energy is of loops in a further pass; the times are those of host_clock, in short samples"


@pytest.mark.thorough
def test_a_cell_whose_energy_cannot_be_read_is_named_and_keeps_its_time(tmp_path: Path, bench: type[MeteredBench]) -> None:
    run = recorded(tmp_path, bench, total, unmetered)
    assert set(run.table("energy")["variant"]) == {"total"}
    assert set(run.table("results")["status"]) == {"ok"} and "unmetered" in set(run.table("samples")["variant"])
    still = "NVML's counter of energy stood still for 2 s at "
    assert len(findings(run)) == 2
    assert all(text.startswith("no energy of sums/unmetered/n=") and still in text for text in findings(run))


@pytest.mark.slow
def test_a_gpu_without_a_counter_costs_no_times(
    tmp_path: Path, bench: type[MeteredBench], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> Operation:
        raise Unavailable("NVML reads no energy of this GPU")

    monkeypatch.setattr(bench, "prepare", refuse)
    run = recorded(tmp_path, bench, total, same_code)
    assert run.table("energy").empty and set(run.table("results")["status"]) == {"ok"}
    assert findings(run) == ["no energy of sums/total/n=1000 and 3 more: NVML reads no energy of this GPU"]


@pytest.mark.thorough
def test_an_interruption_keeps_the_energy_of_finished_cases(
    tmp_path: Path, bench: type[MeteredBench], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop()
    monkeypatch.setattr(bench, "at_case", staticmethod(lambda case: case == "n=10" and stop.handle(signal.SIGINT, None)))
    run = recorded(tmp_path, bench, total, same_code, stop=stop)
    assert set(run.table("energy")["case"]) == {"n=1000"}, "the largest case comes first"
    assert set(run.table("samples")["case"]) == {"n=10", "n=1000"}
    assert findings(run) == ["no energy of sums/total/n=10 and 1 more: the run was interrupted before it"]


_KILLED = """
import os, pathlib, sys
from tests.collectors import test_energy_pass as tests
tests.MeteredBench.at_case = staticmethod(lambda case: case == "n=10" and os._exit(9))
tests.recorded(pathlib.Path(sys.argv[1]), tests.MeteredBench, tests.total, tests.same_code)
"""


@pytest.mark.thorough
def test_a_process_that_is_killed_in_its_loops_leaves_the_energy_of_finished_cases(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=ROOT, timeout=120).returncode == 9
    (line,) = salvage(tmp_path)
    ((run,), _) = store.list_runs([tmp_path])
    assert f"kept as run {run.run_id}" in line
    assert set(run.table("energy")["case"]) == {"n=1000"}
    assert set(run.table("samples")["case"]) == {"n=10", "n=1000"}


@pytest.mark.parametrize(
    ("collector", "gpus", "why"),
    [
        ("host_clock", 1, "--energy: host_clock times no work of a GPU that could be repeated"),
        ("cupti", 1, "--energy: cupti times no work"),
        ("cuda_events", 4, "--energy: NVML's counter is of one GPU; with --gpus 4 record without it"),
    ],
)
def test_energy_is_refused_where_no_counter_is_of_one_variant(collector: str, gpus: int, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        further_passes.energy_by(collector, gpus)


def test_energy_is_refused_on_a_divided_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "energy_problem", lambda: "the GPU is divided")
    with pytest.raises(PlanError, match="--energy: the GPU is divided"):
        further_passes.energy_by("cuda_events", 1)
    monkeypatch.setattr(choice, "energy_problem", lambda: None)
    assert further_passes.energy_by("cuda_events", 1).tables == ("energy",)


def test_six_rounds_of_the_fastest_config_of_each_variant_are_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "energy_problem", lambda: None)
    of = further_passes.energy_by("cuda_events", 1)
    chosen = further_passes.cells_of(of, store.open_run(made_runs.write(tmp_path)))
    assert chosen is not None
    cells, about = chosen
    assert not {cell.variant for cell in cells} & {"numpy", "numba_serial", "numba_parallel"}
    cases = len({(cell.workload, cell.case) for cell in cells})
    seconds = 15 + 7 + 1.5 * len(cells) + (len(cells) + cases) * 7 * 1.4
    assert about == f"cells whose energy is read: {len(cells)}, about {seconds:.0f} s: 6 rounds of a second or more a cell"
    request = further_passes.request_of(of, Request(max_rounds=50, processes=3), tmp_path)
    assert (request.max_rounds, request.processes, request.no_limit, request.cells) == (6, 1, True, tmp_path)
