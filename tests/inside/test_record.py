"""Experiments in processes that break, the run that keeps what they showed, and the command."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.synthetic import made_runs
from warpladder.__main__ import command
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.cuda import assembly
from warpladder.collectors.inside import LAUNCHES, program, record
from warpladder.dashboard.text import inside as text
from warpladder.data import store
from warpladder.data.names import BROKE, Source

#: In place of Python: breaks in the step `barriers`, until it is to be left out.
PROGRAM = """#!/bin/sh
echo '"loads"'
case "$3" in *'"skip": []'*) echo '"barriers"'; echo 'illegal address' >&2; exit 1;; esac
echo '{"kernel": "k", "experiment": "time", "what": "original", "value": 9.0, "low": 8.0, "high": 10.0, "unit": "ns", "lines": "", "note": ""}'
"""


@pytest.fixture
def breaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program"
    file.write_text(PROGRAM)
    file.chmod(0o755)
    monkeypatch.setattr(program.sys, "executable", str(file))


@pytest.mark.slow
@pytest.mark.usefixtures("breaking")
def test_a_step_that_breaks_its_process_is_left_out_and_the_run_tells(tmp_path: Path) -> None:
    steps = list[str]()

    def look(run: store.Run) -> list[tuple[Cell, record.Shown]]:
        cell = Cell.of(run.records("results")[0])
        return [(cell, record.look_into(cell, None, 1.0, steps.append))]

    with Stop() as stop:
        run_id = record.record(
            tmp_path / "runs", "mine", lambda folder: made_runs.write(folder, rounds=6, label="mine").name, look, stop
        )
    run = store.open_run(tmp_path / "runs" / run_id)
    assert steps == ["loads", "barriers", "loads"]
    original, broken = run.records("experiments")
    assert (original["place"], original["what"], original["value"]) == (0, "original", 9.0)
    assert (broken["place"], broken["experiment"], broken["what"], broken["note"]) == (1, "without", "barriers", BROKE)
    assert broken["value"] is None
    told_of = text.lines(run.records("experiments"))
    assert "What limits it is not known: without barriers, the altered kernel broke its process." in told_of
    assert "barriers                                             –   the altered kernel broke its process\n" in told_of
    (told,) = (row for row in run.records("diagnostics") if row["source"] == Source.EXPERIMENTS)
    assert told["text"] == "without barriers: the altered kernel broke its process (illegal address)"
    assert run.info["label"] == "mine" and len(run.table("samples"))


def test_why_there_is_no_experiment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program"
    file.write_text("#!/bin/sh\necho 'invalid argument' >&2; exit 1\n")
    file.chmod(0o755)
    monkeypatch.setattr(program.sys, "executable", str(file))
    cell = Cell("mine", "fast", "", "n=1")
    shown = record.look_into(cell, None, 1.0)
    assert shown.problem == "the process broke before the first experiment (invalid argument)"
    assert [row["text"] for row in shown.diagnostics(cell)] == [shown.problem]
    assert record.Shown(rows=[{"value": 1.0}]).problem == ""
    (told,) = record.Shown(broken={LAUNCHES: "it hangs"}).diagnostics(cell)
    assert told["text"].startswith("which kernel takes the most time is not known: ") and "without" not in told["text"]


def test_a_process_that_is_silent_too_long_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\ntwo\nno end")
    with file.open("rb") as lines:
        assert list(program._lines(lines.fileno(), 1.0)) == ["one", "two"]
    reading, writing = os.pipe()
    os.write(writing, b"one\n")
    assert list(program._lines(reading, 0.02)) == ["one", None]
    for number in (reading, writing):
        os.close(number)


def test_without_an_assembler_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_nvjitlink", lambda: None)
    monkeypatch.setattr(assembly, "program_path", lambda program: None)
    done = CliRunner().invoke(command(), ["why", "conv2d", "--variant", "v02_naive_global", "--case", "n=256"])
    assert done.exit_code == 2 and "nvidia-nvjitlink" in done.stderr
