"""A recording contains what goes wrong in a cell, and is whole or not at all."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pandas as pd
import pytest

from tests.collectors.core.recordings import MISBEHAVING, QUICK_CASES, Recording
from warpladder.collectors.core.cells import result_row
from warpladder.collectors.core.messages import Rows
from warpladder.collectors.core.plan import LIMITS, Request, make_plan, variant_row
from warpladder.collectors.core.recorder import Recorder, _Answers
from warpladder.collectors.cuda.disassembly import DisassemblyError
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.workloads import registry

# Recorded once, not by each worker.
pytestmark = [pytest.mark.xdist_group("record"), pytest.mark.slow]
LIMITS_HERE = replace(LIMITS["quick"], seconds=0.05, cell_timeout_s=8.0, max_rounds=20)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    data_dir = tmp_path_factory.mktemp("data")
    plan = make_plan(Request(files=[MISBEHAVING]), LIMITS_HERE)
    run_id, interrupted = Recorder(plan, collector_of("host_clock")).record(data_dir, "bad ones", ["record", "/home/me/bad.py"])
    assert not interrupted
    return store.open_run(data_dir / run_id)


@pytest.fixture(scope="module")
def results(run: store.Run) -> pd.DataFrame:
    return run.table("results").query("case == 'n=1000'").set_index("variant")


@pytest.mark.parametrize(
    ("variant", "status", "detail"),
    [
        ("good", "ok", "operation hot: "),
        ("better", "ok", "operation hot: "),
        ("does_nothing", "wrong_result", "1000 of 1000 elements of y are not finite"),
        ("forgets_the_last", "wrong_result", "1 of 1000 elements of y are not finite"),
        ("wrong_type", "wrong_result", "output y has type float16, not float32"),
        ("wrong_shape", "wrong_result", "output y has shape (999,), and the reference's has (1000,)"),
        ("raises", "launch_error", "misbehaving.py:39: ValueError: no such tile"),
        ("out_of_memory", "out_of_memory", "MemoryError: 64 GiB wanted"),
        ("aborts", "launch_error", "its process died (signal 6)"),
        ("is_killed", "out_of_memory", "killed (signal 9)"),
        ("hangs", "timeout", "no progress for 8 s"),
        ("raises_later", "launch_error", "misbehaving.py:65: RuntimeError: the ninth call fails"),
    ],
)
def test_what_goes_wrong_in_a_cell_becomes_its_verdict(results: pd.DataFrame, variant: str, status: str, detail: str) -> None:
    assert results.loc[variant, "status"] == status
    assert detail in results.loc[variant, "detail"]


def test_every_cell_has_one_row_and_only_good_cells_have_samples(run: store.Run) -> None:
    results = run.table("results")
    assert not results.duplicated(["variant", "config", "case"]).any()
    assert len(results) == 2 * 13
    assert set(run.table("samples").query("twin == 0")["variant"]) >= {"good", "better"}
    assert not set(run.table("samples")["variant"]) & {"does_nothing", "hangs", "aborts", "raises"}


def test_a_case_that_cannot_be_set_up_fails_by_itself(run: store.Run) -> None:
    failed = run.table("results").query("case == 'n=7'")
    assert set(failed["status"]) == {"launch_error"}
    assert set(failed["detail"]) == {"misbehaving.py:105: RuntimeError: no inputs for 7"}


def test_samples_that_are_none_fail_the_cells_that_had_ended_well() -> None:
    """A variant can replace the clock that they are read from."""
    job = make_plan(Request(files=[MISBEHAVING], variants=["good", "better", "raises"], cases=["n=1000"]), LIMITS_HERE).jobs[0]
    answers = _Answers(job)
    good, _, raises = job.cells
    answers.take(Rows("results", [result_row(good, "ok", ""), result_row(raises, "wrong_result", "not finite")]))
    answers.take(Rows("samples", [{"duration_ns": 1.5}]))
    assert len(answers.samples()) == 0
    found = {row["variant"]: row["status"] for row in answers.tables["results"]}
    assert found == {"good": "launch_error", "better": "launch_error", "raises": "wrong_result"}
    assert answers.tables["results"][-1]["detail"].startswith("table samples: ")


def test_a_good_cell_is_verified_on_every_element(results: pd.DataFrame) -> None:
    assert results.loc["good", "verified_elements"] == 1000
    assert results.loc["good", "rel_l2_error"] == 0


def test_the_baseline_runs_twice_in_every_round(run: store.Run) -> None:
    samples = run.table("samples").query("case == 'n=1000'")
    twins = samples[samples["twin"] == 1]
    assert set(twins["variant"]) == {"good"}
    assert set(twins["round"]) == set(samples.query("variant == 'good' and twin == 0")["round"])


def test_the_run_tells_what_it_was_without_paths_of_the_machine(run: store.Run) -> None:
    assert run.info["command"] == "warpladder record bad.py"
    assert run.info["label"] == "bad ones"
    assert run.info["device_count"] == 0
    assert set(run.table("ceilings")["name"]) >= {"host_copy", "host_fma"}
    assert (run.table("ceilings")["value"] > 0).all()


@pytest.mark.thorough
def test_an_interrupt_keeps_the_cases_that_were_finished(tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(MISBEHAVING), "--variants", "good,hangs", "--case", "n=1000")
    recording.wait_for_ceilings()
    recording.process.send_signal(signal.SIGINT)
    assert recording.wait() == 130, recording.stderr
    run = store.open_run(recording.data_dir / recording.stdout.splitlines()[-1])
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])
    assert set(run.table("results")["status"]) == {"skipped"}
    assert not list(recording.data_dir.glob(".*"))


@pytest.mark.thorough
def test_an_interrupt_in_the_middle_of_a_case_ends_the_child_without_a_word(tmp_path: Path) -> None:
    """The child is told by its pipe."""
    recording = Recording(tmp_path, "tensor_transpose", "--set", "report")
    recording.wait_for_cases(1)
    recording.process.send_signal(signal.SIGINT)
    assert recording.wait() == 130, recording.stderr
    assert "Traceback" not in recording.stderr
    assert (recording.data_dir / recording.stdout.splitlines()[-1]).is_dir()


@pytest.mark.thorough
def test_ctrl_c_between_cases_keeps_the_finished_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(Request(files=[MISBEHAVING], variants=["good"]), LIMITS_HERE)
    recorder = Recorder(plan, collector_of("host_clock"))
    measure_job = recorder._measure_job

    def interrupted_on_the_second(job, process):  # type: ignore[no-untyped-def]
        if job.case == "n=7":
            os.kill(os.getpid(), signal.SIGINT)
        measure_job(job, process)

    monkeypatch.setattr(recorder, "_measure_job", interrupted_on_the_second)
    run_id, number = recorder.record(tmp_path, "", [])
    assert number == signal.SIGINT
    results = store.open_run(tmp_path / run_id).table("results").set_index("case")
    assert results.loc["n=1000", "status"] == "ok"
    assert results.loc["n=7", "detail"] == "the run was interrupted before it"


def test_the_rounds_of_a_case_are_taken_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLADDER_TEST_ANSWER", str(tmp_path))
    limits = replace(LIMITS["quick"], seconds=0.3, max_rounds=9, processes=3, budget_s=None)
    plan = make_plan(Request(files=[MISBEHAVING], variants=["good", "better", "remembers_on_disk"]), limits)
    run_id, _ = Recorder(plan, collector_of("host_clock")).record(tmp_path / "data", "", [])
    run = store.open_run(tmp_path / "data" / run_id)
    samples = run.table("samples").query("case == 'n=1000' and variant == 'good' and twin == 0")
    # Rounds are numbered over all processes, so that no two samples share one.
    assert samples["round"].tolist() == list(range(9))
    assert samples["process"].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 2]
    results = run.table("results").query("case == 'n=1000'").set_index("variant")
    assert results.loc["better", "status"] == "ok"
    assert "; process 2: operation hot: " in results.loc["better", "detail"]
    # Wrong in the second process only: the times of the first one do not count either.
    assert results.loc["remembers_on_disk", "status"] == "wrong_result"
    assert results.loc["remembers_on_disk", "detail"].startswith("process 1: ")
    assert "remembers_on_disk" not in set(run.table("samples")["variant"])


@pytest.mark.usefixtures("usual_processes")
@pytest.mark.parametrize(
    ("request_", "processes"),
    [
        (Request(), 3),
        (Request(case_set="report"), 3),
        (Request(case_set="full"), 3),
        (Request(cases=["n=7"]), 3),
        (Request(processes=1), 1),
        (Request(processes=2), 2),
        (Request(max_rounds=15), 3),
        (Request(max_rounds=7), 2),
        (Request(max_rounds=6), 1),
        (Request(max_rounds=1), 1),
    ],
    ids=str,
)
def test_three_processes_take_the_rounds_where_nothing_else_is_asked(request_: Request, processes: int) -> None:
    plan = make_plan(replace(request_, names=["conv2d"]))
    assert plan.limits.processes == processes
    rounds = [plan.limits.of_process(process) for process in range(processes)]
    assert sum(each.max_rounds for each in rounds) == plan.limits.max_rounds
    assert rounds[0].min_rounds == min(6, plan.limits.max_rounds)
    assert all(each.min_rounds >= 1 for each in rounds)


@pytest.mark.thorough
@pytest.mark.usefixtures("usual_processes")
@pytest.mark.parametrize(
    ("first_s", "budget_s", "processes"), [(0.2, 60.0, 3), (2.0, 5.0, 2), (1.0, 1.5, 1), (2.0, 1.5, 1)], ids=str
)
def test_another_process_starts_only_if_it_has_the_time_that_the_first_one_took(
    first_s: float, budget_s: float, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process may use the whole budget, so that it reaches as many cases as one process alone."""
    plan = make_plan(Request(files=[MISBEHAVING], variants=["good"], max_rounds=12))
    recorder = Recorder(replace(plan, limits=replace(plan.limits, budget_s=budget_s, seconds=0.05)), collector_of("host_clock"))
    measure_job = recorder._measure_job
    jobs = len(plan.jobs)

    def slowed(job, process):  # type: ignore[no-untyped-def]
        measure_job(job, process)
        time.sleep(first_s / jobs)

    monkeypatch.setattr(recorder, "_measure_job", slowed)
    run_id, _ = recorder.record(tmp_path, "", [])
    run = store.open_run(tmp_path / run_id)
    samples = run.table("samples")
    assert samples["process"].nunique() == processes
    assert samples.query("twin == 0").groupby(["case", "variant", "scope"]).size().min() >= 6
    said = run.table("diagnostics").query(f"source == '{Source.FEWER_PROCESSES}'")["text"].tolist()
    assert any(f"of {processes} and not of 3 processes" in text for text in said) == (processes < 3)


