"""Planted differences between two runs of an H200, and within each, are found; identical code is called tied."""

from functools import cache
from pathlib import Path

import pytest

from tests.planted_verdicts import called, check
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import store

pytestmark = pytest.mark.slow

RUNS = Path(__file__).resolve().parents[2] / "fixtures" / "planted"


@cache
def run(name: str) -> RunData:
    """`warpladder record --workload planted.py --collector cuda_events --cases full`, twice on one H200."""
    return run_data.load(store.open_run(RUNS / name))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("a", "b"), [("a", "b"), ("b", "a"), ("a", "a"), ("b", "b")])
def test_planted_differences_are_found_and_identical_code_is_tied(a: str, b: str) -> None:
    check(run(a), run(b))


def test_the_page_that_documents_compare_states_these_counts() -> None:
    """docs/compare.md, "How well it detects changes"."""
    assert called(run("a"), run("b")) == {"tied": 130}
    assert called(run("a"), run("b"), "base", "plus_1", most_ns=20_000)["slower"] == 0
    assert called(run("a"), run("b"), "base", "plus_1", least_ns=20_000)["slower"] == 15
    assert called(run("a"), run("b"), "base", "plus_3") == {"slower": 26}
    assert called(run("a"), run("a"), "base", "plus_1")["slower"] == 19
