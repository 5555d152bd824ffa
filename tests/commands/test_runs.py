"""`warpladder runs`: the list, also as JSON; runs that are deleted, and labels that are changed. `warpladder app` at a run."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.collectors.kineto.made_events import document, kernel
from tests.commands.test_forecast import recording
from warpladder.__main__ import command
from warpladder.dashboard import server
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
    for words in (("delete", str(shipped.path)), ("rename", str(shipped.path), "mine"), ("note", str(shipped.path), "mine")):
        done = _runs(tmp_path, *words)
        assert done.exit_code == 2 and "ships with Warpladder and stays as it is" in done.output
    assert shipped.path.is_dir()


def test_the_list_as_json_has_each_run(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    rows = json.loads(_runs(tmp_path, "--format", "json").stdout)
    listed = [line.split()[0] for line in _runs(tmp_path).stdout.splitlines()]
    assert [row["run_id"] for row in rows] == listed
    assert {row["kind"] for row in rows} <= {"recording", "import", "job"} and all(row["started_at"] for row in rows)


def test_a_run_is_found_with_the_words_of_its_note_until_the_note_goes(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    (run,) = store.list_runs([tmp_path])[0]
    line = run.title
    assert line.startswith(f"{run.run_id} · "), "it has no label"

    def found(*words: str) -> str:
        return _runs(tmp_path, *(word for each in words for word in ("--with", each))).stdout

    assert _runs(tmp_path, "note", run.run_id, "before", "tiling").output == f"{line}  before tiling\n"
    assert found("Before", "tiling") == f"{line}  before tiling\n"
    assert [row["note"] for row in json.loads(_runs(tmp_path, "--with", "tiling", "--format", "json").stdout)] == [
        "before tiling"
    ]
    assert _runs(tmp_path, "note", run.run_id).output == f"{line}\n"
    assert found("tiling") == "" and line in found(run.run_id)


def test_app_opens_a_run_and_a_trace_that_it_imports_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[list[Path], str]] = []
    monkeypatch.setattr(server, "serve", lambda folders, *_, run, **__: served.append((folders, run)))
    trace = tmp_path / "step.json"
    trace.write_text(json.dumps(document([kernel(0, 10, 1)])))
    folder = tmp_path / "runs"
    for said in ("warpladder app", "step.json: was imported before, as"):
        done = CliRunner().invoke(command(), ["app", str(trace), "--data-dir", str(folder)])
        assert done.exit_code == 0 and said in done.output
    (run,) = store.list_runs([folder])[0]
    assert CliRunner().invoke(command(), ["app", str(run.path)]).exit_code == 0
    assert served == [([folder, folder], run.run_id)] * 2 + [([folder], run.run_id)]
    missing = CliRunner().invoke(command(), ["app", "reports/nowhere.json"])
    assert missing.exit_code == 2 and "reports/nowhere.json: this file does not exist" in missing.stderr
    done = CliRunner().invoke(command(), ["app", "nowhere"])
    assert done.exit_code == 2 and done.stderr.startswith("nowhere: no such run")


def test_app_names_the_address_of_a_run_at_the_port_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((server.HERE, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "PORT", port)
        assert server._next_free(server.HERE) > port


def test_every_command_has_the_short_option_for_help(monkeypatch: pytest.MonkeyPatch) -> None:
    app = command()
    for each in app.commands.values():  # click keeps the option of a command that another test ran by itself
        monkeypatch.setattr(each, "_help_option", None)
    names = [[], *([name] for name in app.commands), ["runs", "delete"], ["runs", "rename"], ["runs", "note"]]
    for words in names:
        done = CliRunner().invoke(app, [*words, "-h"], terminal_width=80)
        assert done.exit_code == 0 and "-h, --help" in done.output, words
        assert max(map(len, done.output.splitlines())) <= 80, words
