"""Ids of processes and threads of any size, sign and type."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.kineto.made_events import host, imported, kernel, launch
from warpladder.collectors.kineto.events import Event
from warpladder.collectors.kineto.threads import Threads
from warpladder.collectors.trace.model import process_of

#: Pairs that are equal in their last 24 bits, negative, beyond 32 bits, and texts.
PAIRS: list[tuple[Any, Any]] = [
    (5, 5 + (1 << 24)),
    (140_221_334_000_000, 140_221_334_000_000 + (1 << 40)),
    (-1, (1 << 24) - 1),
    (-7, -8),
    ("stream 7", "stream 8"),
    ("main", "worker"),
    ("7 (python)", 7),
    (2**63, 2**64 + 5),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_work_of_two_threads_stays_that_of_two_threads(tmp_path: Path, one: Any, other: Any) -> None:
    """Each thread has an operator of 100 us around 300 us; the kernels of 20 us and 250 us are launched within them."""
    events = [
        host("aten::one", 0, 300, tid=one),
        launch(10, 1, tid=one),
        kernel(50, 20, 1),
        host("aten::other", 5, 300, tid=other),
        launch(20, 2, tid=other),
        kernel(80, 250, 2),
    ]
    run, _ = imported(tmp_path, events)
    operations = run.table("operations").set_index("name")
    assert operations["device_ns"].to_dict() == {"aten::one": 20_000, "aten::other": 250_000}
    assert operations["parent_id"].isna().all()
    threads = operations["thread"].to_dict()
    assert len(set(threads.values())) == 2
    for name, tid in (("aten::one", one), ("aten::other", other)):
        if isinstance(tid, int) and abs(tid) < 1 << 62:
            assert threads[name] == tid
    assert set(run.table("api_calls")["thread"]) == set(threads.values())


def test_numbers_of_threads_are_those_of_the_trace_or_free_ones() -> None:
    threads = Threads()
    given = [("[TP00] 100", "a 7"), ("[TP01] 100", 7), (100, "8"), ("100", 8), (None, "b"), (-3, -3)]
    ids = threads.global_ids([Event(pid=pid, tid=tid) for pid, tid in given])
    assert len(set(ids.tolist())) == 5, "(100, '8') and ('100', 8) are one thread"
    assert threads.process_numbers(process_of(ids)).tolist()[2:] == [100, 100, 0, 3]
    assert len(set(threads.process_numbers(process_of(ids)).tolist())) == 5
    assert threads.thread_numbers(ids).tolist()[1] == 7
    assert threads.thread_numbers(ids).tolist()[5] == -3


def test_random_ids_are_told_apart_as_python_does() -> None:
    draw = random.Random(1)
    drawn = [draw.choice((draw.randrange(-(10**6), 10**15), f"t{draw.randrange(50)}", draw.randrange(50))) for _ in range(300)]
    pairs = [(draw.choice(drawn), draw.choice(drawn)) for _ in range(2000)]
    threads = Threads()
    ids = [
        each
        for begin in range(0, 2000, 100)
        for each in threads.global_ids([Event(pid=p, tid=t) for p, t in pairs[begin : begin + 100]])
    ]
    of_id: dict[int, set[Any]] = {}
    for number, pair in zip(ids, pairs, strict=True):
        of_id.setdefault(int(number), set()).add(pair)
    assert all(len(each) == 1 for each in of_id.values())
    assert len(of_id) == len(set(pairs))
