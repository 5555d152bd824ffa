"""The import of a job of small traces: its tables, ranks that are broken or missing, and calls that were interrupted."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.collectors.jobs.made_traces import Job
from warpladder.collectors.jobs import engine, job, rank
from warpladder.collectors.jobs.job import JobError, Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

TABLES = ("ranks", "iterations", "rank_kernels", "idle", "collectives")


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks are imported in this process, which has the modules already."""
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def imported(folder: Path, where: str | Path, notes: Notes | None = None) -> store.Run:
    run_id = import_job(Request(profiles(str(where)), ""), folder / "runs", notes or Notes())
    return store.open_run(folder / "runs" / run_id)


def texts(notes: Notes) -> str:
    return "\n".join(row["text"] for row in notes.rows)


@pytest.mark.slow
def test_the_rank_that_makes_the_others_wait_is_the_one_that_waits_least(tmp_path: Path) -> None:
    made = Job(ranks=4, slow={2: 1.3}, offset_us={1: 5000.0, 3: -700.0})
    waited = made.write(tmp_path / "job")
    run = imported(tmp_path, tmp_path / "job")
    ranks = run.table("ranks")
    assert run.info["kind"] == "job" and ranks["rank"].tolist() == [0, 1, 2, 3]
    assert ranks["wait_ns"].to_numpy() / 1000 == pytest.approx(waited, abs=0.15 * made.iterations * made.products)
    assert ranks["wait_ns"].sum() / 1000 == pytest.approx(waited.sum(), rel=1e-3)
    assert ranks["wait_ns"].idxmin() == 2 == ranks["last"].idxmax()
    assert ranks["late"].tolist() == [False, False, True, False] and ranks["cause"].tolist() == ["", "", "compute", ""]
    assert ranks["offset_ns"].to_numpy() - ranks["offset_ns"][0] == pytest.approx([0, 5e6, 0, -7e5], abs=200)
    assert ranks["collectives"].tolist() == [12] * 4
    iterations = run.table("iterations")
    assert iterations.groupby("rank")["wait_ns"].sum().tolist() == ranks["wait_ns"].tolist()
    assert set(run.table("collectives")["collective"]) == {"all_reduce", "all_gather"}


@pytest.mark.slow
def test_each_rank_is_a_run_of_its_own(tmp_path: Path) -> None:
    Job(ranks=2).write(tmp_path / "job")
    run = imported(tmp_path, tmp_path / "job")
    one = store.open_rank(run, 1)
    assert one.rows("kernels") == 24 and one.rows("operations") == 24
    kernels = run.table("rank_kernels").query("rank == 1")
    assert kernels["count"].sum() == 24
    durations = one.table("kernels")["end_ns"] - one.table("kernels")["start_ns"]
    assert kernels["total_ns"].sum() == durations.sum()


@pytest.mark.slow
def test_the_traces_of_several_ranks_are_one_on_the_clock_of_the_job(tmp_path: Path) -> None:
    Job(ranks=3, offset_us={1: 5000.0}).write(tmp_path / "job")
    run = imported(tmp_path, tmp_path / "job")
    both = store.ranks_of(run, (0, 1))
    kernels = both.table("kernels")
    assert both.rows("kernels") == len(kernels) == 48 and set(kernels["process"]) == {0, 1}
    ends = kernels[kernels["full_name"].str.contains("AllReduce")].groupby("process")["end_ns"].apply(list)
    assert np.abs(np.subtract(*ends)).max() < 200
    assert both.table("ranges")["range_id"].is_unique and both.table("operations")["operation_id"].is_unique
    inside = kernels.merge(both.table("ranges"), on="range_id")
    assert len(inside) == 48 and (inside["process_x"] == inside["process_y"]).all()
    scanned = [batch.to_pandas() for batch in both.scan("kernels", ["start_ns"])]
    assert pd.concat(scanned)["start_ns"].tolist() == kernels["start_ns"].tolist()
    with pytest.raises(store.StoreError, match="has no profile of rank 7"):
        store.ranks_of(run, (7,))


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "is cut off"),
        (lambda text: b"{}", "has no list traceEvents"),
        (lambda text: b'{"traceEvents": [{"ph": "X" "args": 3}]}', "is damaged"),
        (lambda text: b"", "has no list traceEvents"),
        (lambda text: b'{"traceEvents": [{"args": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}]}", "is damaged"),
        (lambda text: gzip.compress(text)[:-200], "cannot be read"),
    ],
)
def test_a_broken_rank_is_named_and_the_others_stand(tmp_path: Path, damage: object, said: str) -> None:
    Job(ranks=4).write(tmp_path / "job", zipped=False)
    broken = tmp_path / "job" / "rank-2.json"
    broken.write_bytes(damage(broken.read_bytes()))  # type: ignore[operator]
    notes = Notes()
    ranks = imported(tmp_path, tmp_path / "job", notes).table("ranks")
    assert ranks["status"].tolist() == ["ok", "ok", "ok", "broken"] and ranks["rank"].tolist() == [0, 1, 3, 2]
    assert said in ranks["detail"].iloc[3] and "rank-2.json" in ranks["detail"].iloc[3]
    assert "rank-2.json" in texts(notes)
    assert "the figures are of ranks 0, 1 and 3 only, of 4: the profile of rank 2 cannot be read; make it again" in texts(notes)