@pytest.mark.parametrize(
    ("workload", "variant", "transfer"),
    [
        ("gan_tconv", "v05_mixed", "pageable"),
        ("gan_tconv", "v06_pinned", "pinned"),
        ("gan_tconv", "v07_overlapped", "overlapped"),
        ("gan_tconv", "cudnn", "pageable"),  # its inputs are put on the device as those of a kernel
        ("mlp_training", "v01_products_only", None),  # a program of the host copies by itself
        ("gan_tconv", "numpy", None),
    ],
)
def test_how_a_variant_copies_stands_beside_it(workload: str, variant: str, transfer: str | None) -> None:
    found = registry.load(workload)
    assert variant_row(found, found.variant(variant))["transfer"] == transfer


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DisassemblyError("there is no nvdisasm; install it"), "is not kept: there is no nvdisasm; install it"),
        (KeyError("symbol"), "is not kept: KeyError: 'symbol'"),
    ],
)
def test_machine_code_that_cannot_be_had_costs_no_times(tmp_path: Path, error: Exception, reason: str) -> None:
    def fail(plan: object, cells: object) -> NoReturn:
        raise error

    plan = make_plan(Request(files=[QUICK_CASES], cases=["n=100"]), replace(LIMITS_HERE, processes=1))
    run_id, _ = Recorder(plan, replace(collector_of("host_clock"), machine_code=fail)).record(tmp_path, "", ["record"])
    run = store.open_run(tmp_path / run_id)
    assert len(run.table("samples"))
    said = run.table("diagnostics")
    found = said[said["source"] == Source.DISASSEMBLY]
    assert list(found["severity"]) == ["info"] and found["text"].iloc[0].endswith(reason)
