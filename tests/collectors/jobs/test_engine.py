"""The engine: processes of this machine and workers of Dask, and what becomes of the tasks of a process that dies."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.collectors.jobs.made_traces import Job
from tests.collectors.jobs.tasks import dies_if_named, dies_once, squared
from tests.collectors.jobs.test_job import same, tables_of
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.engine import EngineError, run_all
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.jobs.rank import Done
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

pytestmark = pytest.mark.slow
_PATIENCE_S = 120


@pytest.fixture(autouse=True)
def _plain_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's tests leave a page as `__main__`, which spawned processes would run."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def lost(task: object) -> str:
    return f"lost {task}"


def test_processes_give_the_result_of_each_task() -> None:
    assert sorted(run_all(squared, range(5), 2, "", lost)) == [0, 1, 4, 9, 16]


def test_a_task_whose_process_dies_is_tried_again(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    for path in paths[1:]:
        path.touch()
    assert sorted(run_all(dies_once, paths, 2, "", lost)) == ["0", "1", "2"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_always_kills_its_process_is_lost_alone(tmp_path: Path, workers: int) -> None:
    paths = [tmp_path / name for name in ("a", "killer", "b", "c", "d", "e")]
    found = sorted(run_all(dies_if_named, paths, workers, "", lost))
    assert found == ["a", "b", "c", "d", "e", f"lost {paths[1]}"]


def test_workers_fit_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"]
    for path in paths:
        path.write_bytes(b" " * 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    for free, workers in ((200 << 20, 1), (1 << 30, 3), (1 << 40, 3)):
        monkeypatch.setattr(engine, "_free_memory", lambda free=free: free)
        assert engine.worker_count(paths) == workers


@pytest.mark.thorough
def test_no_scheduler_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_CONNECT_S", 0.5)
    with pytest.raises(EngineError, match=r"tcp://127.0.0.1:9: no scheduler answers .* dask scheduler --host 127.0.0.1"):
        list(run_all(squared, [1], 1, "tcp://127.0.0.1:9", lost))


@dataclass
class Cluster:
    """A scheduler and two workers of Dask, each a process of its own."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for both tests, once all of it has started: the first loses a worker, the last its scheduler."""
    from distributed import Client

    folder = tmp_path_factory.mktemp("dask")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "cwd": Path(__file__).parents[3]}
    port = address.rsplit(":", 1)[1]
    scheduler = subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"], **quiet)
    worker = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(folder)]
    workers = [subprocess.Popen(worker, **quiet) for _ in range(2)]
    try:
        with Client(address, timeout=_PATIENCE_S, set_as_default=False) as client:  # beside other tests they start slowly
            client.wait_for_workers(len(workers), timeout=_PATIENCE_S)
        yield Cluster(address, scheduler, workers)
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def imported(tmp_path: Path, scheduler: str, ended: Callable[[int, int, Done], object] = lambda *_: None) -> store.Run:
    request = Request(profiles(str(tmp_path / "job")), "", 1, scheduler)
    return store.open_run(tmp_path / "runs" / import_job(request, tmp_path / "runs", Notes(), ended))


@pytest.mark.thorough
@pytest.mark.xdist_group("dask")
def test_a_cluster_gives_the_same_tables_though_a_worker_is_killed(tmp_path: Path, cluster: Cluster) -> None:
    Job(ranks=6, slow={1: 1.2}).write(tmp_path / "job")

    def kill(done: int, *_: object) -> None:
        if done == 1:
            cluster.workers[0].kill()

    found = imported(tmp_path, cluster.address, kill)
    assert found.table("ranks")["status"].tolist() == ["ok"] * 6
    assert same(tables_of(imported(tmp_path, "")), tables_of(found))


@pytest.mark.thorough
@pytest.mark.xdist_group("dask")
def test_ranks_stay_when_the_scheduler_is_lost(tmp_path: Path, cluster: Cluster) -> None:
    Job(ranks=6).write(tmp_path / "job")

    def kill(done: int, *_: object) -> None:
        if done == 2:
            cluster.scheduler.kill()

    with pytest.raises(
        EngineError, match=r"the scheduler was lost .* give the same command again: ranks that are imported stay"
    ):
        imported(tmp_path, cluster.address, kill)
    taken_over = []
    run = imported(tmp_path, "", lambda done, _, each: taken_over.append((done, each.path.name)))
    assert run.table("ranks")["status"].tolist() == ["ok"] * 6
    assert len(taken_over) == 6
