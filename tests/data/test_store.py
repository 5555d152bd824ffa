"""Runs on disk: whole or not at all, and refused with file, column and cure where they do not fit."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.synthetic import made_runs
from warpladder.data import schema, store


def run_row(run_id: str, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(column.name for column in schema.RUN.columns)
    for column in schema.RUN.columns:
        if not column.nullable:
            row[column.name] = "" if column.type == pa.string() else 0
    return row | {
        "run_id": run_id,
        "schema_version": schema.SCHEMA_VERSION,
        "kind": "recording",
        "started_at": datetime(2026, 11, 21, tzinfo=UTC),
        **changes,
    }


def case_row(case: str, **changes: Any) -> dict[str, Any]:
    return {
        "workload": "w", "case": case, "size_rank": 1, "params": "{}", "flops": 2, "min_bytes": 8, "h2d_bytes": 4, "d2h_bytes": 4, "passes": 1,
        "inputs_sha256": None, "reference_sha256": None,
        **changes,
    }  # fmt: skip


def write(data_dir: Path, run_id: str = "r1", cases: Any = (), **changes: Any) -> Path:
    with store.RunWriter(data_dir, run_id) as writer:
        writer.append("run", [run_row(run_id, **changes)])
        writer.append("cases", list(cases))
        return writer.commit()


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = write(tmp_path, cases=[case_row("a"), case_row("b", size_rank=None)])
    run = store.open_run(path)
    cases = run.table("cases")
    assert run.run_id == "r1"
    assert run.tables == ("run", "cases")
    assert list(cases["case"]) == ["a", "b"]
    assert cases["size_rank"].tolist() == [1, pd.NA]
    assert cases["flops"].dtype == "int64"


def test_integers_beside_nulls_keep_every_digit(tmp_path: Path) -> None:
    large = 2**53 + 1  # the first whole number that a float64 cannot hold
    run = store.open_run(write(tmp_path, cases=[case_row("a", size_rank=large), case_row("b", size_rank=None)]))
    assert run.table("cases")["size_rank"].tolist() == [large, pd.NA]


def test_rows_may_come_in_several_appends_and_as_frames(tmp_path: Path) -> None:
    with store.RunWriter(tmp_path, "r1") as writer:
        writer.append("run", [run_row("r1")])
        writer.append("cases", pd.DataFrame([case_row("a")]))
        writer.append("cases", pa.Table.from_pylist([case_row("b")]))
        writer.commit()
    assert list(store.open_run(tmp_path / "r1").table("cases")["case"]) == ["a", "b"]


def test_a_table_with_no_rows_is_absent_and_reads_as_empty(tmp_path: Path) -> None:
    run = store.open_run(write(tmp_path))
    assert not (run.path / "cases.parquet").exists()
    assert list(run.table("cases").columns) == schema.CASES.arrow.names
    assert run.table("cases").empty


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), store.RunWriter(tmp_path, "r1") as writer:
        writer.append("run", [run_row("r1")])
        raise RuntimeError("crash")
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_commit_leaves_nothing(tmp_path: Path) -> None:
    with store.RunWriter(tmp_path, "r1") as writer:
        writer.append("run", [run_row("r1")])
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_never_written_twice(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(store.StoreError, match="a run of this name exists"):
        store.RunWriter(tmp_path, "r1")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**case_row("a"), "colour": "red"}, r"foreign columns \['colour'\]"),
        ({k: v for k, v in case_row("a").items() if k != "flops"}, r"missing columns \['flops'\]"),
        (case_row("a", flops=None), "column flops has nulls"),
        (case_row("a", flops="many"), "data/README.md"),
    ],
)
def test_rows_that_do_not_fit_the_schema_are_refused(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with store.RunWriter(tmp_path, "r1") as writer, pytest.raises(store.StoreError, match=said):
        writer.append("cases", [row])


def test_a_value_outside_its_closed_set_is_refused(tmp_path: Path) -> None:
    with store.RunWriter(tmp_path, "r1") as writer, pytest.raises(store.StoreError, match=r"kind has \['guess'\]"):
        writer.append("run", [run_row("r1", kind="guess")])


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(store.StoreError, match=r"cannot be written .*--data-dir"):
        store.RunWriter(tmp_path / "file" / "below", "r1")


def test_a_run_of_another_schema_version_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = write(tmp_path, schema_version=99)
    with pytest.raises(
        store.StoreError, match=r"run\.parquet: column schema_version is 99, .* 1, 2, 3, 4, 5, 6 and 7; open it with"
    ):
        store.open_run(path)


def rewrite(file: Path, change: Any) -> None:
    pq.write_table(change(pq.read_table(file)), file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop_columns(["flops"]), r"cases\.parquet: lacks column flops"),
        (lambda t: t.append_column("colour", [["red"]]), r"cases\.parquet: has the foreign column colour"),
        (lambda t: t.set_column(4, "flops", [["two"]]), r"cases\.parquet: column flops is string, not int64"),
    ],
)
def test_a_missing_foreign_or_mistyped_column_is_refused_by_name(tmp_path: Path, change: Any, said: str) -> None:
    path = write(tmp_path, cases=[case_row("a")])
    rewrite(path / "cases.parquet", change)
    with pytest.raises(store.StoreError, match=said):
        store.open_run(path)


def test_samples_of_schema_version_1_are_read_as_those_of_one_process(tmp_path: Path) -> None:
    path = made_runs.write_host_run(tmp_path)
    one = pa.array([1], pa.int32())
    rewrite(path / "run.parquet", lambda t: t.set_column(t.column_names.index("schema_version"), "schema_version", one))
    rewrite(path / "samples.parquet", lambda t: t.drop_columns(["process"]))
    for categories in (False, True):
        samples = store.open_run(path).table("samples", categories=categories)
        assert set(samples["process"]) == {0}
        assert samples["process"].dtype == "int16"


def test_a_column_that_came_later_reads_as_null_in_a_run_that_lacks_it(tmp_path: Path) -> None:
    with store.RunWriter(tmp_path, "r1") as writer:
        writer.append("run", [run_row("r1")])
        writer.append("cases", [case_row("a") | {"inputs_sha256": "4f"}])
        path = writer.commit()
    assert store.open_run(path).table("cases")["inputs_sha256"].tolist() == ["4f"]
    rewrite(path / "cases.parquet", lambda table: table.drop_columns(["inputs_sha256"]))
    cases = store.open_run(path).table("cases")
    assert list(cases.columns) == schema.CASES.arrow.names
    assert cases["case"].tolist() == ["a"]
    assert cases["inputs_sha256"].isna().all()
    assert store.open_run(path).table("cases", ["inputs_sha256"], categories=True)["inputs_sha256"].isna().tolist() == [True]


def test_a_foreign_parquet_file_in_a_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    (path / "run.parquet").rename(path / "zebra.parquet")
    write(tmp_path, "r2")
    (tmp_path / "r2" / "run.parquet").rename(path / "run.parquet")
    with pytest.raises(store.StoreError, match=r"zebra\.parquet: not a table"):
        store.open_run(path)


@pytest.mark.parametrize("kept", [0, 4, 500])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path, cases=[case_row("a")])
    file = path / "cases.parquet"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(store.StoreError, match=r"cases\.parquet: not a readable parquet file .*; remove the folder r1"):
        store.open_run(path)


def test_damage_inside_a_file_shows_when_its_rows_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, cases=[case_row(f"case {n}") for n in range(500)])
    file = path / "cases.parquet"
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    with pytest.raises(store.StoreError, match=r"cases\.parquet: damaged"):
        store.open_run(path).table("cases")


def test_a_bad_run_is_named_and_does_not_hide_the_good_ones(tmp_path: Path) -> None:
    write(tmp_path, "good")
    write(tmp_path, "newer", started_at=datetime(2027, 1, 1, tzinfo=UTC))
    (tmp_path / "bad").mkdir()
    (tmp_path / ".half.partial-1").mkdir()
    good, bad = store.list_runs([tmp_path, tmp_path / "absent", tmp_path / ".." / tmp_path.name])
    assert [run.run_id for run in good] == ["newer", "good"]
    assert [broken.path.name for broken in bad] == ["bad"]
    assert "has no run.parquet" in bad[0].reason


def test_a_run_is_found_by_id_by_label_and_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", label="mine")
    assert store.find_run("r1", [tmp_path]).run_id == "r1"
    assert store.find_run("mine", [tmp_path]).run_id == "r1"
    assert store.find_run(str(path), []).run_id == "r1"
    with pytest.raises(store.StoreError, match="zzz: no such run; known runs: mine"):
        store.find_run("zzz", [tmp_path])


def test_runs_that_may_be_meant_are_named_first_and_then_the_newest(tmp_path: Path) -> None:
    for number, label in enumerate(("H200 conv2d", "after it", "stencil in 3-D", "before it", "last")):
        write(tmp_path, f"r{number}", label=label, started_at=datetime(2026, 1, 1 + number, tzinfo=UTC))

    def named(text: str) -> list[str]:
        with pytest.raises(store.StoreError) as refused:
            store.find_run(text, [tmp_path])
        return str(refused.value).partition("known runs: ")[2].split("; ")

    assert named("h200 conv2")[:2] == ["H200 conv2d", "last"]
    assert named("STENCIL")[:2] == ["stencil in 3-D", "last"]
    assert named("zzz") == ["last", "before it", "stencil in 3-D", "after it", "H200 conv2d"]


@pytest.mark.parametrize(("name", "makes"), [("trace.json.gz", "import"), ("bench.py", "record")])
def test_a_file_in_place_of_a_run_is_told_with_what_makes_a_run_of_it(tmp_path: Path, name: str, makes: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(store.StoreError, match=f"{name}: a file, and no run; `warpladder {makes} .*{name}` makes a run of it"):
        store.find_run(str(tmp_path / name), [tmp_path])


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOENT, errno.ENOTEMPTY])
def test_a_rename_that_is_done_but_reports_an_error_leaves_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As a network disk does that answers a repeated request."""
    real = Path.rename

    def rename(path: Path, to: Path) -> Path:
        real(path, to)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "rename", rename)
    write(tmp_path, "r1")
    assert [path.name for path in tmp_path.iterdir()] == ["r1"]
    assert store.open_run(tmp_path / "r1").run_id == "r1"


def test_a_run_is_named_by_what_finds_it_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "20260101T000000Z-a"
    assert store.Run(folder, {}, ()).argument == f"'{folder}'"
    assert store.Run(store.LOCAL / folder.name, {}, ()).argument == folder.name
    shipped = store.list_runs([store.RECORDED])[0][0]
    assert store.find_run(shipped.argument, [tmp_path, store.RECORDED]).path == shipped.path
