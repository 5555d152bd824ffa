"""Where the time of a recording goes: phases add up to the whole, within a process and in a run."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collectors.core.recordings import QUICK_CASES
from warpladder import recording
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.signals import Stop, Stopped
from warpladder.collectors.core.stopwatch import Stopwatch
from warpladder.collectors.cuda import compile_ahead
from warpladder.collectors.wiring import collector_of
from warpladder.dashboard.text import summary
from warpladder.data import store


def ticks(*times: int) -> Iterator[int]:
    return iter(times)


def test_a_phase_within_another_interrupts_it() -> None:
    clock = ticks(0, 3, 10, 14, 20, 21)
    watch = Stopwatch("waiting", lambda: next(clock))
    with watch.phase("verify"), watch.phase("samples", "device", "cold"):
        pass
    rows = watch.take_rows("work", "n=1", 2, 3)
    assert [(row["phase"], row["scope"], row["cache"], row["duration_ns"]) for row in rows] == [
        ("waiting", "", "", 3 + 1), ("verify", "", "", 7 + 6), ("samples", "device", "cold", 4)
    ]  # fmt: skip
    assert {(row["workload"], row["case"], row["gpus"], row["process"]) for row in rows} == {("work", "n=1", 2, 3)}


def test_time_that_others_counted_is_moved_away() -> None:
    clock = ticks(0, 10, 10)
    watch = Stopwatch("waiting", lambda: next(clock))
    watch.move(4)
    watch.move(5, "start")
    assert {row["phase"]: row["duration_ns"] for row in watch.take_rows()} == {"waiting": 1, "start": 5}
    assert watch.take_rows() == []


@pytest.mark.slow
def test_the_phases_of_a_run_add_up_to_its_time_and_hold_its_samples(tmp_path: Path) -> None:
    started = time.monotonic_ns()
    planned = recording.plan(
        recording.Order(Request(files=[QUICK_CASES], cases=["n=100", "n=101"], max_rounds=7, processes=2), tmp_path, [])
    )
    run_id, _ = Recorder(planned.work, collector_of("host_clock"), plan_ns=planned.plan_ns).record(tmp_path, "", [])
    whole_ns = time.monotonic_ns() - started
    run = store.open_run(tmp_path / run_id)
    phases, samples = run.table("phases"), run.table("samples")
    assert 0.8 * whole_ns < phases["duration_ns"].sum() <= whole_ns
    of_samples = phases[phases["phase"] == "samples"]
    assert of_samples["duration_ns"].sum() >= samples["duration_ns"].sum()
    cases = {(f"n={n}", process) for n in (100, 101) for process in (0, 1)}
    assert set(zip(of_samples["case"], of_samples["process"], strict=True)) == cases


def test_an_interrupted_run_tells_where_its_time_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: compile_ahead.Compilers, *_: object) -> None:
        time.sleep(0.06)
        raise Stopped

    monkeypatch.setattr(compile_ahead.Compilers, "wait_for", interrupted)
    planned = recording.plan(recording.Order(Request(files=[QUICK_CASES]), tmp_path, []))
    run_id, _ = Recorder(planned.work, collector_of("host_clock")).record(tmp_path, "", [], Stop())
    lines = list(summary.findings(store.open_run(tmp_path / run_id)))
    assert any(line.startswith("where the 0.") for line in lines)
    assert [line.split()[:3] for line in lines if line.startswith("compile")] == [["compile", "0.1", "s"]]
