"""Settings of a process are restored after a variant changed them, and what ends a measuring thread is no verdict."""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warpladder.collectors.core.bench import Ended, Pass, Reading
from warpladder.collectors.core.process_state import ProcessState
from warpladder.collectors.core.rounds import Entry, Limits, SampleFailed, Turn, run_rounds
from warpladder.collectors.core.verdicts import Cell


def _descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_what_is_as_before_is_not_named() -> None:
    with ProcessState() as state:
        assert state.restore() == ()


@pytest.mark.parametrize(
    ("change", "get", "name"),
    [
        (lambda: np.seterr(over="raise", invalid="ignore"), np.geterr, "NumPy's error handling"),
        (lambda: os.chdir("/"), os.getcwd, "the working folder"),
        (lambda: setattr(sys, "stderr", None), lambda: sys.stderr, "sys.stderr"),
        (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters), "the filters of warnings"),
    ],
)
def test_a_changed_setting_is_restored_and_named(change: Callable[[], object], get: Callable[[], object], name: str) -> None:
    with ProcessState() as state:
        before = get()
        change()
        assert state.restore() == (name,)
        assert get() == before and state.restore() == ()


def test_a_filter_of_warnings_that_a_library_adds_stays() -> None:
    with warnings.catch_warnings(), ProcessState() as state:
        warnings.filterwarnings("ignore", "of a library")
        assert state.restore() == () and warnings.filters[0][0] == "ignore"


def test_a_folder_that_is_gone_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    with ProcessState() as state:
        os.chdir("/")
        (tmp_path / "gone").rmdir()
        assert state.restore() == ()


def test_the_descriptors_kept_aside_are_given_back() -> None:
    before = _descriptors()
    with ProcessState():
        assert _descriptors() > before
    assert _descriptors() == before


@pytest.mark.parametrize(("raised", "becomes"), [(Ended, Ended), (SystemExit, SampleFailed), (KeyboardInterrupt, SampleFailed)])
def test_what_a_variant_raises_is_its_verdict_and_what_ends_the_thread_is_not(
    raised: type[BaseException], becomes: type[BaseException]
) -> None:
    def take(entry: Entry, number: int) -> Reading:
        raise raised

    turn = Turn(0, 0, Limits(min_rounds=1, max_rounds=1))
    with pytest.raises(becomes):
        run_rounds([Entry(Cell("w", "v", "", "n=1"))], Pass("operation", "hot"), take, turn, np.random.default_rng(0), gpus=0)
