"""The planted flaws in a recording with counters of an H200: the sentence about each pair names the flaw and its line."""

from pathlib import Path

import pytest

from benchmarks.planted_flaws import NAMES, OF_LAUNCH
from warpladder.dashboard.core.in_code import ENOUGH
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.core.why import between
from warpladder.data import store


@pytest.fixture(scope="module")
def data() -> RunData:
    ((run,), _) = store.list_runs([Path(__file__).parent / "counted"])
    return load(store.open_run(run.path))


@pytest.mark.parametrize("flaw", NAMES)
def test_the_flaw_is_named_with_its_line(data: RunData, flaw: str) -> None:
    found = between(data, data, "planted_inside", f"flaw={flaw}", ("v01_slow", ""), ("v02_fast", ""))
    assert found and found.named in NAMES[flaw] and found.explained >= ENOUGH
    assert flaw in OF_LAUNCH or ", at line" in found.because
