"""Runs that several processes name, note and delete at once, or that one was killed over. Threads lock as processes do."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.synthetic import made_runs
from warpladder.data import store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two", "three", "four"):
        made_runs.write_host_run(tmp_path, name, rounds=1, workloads=("conv2d",))
    return tmp_path


def test_no_note_is_lost_where_several_are_kept_at_once(folder: Path) -> None:
    runs, _ = store.list_runs([folder])

    def note(run: store.Run) -> None:
        for number in range(100):
            store.set_note(run, f"{run.path.name} {number}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(note, runs))
    assert store.notes([folder]) == {run.path: f"{run.path.name} 99" for run in runs}


def test_labels_that_are_given_at_once_leave_one_of_them(folder: Path) -> None:
    run = store.find_run("one", [folder])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.rename(run, f"label {number}"), range(40)))
    assert store.open_run(run.path).info["label"].startswith("label ")
    assert not list(run.path.glob(".*"))


def test_notes_that_cannot_be_read_are_kept_as_they_are(folder: Path) -> None:
    kept = folder / ".notes.json"
    kept.write_text('{"two": "mine",')
    with pytest.raises(store.StoreError, match=r"\.notes\.json: is no JSON of notes .*; mend it, or remove it"):
        store.set_note(store.find_run("one", [folder]), "new")
    assert kept.read_text() == '{"two": "mine",'
    assert store.notes([folder]) == {}


def test_a_run_that_is_gone_is_refused_and_the_rest_of_a_killed_delete_goes_with_the_next(folder: Path) -> None:
    run, other = (store.find_run(name, [folder]) for name in ("one", "two"))
    run.path.rename(folder / ".deleted-one")  # as a process leaves it that was killed over it
    for change in (lambda: store.rename(run, "new"), lambda: store.delete(run)):
        with pytest.raises(store.StoreError, match="No such file or directory"):
            change()
    store.delete(other)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["four", "three"]
