"""Files that cannot be planned: each gives one line that says where, what, and what to do."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.workloads.functions.wrong_files import FILES, FINE, RIGHT
from warpladder.__main__ import command
from warpladder.collectors.core import plan


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file_ends_the_command_with_one_line(name: str, tmp_path: Path) -> None:
    text, said = FILES[name]
    file = tmp_path / "file.py"
    file.write_text(text)
    done = CliRunner().invoke(command(), ["record", str(file), "--data-dir", str(tmp_path / "runs")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and said in done.stderr
    assert done.stderr.startswith(str(file)) and done.stderr.count("file.py") == 1 and len(done.stderr) < len(str(file)) + 300


@pytest.mark.parametrize("name", FINE)
def test_a_file_that_only_looks_odd_is_planned(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text(FINE[name])
    assert all(job.cells for job in plan.make_plan(plan.Request(files=[file])).jobs)


def test_every_wrong_file_is_wrong_in_one_place_only(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_text(RIGHT)
    assert len(plan.make_plan(plan.Request(files=[file])).jobs) == 1
