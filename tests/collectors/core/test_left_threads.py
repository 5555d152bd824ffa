"""Threads that a variant leaves at work are named, and threads that rest when no variant runs are not."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.collectors.core.judged import measured
from warpladder.collectors.core import left_threads
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.left_threads import LeftThreads
from warpladder.collectors.core.rounds import Limits

CELL, OTHER = (Cell("w", name, "", "n=1") for name in ("first", "second"))
SOME = Limits(seconds=0.2, min_rounds=6, max_rounds=12)


@pytest.fixture
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What works counts as such also where other programs leave it little of the processors, and none for several milliseconds."""
    monkeypatch.setattr(left_threads, "_SHARE", 0.01)
    monkeypatch.setattr(left_threads, "_PAUSE_S", 0.02)


@contextmanager
def worker(works: Callable[[], bool]) -> Iterator[Callable[[], None]]:
    """Starts a thread that works as long as it is told, and else rests."""
    end = threading.Event()

    def work() -> None:
        while not end.is_set():
            if works():
                np.sqrt(np.ones(10_000))
            else:
                end.wait(0.002)

    thread = threading.Thread(target=work, daemon=True)
    try:
        yield thread.start
    finally:
        end.set()
        if thread.is_alive():
            thread.join()


def warnings(variants: dict[str, Any]) -> list[tuple[str, str]]:
    found = measured(lambda rng: rng.random(20_000), np.sqrt, variants, SOME, table="diagnostics")
    rows = found.to_dict("records")
    return [(row["variant"], row["text"]) for row in rows if row["severity"] == "warning"]


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.slow
def test_a_thread_that_works_while_the_others_are_timed_is_named() -> None:
    rests, started = threading.Event(), []
    with worker(lambda: not rests.is_set()) as start:

        def villain(x: Any) -> Any:
            rests.set()
            if not started:
                started.append(start())
            y = np.sqrt(x)
            rests.clear()
            return y

        ((variant, text),) = warnings({"honest": np.sqrt, "villain": villain})
    assert variant == "villain" and text.startswith("a thread or process of it works on when no variant runs: ")


@pytest.mark.slow
def test_a_pool_that_two_variants_share_is_held_against_none() -> None:
    pools: list[ThreadPoolExecutor] = []

    def pooled(x: Any) -> Any:
        if not pools:
            pools.append(ThreadPoolExecutor(2))
        return np.concatenate(list(pools[0].map(np.sqrt, np.split(x, 2))))

    try:
        assert warnings({"honest": np.sqrt, "pooled": pooled, "pooled too": lambda x: pooled(x)}) == []
    finally:
        pools[0].shutdown()


def at_work(monkeypatch: pytest.MonkeyPatch, works: Callable[[Cell], bool]) -> list[Cell]:
    """The cells that a thread of the file is held against, which works after the samples of some cells, on a clock of the test."""
    now, used, cells = [0], [0], (CELL, OTHER) * 12
    monkeypatch.setattr(left_threads, "_others", lambda: [7])
    monkeypatch.setattr(left_threads, "_processor_ns", lambda thread, kind: used[0])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    threads = LeftThreads()
    for cell in cells:

        def sleep(seconds: float, cell: Cell = cell) -> None:
            now[0] += int(seconds * 1e9)
            used[0] += int(seconds * 1e9) * works(cell)

        monkeypatch.setattr(time, "sleep", sleep)
        threads.pause(cell)
    return list(threads.at_work())


def test_a_thread_of_the_file_is_of_the_cell_after_whose_samples_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_work(monkeypatch, lambda cell: cell == OTHER) == [OTHER]


def test_a_thread_of_the_file_that_always_works_is_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_work(monkeypatch, lambda cell: True) == []


def test_without_other_threads_nothing_waits(monkeypatch: Any) -> None:
    monkeypatch.setattr(left_threads, "_others", list)
    monkeypatch.setattr(left_threads, "_children", list)
    monkeypatch.setattr(time, "sleep", lambda seconds: 1 / 0)
    threads = LeftThreads()
    threads.pause(CELL)
    assert threads.at_work() == {}


@pytest.mark.parametrize(
    ("rests_after_s", "waited_s"),
    [(0.05, pytest.approx(0.05, abs=0.001)), (9.0, pytest.approx(0.2, abs=0.001))],
    ids=["rests", "never"],
)
def test_a_cell_begins_when_the_threads_of_others_rest_and_does_not_wait_for_its_own_or_for_one_that_never_rests(
    monkeypatch: pytest.MonkeyPatch, rests_after_s: float, waited_s: float
) -> None:
    now = [0.0]
    threads = LeftThreads()
    monkeypatch.setattr(left_threads, "_others", lambda: [7])
    monkeypatch.setattr(left_threads, "_is_at_work", lambda thread: now[0] < rests_after_s)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    threads.note(CELL)
    threads.wait_for_others(CELL)
    assert now[0] == 0
    threads.wait_for_others(OTHER)
    assert now[0] == waited_s
    threads.wait_for_others(OTHER)
    assert now[0] == waited_s


def test_the_system_tells_whether_a_thread_is_at_work() -> None:
    busy, before = threading.Event(), left_threads._others()
    busy.set()
    with worker(busy.is_set) as start:
        start()
        (thread,) = set(left_threads._others()) - set(before)
        until(lambda: left_threads._is_at_work(thread))
        busy.clear()
        until(lambda: not left_threads._is_at_work(thread))


def until(there: Callable[[], bool]) -> None:
    """Wait until something is there, a minute at most."""
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.slow
def test_a_process_that_works_while_the_others_are_timed_is_named() -> None:
    children: list[subprocess.Popen[bytes]] = []

    def villain(x: Any) -> Any:
        for child in children:
            child.send_signal(signal.SIGSTOP)
        y = np.sqrt(x)
        if not children:
            children.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        children[0].send_signal(signal.SIGCONT)
        return y

    try:
        ((variant, text),) = warnings({"honest": np.sqrt, "villain": villain})
    finally:
        children[0].kill()
        children[0].wait()
    assert variant == "villain" and text.startswith("a thread or process of it works on when no variant runs: ")
