"""`warpladder runs`: the list, also as JSON; runs that are deleted, and labels that are changed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.commands.test_forecast import recording
from warpladder.__main__ import command
from warpladder.data import store


def _runs(data_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(command(), ["runs", "--data-dir", str(data_dir), *words])


def test_a_label_is_changed_and_all_else_of_the_run_stays(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    (before,) = store.list_runs([tmp_path])[0]
    done = _runs(tmp_path, "rename", before.run_id, "after the change")
    assert (done.exit_code, done.output) == (0, f"{before.run_id}  after the change\n")
    after = store.find_run("after the change", [tmp_path])
    assert dict(after.info) == {**before.info, "label": "after the change"} and after.tables == before.tables
    assert [file.name for file in after.path.glob(".*")] == []


def test_runs_are_deleted_together_or_none_is(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    (run,) = store.list_runs([tmp_path])[0]
    refused = _runs(tmp_path, "delete", run.run_id, "nowhere")
    assert refused.exit_code == 2 and "nowhere: no such run" in refused.output and run.path.is_dir()
    done = _runs(tmp_path, "delete", run.run_id)
    assert (done.exit_code, done.output) == (0, f"deleted {run.run_id}\n")
    assert list(tmp_path.glob("*")) == [] and list(tmp_path.glob(".deleted*")) == []


def test_a_run_that_ships_stays_as_it_is(tmp_path: Path) -> None:
    shipped = store.list_runs([store.RECORDED])[0][0]
    for words in (("delete", str(shipped.path)), ("rename", str(shipped.path), "mine")):
        done = _runs(tmp_path, *words)
        assert done.exit_code == 2 and "ships with Warpladder and stays as it is" in done.output
    assert shipped.path.is_dir()


def test_the_list_as_json_has_each_run(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    rows = json.loads(_runs(tmp_path, "--format", "json").stdout)
    listed = [line.split()[0] for line in _runs(tmp_path).stdout.splitlines()]
    assert [row["run_id"] for row in rows] == listed
    assert {row["kind"] for row in rows} <= {"recording", "import", "job"} and all(row["started_at"] for row in rows)


def test_every_command_has_the_short_option_for_help(monkeypatch: pytest.MonkeyPatch) -> None:
    app = command()
    for each in app.commands.values():  # click keeps the option of a command that another test ran by itself
        monkeypatch.setattr(each, "_help_option", None)
    names = [[], *([name] for name in app.commands), ["runs", "delete"], ["runs", "rename"]]
    for words in names:
        done = CliRunner().invoke(app, [*words, "-h"], terminal_width=80)
        assert done.exit_code == 0 and "-h, --help" in done.output, words
        assert max(map(len, done.output.splitlines())) <= 80, words