@pytest.mark.thorough
def test_a_rank_without_device_work_stands(tmp_path: Path) -> None:
    Job(ranks=4).write(tmp_path / "job", zipped=False)
    path = tmp_path / "job" / "rank-2.json"
    trace = json.loads(path.read_text())
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("cat") != "kernel"]
    path.write_text(json.dumps(trace))
    run = imported(tmp_path, tmp_path / "job")
    assert run.table("ranks")["status"].tolist() == ["ok"] * 4
    assert store.open_rank(run, 2).rows("kernels") == 0


@pytest.mark.slow
def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    Job(ranks=4).write(tmp_path / "job")
    (tmp_path / "job" / "rank-1.json.gz").unlink()
    notes = Notes()
    ranks = imported(tmp_path, tmp_path / "job", notes).table("ranks").set_index("rank")
    assert ranks["status"].to_dict() == {0: "ok", 2: "ok", 3: "ok", 1: "missing"}
    assert "the figures are of ranks 0, 2 and 3 only, of 4: the others have no profile here; give a folder with the" in texts(
        notes
    )


@pytest.mark.slow
def test_two_profiles_of_one_rank_are_refused(tmp_path: Path) -> None:
    Job(ranks=2).write(tmp_path / "job")
    (tmp_path / "job" / "again.json.gz").write_bytes((tmp_path / "job" / "rank-1.json.gz").read_bytes())
    with pytest.raises(JobError, match=r"has rank 1, as .* has; give one profile a rank"):
        imported(tmp_path, tmp_path / "job")
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.slow
def test_ranks_of_two_jobs_are_refused(tmp_path: Path) -> None:
    Job(ranks=2).write(tmp_path / "job")
    Job(ranks=4).write(tmp_path / "other")
    (tmp_path / "other" / "rank-3.json.gz").rename(tmp_path / "job" / "rank-3.json.gz")
    with pytest.raises(JobError, match=r"rank-3.json.gz: is of a job of 4 ranks, and others are of a job of 2"):
        imported(tmp_path, tmp_path / "job")


@pytest.mark.thorough
def test_differing_iterations_are_said(tmp_path: Path) -> None:
    Job(ranks=2, iterations=3).write(tmp_path / "job")
    Job(ranks=2, iterations=2).write(tmp_path / "short")
    (tmp_path / "short" / "rank-1.json.gz").replace(tmp_path / "job" / "rank-1.json.gz")
    notes = Notes()
    imported(tmp_path, tmp_path / "job", notes)
    assert "ranks have different iterations: 3 in all, 2 on every rank" in texts(notes)


@pytest.mark.slow
def test_a_job_without_collectives_says_so(tmp_path: Path) -> None:
    Job(ranks=2).write(tmp_path / "job", zipped=False)
    for path in (tmp_path / "job").iterdir():
        document = json.loads(path.read_text())
        document["traceEvents"] = [event for event in document["traceEvents"] if not event["name"].startswith("nccl")]
        path.write_text(json.dumps(document))
    notes = Notes()
    run = imported(tmp_path, tmp_path / "job", notes)
    assert "no rank has communication kernels" in texts(notes) and run.table("ranks")["wait_ns"].isna().all()


@pytest.mark.slow
def test_finished_ranks_are_kept_when_a_call_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Job(ranks=4).write(tmp_path / "job")
    request = Request(profiles(str(tmp_path / "job")), "")

    def interrupt(done: int, _: int, __: rank.Done) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_job(request, tmp_path / "runs", Notes(), interrupt)
    calls = []
    monkeypatch.setattr(job, "import_rank", lambda task: calls.append(task.path.name) or rank.import_rank(task))
    run_id = import_job(request, tmp_path / "runs", Notes())
    assert len(calls) < 4
    assert store.open_run(tmp_path / "runs" / run_id).table("ranks")["status"].tolist() == ["ok"] * 4
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [run_id]


@pytest.mark.parametrize("where", ["", "a**b", "[", "\0"])
def test_what_has_no_profiles_is_one_clear_line(tmp_path: Path, where: str) -> None:
    with pytest.raises(JobError, match=r"no profile .* there; give the folder of a job"):
        profiles(str(tmp_path / where))


def test_profiles_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"rank-{number}.json").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "1²2.json").touch()
    assert len(profiles(str(tmp_path / "other"))) == 1
    (tmp_path / "truth.txt").touch()
    assert [path.name for path in profiles(str(tmp_path))] == ["rank-1.json", "rank-9.json", "rank-10.json"]
    assert [path.name for path in profiles(str(tmp_path / "rank-1*.json"))] == ["rank-1.json", "rank-10.json"]


def tables_of(run: store.Run) -> dict[str, pd.DataFrame]:
    return {name: run.table(name) for name in TABLES}


def same(a: dict[str, pd.DataFrame], b: dict[str, pd.DataFrame]) -> bool:
    """Whether tables are equal but for the order of their rows."""
    for name in TABLES:
        keys = list(a[name].columns)
        left, right = (each[name].sort_values(keys, ignore_index=True) for each in (a, b))
        pd.testing.assert_frame_equal(left, right)
    return True


@pytest.mark.thorough
def test_each_number_of_bytes_of_a_piece_gives_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Job(ranks=2).write(tmp_path / "job", zipped=False)
    whole = tables_of(imported(tmp_path, tmp_path / "job"))
    for size in np.random.default_rng(1).integers(1500, 9000, 4).tolist():
        monkeypatch.setattr("warpladder.collectors.kineto.events.PIECE_BYTES", size)
        assert same(whole, tables_of(imported(tmp_path, tmp_path / "job")))
