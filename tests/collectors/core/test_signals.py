"""However a recording is ended, no finished case is lost, nothing half-read is left, and no process outlives it."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.collectors.core.recordings import FORKING, MISBEHAVING, QUICK_CASES, RANKS, ROOT, Recording
from warpladder.collectors.core.environment import has_module
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.ranks.launchers import Launcher
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Source

pytestmark = [pytest.mark.xdist_group("signals"), pytest.mark.slow]

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by Linux's /proc")
SIGNALS = {"INT": [signal.SIGINT], "TERM": [signal.SIGTERM], "HUP": [signal.SIGHUP], "INT twice": [signal.SIGINT] * 2}
CASES = 20


def check_kept(run: store.Run, finished: set[str], unreached: str) -> None:
    """The run is whole: a verdict a cell, those of the finished cases ok, samples of those alone."""
    results = run.table("results")
    ok = set(results.query("status == 'ok'")["case"])
    assert ok >= finished
    assert len(results) == 2 * CASES
    assert set(results.query("status != 'ok'")["detail"]) <= {unreached}
    assert set(run.table("samples")["case"] if "samples" in run.tables else ()) == ok
    assert len(run.table("cases")) == CASES
    assert len(run.table("variants")) == 2


@pytest.mark.sampled(1)
@needs_proc
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_keeps_the_cases_that_were_finished(name: str, tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(QUICK_CASES))
    recording.wait_for_cases(2)
    for number in SIGNALS[name]:
        recording.process.send_signal(number)
    assert recording.wait() == 128 + SIGNALS[name][0], recording.stderr
    assert "Traceback" not in recording.stderr
    run = store.open_run(recording.data_dir / recording.stdout.splitlines()[-1])
    check_kept(run, {"n=100", "n=101"}, "the run was interrupted before it")
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])
    assert not list(recording.data_dir.glob(".*"))
    assert recording.is_gone()


@needs_proc
def test_what_a_killed_recording_has_finished_the_next_one_makes_a_run(tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(QUICK_CASES), "--label", "cut off")
    recording.wait_for_cases(3)
    recording.process.kill()
    recording.wait()
    assert recording.is_gone()
    (line,) = salvage(recording.data_dir)
    ((run,), bad) = store.list_runs([recording.data_dir])
    assert not bad
    assert re.search(rf"was cut off: \d+ cases kept as run {run.run_id}$", line)
    check_kept(run, {"n=100", "n=101", "n=102"}, "the recording was cut off before it")
    assert run.info["label"] == "cut off"
    assert set(run.table("ceilings")["name"]) >= {"host_copy", "host_fma"}
    assert Source.CUT_OFF in set(run.table("diagnostics")["source"])
    assert not list(recording.data_dir.glob(".*"))
    assert not salvage(recording.data_dir)


@pytest.mark.thorough
@needs_proc
@pytest.mark.parametrize("seed", range(2))
def test_at_a_random_moment_no_finished_case_is_lost(seed: int, tmp_path: Path) -> None:
    """A bounded form; the case at which it happens is random, and so is the time since."""
    rng = random.Random(seed)
    ends = [*SIGNALS.values(), [signal.SIGKILL]][seed]
    recording = Recording(tmp_path, str(QUICK_CASES))
    lines = rng.randrange(8)
    recording.wait_for(lambda: recording.stderr.count("\n") >= lines)
    time.sleep(rng.random() * 0.3)
    for number in ends:
        recording.process.send_signal(number)
        time.sleep(rng.random() * 0.1)
    recording.wait()
    told = set(re.findall(r"/21 quick_cases (\S+): ", recording.stderr))
    assert "Traceback" not in recording.stderr
    assert recording.is_gone()
    salvage(recording.data_dir)
    good, bad = store.list_runs([recording.data_dir])
    assert not bad
    assert len(good) == 1 or not told
    for run in good:
        check_kept(run, told, f"the {'recording was cut off' if signal.SIGKILL in ends else 'run was interrupted'} before it")
    assert not list(recording.data_dir.glob(".*"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_during_the_imports_a_signal_ends_the_command_without_a_word(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "warpladder", "record", str(QUICK_CASES)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr
    said = []
    for line in process.stderr:
        said.append(line)
        if "numpy.version" in line:
            process.send_signal(number)
            break
    said += process.stderr.readlines()
    assert process.wait() == -number
    assert not [line for line in said if not line.startswith("import time:")]
    assert process.stdout and process.stdout.read() == ""
    process.stdout.close()
    process.stderr.close()


def test_signals_during_the_commit_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = store.RunWriter.commit

    def interrupted(writer: store.RunWriter, durable: bool = False) -> Path:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        return commit(writer, durable)

    monkeypatch.setattr(store.RunWriter, "commit", interrupted)
    plan = make_plan(Request(files=[QUICK_CASES], cases=["n=100"], max_rounds=6))
    run_id, number = Recorder(plan, collector_of("host_clock")).record(tmp_path, "", [])
    assert number == signal.SIGINT
    results = store.open_run(tmp_path / run_id).table("results")
    assert set(results["status"]) == {"ok"}


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with Stop() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.count == 1
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert stop.exit_code == 143
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.thorough
@needs_proc
def test_a_child_that_hangs_is_ended_by_the_second_signal_at_once(tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(MISBEHAVING), "--variants", "hangs", "--case", "n=1000")
    recording.wait_for_ceilings()
    began = time.monotonic()
    recording.process.send_signal(signal.SIGINT)
    recording.process.send_signal(signal.SIGTERM)
    assert recording.wait() == 130
    assert time.monotonic() - began < 4.5  # less than a child is given to leave by itself
    assert recording.is_gone()


@pytest.mark.thorough
@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_that_a_variant_forked_outlives_the_recorder(number: signal.Signals, tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(FORKING))
    # Recorder, guard, the child that measures, and three that the variant left.
    recording.wait_for(lambda: len(recording.processes()) >= 6)
    recording.process.send_signal(number)
    recording.wait()
    assert recording.is_gone()


@pytest.mark.thorough
@needs_proc
def test_nothing_that_a_variant_forked_outlives_a_recording_that_ends_well(tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(FORKING), "--variants", "leaves_processes")
    assert recording.wait() == 0
    assert recording.is_gone()
    run = store.open_run(recording.data_dir / recording.stdout.removesuffix("\n"))  # and nothing else, whatever variants print
    assert set(run.table("results")["status"]) == {"ok"}
    assert "printed without a line feed" in (run.path / "output.log").read_text()


@pytest.mark.thorough
@needs_proc
@pytest.mark.skipif(not (has_module("mpi4py") and Launcher().program), reason="needs the extra mpi and an MPI launcher")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_do_not_outlive_the_recorder(number: signal.Signals, tmp_path: Path) -> None:
    recording = Recording(tmp_path, str(RANKS), "--variants", "good,hangs", "--ranks", "2")
    recording.wait_for_ceilings()
    # Recorder; guard and child that gave the ceilings; guard, launcher, proxy and two ranks.
    recording.wait_for(lambda: len(recording.processes()) >= 8)
    recording.process.send_signal(number)
    assert recording.wait() in (143, -signal.SIGKILL)
    assert recording.is_gone()
    salvage(recording.data_dir)
    assert not list(recording.data_dir.glob(".*"))


@pytest.mark.thorough
def test_a_screen_that_is_gone_does_not_end_a_recording(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warpladder", "record", str(QUICK_CASES), "--case", "n=100"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*command, "--data-dir", str(tmp_path)], cwd=ROOT, stdout=write, stderr=write, timeout=120)
    os.close(write)
    assert done.returncode == 0
    ((run,), _) = store.list_runs([tmp_path])
    assert set(run.table("results")["status"]) == {"ok"}
