"""A thread of this process measures like a process, and what hangs or ends in it is told."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from warpladder.collectors.core import threads
from warpladder.collectors.core.plan import LIMITS, HeldWorkload, Request, held, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

pytestmark = pytest.mark.slow

LIMITS_HERE = replace(LIMITS["quick"], seconds=0.05, cell_timeout_s=3.0, max_rounds=20)
Outputs = dict[str, Any]


def total(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
    return {"sums": inputs["x"].sum(axis=1)}


def wrong(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
    return {"sums": inputs["x"].sum(axis=1) * 1.01}


def changes_its_input(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
    inputs["x"][0] = 1.0
    return total(case, inputs, outputs)


def spins(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
    while True:
        time.sleep(0.001)


def exits(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
    sys.exit("no licence")


def workload_of(*variants: Callable[..., Any]) -> Workload:
    return Workload(
        "sums",
        "Sums of rows",
        tuple(Case({"n": n}, 9 * n, 44 * n, ("quick",), rank) for rank, n in enumerate((10, 1000))),
        tuple(HostVariant(each.__name__, each.__name__, "host", run=each) for each in variants),
        lambda case: ({"x": Buffer((case.params["n"], 10))}, {"sums": Buffer((case.params["n"],))}),
        lambda case, rng: {"x": rng.random((case.params["n"], 10), np.float32)},
        lambda case, inputs: {"sums": inputs["x"].sum(axis=1, dtype=np.float64)},
        host_baseline=variants[0].__name__,
    )


def record(folder: Path, *variants: Callable[..., Any], stop: Stop | None = None) -> store.Run:
    workload = workload_of(*variants)
    plan = make_plan(Request(), LIMITS_HERE, [(workload, HeldWorkload(workload.name))])
    collector = collector_of("host_clock")
    with held(plan.workloads):
        recorder = Recorder(plan, collector, start_child=lambda modules: threads.start(collector, modules))
        run_id, _ = recorder.record(folder, "", [], stop)
    return store.open_run(folder / run_id)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "warpladder"]
    assert not threads.why_not()


def statuses(run: store.Run) -> pd.DataFrame:
    return run.table("results").query("case == 'n=1000'").set_index("variant")


def test_a_thread_verifies_and_samples_in_rounds_with_a_twin(tmp_path: Path) -> None:
    run = record(tmp_path, total, wrong, changes_its_input)
    found = statuses(run)
    assert dict(found["status"]) == {"total": "ok", "wrong": "wrong_result", "changes_its_input": "wrong_result"}
    assert "0.01" in found.loc["wrong", "detail"] and "input x" in found.loc["changes_its_input", "detail"]
    samples = run.table("samples").query("case == 'n=1000'")
    assert set(samples["variant"]) == {"total"} and set(samples["twin"]) == {0, 1}
    assert set(run.table("ceilings")["name"]) >= {"host_copy", "host_fma"}


def test_a_loop_without_end_is_ended_and_the_others_are_measured(tmp_path: Path) -> None:
    found = statuses(record(tmp_path, total, spins))
    assert dict(found["status"]) == {"total": "ok", "spins": "timeout"}
    assert found.loc["spins", "detail"] == "no progress for 3 s, so it was ended"


def test_a_variant_that_exits_ends_neither_the_process_nor_the_run(tmp_path: Path) -> None:
    found = statuses(record(tmp_path, total, exits))
    assert dict(found["status"]) == {"total": "ok", "exits": "launch_error"}
    assert "SystemExit: no licence" in found.loc["exits", "detail"]


@pytest.mark.thorough
def test_a_call_that_cannot_be_ended_says_to_restart_and_nothing_more_is_measured_beside_it(tmp_path: Path) -> None:
    release = threading.Event()

    def waits(case: Case, inputs: Outputs, outputs: Outputs) -> None:
        release.wait()

    try:
        found = record(tmp_path, total, waits).table("results").set_index(["variant", "case"])
        assert found.loc[("waits", "n=1000"), "status"] == "timeout"
        assert "cannot be ended; restart the kernel" in found.loc[("waits", "n=1000"), "detail"]
        assert found.loc[("total", "n=10"), "status"] == "skipped"
        assert "still runs in this process; restart the kernel" in found.loc[("total", "n=10"), "detail"]
        assert "restart" in threads.why_not()
    finally:
        release.set()
    deadline = time.monotonic() + 5
    while threads.why_not() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_an_interrupt_ends_the_thread_at_its_next_step_and_keeps_the_finished_case(tmp_path: Path) -> None:
    stop, seen = Stop(), []

    def slow(case: Case, inputs: Outputs, outputs: Outputs) -> Outputs:
        seen.append(case.name)
        if case.name == "n=10" and not stop.number:  # the smaller case comes second
            stop.handle(2, None)
        time.sleep(0.2 if stop.number else 0.01)
        return total(case, inputs, outputs)

    run = record(tmp_path, total, slow, stop=stop)
    found = run.table("results").set_index(["variant", "case"])["status"]
    assert found.to_dict() == {
        ("total", "n=1000"): "ok", ("slow", "n=1000"): "ok", ("total", "n=10"): "skipped", ("slow", "n=10"): "skipped",
    }  # fmt: skip
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])
    assert seen.count("n=10") < 10 < seen.count("n=1000")
