"""Comparisons of whole programs: rounds, statuses, and what an interrupted one keeps."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.collectors.programs.recording import compared, script, statuses
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.programs import record
from warpladder.data import store
from warpladder.data.names import Source

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux"), pytest.mark.slow]


def test_programs_run_in_shuffled_rounds_with_the_first_one_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = [script(tmp_path / name, f"echo {name} >> {log}") for name in ("a1", "a2", "a3")]
    run = compared(tmp_path, *commands, runs=8, warmup=2)
    started = log.read_text().split()
    assert started[:6] == ["a1", "a1", "a2", "a2", "a3", "a3"]
    rounds = [started[begin : begin + 4] for begin in range(6, len(started), 4)]
    assert len(rounds) == 8
    assert all(sorted(each) == ["a1", "a1", "a2", "a3"] for each in rounds)
    assert len({tuple(each) for each in rounds}) > 2
    samples = run.table("samples").sort_values(["round", "position"])
    assert list(samples["variant"]) == started[6:]
    assert samples.groupby(["variant", "twin"]).size().to_dict() == {("a1", 0): 8, ("a1", 1): 8, ("a2", 0): 8, ("a3", 0): 8}
    assert set(zip(samples["scope"], samples["cache"], samples["gpus"], strict=True)) == {("operation", "hot", 0)}
    assert samples["duration_ns"].between(200_000, 10**9).all()


def test_a_run_of_programs_has_one_workload_one_case_and_the_programs_as_rungs(tmp_path: Path) -> None:
    first, second = script(tmp_path / "solver_v1", "exit 0"), script(tmp_path / "solver_v2", "exit 0")
    run = compared(tmp_path, f"{first} 2048", f"{second} 2048")
    assert run.table("cases")[["workload", "case", "params", "size_rank", "flops"]].to_dict("records") == [
        {"workload": "solver", "case": "2048", "params": '{"case":2048}', "size_rank": 0, "flops": 0}
    ]
    variants = run.table("variants")
    assert list(variants["variant"]) == ["solver_v1", "solver_v2"]
    assert list(variants["rung"]) == [0, 1]
    assert set(variants["role"]) == {"rung"}
    assert list(variants["title"]) == ["solver_v1 2048", "solver_v2 2048"]
    texts = list(variants["source_text"])
    assert all("SHA-256" in text and str(tmp_path) not in text for text in texts)
    assert str(tmp_path) not in run.info["command"].replace(str(tmp_path / "x"), "")
    assert (run.info["collector"], run.info["kind"]) == ("host_clock", "recording")
    assert all(
        status == "ok"
        and re.match(r"outputs were not compared; operation hot: (at the limit of 3 rounds|converged), n=3\b", detail)
        for status, detail in statuses(run).values()
    )
    assert "processor time of user and system" in statuses(run)["solver_v1"][1]


def test_a_program_that_was_built_again_has_another_source(tmp_path: Path) -> None:
    command = script(tmp_path / "a", "exit 0")
    before = compared(tmp_path, command, "true", runs=1).table("variants")
    script(tmp_path / "a", "exit 0; # again")
    after = compared(tmp_path, command, "true", runs=1).table("variants")
    assert list(before["source_sha256"] == after["source_sha256"]) == [False, True]


def test_each_failure_is_a_verdict_without_samples_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "no_header").write_bytes(b"\x00\x01")
    (tmp_path / "no_header").chmod(0o755)
    run = compared(
        tmp_path,
        "no-such-program 1",
        script(tmp_path / "exits", "echo why >&2; exit 3"),
        script(tmp_path / "dies", "kill -SEGV $$"),
        script(tmp_path / "hangs", "sleep 60"),
        f"'{tmp_path / 'no_header'}'",
        script(tmp_path / "works", "exit 0"),
        script(tmp_path / "works too", "exit 0"),
        timeout_s=0.5,
    )
    found = statuses(run)
    assert found["no-such-program 1"] == ("launch_error", "no-such-program: no such program; check its name and its folder")
    assert found["exits"] == ("launch_error", "exit code 3: why")
    assert found["dies"] == ("launch_error", "was killed by signal 11")
    assert found["hangs"] == ("timeout", "did not end within 0.5 s, and was killed with all that it started")
    assert found["no_header"] == ("launch_error", "cannot be started (Exec format error)")
    assert found["works"][0] == found["works too"][0] == "ok"
    samples = run.table("samples")
    assert samples.groupby(["variant", "twin"]).size().to_dict() == {("works", 0): 3, ("works", 1): 3, ("works too", 0): 3}


def test_a_baseline_that_fails_after_some_rounds_loses_its_samples_and_the_next_one_is_the_baseline(tmp_path: Path) -> None:
    count = tmp_path / "count"
    failing = script(tmp_path / "p1", f"echo >> {count}; [ $(wc -l < {count}) -lt 6 ] || exit 9")
    run = compared(tmp_path, failing, script(tmp_path / "p2", ""), script(tmp_path / "p3", ""), runs=6)
    assert statuses(run)["p1"] == ("launch_error", "exit code 9")
    samples = run.table("samples")
    assert set(samples["variant"]) == {"p2", "p3"}
    assert samples[samples["twin"] == 0].groupby("variant").size().to_dict() == {"p2": 6, "p3": 6}
    assert samples.loc[samples["twin"] == 1, "variant"].unique().tolist() == ["p2"]
    assert sorted(samples.loc[(samples["variant"] == "p3"), "round"]) == list(range(6))


def test_all_programs_may_fail(tmp_path: Path) -> None:
    run = compared(tmp_path, "false", "no-such-program")
    assert {status for status, _ in statuses(run).values()} == {"launch_error"}
    assert "samples" not in run.tables


def test_another_output_is_a_wrong_result_and_is_not_timed(tmp_path: Path) -> None:
    run = compared(
        tmp_path,
        script(tmp_path / "p1", "echo 1; echo 2"),
        script(tmp_path / "p2", "echo 1; echo 2; echo note >&2"),
        script(tmp_path / "p3", "echo 1; echo 3"),
        same_output=True,
    )
    found = statuses(run)
    assert found["p1"][1].startswith("the outputs of the others are compared with its output; ")
    assert found["p2"][1].startswith("its output is that of p1; ")
    assert found["p3"] == ("wrong_result", "its output differs from p1 at byte 3, line 2: '3', not '2'")
    assert set(run.table("samples")["variant"]) == {"p1", "p2"}


def test_an_output_that_changes_from_run_to_run_is_found(tmp_path: Path) -> None:
    count = tmp_path / "count"
    changing = script(tmp_path / "p1", f"echo >> {count}; wc -l < {count}")
    run = compared(tmp_path, changing, script(tmp_path / "p2", "echo 1"), same_output=True)
    status, detail = statuses(run)["p1"]
    assert status == "wrong_result"
    assert detail.startswith("right at first, and not when it was timed: its output differs from its first output at byte 1")
    assert set(run.table("samples")["variant"]) == {"p2"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("judge", [{"same_output": True}, {"check": "grep -q 42"}], ids=["same output", "check"])
def test_a_program_that_is_right_only_where_it_is_not_timed_is_wrong(judge: dict[str, object], tmp_path: Path) -> None:
    """Timed runs have a variable that moves the stack."""
    honest = script(tmp_path / "p1", "echo result 42")
    cheats = script(tmp_path / "p2", '[ -n "$WARPLADDER_PADDING" ] || echo result 42')
    run = compared(tmp_path, honest, cheats, runs=8, **judge)
    status, detail = statuses(run)["p2"]
    assert status == "wrong_result"
    assert detail.startswith("right at first, and not when it was timed: ")
    assert statuses(run)["p1"][0] == "ok"
    assert statuses(run)["p1"][1].endswith("; outputs of timed runs that were judged too, chosen at random: 5")
    assert set(run.table("samples")["variant"]) == {"p1"}


@pytest.mark.thorough
def test_a_program_that_is_wrong_in_half_of_its_timed_runs_is_found_in_most_recordings(tmp_path: Path) -> None:
    """Which runs are judged cannot be predicted: five of 20 miss the 10 wrong ones once in 61 recordings."""
    count = tmp_path / "count"
    cheats = script(tmp_path / "p2", f'echo >> {count}; [ $(wc -l < {count}) -gt 11 -a -n "$WARPLADDER_PADDING" ] || echo 42')
    found = []
    for _ in range(3):
        count.unlink(missing_ok=True)
        found.append(statuses(compared(tmp_path, "echo 42", cheats, runs=20, same_output=True))["p2"][0])
    assert "wrong_result" in found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("judge", [{}, {"same_output": True}, {"check": "grep -q fifo"}], ids=["none", "same output", "check"])
def test_every_run_of_a_program_writes_to_the_same_kind_of_file(judge: dict[str, object], tmp_path: Path) -> None:
    """grep stops at its first match where its output is /dev/null, so that it was 48 times as fast as in the runs that were judged."""
    log = tmp_path / "log"
    command = script(tmp_path / "p1", f"exec 3>&1; stat -L -c %F /proc/self/fd/3 >> {log}; echo fifo")
    assert statuses(compared(tmp_path, command, command, **judge))["p1"][0] == "ok"
    kinds = log.read_text().splitlines()
    assert len(kinds) >= 11
    assert set(kinds) == {"fifo"}


@pytest.mark.thorough
def test_grep_has_no_shorter_way_when_it_is_timed(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("match 0123456789\n" * 2_000_000)
    run = compared(tmp_path, f"grep match {lines}", f"sed -n 1p {lines}", runs=3)
    median = run.table("samples").groupby("variant")["duration_ns"].median()
    grep = next(value for variant, value in median.items() if "grep" in variant)
    assert grep > 5e6


@pytest.mark.thorough
def test_work_in_the_background_is_timed(tmp_path: Path) -> None:
    honest = script(tmp_path / "p1", "sleep 0.12; echo result 42")
    background = script(tmp_path / "p2", "(sleep 0.12; echo result 42) &")
    run = compared(tmp_path, honest, background, runs=6, same_output=True)
    samples = run.table("samples")
    assert samples["duration_ns"].min() >= 0.12e9
    assert {status for status, _ in statuses(run).values()} == {"ok"}
    told = run.table("diagnostics").query("variant == 'p2'").to_dict("records")
    assert [(row["severity"], row["source"]) for row in told] == [("info", Source.PROGRAMS)]
    found = re.match(r"processes that it started ran on after its exit, for up to (\d+) ms; ", told[0]["text"])
    assert found and int(found[1]) >= 115, told[0]["text"]


@pytest.mark.thorough
def test_a_hundred_megabytes_of_output_are_compared(tmp_path: Path) -> None:
    commands = ["head -c 100000000 /dev/zero", script(tmp_path / "short", "head -c 99999999 /dev/zero")]
    run = compared(tmp_path, *commands, runs=1, same_output=True)
    assert statuses(run)["short"] == (
        "wrong_result",
        "its output differs from head -c 100000000 zero at byte 100,000,000, line 1: the end, not '…" + 10 * r"\x00" + "'",
    )


def test_a_check_of_the_user_s_reads_the_output(tmp_path: Path) -> None:
    good, bad = script(tmp_path / "good", "echo result 42"), script(tmp_path / "bad", "echo result 41")
    run = compared(tmp_path, good, bad, check="grep -q 42")
    assert statuses(run)["good"][1].startswith("its output is right by --check grep -q 42; operation hot")
    assert statuses(run)["bad"] == ("wrong_result", "--check grep -q 42: exit code 1")


def test_a_program_that_leaves_a_daemon_is_a_timeout_that_names_it(tmp_path: Path) -> None:
    run = compared(tmp_path, script(tmp_path / "p1", "sleep 60 & exit 0"), "true", runs=1, timeout_s=0.5)
    assert statuses(run)["p1"] == ("timeout", "exited with 0, but left sleep running, killed after 0.5 s; it has to end")
    assert statuses(run)["true"][0] == "ok"


def test_without_a_number_the_rounds_stop_when_the_medians_are_known_or_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "LIMITS", replace(record.LIMITS, target=10.0))
    loose = compared(tmp_path, "true", "true", runs=None)
    assert "operation hot: converged, n=10" in statuses(loose)["true"][1]
    monkeypatch.setattr(record, "LIMITS", replace(record.LIMITS, target=0.0, seconds=0.0))
    told: list[str] = []
    short = compared(tmp_path, "true", "true", runs=None, told=told)
    assert list(dict.fromkeys(told))[2:] == ["rounds until each median is known to ±0.0%, for 0 s at most"]
    assert "operation hot: at the limit of 0 s, n=10" in statuses(short)["true #2"][1]


class Versus:
    """`warpladder versus` as a process of its own, on programs that write each start to a file."""

    def __init__(self, folder: Path) -> None:
        self.log, self.data_dir = folder / "log", folder / "runs"
        self.commands = [script(folder / name, f"echo {name} $$ >> {self.log}; sleep 0.05") for name in ("p1", "p2")]
        command = [
            sys.executable,
            "-m",
            "warpladder",
            "versus",
            *self.commands,
            "--runs",
            "500",
            "--data-dir",
            str(self.data_dir),
        ]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait_for_starts(self, number: int) -> None:
        deadline = time.monotonic() + 60
        while self.starts < number and time.monotonic() < deadline:
            time.sleep(0.02)

    @property
    def starts(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def end(self) -> tuple[str, str]:
        """Stdout and stderr, once the process has ended and nothing starts any more."""
        said = self.process.communicate(timeout=60)
        number = self.starts
        time.sleep(0.3)
        assert self.starts == number
        return said


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_comparison_keeps_the_rounds_that_were_done(number: int, tmp_path: Path) -> None:
    versus = Versus(tmp_path)
    versus.wait_for_starts(14)
    os.killpg(versus.process.pid, number)  # as Ctrl-C in a terminal, to the whole group
    out, err = versus.end()
    assert versus.process.returncode == 128 + number
    assert "Traceback" not in err
    run = store.open_run(versus.data_dir / out.splitlines()[-1])
    samples = run.table("samples")
    rounds = int(samples["round"].max()) + 1
    assert rounds >= 3
    assert len(samples) == 3 * rounds  # whole rounds
    assert f"operation hot: interrupted, n={rounds}" in statuses(run)["p2"][1]
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])
    assert not list(versus.data_dir.glob(".*"))


def test_what_a_killed_comparison_has_measured_the_next_one_makes_a_run(tmp_path: Path) -> None:
    versus = Versus(tmp_path)
    versus.wait_for_starts(14)
    versus.process.kill()
    versus.end()
    (line,) = salvage(versus.data_dir)
    assert "was cut off: 1 case kept as run" in line
    ((run,), bad) = store.list_runs([versus.data_dir])
    assert not bad
    assert len(run.table("samples")) >= 9
    assert {status for status, _ in statuses(run).values()} == {"ok"}
    assert Source.CUT_OFF in set(run.table("diagnostics")["source"])


@pytest.mark.thorough
def test_a_comparison_that_is_interrupted_at_once_has_verdicts_and_no_samples(tmp_path: Path) -> None:
    commands = [script(tmp_path / name, f"touch {tmp_path / 'begun'}; sleep 30") for name in ("p1", "p2")]
    process = subprocess.Popen(
        [sys.executable, "-m", "warpladder", "versus", *commands, "--data-dir", str(tmp_path / "runs")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    run = store.open_run(tmp_path / "runs" / out.splitlines()[-1])
    assert set(statuses(run).values()) == {("skipped", "the run was interrupted before it")}
