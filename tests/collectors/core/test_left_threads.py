"""Threads that a variant leaves at work are named where they disturb others, and threads that rest are not."""

import threading
import time
from typing import Any

import numpy as np

from tests.collectors.core.judged import measured
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.left_threads import LeftThreads
from warpladder.collectors.core.rounds import Limits

CELL, OTHER = (Cell("w", name, "", "n=1") for name in ("first", "second"))
SOME = Limits(seconds=0.2, min_rounds=6, max_rounds=12)


def spin(seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        np.sqrt(np.ones(1000))


def warnings(variants: dict[str, Any]) -> list[tuple[str, str]]:
    found = measured(lambda rng: rng.random(20_000), np.sqrt, variants, SOME, table="diagnostics")
    rows = found.to_dict("records")
    return [(row["variant"], row["text"]) for row in rows if row["severity"] == "warning"]


def test_a_thread_that_works_while_the_others_are_timed_is_named() -> None:
    rest, end = threading.Event(), threading.Event()

    def work() -> None:
        while not end.is_set():
            if rest.is_set():
                time.sleep(0.0002)
            else:
                np.sqrt(np.ones(100_000))

    threads: list[threading.Thread] = []

    def villain(x: Any) -> Any:
        rest.set()
        if not threads:
            threads.append(threading.Thread(target=work, daemon=True))
            threads[0].start()
        y = np.sqrt(x)
        rest.clear()
        return y

    def honest(x: Any) -> Any:
        time.sleep(0.001)
        return np.sqrt(x)

    try:
        ((variant, text),) = warnings({"honest": honest, "villain": villain})
    finally:
        end.set()
    assert variant == "villain" and text.startswith("a thread of it works while others are timed: ")


def test_a_pool_that_rests_between_its_calls_disturbs_nobody() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def honest(x: Any) -> Any:
        time.sleep(0.001)
        return np.sqrt(x)

    with ThreadPoolExecutor(2) as pool:

        def pooled(x: Any) -> Any:
            return np.concatenate(list(pool.map(np.sqrt, np.split(x, 2))))

        assert warnings({"honest": honest, "pooled": pooled}) == []


def test_a_thread_of_the_file_is_of_the_cell_while_which_it_rests() -> None:
    end, rest = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=lambda: [spin(0.001) if not rest.is_set() else end.wait(0.004) for _ in iter(end.is_set, True)]
    )
    thread.start()
    try:
        threads = LeftThreads()
        for cell in (CELL, OTHER) * 2:
            (rest.set if cell == OTHER else rest.clear)()
            time.sleep(0.003)
            with threads.watched(cell):
                time.sleep(0.01)
    finally:
        end.set()
        thread.join()
    assert list(threads.disturbing()) == [OTHER]


def test_a_cell_that_left_a_thread_and_was_not_timed_is_no_reason_to_stop() -> None:
    end = threading.Event()
    threads = LeftThreads()
    for _ in range(2):
        threading.Thread(target=end.wait).start()
    threads.note(CELL)
    try:
        with threads.watched(OTHER):
            spin(0.003)
        assert threads.disturbing() == {}
    finally:
        end.set()
