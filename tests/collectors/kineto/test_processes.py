"""Traces that tools merged from those of several processes."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.collectors.kineto.made_events import Event, document, host, imported, kernel, launch
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job
from warpladder.collectors.kineto.owners import Launches, Places, Untold, Work, owners, rank_in
from warpladder.collectors.kineto.parse import OneOf, SeveralProcesses, import_trace
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.commands.imports import import_command
from warpladder.data import store

STEPS, KERNELS = 3, 4


def rank_of_job(rank: int, device: int | None = None, late: float = 300.0) -> list[Event]:
    """The trace of a rank: steps of 1 ms with four operators, each of which launches a kernel of 100 + 10 x rank us.

    The correlation numbers are those of every rank. Rank N begins N x `late` us later.
    """
    pid, gpu, events, correlation = 100 * (rank + 1), rank if device is None else device, [], 0
    for step in range(STEPS):
        begin = 1000.0 * step + rank * late
        events.append(host(f"ProfilerStep#{step}", begin, 990, "user_annotation", pid, pid))
        for number in range(KERNELS):
            correlation += 1
            at = begin + 200 * number
            events += [host("aten::mm", at, 50, pid=pid, tid=pid), launch(at + 10, correlation, pid, pid)]
            events.append(kernel(at + 20, 100 + 10 * rank, correlation, gpu, gpu))
    return events


def with_labels(rank: int, events: list[Event], form: str) -> list[Event]:
    return [{**event, "pid": form.format(rank=rank, pid=event["pid"])} for event in events]


def _shuffled(ranks: list[list[Event]]) -> list[Event]:
    events = [event for each in ranks for event in each]
    random.Random(1).shuffle(events)
    return events


def _joined(ranks: list[list[Event]]) -> list[Event]:
    return [event for each in ranks for event in each]


def _offset(ranks: list[list[Event]]) -> list[Event]:
    """As a tool that adds the rank to every number does."""
    return [
        {**event, "pid": event["pid"] + 10_000 * rank, "args": {**event["args"]} | ({"correlation": event["args"]["correlation"] + 1000 * rank} if "correlation" in event["args"] else {})}
        for rank, events in enumerate(ranks)
        for event in events
    ]  # fmt: skip


def _labelled(form: str) -> Callable[[list[list[Event]]], list[Event]]:
    return lambda ranks: _shuffled([with_labels(rank, events, form) for rank, events in enumerate(ranks)])


#: Form of the merged trace -> how it is made, and whether every rank has GPU 0.
FORMS: dict[str, tuple[Callable[[list[list[Event]]], list[Event]], bool]] = {
    "sorted anyhow, a GPU each": (_shuffled, False),
    "one after another, a GPU each": (_joined, False),
    "one after another, GPU 0 each": (_joined, True),
    "numbers with an offset": (lambda ranks: _shuffled([_offset([[], *ranks][: rank + 2])[-len(ranks[rank]) :] for rank in range(len(ranks))]), True),
    "label and id": (_labelled("[TP{rank:02d}] {pid}"), True),
    "label around the id": (_labelled("[TP{rank:02d} {pid}]"), True),
    "rank and id": (_labelled("[rank {rank}] {pid}"), True),
    "rank alone": (_labelled("rank{rank}"), True),
    "Rank with a blank": (_labelled("Rank {rank}"), True),
    "two labels": (_labelled("[TP{rank:02d}-PP00] {pid}"), True),
}  # fmt: skip


def check(runs: list[store.Run], late: float = 300.0) -> None:
    """Each rank has its own kernels, operators and steps."""
    for rank, run in enumerate(runs):
        kernels = run.table("kernels").sort_values("start_ns")
        starts = [1000.0 * step + rank * late + 200 * number for step in range(STEPS) for number in range(KERNELS)]
        assert ((kernels["launch_start_ns"] - 10**18) / 1000).tolist() == [start + 10 for start in starts]
        assert ((kernels["end_ns"] - kernels["start_ns"]) / 1000).tolist() == [100 + 10 * rank] * len(starts)
        operations = run.table("operations")
        assert operations["device_ns"].tolist() == [1000 * (100 + 10 * rank)] * len(starts)
        assert operations["launches"].tolist() == [1] * len(starts)
        assert run.rows("ranges") == STEPS and run.rows("api_calls") == len(starts)


def ranks_of(job: store.Run, ranks: int) -> list[store.Run]:
    assert job.info["kind"] == "job" and job.table("ranks")["rank"].tolist() == list(range(ranks))
    return [store.open_rank(job, rank) for rank in range(ranks)]


def part(path: Path, number: int, folder: Path) -> store.Run:
    """One process of a merged trace, as the worker of a job imports it."""
    found = import_trace(path, folder, "", None, [], Notes(), one=OneOf(number, number))
    return store.open_run(folder / found.run_id)


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_a_merged_trace_is_read_process_by_process(tmp_path: Path, form: str, ranks: int) -> None:
    merge, same_gpu = FORMS[form]
    path = tmp_path / "merged.json"
    events = merge([rank_of_job(rank, 0 if same_gpu else None) for rank in range(ranks)])
    path.write_text(json.dumps(document(events)))
    with pytest.raises(SeveralProcesses) as refused:
        import_trace(path, tmp_path / "runs", "", None, [], Notes())
    assert len(refused.value.names) == ranks
    check([part(path, number, tmp_path / "runs") for number in range(ranks)])


@pytest.mark.thorough
def test_processes_of_two_files_are_ranks_of_one_job(tmp_path: Path) -> None:
    """Of two hosts, each with a trace of two ranks; the ids of processes name the ranks, in another order than the files."""
    paths = [tmp_path / "host-0.json", tmp_path / "host-1.json"]
    for path, ranks in zip(paths, ((2, 3), (0, 1)), strict=True):
        parts = [with_labels(rank, rank_of_job(rank, 0), "[WR{rank:02d}] {pid}") for rank in ranks]
        path.write_text(json.dumps(document(_shuffled(parts))))
    notes = Notes()
    run_id = import_job(Request(paths, "", workers=1), tmp_path / "runs", notes)
    check(ranks_of(store.open_run(tmp_path / "runs" / run_id), 4))
    assert any("ranks are numbered in the order of the ids of processes" in row["text"] for row in notes.rows)
    assert [each.name for each in (tmp_path / "runs").iterdir()] == [run_id]


@pytest.mark.slow
def test_the_plain_command_makes_a_job_of_a_merged_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "worker_count", lambda paths: 1)
    path = tmp_path / "merged [TP].json"
    path.write_text(json.dumps(document(_shuffled([rank_of_job(rank) for rank in range(2)]))))
    done = CliRunner().invoke(import_command, [str(path), "--data-dir", str(tmp_path / "runs"), "--label", "both"])
    assert done.exit_code == 0, done.output
    assert "holds the traces of several processes" in done.stderr
    run = store.find_run("both", [tmp_path / "runs"])
    assert run.run_id in done.stdout.split()
    check(ranks_of(run, 2))
    done = CliRunner().invoke(
        import_command, [str(path), "--data-dir", str(tmp_path / "more"), "--variant-from", r"nvtx:(?P<variant>\w+)"]
    )
    assert done.exit_code == 2 and "holds the traces of 2 processes (100, 200)" in done.stderr


@pytest.mark.parametrize("helper", [200, "worker 7"])
def test_a_process_that_launched_nothing_makes_no_job(tmp_path: Path, helper: int | str) -> None:
    """A loader's operators, and calls that launch nothing, one of them with the correlation of a kernel."""
    events = [
        *rank_of_job(0),
        host("load", 0, 500, pid=helper, tid=1),
        host("cudaGetDeviceCount", 2000, 5, "cuda_runtime", helper, 1, correlation=3),
        host("cudaFree", 2010, 5, "cuda_runtime", helper, 1, correlation=90_000),
    ]
    run, _ = imported(tmp_path, events)
    assert set(run.table("kernels")["process"]) == {100}
    assert (run.table("kernels")["launch_start_ns"] < run.table("kernels")["start_ns"]).all()
    assert run.table("operations").groupby("name")["launches"].sum().to_dict() == {"aten::mm": STEPS * KERNELS, "load": 0}


