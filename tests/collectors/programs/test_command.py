"""The command `versus`: its answer, its mistakes, and the example of its page."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import forked
from tests.collectors.programs.recording import script, statuses
from tests.commands.test_json import fits
from tests.doc_pages import blocks_of
from warpladder.__main__ import command
from warpladder.collectors import choice
from warpladder.data import store

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux"), pytest.mark.slow]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "versus: no program to compare; name two or more"),
        (["true"], "versus: one program to compare; name two or more"),
        (["true", "./a 'x"], "./a 'x: cannot be split into words (No closing quotation); close its quotes"),
        (["true", "./a | wc"], "./a | wc: the character | has a meaning to a shell only; quote it, or write sh -c '…'"),
        (["true", "true", "--runs", "0"], "--runs 0: give 1 or more"),
        (["true", "true", "--warmup", "-1"], "--warmup -1: give 0 or more"),
        (["true", "true", "--timeout", "0"], "--timeout 0: give seconds above 0"),
        (["true", "true", "--timeout", "nan"], "--timeout nan: give seconds above 0"),
        (["true", "true", "--same-output", "--check", "cat"], "--same-output and --check: both judge the outputs; give one of them"),
        (["true", "true", "--check", "no-such x"], "--check no-such x: no such program; name one that reads the output"),
        (["true", "true", "--check", "grep 'x"], "grep 'x: cannot be split into words"),
        (["true", "true", "--format", "xml"], "--format xml: no such format; choose table, markdown, csv, json"),
        (["true", "true", "--collector", "cupti"], "--collector cupti: does not time whole programs; choose auto, host_clock"),
        (["true", "true", "--name", "a\nb"], "--name 'a\\nb': give one line of text"),
        (["true", "true", "--data-dir", "/dev/null/runs"], "/dev/null/runs: cannot be written"),
        (["true", "true", "--data-dir", ""], '--data-dir "": names no folder'),
        (["true", "true", "--label", "\udcff"], "--label ?: not valid UTF-8"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(command(), ["versus", *arguments])
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_without_a_gpu_auto_takes_the_clock_of_the_host_and_nsys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "driver_problem", lambda: "no driver")
    monkeypatch.setattr(choice, "has_nvidia_driver", lambda: True)
    assert choice.choose_for_programs("auto") == ("host_clock", "times alone, without a trace: no driver")
    done = CliRunner().invoke(command(), ["versus", "true", "true", "--collector", "nsight_systems"])
    assert (done.exit_code, done.stderr) == (2, "nsight_systems: no driver\n")


def versus(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "COLUMNS": "120", "XDG_DATA_HOME": str(folder)}
    return forked.warpladder("versus", *arguments, cwd=folder, env=environment)


@pytest.mark.thorough
def test_the_answer_has_a_row_for_each_program_and_the_run_s_id_is_its_last_line(tmp_path: Path) -> None:
    script(tmp_path / "slow é", "sleep 0.05")
    script(tmp_path / "fast | one", "echo x")
    done = versus(
        *("'./slow é' 7", "'./fast | one' 7", "./missing 7", "--runs", "8", "--collector", "host_clock", "--data-dir", "runs"),
        folder=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    heading, slow, fast, missing, *notes, run_id = done.stdout.splitlines()
    assert heading.split("  ")[0] == "program"
    assert "times as fast as slow é" in heading
    assert slow.startswith("slow é") and "baseline" in slow
    assert fast.startswith("fast | one") and "× (" in fast and "faster" in fast
    assert missing.split() == ["missing", "–", "–", "launch_error", "–"]
    assert notes[0] == "missing: launch_error: missing: no such program; check its name and its folder"
    assert notes[1].startswith("slow é against itself differs by up to ")
    differs = "its output differs from slow é at byte 1, line 1: 'x', not the end; --same-output makes that a failure"
    assert {f"fast | one: {differs}", "outputs were not judged; --same-output or --check judges them"} <= {
        *done.stderr.splitlines()
    }
    run = store.open_run(tmp_path / "runs" / run_id)
    assert run.info["command"] == "warpladder versus 'slow é 7' 'fast | one 7' 'missing 7' --runs=8"


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_other_formats_have_the_same_rows_and_nothing_else(form: str, tmp_path: Path) -> None:
    done = versus("true", "false", "true", "--runs", "6", "--format", form, "--data-dir", "runs", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    if form == "json":
        rows = fits("versus", done.stdout)
        assert [(row["variant"], row["status"], row["n"]) for row in rows] == [
            ("true", "ok", 6),
            ("false", "launch_error", 0),
            ("true #2", "ok", 6),
        ]
        assert [row["verdict"] for row in rows][:2] == ["baseline", ""]
        assert rows[2]["speedup_low"] <= rows[2]["speedup"] <= rows[2]["speedup_high"]
    elif form == "csv":
        assert [line.split(",")[2] for line in done.stdout.splitlines()] == ["variant", "true", "false", "true #2"]
    else:
        assert [line.split(" | ")[0] for line in done.stdout.splitlines()[:5]] == [
            *("| program", "| ---", "| true", "| false", r"| true \#2"),
        ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["table", "csv"])
def test_fewer_than_six_rounds_give_no_verdict(form: str, tmp_path: Path) -> None:
    slow = script(tmp_path / "slow", "sleep 0.05")
    for runs, told in ((5, "unknown"), (6, "slower")):
        done = versus("true", slow, "--runs", str(runs), "--format", form, "--data-dir", "runs", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        found = {
            word
            for word in ("unknown", "faster", "slower", "tied")
            if re.search(rf"\b{word}\b", done.stdout.split("itself")[0])
        }
        assert found == {told}
        if form == "table":
            assert ("fewer than 6 rounds give no verdict" in done.stdout) == (runs < 6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, cc: the example is written in C")
def test_the_example_of_the_page_gives_the_table_that_it_shows(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    page = ROOT / "docs" / "versus.md"
    commands, table = (block.text.splitlines() for block in list(blocks_of(page))[:2])
    *compile_commands, command = map(shlex.split, commands)
    for each in compile_commands:
        subprocess.run(each, cwd=tmp_path, check=True)
    done = versus(*command[2:], "--data-dir", "runs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[0].split() == table[0].split()
    assert [line.split()[0] for line in printed[1:3]] == [line.split()[0] for line in table[1:3]] == ["primes_v1", "primes_v2"]
    assert "faster" in printed[2] and "faster" in table[2]
    run = store.open_run(tmp_path / "runs" / printed[-1])
    assert run.table("cases")[["workload", "case"]].to_numpy().tolist() == [["primes", "200000"]]
    assert {status for status, _ in statuses(run).values()} == {"ok"}
