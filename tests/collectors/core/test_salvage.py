"""What a recording keeps on disk while it runs, and what becomes of it."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.collectors.core.recordings import QUICK_CASES, ROOT
from warpladder.__main__ import command
from warpladder.collectors.core import journal
from warpladder.collectors.core.bench import NO_GPU_STATE
from warpladder.collectors.core.cells import Cell, result_row
from warpladder.collectors.core.journal import Journal, SavedElsewhere
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.recording import begin, diagnostic_event, rows_event
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.data.staging import Staging, abandoned

pytestmark = pytest.mark.slow

PLAN = make_plan(Request(files=[QUICK_CASES], cases=[f"n={n}" for n in (100, 101, 102)], variants=["multiply"]))
STARTED = datetime(2026, 11, 22, 12, tzinfo=UTC)


def a_journal(data_dir: Path, label: str = "") -> Journal:
    return Journal(data_dir, begin(PLAN, "host_clock", label, STARTED, []))


def finish(kept: Journal, case: str, detail: str = "") -> None:
    """A case with three samples."""
    cell = Cell("quick_cases", "multiply", "", case)
    sample = cell.key | {
        "gpus": 0,
        "rank": 0,
        "cache": "hot",
        "scope": "operation",
        "twin": 0,
        "process": 0,
        "position": 0,
        "duration_ns": 5,
    }
    sample |= dict.fromkeys(NO_GPU_STATE)
    rows = [sample | {"round": number} for number in range(3)]
    kept.note(rows_event({"results": [result_row(cell, "ok", detail)]}), store.conform("samples", rows))


def die(kept: Journal) -> Path:
    """What the death of its process does: the system lets go of the lock. Gives the folder."""
    kept._close_spool()
    kept._home.staging.release()
    return kept._home.staging.path


def oks(run: store.Run) -> list[str]:
    return sorted(run.table("results").query("status == 'ok'")["case"])


def the_run(data_dir: Path) -> store.Run:
    ((run,), bad) = store.list_runs([data_dir])
    assert not bad
    return run


def test_an_event_is_on_disk_when_it_was_noted(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    found = list(journal.read(kept._home.staging.path))
    assert [event["kind"] for event, _ in found] == ["begin", "rows"]
    assert found[1][1] is not None and found[1][1].num_rows == 3


def test_a_spool_that_was_cut_anywhere_gives_the_cases_before_the_cut(tmp_path: Path) -> None:
    kept = a_journal(tmp_path / "whole")
    for case in ("n=100", "n=101"):
        finish(kept, case)
    folder = kept._home.staging.path
    for name in ("events.jsonl", "samples.arrows"):
        whole = (folder / name).read_bytes()
        counts = []
        for cut in range(0, len(whole), 97):
            copy = tmp_path / "cut"
            shutil.copytree(folder, copy)
            (copy / name).write_bytes(whole[:cut])
            found = list(journal.read(copy))
            counts.append(sum(event["kind"] == "rows" for event, _ in found))
            assert all(samples is not None and samples.num_rows == 3 for event, samples in found if event["kind"] == "rows")
            shutil.rmtree(copy)
        assert counts == sorted(counts) and set(counts) == {0, 1}


def test_a_recording_that_is_alive_is_left_alone_and_a_dead_one_taken_up(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=101")
    assert not salvage(tmp_path)
    assert kept._home.staging.path.is_dir()
    die(kept)
    (line,) = salvage(tmp_path)
    run = the_run(tmp_path)
    assert oks(run) == ["n=101"]
    assert set(run.table("results").query("status == 'skipped'")["case"]) == {"n=100", "n=102"}
    assert len(run.table("samples")) == 3
    assert f"1 case kept as run {run.run_id}" in line


@pytest.mark.parametrize(
    ("words", "code"),
    [("runs", 0), ("summary", 0), ("summary nightly", 0), ("compare nightly nightly", 0), ("extract nightly", 2)],  # no trace
)
def test_a_command_that_looks_for_runs_takes_a_dead_recording_up(words: str, code: int, tmp_path: Path) -> None:
    kept = a_journal(tmp_path, label="nightly")
    finish(kept, "n=101")
    die(kept)
    done = CliRunner().invoke(command(), [*words.split(), "--data-dir", str(tmp_path)])
    assert done.exit_code == code, done.output
    assert f"was cut off: 1 case kept as run {the_run(tmp_path).run_id}" in done.stderr


def test_what_a_dead_recording_left_without_a_finished_case_is_removed_with_a_word(tmp_path: Path) -> None:
    die(a_journal(tmp_path))
    (line,) = salvage(tmp_path)
    assert "no case was finished; what it left is removed" in line
    assert not list(tmp_path.iterdir())


def test_a_recording_that_died_after_its_commit_is_no_second_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    monkeypatch.setattr(Staging, "remove", Staging.release)
    run_id = kept.commit("")
    monkeypatch.undo()
    assert list(tmp_path.glob(".*"))
    salvage(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [run_id]


def test_a_recording_that_died_while_it_wrote_its_tables_is_taken_up(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    (die(kept) / "tables" / "samples.parquet").write_bytes(b"PAR1 half of it")
    salvage(tmp_path)
    assert len(the_run(tmp_path).table("samples")) == 3


def test_what_cannot_be_taken_up_is_named_and_stops_nobody(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    folder = die(kept)
    file = folder / "events.jsonl"
    file.write_text(file.read_text().replace('"format": 6', '"format": 99'))
    (line,) = salvage(tmp_path)
    assert f"could not be taken up (StoreError: format 99); remove {folder}" in line
    assert folder.is_dir()


def test_a_folder_that_was_left_without_a_lock_is_removed_when_it_is_clearly_dead(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    old, new = tmp_path / f".old.partial-{gone.stdout.strip()}", tmp_path / f".new.partial-{gone.stdout.strip()}"
    alive = tmp_path / f".alive.partial-{os.getpid()}"
    for folder in (old, new, alive):
        folder.mkdir()
        if folder != new:
            os.utime(folder, (0, 0))
    salvage(tmp_path)
    assert sorted(tmp_path.iterdir()) == [alive, new]


def test_two_that_look_at_once_do_not_take_up_the_same(tmp_path: Path) -> None:
    die(a_journal(tmp_path))
    (first,) = abandoned(tmp_path)
    assert list(abandoned(tmp_path)) == []
    first.release()
    assert len(list(abandoned(tmp_path))) == 1


def test_the_run_of_a_recording_under_a_tool_is_kept_without_its_trace(tmp_path: Path) -> None:
    with open_writer(tmp_path, STARTED, "") as writer:
        inner = a_journal(writer.staging.path / "inside" / "runs", "mine")
        finish(inner, "n=102")
        die(inner)  # the recording inside was killed too
        writer.leave()
        salvage(tmp_path)
    run = the_run(tmp_path)
    assert oks(run) == ["n=102"] and run.info["label"] == "mine"
    assert {Source.CUT_OFF, Source.TRACING} <= set(run.table("diagnostics")["source"])


def test_trace_tables_that_died_with_the_recorder_are_missed_by_name(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    cell = Cell("quick_cases", "multiply", "", "n=100")
    kept.note(rows_event({"results": [result_row(cell, "ok", "")]}, traced=True))
    die(kept)
    salvage(tmp_path)
    diagnostics = the_run(tmp_path).table("diagnostics").set_index("source")
    assert "trace tables were lost" in diagnostics.loc[Source.TRACING, "text"]


# -- no room -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(journal, "_ELSEWHERE", (lambda: str(folder),))
    return folder


def test_a_folder_that_is_removed_while_recording_loses_nothing(tmp_path: Path, elsewhere: Path) -> None:
    kept = a_journal(tmp_path / "data")
    finish(kept, "n=100")
    shutil.rmtree(tmp_path / "data")
    finish(kept, "n=101")
    said = r"cannot be written \(the folder was removed\); the run was saved elsewhere; .*: mkdir -p /.*/data && mv /"
    with pytest.raises(SavedElsewhere, match=said) as error:
        kept.commit("")
    assert error.value.path.is_relative_to(elsewhere) and str(error.value.path) in str(error.value)
    run = store.open_run(error.value.path)
    assert oks(run) == ["n=100", "n=101"] and len(run.table("samples")) == 6
    assert not (tmp_path / "data").exists()
    assert not list(elsewhere.glob("*/.*"))


def test_where_only_the_hidden_folder_was_removed_the_run_goes_where_it_belongs(tmp_path: Path, elsewhere: Path) -> None:
    kept = a_journal(tmp_path / "data")
    finish(kept, "n=100")
    shutil.rmtree(kept._home.staging.path)
    finish(kept, "n=101")
    run_id = kept.commit("")
    assert oks(store.open_run(tmp_path / "data" / run_id)) == ["n=100", "n=101"]
    assert not list((tmp_path / "data").glob(".*")) and not list(elsewhere.iterdir())


def test_where_there_is_room_nowhere_the_next_recording_takes_up_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_ELSEWHERE", ())
    kept = a_journal(tmp_path)
    finish(kept, "n=100")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(store.StoreError, match=r"cannot be written \(No space left on device\), and neither can"):
            kept.commit("")
    salvage(tmp_path)
    assert oks(the_run(tmp_path)) == ["n=100"]


def test_a_run_under_a_tool_that_has_no_room_is_saved_elsewhere(tmp_path: Path, elsewhere: Path) -> None:
    source = a_journal(tmp_path / "source")
    finish(source, "n=100")
    run = store.open_run(tmp_path / "source" / source.commit(""))

    def fill(writer: store.RunWriter) -> None:
        writer.append("run", [{**run.info, "run_id": writer.run_id}])
        for table in ("variants", "cases", "results", "samples"):
            writer.append(table, run.table(table))

    with open_writer(tmp_path / "data", STARTED, "") as writer:
        shutil.rmtree(tmp_path / "data")
        with pytest.raises(SavedElsewhere) as error:
            journal.store_run(writer, tmp_path / "data", "", fill)
    assert len(store.open_run(error.value.path).table("samples")) == 3


def test_a_row_that_no_run_can_hold_is_named_and_what_was_measured_is_kept(tmp_path: Path, elsewhere: Path) -> None:
    kept = a_journal(tmp_path / "data")
    finish(kept, "n=100")
    kept.note(diagnostic_event("odd", "", ""))
    with pytest.raises(
        store.StoreError, match=r"table diagnostics: column severity has \['odd'\], .*; what was measured is kept in /"
    ):
        kept.commit("")
    kept.leave()
    assert len(list(journal.read(kept._home.staging.path))) == 3
    assert not list(elsewhere.iterdir())


def test_a_file_system_that_cannot_say_what_is_on_its_disk_takes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(_: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unsupported)
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    assert oks(store.open_run(tmp_path / kept.commit(""))) == ["n=100"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Any:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode:
        pytest.skip("mounting a disk of 64 KiB is refused here; only root may, where the machine lets it")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_disk_that_fills_up_while_recording_loses_nothing(tiny_disk: Path, elsewhere: Path) -> None:
    kept = a_journal(tiny_disk / "data")
    finish(kept, "n=100")
    with pytest.raises(OSError, match="No space left"), (tiny_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    finish(kept, "n=101", "x" * 9000)
    finish(kept, "n=102")
    with pytest.raises(SavedElsewhere, match="No space left on device") as error:
        kept.commit("")
    assert oks(store.open_run(error.value.path)) == ["n=100", "n=101", "n=102"]
    assert not list((tiny_disk / "data").iterdir())


def test_a_disk_that_has_room_again_gets_the_run(tiny_disk: Path, elsewhere: Path) -> None:
    kept = a_journal(tiny_disk / "data")
    (tiny_disk / "ballast").write_bytes(bytes(4096))
    with pytest.raises(OSError, match="No space left"), (tiny_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    finish(kept, "n=101", "x" * 9000)
    assert list(elsewhere.glob("*/.*"))  # where it is kept meanwhile
    (tiny_disk / "ballast").unlink()
    run_id = kept.commit("")
    assert oks(store.open_run(tiny_disk / "data" / run_id)) == ["n=101"]
    assert not list(elsewhere.iterdir())


@pytest.mark.thorough
def test_a_disk_that_is_full_from_the_start_is_one_line_before_anything_is_measured(tiny_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"), (tiny_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    command = [sys.executable, "-m", "warpladder", "record", str(QUICK_CASES), "--collector", "host_clock"]
    done = subprocess.run([*command, "--data-dir", str(tiny_disk / "data")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be written (No space left on device)" in done.stderr


# -- names ---------------------------------------------------------------------------------------------------------------


def test_a_run_id_that_is_taken_meanwhile_loses_nothing(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    taken = tmp_path / kept._home.run_id
    taken.mkdir()
    (taken / "another's").touch()
    run_id = kept.commit("")
    assert run_id == f"{taken.name}-2"
    assert store.open_run(tmp_path / run_id).info["run_id"] == run_id


def test_a_run_id_that_is_taken_from_the_start_gives_way_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = iter(["aaaa", "aaaa", "bbbb"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(digits))
    first, second = open_writer(tmp_path, STARTED, ""), open_writer(tmp_path, STARTED, "")
    assert (first.run_id[-4:], second.run_id[-4:]) == ("aaaa", "bbbb")
    for writer in (first, second):
        with writer:
            pass


def test_text_that_is_not_utf_8_is_stored_with_replacements(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100", "cannot open b\udcff.npy")
    run = store.open_run(tmp_path / kept.commit(""))
    assert run.table("results").set_index("case").loc["n=100", "detail"] == "cannot open b\ufffd.npy"


def test_a_fault_of_the_recorder_itself_leaves_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(PLAN, collector_of("host_clock"))
    measure_job = recorder._measure_job

    def faulty(job: Any, process: int) -> None:
        if job.case == "n=102":
            raise RuntimeError("a fault")
        measure_job(job, process)

    monkeypatch.setattr(recorder, "_measure_job", faulty)
    with pytest.raises(RuntimeError, match="a fault"):
        recorder.record(tmp_path, "", [])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    salvage(tmp_path)
    assert oks(the_run(tmp_path)) == ["n=100", "n=101"]


def test_samples_come_out_of_the_spool_as_they_went_in(tmp_path: Path) -> None:
    kept = a_journal(tmp_path)
    finish(kept, "n=100")
    samples = kept.recording._samples[0]
    assert isinstance(samples, pa.Table)
    (_, (_, found)) = journal.read(kept._home.staging.path)
    assert found is not None and found.equals(samples)
