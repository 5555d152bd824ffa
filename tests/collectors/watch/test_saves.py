"""Saves are noticed once, however an editor makes them."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warpladder.collectors.watch.saves import Saves
from warpladder.workloads.declare import neighbours


def never() -> bool:
    return False


def in_two_writes(file: Path) -> None:
    file.write_text("")
    time.sleep(0.1)
    file.write_text("whole")


def by_renaming(file: Path) -> None:
    beside = file.with_name(".file.py.swp")
    beside.write_text("whole")
    time.sleep(0.1)
    beside.rename(file)


def by_moving_the_old_one_away(file: Path) -> None:
    file.rename(file.with_name("file.py~"))
    time.sleep(0.5)
    file.write_text("whole")


@pytest.mark.parametrize("save", [in_two_writes, by_renaming, by_moving_the_old_one_away])
def test_a_save_is_one_however_it_is_made(save: Callable[[Path], None], tmp_path: Path) -> None:
    file, other = tmp_path / "file.py", tmp_path / "other.py"
    file.write_text("text")
    saves = Saves([file, other])
    assert not saves.seen()
    thread = threading.Thread(target=save, args=(file,))
    thread.start()
    while not saves.seen():
        time.sleep(0.01)
    assert saves.settle([file], never) == [file]
    assert file.read_text() == "whole"
    thread.join()
    assert not saves.seen()


def test_a_file_that_appears_is_a_save_and_one_that_is_added_is_not(tmp_path: Path) -> None:
    saves = Saves([tmp_path / "helpers.py"])
    (tmp_path / "helpers.py").write_text("new")
    assert saves.seen()
    (tmp_path / "more.py").write_text("text")
    saves.watch([tmp_path / "helpers.py", tmp_path / "more.py"])
    assert saves.seen(), "a save before the list grew still counts"
    assert saves.settle([], never) == [tmp_path / "helpers.py"]


def test_an_edit_within_a_second_that_keeps_the_size_is_loaded_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "factor.py"
    for value in (1, 2):
        file.write_text(f"factor = {value}\n")
        assert neighbours.load(file).factor == value
    assert not (tmp_path / "__pycache__").exists()
