"""The index of a folder of runs: what a second process need not read, and what it never believes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.synthetic import made_runs
from warpladder.dashboard.core import run_index
from warpladder.data import store
from warpladder.data.store import index, listing


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs of which an index is written at once."""
    monkeypatch.setattr(listing, "_LEAST_INDEXED", 2)
    monkeypatch.setattr(index, "LEAST_NEW", 1)
    cases = {"cases": [made_runs.row("cases", workload="sums", case="n=1", params="{}", size_rank=0)]}
    for name in ("one", "two", "three"):
        made_runs.write_tables(tmp_path, made_runs.run_row(name, f"label of {name}"), cases)
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs whose files are read."""
    names: list[str] = []
    read_run = listing._read_run
    monkeypatch.setattr(listing, "_read_run", lambda path: names.append(path.name) or read_run(path))
    return names


def other_process() -> None:
    """Forget all that a process knows of runs."""
    for known in (listing._cached_runs, listing._opened_before, listing._listed, listing._indexed, index._notes, index._unkept):
        known.clear()  # type: ignore[attr-defined]


def labels(folder: Path) -> list[str]:
    other_process()
    return sorted(run.info["label"] for run in store.list_runs([folder])[0])


def test_another_process_reads_only_what_changed(folder: Path, read: list[str]) -> None:
    first = store.list_runs([folder])[0]
    assert sorted(read) == ["one", "three", "two"] and (folder / index.FILE).is_file()
    read.clear()
    other_process()
    assert store.list_runs([folder])[0] == first and read == []
    store.rename(store.find_run("one", [folder]), "renamed")
    store.delete(store.find_run("two", [folder]))
    made_runs.write_tables(folder, made_runs.run_row("four", "the fourth"), {})
    read.clear()
    assert labels(folder) == ["label of three", "renamed", "the fourth"] and sorted(read) == ["four", "one"]
    read.clear()
    assert labels(folder) == ["label of three", "renamed", "the fourth"] and read == []


def test_the_facts_of_a_run_are_kept_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {run.run_id: run_index.facts_of(run) for run in store.list_runs([folder])[0]}
    assert facts["one"].workloads == {"sums": run_index.Coverage(1, 1)}
    store.keep_index(folder)
    other_process()
    runs = store.list_runs([folder])[0]
    monkeypatch.setattr(run_index, "_workloads", lambda run: pytest.fail("is read again"))
    assert {run.run_id: run_index.facts_of(run) for run in runs} == facts
    store.note(runs[0], "no JSON")
    monkeypatch.setattr(run_index, "_workloads", lambda run: {})
    assert run_index.facts_of(runs[0]).workloads == {}


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def _noise(file: Path) -> None:
    file.write_bytes(os.urandom(1000))


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _rewritten(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda file: pq.write_table(change(pq.read_table(file)), file)


def _other_version(rows: pa.Table) -> pa.Table:
    return rows.replace_schema_metadata({b"warpladder.index": b"1 of 0.0.1"})


def _null_label(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index("label"), "label", pa.nulls(len(rows), pa.string()))


@pytest.mark.parametrize(
    "spoil",
    [_cut, _noise, _folder, os.remove, *map(_rewritten, (_other_version, _null_label, lambda rows: rows.drop_columns(["cpu_name"])))],
)  # fmt: skip
def test_an_index_that_cannot_be_used_is_passed_over(folder: Path, read: list[str], spoil: Any) -> None:
    expected = labels(folder)
    spoil(folder / index.FILE)
    read.clear()
    assert labels(folder) == expected and len(read) == 3
    assert [each.name for each in folder.glob(f"{index.FILE}*")] == [index.FILE], "no half of a file is left"


def test_an_index_is_not_believed_about_a_run_that_is_opened(folder: Path) -> None:
    labels(folder)
    lies = pa.array(["a lie"] * 3)
    _rewritten(lambda rows: rows.set_column(rows.column_names.index("label"), rows.schema.field("label"), lies))(
        folder / index.FILE
    )
    assert labels(folder) == ["a lie"] * 3
    assert store.open_run(folder / "one").info["label"] == "label of one"
    assert sorted(run.info["label"] for run in store.list_runs([folder])[0]) == ["a lie", "a lie", "label of one"]


def test_few_runs_and_a_folder_that_cannot_be_written_have_no_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_LEAST_INDEXED", 4)
    assert len(labels(folder)) == 3 and not (folder / index.FILE).exists()
    monkeypatch.setattr(listing, "_LEAST_INDEXED", 2)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "write_table", refused)
    assert len(labels(folder)) == 3 and not (folder / index.FILE).exists()
