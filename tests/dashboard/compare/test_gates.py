"""A gate over recordings of a loaded machine does not fail without a change, and one over a quiet machine fails at 10 %."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare.changes import Comparison, Side, compare
from warpladder.dashboard.compare.levels import reading
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.compare import Gate

pytestmark = pytest.mark.slow

NAMES = ("v01_base", "v02_tile", "v03_mine")
ROUNDS = 21


def recording(
    run_id: str, random: np.random.Generator, *, load: float, processes: int, mine: float = 1.0, edit: str = ""
) -> RunData:
    """A run of three variants.

    Args:
        load: the standard deviation of what slows a run, a process, a cell in a process and a sample; a fraction.
        mine: how many times as long the last variant takes.
        edit: a change of its source.
    """
    timed = []
    process = np.arange(ROUNDS) * processes // ROUNDS
    shared = random.normal(0, load) + random.normal(0, load / 2, processes)[process]
    for name in NAMES:
        own = shared + random.normal(0, load / 4, processes)[process] + load / 4 * random.standard_t(3, ROUNDS)
        times = 1e5 * np.exp(own) * (mine if name == NAMES[-1] else 1.0)
        timed += [{**row, "process": int(process[row["round"]])} for row in samples(name, times.astype(int).tolist())]
    declared = [variant(name, source_sha256=f"{name}{edit if name == NAMES[-1] else ''}") for name in NAMES]
    made = run_of(declared, timed)
    return replace(made, info={**made.info, "run_id": run_id})


def fails(found: Comparison) -> bool:
    return bool(Gate().failures(found))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("processes", [1, 3])
def test_no_pair_of_five_recordings_of_one_file_on_a_loaded_machine_fails(processes: int) -> None:
    random = np.random.default_rng(7)
    runs = [recording(f"r{place}", random, load=0.2, processes=processes) for place in range(5)]
    known = [reading(run).medians("w") for run in runs]
    pairs = [compare(Side(a), Side(b), history=lambda _: known) for a, b in combinations(runs, 2)]
    assert len(pairs) == 10 and not any(map(fails, pairs))
    apart = [change.b_ns.value / change.a_ns.value for found in pairs for change in found.changes]
    assert max(apart) > 1.2, "the recordings differ by far more than what a gate looks for"


@pytest.mark.thorough
@pytest.mark.parametrize("processes", [1, 3])
def test_an_edit_that_changes_no_time_rarely_fails_on_a_loaded_machine(processes: int) -> None:
    random = np.random.default_rng(8)
    runs = [recording(f"r{place}", random, load=0.2, processes=processes, edit=f"{place}") for place in range(9)]
    known = [reading(run).medians("w") for run in runs]
    failed = sum(fails(compare(Side(a), Side(b), history=lambda _: known)) for a, b in pairwise(runs))
    assert failed <= 1  # of 8


@pytest.mark.parametrize("seed", range(2))
def test_10_percent_more_time_fails_on_a_quiet_machine(seed: int) -> None:
    random = np.random.default_rng(seed)
    before = recording("before", random, load=0.003, processes=3)
    after = recording("after", random, load=0.003, processes=3, mine=1.1, edit="x")
    found = compare(Side(before), Side(after))
    assert fails(found) and [change.variant for change in found.of("slower")] == [NAMES[-1]]
    # The same in the other direction is no failure.
    assert not fails(compare(Side(after), Side(before)))
