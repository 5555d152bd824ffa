"""Planted differences between two recordings by two commands, and within each."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.planted_verdicts import check
from warpladder.__main__ import command
from warpladder.dashboard.core import run_data
from warpladder.data import store

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("usual_processes")]
PLANTED = Path(__file__).resolve().parents[2] / "planted.py"


def test_planted_differences_of_two_recordings_are_found_and_identical_code_is_tied(tmp_path: Path) -> None:
    asked = ["record", str(PLANTED), "--collector", "cuda_events", "--set", "full", "--data-dir", str(tmp_path)]
    for label in ("first", "second"):
        assert CliRunner().invoke(command(), [*asked, "--label", label]).exit_code == 0
    runs, bad = store.list_runs([tmp_path])
    assert not bad
    first, second = (run_data.load(run) for run in sorted(runs, key=lambda run: run.info["label"]))
    assert set(first.samples["process"]) == {0, 1, 2}
    check(first, second)
    check(first, first)