def test_one_process_on_two_gpus_is_one_rank(tmp_path: Path) -> None:
    events = [each for event in rank_of_job(0) for each in [event]]
    for place, event in enumerate(events):
        if event["cat"] == "kernel" and place % 2:
            event.update(pid=1)
            event["args"]["device"] = 1
    run, _ = imported(tmp_path, events)
    assert run.info["kind"] == "import" and set(run.table("kernels")["process"]) == {100}
    assert run.table("operations")["launches"].tolist() == [1] * STEPS * KERNELS


def test_work_that_cannot_be_told_apart_is_refused(tmp_path: Path) -> None:
    """Two ranks in step on one GPU, their events mixed: each kernel may be of either."""
    events = _shuffled([rank_of_job(rank, 0, late=1.0) for rank in range(2)])
    with pytest.raises(
        ReportError, match=r"\Atrace\.json: holds the traces of several processes, and [^\n]* cannot be told[^\n]*\Z"
    ):
        imported(tmp_path, events)


def test_a_merged_trace_is_no_run_of_one_process(tmp_path: Path) -> None:
    with pytest.raises(SeveralProcesses, match=r"processes \(100, 200\)"):
        imported(tmp_path, _joined([rank_of_job(rank) for rank in range(2)]))


def test_ranks_of_gpus_alone_are_told_by_their_labels(tmp_path: Path) -> None:
    """Some tools merge only the kernels."""
    kernels = [[event for event in rank_of_job(rank, 0) if event["cat"] == "kernel"] for rank in range(2)]
    path = tmp_path / "merged.json"
    path.write_text(
        json.dumps(document(_shuffled([with_labels(rank, each, "[TP{rank:02d}] {pid}") for rank, each in enumerate(kernels)])))
    )
    for rank in range(2):
        times = part(path, rank, tmp_path / "runs").table("kernels")
        assert ((times["end_ns"] - times["start_ns"]) / 1000).tolist() == [100 + 10 * rank] * STEPS * KERNELS


