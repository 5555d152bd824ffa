"""Why one variant is faster: the planted pairs as an H100 recorded them, and rows counted by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.why import planted_pairs
from warpladder.dashboard.core import counted, counters, inside, limits, why
from warpladder.dashboard.core.in_code import Coded
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.core.why import Cause, between, explain, factors_of
from warpladder.dashboard.text import further
from warpladder.data import metrics, store
from warpladder.data.naming import CellName

#: `tests/why/planted_pairs.py`, recorded with --counters on an H100.
RUN = Path(__file__).parents[2] / "fixtures" / "planted-pairs" / "run"
SLOW, FAST = ("v01_slow", ""), ("v02_fast", "")


@pytest.fixture(scope="module")
def data() -> RunData:
    return load(store.open_run(RUN))


@pytest.mark.slow
@pytest.mark.parametrize("cause", planted_pairs.PAIRS)
def test_the_planted_cause_is_named_in_both_directions(data: RunData, cause: str) -> None:
    case = f"cause={cause}"
    forward = between(data, data, "planted_pairs", case, SLOW, FAST)
    back = between(data, data, "planted_pairs", case, FAST, SLOW)
    assert forward and back
    assert forward.cause == back.cause == Cause(cause)
    assert forward.ratio == pytest.approx(1 / back.ratio)
    assert forward.explained == pytest.approx(back.explained) and forward.explained > 0.6


def test_the_fixture_has_every_pair() -> None:
    assert set(planted_pairs.PAIRS) == {case.split("=")[1] for case in store.open_run(RUN).table("cases")["case"]}
    assert len(planted_pairs.PAIRS) == 9, "eight causes, and equal code"


def test_sentences_have_the_figures_of_both(data: RunData) -> None:
    def sentence(cause: str, times_ns: tuple[float, float] | None = None) -> str:
        found = between(data, data, "planted_pairs", f"cause={cause}", SLOW, FAST, times_ns)
        assert found
        return found.sentence("slow", "fast")

    assert sentence("bytes", (200.0, 100.0)).startswith(
        "fast is 2.00× as fast as slow: it moves 1.99× fewer bytes of DRAM (252 MB in place of 502 MB), at line 7 of the slower one."
    )
    assert "a load or store of a warp touches 4.00 sectors of 32 bytes in place of 32.0 (coalesced access)" in sentence(
        "coalescing"
    )
    assert "passes of shared memory for bank conflicts in place of 1.04 G" in sentence("conflicts")
    assert "0 loads and stores of local memory (spilled registers) in place of 65.6 M" in sentence("spills")
    assert "a scheduler holds 14.9 warps in place of 7.46 (shared memory limits the slower one)" in sentence("occupancy")
    assert "1.95× fewer instructions (284 M in place of 553 M), and FMA is the limit of the slower one" in sentence(
        "instructions"
    )
    assert "with 1.00 waves of blocks in place of 1.01" in sentence("tail")
    assert "a warp waits for the fixed latency of its last instruction" in sentence("latency")
    assert sentence("nothing").startswith("No difference in work between fast and slow")


def test_a_slower_one_is_said_to_be_slower(data: RunData) -> None:
    found = between(data, data, "planted_pairs", "cause=bytes", FAST, SLOW, (100.0, 200.0))
    assert found and found.sentence("fast", "slow").startswith(
        "slow takes 2.00× the time of fast: it moves 1.99× as many bytes of DRAM (502 MB in place of 252 MB), at line 7."
    )


def test_samples_that_contradict_the_profiler_are_not_explained(data: RunData) -> None:
    found = between(data, data, "planted_pairs", "cause=bytes", SLOW, FAST, (100.0, 110.0))
    assert found and found.cause is Cause.UNKNOWN
    assert found.sentence("slow", "fast") == "fast takes 1.10× the time of slow. The counters do not explain it."
    tied = between(data, data, "planted_pairs", "cause=bytes", SLOW, FAST, (100.0, 101.0))
    assert tied and tied.sentence("slow", "fast") == "fast takes the time of slow."


def test_cells_without_counters_have_no_explanation(data: RunData) -> None:
    assert between(data, data, "planted_pairs", "cause=bytes", ("none", ""), FAST) is None
    assert between(data, data, "planted_pairs", "none", SLOW, FAST) is None


def test_the_work_of_both_stands_in_a_table(data: RunData) -> None:
    found = between(data, data, "planted_pairs", "cause=instructions", SLOW, FAST)
    assert found
    by_name = {each.name: each for each in found.work}
    assert by_name["FFMA"].ratio == pytest.approx(1.0, abs=0.01), "Horner's rule has as many multiply-adds"
    assert by_name["FMUL"].b < 0.01 * by_name["FMUL"].a, "and no powers"
    assert by_name["instructions"].changed and not by_name["bytes of device memory"].changed
    assert {each.name for each in found.times} >= {"DRAM", "L2", "FMA", "issue slots"}


def test_factors_make_up_the_ratio_of_the_times(data: RunData) -> None:
    for case in data.cases["case"]:
        rows = counters.rows_by_cell(data, "planted_pairs", case)
        factors = factors_of(rows[SLOW], rows[FAST])
        assert factors
        assert sum(factors.values()) == pytest.approx(math.log(rows[SLOW]["time_ns"] / rows[FAST]["time_ns"]), abs=1e-9)


def test_executed_instructions_add_up_to_the_kernels_own_counter(data: RunData) -> None:
    for case in data.cases["case"]:
        for cell, row in counters.rows_by_cell(data, "planted_pairs", case).items():
            assert why.executed(data.code, CellName("planted_pairs", *cell, case)).total() == row["instructions"]


def _row(**values: Any) -> dict[str, Any]:
    """A row of `counters.by_config` in which everything is 1, or not counted."""
    columns = [
        *(column for group in counters._SHOWN.values() for column in group),
        "dram_read_bytes",
        "load_sectors",
        "store_sectors",
    ]
    units = {unit.column: 1.0 for unit in limits.UNITS}
    stalls = {f"stall_{reason}": 1.0 for reason in metrics.STALLS}
    cycles = {"sm_cycles": 1000.0, "active_cycles": 1000.0, "limiter": ""}
    return {**dict.fromkeys(columns, 1.0), **units, **stalls, **cycles, "time_ns": 1000.0, **values}


def test_factors_that_undo_each_other_are_named_together() -> None:
    """A quarter of the instructions, each of which takes twice as long: the kernel takes half the time."""
    slow = _row(instructions=400.0, time_ns=2000.0, sm_cycles=2000.0, active_cycles=2000.0, warps=4.0)
    fast = _row(instructions=100.0, warps=4.0, stall_wait=20.0)
    found = explain(slow, fast, {})
    assert found and found.cause is Cause.INSTRUCTIONS
    assert found.explained == pytest.approx(1.0)
    assert found.because == (
        "it executes 100 instructions in place of 400, while a warp takes 38.0 cycles from one instruction to the next in place of 19.0"
    )


def test_the_limiter_of_warps_is_told_where_the_slower_one_has_fewer() -> None:
    few, many = {"warps": 2.0, "limiter": "registers"}, {"warps": 4.0, "limiter": "shared memory"}
    less, _ = why._words_of(Cause.OCCUPANCY, few, many)
    assert less == "a scheduler holds 4.00 warps in place of 2.00 (registers limit the slower one)"
    less, _ = why._words_of(Cause.OCCUPANCY, many, few)
    assert less == "a scheduler holds 2.00 warps in place of 4.00"


def test_equal_work_at_another_rate_is_not_explained() -> None:
    slow = _row(dram_percent=80.0, time_ns=1100.0, instructions=300.0, sm_cycles=1100.0, active_cycles=1100.0)
    fast = _row(dram_percent=88.0, instructions=100.0)
    found = explain(slow, fast, {})
    assert found and found.cause is Cause.RATE
    assert found.sentence("slow", "fast") == (
        "fast is 1.10× as fast as slow: it keeps DRAM busy for 88.0 % of its time in place of 80.0 %, with equal work. The counters do "
        "not explain why."
    )


def test_a_busy_unit_whose_count_is_equal_is_named_without_a_count() -> None:
    slow = _row(l2_percent=90.0, time_ns=2000.0, l2_sectors=1.1e6, sm_cycles=2000.0, active_cycles=2000.0)
    fast = _row(l2_percent=90.0, l2_sectors=1e6)
    found = explain(slow, fast, {})
    assert found and found.because == "its work keeps L2 busy for 2.00× less time"


def test_a_grid_that_explains_too_little_stands_behind_the_code_that_explains_enough() -> None:
    def of(cause: inside.Cause, share: float) -> Coded:
        return Coded(cause, share, "", "", "", "")

    few, scattered = of(inside.Cause.TOO_FEW_BLOCKS, 0.68), of(inside.Cause.SCATTERED_LOADS, 0.99)
    assert why._likeliest(few, scattered) is scattered
    assert why._likeliest(few, of(inside.Cause.LOADS, 0.6)) is few
    assert why._likeliest(enough := of(inside.Cause.TOO_FEW_BLOCKS, 0.8), scattered) is enough
    assert why._likeliest(None, scattered) is scattered
    assert why._likeliest(None, None) is None


def test_without_counters_of_time_nothing_is_explained() -> None:
    found = explain(_row(time_ns=float("nan")), _row(), {})
    assert found.cause is Cause.UNKNOWN and found.sentence("a", "b") == "The time of a or b is not known."


@pytest.mark.thorough
def test_a_summary_ends_with_the_limit_and_the_step_to_the_fastest(data: RunData) -> None:
    (limit,) = further.limits(data)
    assert limit.startswith("planted_pairs cause=nothing: v01_slow, the fastest, runs at 72.9 % of the peak of DRAM"), (
        "no step leads to it"
    )
    every = further.limits(data, every=True)
    assert len(every) == 2 * len(planted_pairs.PAIRS)
    assert any("bytes of DRAM" in line for line in every)


def test_the_fastest_is_explained_against_the_last_slower_rung_of_its_precision(data: RunData) -> None:
    ns = {"v01": 9.0, "v02": 5.0, "v03": 7.0, "v04": 4.1, "v05": 4.0, "v06": 6.0}
    rows = [{"variant": name, "role": "rung", "timed_ns": time, "time_ns": time} for name, time in ns.items()]
    kinds = dict.fromkeys(ns, "fp32") | {"v03": "tf32"}
    variants = pd.DataFrame([{"workload": "mine", "variant": name, "precision": kind} for name, kind in kinds.items()])
    mine = replace(data, variants=variants)

    def pair(*names: str) -> tuple[str, str]:
        return counted.pair_to_explain(mine, "mine", pd.DataFrame([row for row in rows if row["variant"] in names]))

    assert pair(*ns) == ("v02", "v05")
    assert pair("v03", "v05") == ("v03", "v05"), "of another precision, where its own has none"
    assert pair("v04", "v05", "v06") == ("v06", "v05"), "a later one"
    assert pair("v04", "v05") == ("v04", "v05"), "as fast"
