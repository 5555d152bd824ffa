"""What other programs take of the processors is told where it disturbs."""

import os
from pathlib import Path

import pytest

from warpladder.collectors.core import left_threads

TICKS = os.sysconf("SC_CLK_TCK")


def test_idle_time_and_waits_for_disks_are_no_load(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(f"cpu  {TICKS} {2 * TICKS} {3 * TICKS} 700 900 {4 * TICKS} {5 * TICKS} {6 * TICKS} 0 0\ncpu0 1 1 1 1\n")
    assert left_threads.busy_s(stat) == 21.0
    assert left_threads.busy_s(tmp_path / "none") is None


@pytest.mark.parametrize(("busy", "own", "said"), [(3.0, 0.5, "1.2 of 4 "), (1.4, 0.5, ""), (None, 0.5, "")])
def test_others_are_told_above_a_quarter_of_the_processors(
    busy: float | None, own: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"monotonic": iter((0.0, 2.0)), "busy": iter((0.0, busy)), "own": iter((0.0, own))}
    monkeypatch.setattr(left_threads.time, "monotonic", lambda: next(now["monotonic"]))
    monkeypatch.setattr(left_threads.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(left_threads, "busy_s", lambda: next(now["busy"]))
    monkeypatch.setattr(left_threads, "_own_s", lambda: next(now["own"]))
    text = left_threads.Load().text()
    assert text.startswith(f"other programs took {said}") if said else text == ""
