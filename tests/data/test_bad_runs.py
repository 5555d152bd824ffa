"""A run that cannot be opened is named and passed over, whatever is wrong with it; what was found out is not looked for again."""

import errno
import os
import random
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.data.test_store import case_row, rewrite, write
from tests.synthetic import made_traces
from warpladder.__main__ import command as command_line
from warpladder.data import store
from warpladder.data.store import listing, tables
from warpladder.data.store import run as run_module

pytestmark = pytest.mark.slow


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder, and no runs anywhere else."""
    for name in ("LOCAL", "RECORDED"):
        monkeypatch.setattr(store, name, tmp_path / f"no {name}")
    return tmp_path / "runs"


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the parquet files that are opened from now on."""
    files: list[str] = []
    real = tables.opened

    def noting(file: Path, *rest: Any) -> Any:
        files.append(f"{file.parent.name}/{file.name}")
        return real(file, *rest)

    for module in (run_module, listing):
        monkeypatch.setattr(module, "opened", noting)
    return files


def test_a_listing_reads_table_run_alone_and_that_once(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(alone, f"r{number:02}", cases=[case_row("a")])
    files = opened(monkeypatch)
    assert len(store.list_runs([alone])[0]) == 20
    assert sorted(files) == [f"r{number:02}/run.parquet" for number in range(20)]
    files.clear()
    assert len(store.list_runs([alone])[0]) == 20
    assert files == []


def test_a_listing_reads_again_what_was_changed_added_or_put_in_the_place_of_another(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        write(alone, name, label="before")
    store.list_runs([alone])
    rewrite(alone / "b" / "run.parquet", lambda table: table.set_column(2, "label", [["another label"]]))
    shutil.rmtree(alone / "c")
    write(alone, "c", label="after it was removed")
    write(alone, "d", label="new")
    files = opened(monkeypatch)
    labels = {run.run_id: run.info["label"] for run in store.list_runs([alone])[0]}
    assert labels == {"a": "before", "b": "another label", "c": "after it was removed", "d": "new"}
    assert sorted(files) == ["b/run.parquet", "c/run.parquet", "d/run.parquet"]


def test_a_run_is_checked_once_and_again_when_a_file_of_it_was_changed(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(alone, cases=[case_row("a"), case_row("b")])
    store.open_run(path)
    files = opened(monkeypatch)
    store.open_run(path)
    assert files == []
    rewrite(path / "cases.parquet", lambda table: pa.concat_tables([table, table]))
    with pytest.raises(
        store.StoreError, match=r"cases\.parquet: column workload \+ case, row 3: is the key of a row, and row 1"
    ):
        store.open_run(path)
    files.clear()
    with pytest.raises(store.StoreError, match="row 3"):
        store.open_run(path)
    assert files == []


def test_a_run_that_fails_its_check_counts_as_bad_until_it_is_mended(alone: Path) -> None:
    path = write(alone, cases=[case_row("a", params="[]")])
    assert [run.run_id for run in store.list_runs([alone])[0]] == ["r1"]
    with pytest.raises(store.StoreError):
        store.open_run(path)
    good, bad = store.list_runs([alone])
    assert good == [] and "column params, row 1" in bad[0].reason
    assert bad[0].run is not None and bad[0].run.run_id == "r1"
    rewrite(path / "cases.parquet", lambda table: table.set_column(3, "params", [["{}"]]))
    assert [run.run_id for run in store.list_runs([alone])[0]] == ["r1"]


def test_a_run_that_is_mended_in_place_is_good_again(alone: Path) -> None:
    file = write(alone, cases=[case_row("a")]) / "cases.parquet"
    sound = file.read_bytes()
    file.write_bytes(sound[:-1])
    assert [bad.path.name for bad in store.list_runs([alone])[1]] == ["r1"]
    file.write_bytes(sound)
    good, bad = store.list_runs([alone])
    assert [run.run_id for run in good] == ["r1"] and bad == []


def test_what_the_system_refused_once_is_tried_again(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(alone, cases=[case_row("a")])
    store.list_runs([alone])
    with monkeypatch.context() as patched, pytest.raises(store.StoreError, match="Too many open files"):

        def none_left(*_: Any) -> None:
            raise OSError(24, "Too many open files")

        patched.setattr(pa, "OSFile", none_left)
        store.open_run(path)
    assert store.open_run(path).run_id == "r1"


def null_date(run: Path) -> None:
    nothing = pa.nulls(1, pa.timestamp("us", tz="UTC"))
    rewrite(run / "run.parquet", lambda table: table.set_column(table.column_names.index("started_at"), "started_at", nothing))


def not_utf8(run: Path) -> None:
    label = pa.Array.from_buffers(pa.string(), 1, pa.array([b"caf\xe9"]).buffers())
    rewrite(run / "run.parquet", lambda table: table.set_column(table.column_names.index("label"), "label", label))


def twice(run: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([*table.columns, table.column("label")], names=[*table.column_names, "label"])

    rewrite(run / "run.parquet", change)


def fifo(run: Path) -> None:
    (run / "run.parquet").unlink()
    os.mkfifo(run / "run.parquet")


def fifo_beside(run: Path) -> None:
    os.mkfifo(run / "cases.parquet")


def unforeseen(run: Path) -> None:
    (run / "run.parquet").with_name("\udcff.parquet").write_bytes(b"")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", [null_date, not_utf8, twice, fifo, fifo_beside, unforeseen])
def test_one_bad_run_leaves_runs_export_and_record_if_none_working(alone: Path, tmp_path: Path, damage: Any) -> None:
    write(alone, "good", label="mine")
    damage(write(alone, "worse"))
    (alone / os.fsdecode(b"odd\xe9\n\x1b[31m")).mkdir()

    listed = CliRunner().invoke(command_line(), ["runs", "--data-dir", str(alone)])
    assert listed.exit_code == 0 and listed.exception is None
    assert listed.stdout.startswith("good  mine")
    said = [line.split("  cannot be opened: ")[0] for line in listed.stderr.splitlines()]
    assert said[1] == "worse" and len(said) == 2
    assert "\x1b" not in listed.stderr

    exported = CliRunner().invoke(
        command_line(), ["export", "mine", "--out", str(tmp_path / "out"), "--format", "csv", "--data-dir", str(alone)]
    )
    assert exported.exit_code == 0, exported.output
    refused = CliRunner().invoke(
        command_line(), ["export", "worse", "--out", str(tmp_path / "o"), "--format", "csv", "--data-dir", str(alone)]
    )
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1 and "worse" in refused.stderr

    there = CliRunner().invoke(command_line(), ["record", "--if-none", "--data-dir", str(alone)])
    assert there.exit_code == 0 and there.stdout == "good\n"


def test_whatever_reading_a_run_raises_the_others_are_listed(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(alone, "good")
    write(alone, "worse")
    real = listing._read_run

    def broken(path: Path) -> store.Run:
        if path.name == "worse":
            raise RuntimeError("nobody\nthought of this")
        return real(path)

    monkeypatch.setattr(listing, "_read_run", broken)
    good, bad = store.list_runs([alone])
    assert [run.run_id for run in good] == ["good"]
    assert bad[0].reason == f"{alone / 'worse'}: damaged (nobody); remove the folder worse, then record or import the run again"


def test_folders_with_one_id_are_all_listed_and_the_one_of_that_name_is_found(alone: Path) -> None:
    path = write(alone, "r1", label="mine")
    for copy in ("copy", "another copy"):
        shutil.copytree(path, alone / copy)
    good, _ = store.list_runs([alone])
    assert sorted((run.path.name, run.run_id) for run in good) == [("another copy", "r1"), ("copy", "r1"), ("r1", "r1")]
    assert store.find_run("r1", [alone]).path == path
    assert store.find_run("copy", [alone]).path == alone / "copy"


def test_a_label_is_found_though_a_folder_here_has_that_name(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alone, "r1", label="docs")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert store.find_run("docs", [alone]).run_id == "r1"


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "", "..", "\udcff"])
def test_a_name_that_no_run_can_have_is_one_clear_line(alone: Path, name: str) -> None:
    write(alone, "r1")
    with pytest.raises(store.StoreError) as caught:
        store.find_run(name, [alone])
    assert str(caught.value).isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named_with_the_cure(alone: Path) -> None:
    write(alone, "good")
    (write(alone, "locked", cases=[case_row("a")]) / "cases.parquet").chmod(0)
    good, bad = store.list_runs([alone])
    assert [run.run_id for run in good] == ["good"]
    assert "cases.parquet: cannot be read (Permission denied; chmod u+r gives the right)" in bad[0].reason


def test_a_data_folder_that_may_not_be_read_is_named(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(alone, "good")
    locked = alone.parent / "locked"
    locked.mkdir()
    real = os.scandir

    def refused(path: Any) -> Any:
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refused)
    good, bad = store.list_runs([locked, alone])
    assert [run.run_id for run in good] == ["good"]
    assert bad[0].reason.startswith(f"{locked}: cannot be read (Permission denied)")


def test_a_flipped_bit_in_a_page_is_found_by_its_checksum(tmp_path: Path) -> None:
    path = write(tmp_path, cases=[case_row(f"n={n}", flops=n * n, min_bytes=7 * n) for n in range(2_000)])
    file = path / "cases.parquet"
    sound = file.read_bytes()
    metadata = pq.read_metadata(file)
    column = metadata.row_group(0).column(metadata.schema.names.index("flops"))
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    bits = random.Random(1)
    for _ in range(50):
        content = bytearray(sound)
        content[end - 1 - bits.randrange(column.total_compressed_size // 3)] ^= 1 << bits.randrange(
            8
        )  # past the header of the page
        file.write_bytes(content)
        with pytest.raises(store.StoreError, match=r"cases\.parquet: damaged"):
            store.open_run(path)
    file.write_bytes(sound)
    assert store.open_run(path).rows("cases") == 2_000


def test_a_run_written_before_there_were_checksums_opens(tmp_path: Path) -> None:
    path = write(tmp_path, cases=[case_row("a")])
    rewrite(path / "cases.parquet", lambda table: table)
    assert store.open_run(path).table("cases")["case"].tolist() == ["a"]


def test_a_date_is_of_its_own_run(alone: Path) -> None:
    write(alone, "old", started_at=datetime(1, 1, 1, tzinfo=UTC))
    write(alone, "late", started_at=datetime(9999, 12, 31, tzinfo=UTC))
    good, _ = store.list_runs([alone])
    assert [run.run_id for run in good] == ["late", "old"]
    assert all(run.title.isprintable() for run in good)


def test_a_link_to_itself_hides_no_other_run(alone: Path) -> None:
    write(alone, "good", label="sound")
    (alone / "loop").symlink_to("loop")
    good, bad = store.list_runs([alone])
    assert [run.run_id for run in good] == ["good"]
    said = f"{alone / 'loop'}: cannot be read (Too many levels of symbolic links); remove the link, which leads to itself"
    assert [run.reason for run in bad] == [said]
    listed = CliRunner().invoke(command_line(), ["runs", "--data-dir", str(alone)])
    assert listed.exit_code == 0 and "good  sound" in listed.stdout and "loop  cannot be opened" in listed.stderr
    assert store.find_run("sound", [alone]).run_id == "good"
    with pytest.raises(store.StoreError, match="remove the link"):
        store.find_run("loop", [alone])


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
def test_an_entry_of_a_disk_that_does_not_answer_hides_no_other_run_and_is_not_to_be_removed(
    alone: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for name in ("good", "stale"):
        write(alone, name)
    real_stat, real_scan = Path.stat, os.scandir

    def refuse(path: Any) -> None:
        if "stale" in Path(os.fspath(path)).parts:
            raise OSError(number, os.strerror(number), str(path))

    def stat(path: Path, **options: Any) -> os.stat_result:
        refuse(path)
        return real_stat(path, **options)

    def scan(path: Any) -> Any:
        refuse(path)
        return real_scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", stat)
        patched.setattr(os, "scandir", scan)
        good, bad = store.list_runs([alone])
    assert [run.run_id for run in good] == ["good"]
    assert [run.path.name for run in bad] == ["stale"]
    assert os.strerror(number) in bad[0].reason and "check the disk" in bad[0].reason
    assert "remove" not in bad[0].reason
    assert [run.run_id for run in store.list_runs([alone])[0]] == ["good", "stale"], "it is looked at again"


def test_a_run_that_is_deleted_while_it_is_read_leads_to_the_others(alone: Path) -> None:
    run = store.open_run(write(alone, "gone", cases=[case_row("a")]))
    shutil.rmtree(run.path)
    with pytest.raises(store.StoreError, match=r"cannot be read .*; it was deleted meanwhile; `warpladder runs` lists"):
        run.table("cases")


def test_a_table_beyond_its_budget_is_left_out_and_the_rest_is_shown(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_traces.write(alone, "trace")
    monkeypatch.setattr(tables, "LONG", tables.Budget(2, 10**9))
    run = store.open_run(alone / "trace")
    assert set(run.left_out) >= {"kernels", "api_calls"}
    assert "kernels" not in run.tables
    assert re.search(
        r"kernels\.parquet: has \d+ rows, and at most 2 are read; record or capture less at once", run.left_out["kernels"]
    )
    assert run.table("kernels").empty
    assert store.list_runs([alone])[0][0].left_out == run.left_out
    exported = CliRunner().invoke(
        command_line(), ["export", "trace", "--data-dir", str(alone), "--format", "csv", "--out", str(alone / "charts")]
    )
    assert exported.exit_code == 0 and "left out: " in exported.stderr, exported.output


def test_a_run_whose_cases_are_beyond_their_budget_is_too_large_and_not_damaged(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alone, "large", cases=[case_row("a"), case_row("b")])
    monkeypatch.setattr(tables, "SHORT", tables.Budget(1, 10**9))
    with pytest.raises(
        store.StoreError, match=r"cases\.parquet: has 2 rows, and at most 1 are read; record or capture less at once"
    ):
        store.open_run(alone / "large")


def test_texts_that_unpack_to_more_than_may_be_read_are_not_written_out(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(alone, "bomb", cases=[case_row(f"n={number}") for number in range(100)])
    bomb = pa.array(['{"a": "' + 10_000 * "x" + '"}'] * 100)
    rewrite(alone / "bomb" / "cases.parquet", lambda t: t.set_column(t.column_names.index("params"), "params", bomb))
    monkeypatch.setattr(tables, "SHORT", tables.Budget(1_000, 500_000))
    run = store.open_run(alone / "bomb")  # 10 kB as a dictionary
    with pytest.raises(store.StoreError, match=r"column params: takes 0\.0 GB in memory"):
        run.table("cases")


def test_a_lack_of_memory_is_no_damage(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(alone, "good", cases=[case_row("a")])

    def full(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    with monkeypatch.context() as patched:
        patched.setattr(listing, "check_columns", full)
        with pytest.raises(store.StoreError, match="needs more memory than is free; close other programs") as refused:
            store.open_run(alone / "good")
    assert "remove" not in str(refused.value)
    assert store.open_run(alone / "good").run_id == "good", "it is read again"


@pytest.mark.parametrize("command", [["runs"], ["compare", "a", "b"], ["app"]])
def test_a_data_folder_that_is_a_link_to_itself_is_one_line(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    done = CliRunner().invoke(command_line(), [*command, "--data-dir", str(tmp_path / "loop")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"--data-dir {tmp_path / 'loop'}: is a link that leads to itself; choose another folder\n"