@pytest.mark.parametrize(
    ("name", "rank"),
    [("[TP03] 100", 3), ("[TP03 100]", 3), ("[rank 12] 7", 12), ("rank5", 5), ("Rank 5", 5), ("[TP01-PP02] 3", None), (100, None), ("python 100", None), ("5 (python)", None)],
)  # fmt: skip
def test_the_rank_in_the_id_of_a_process(name: int | str, rank: int | None) -> None:
    assert rank_in(name) == rank


def test_random_ranks_on_gpus_of_their_own_are_told_apart() -> None:
    """Ranks that run alike within microseconds, in any order in the file; each GPU has the number of another rank."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ranks, count = int(rng.integers(2, 6)), 400
        gpu = rng.permutation(ranks)
        rows = []
        for rank in range(ranks):
            launched = np.sort(rng.integers(0, 20_000_000, count)) + rng.integers(0, 2_000_000)
            start = launched + rng.integers(5_000, 60_000, count)
            rows += [
                (rank, int(gpu[rank]), number + 1, int(a), int(b))
                for number, (a, b) in enumerate(zip(launched, start, strict=True))
            ]
        table = np.array(rows, np.int64)[rng.permutation(len(rows))]
        process, device, correlation, launched, start = table.T
        place = np.arange(len(table))
        work = Work(device + ranks, device, correlation, start, place)
        spread = np.arange(ranks)
        places = Places(spread, spread, np.full(ranks, len(table)))
        names = [*(1000 + each for each in range(ranks)), *range(ranks)]
        assert (owners(work, Launches(process, correlation, launched), places, names) == process).all(), seed


def test_ranks_in_step_with_the_same_numbers_are_not_guessed() -> None:
    launched = np.tile(np.arange(1, 101) * 1000, 2)
    process, correlation = np.repeat([0, 1], 100), np.tile(np.arange(1, 101), 2)
    work = Work(process + 2, process, correlation, launched + 50_000_000, np.arange(200))
    with pytest.raises(Untold):
        owners(
            work,
            Launches(process, correlation, launched),
            Places(np.array([0, 1]), np.array([0, 1]), np.array([198, 199])),
            [10, 11, 0, 1],
        )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sorted anyhow, a GPU each", "label and id"])
def test_synchronisations_are_those_of_their_process(tmp_path: Path, form: str) -> None:
    """Each rank waits for its stream at the end, in 5 + rank us, with a correlation number that the other ranks have too."""
    merge, same_gpu = FORMS[form]
    parts = []
    for rank in range(2):
        pid, gpu = 100 * (rank + 1), 0 if same_gpu else rank
        wait = host("Stream Sync", 5000 + 100 * rank, 5 + rank, "cuda_sync", gpu, 7, stream=7, correlation=900, device=gpu)
        call = host("cudaStreamSynchronize", 4990 + 100 * rank, 20, "cuda_runtime", pid, pid, correlation=900)
        parts.append([*rank_of_job(rank, gpu), call, wait])
    path = tmp_path / "merged.json"
    path.write_text(json.dumps(document(merge(parts))))
    for rank in range(2):
        rows = part(path, rank, tmp_path / "runs").table("synchronizations")
        assert (rows["end_ns"] - rows["start_ns"]).tolist() == [1000 * (5 + rank)]
