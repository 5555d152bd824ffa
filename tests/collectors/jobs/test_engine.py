"""The engine: processes of this machine, and what becomes of the tasks of a process that dies."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.collectors.jobs.tasks import dies_if_named, dies_once, squared
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.engine import run_all

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _plain_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's tests leave a page as `__main__`, which spawned processes would run."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def lost(task: object) -> str:
    return f"lost {task}"


def test_processes_give_the_result_of_each_task() -> None:
    assert sorted(run_all(squared, range(5), 2, lost)) == [0, 1, 4, 9, 16]


def test_a_task_whose_process_dies_is_tried_again(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    for path in paths[1:]:
        path.touch()
    assert sorted(run_all(dies_once, paths, 2, lost)) == ["0", "1", "2"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_always_kills_its_process_is_lost_alone(tmp_path: Path, workers: int) -> None:
    paths = [tmp_path / name for name in ("a", "killer", "b", "c", "d", "e")]
    found = sorted(run_all(dies_if_named, paths, workers, lost))
    assert found == ["a", "b", "c", "d", "e", f"lost {paths[1]}"]


def test_workers_fit_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"]
    for path in paths:
        path.write_bytes(b" " * 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    for free, workers in ((200 << 20, 1), (1 << 30, 3), (1 << 40, 3)):
        monkeypatch.setattr(engine, "_free_memory", lambda free=free: free)
        assert engine.worker_count(paths) == workers
