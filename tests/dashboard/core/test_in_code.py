"""What warps wait for, in code and samples counted by hand."""

import math

import pytest

from warpladder.dashboard.core.in_code import OTHER, Coded, Profile, coded, lanes, lines_of, of_sectors
from warpladder.dashboard.core.inside import Cause
from warpladder.dashboard.core.sass import Code
from warpladder.data import metrics
from warpladder.data.names import Work

CODE = """LDG.E R4, desc[UR4][R2.64]
BAR.SYNC.DEFER_BLOCKING 0x0
F2F.F64.F32 R8, R4
DADD R8, R8, R8
STG.E.64 desc[UR4][R2.64], R8
EXIT"""


def profile(sass: str, samples: dict[int, dict[str, int]], **counters: dict[int, int]) -> Profile:
    """A kernel whose line numbers are those of the text, from 11 on. Each sample is in a state."""
    by_state: dict[str, dict[int, int]] = {metrics.SAMPLED: {at: sum(each.values()) for at, each in samples.items()}}
    for at, states in samples.items():
        for state, count in states.items():
            by_state.setdefault(metrics.SAMPLED_IN + state, {})[at] = count
    number = len(sass.split("\n"))
    executed = {
        metrics.EXECUTED: dict.fromkeys(range(number), 100),
        metrics.THREADS_EXECUTED: dict.fromkeys(range(number), 3200),
    }
    return Profile(Code.of(sass, "\n".join(str(11 + at) for at in range(number))), {**executed, **by_state, **counters})


def test_a_sample_counts_for_what_the_instruction_waits_for() -> None:
    states = {
        2: {"long_scoreboard": 10, "barrier": 20, "selected": 1},
        3: {"short_scoreboard": 5, "wait": 1},
        5: {"drain": 4},
    }
    found = profile(CODE, states)
    assert found.waited_for == {0: 10, 1: 20, 2: 6, 3: 1, 4: 4, 5: 0}
    assert {work: round(41 * part) for work, part in found.by_work.items()} == {
        Work.GLOBAL_LOADS: 10,
        Work.BARRIERS: 20,
        Work.CONVERSIONS: 6,
        Work.FP64: 1,
        Work.GLOBAL_STORES: 4,
        OTHER: 0,
    }


def test_a_branch_waits_for_the_accesses_of_its_own_block() -> None:
    block = "LDS R5, [R0]\nISETP.NE.AND P0, PT, R4, 0x200, PT\n@P0 BRA 0x0\nISETP.NE.AND P0, PT, R4, 0x9, PT\n@P0 BRA 0x0\nEXIT"
    found = profile(block, {2: {"short_scoreboard": 9, "wait": 2}, 4: {"short_scoreboard": 3}})
    assert found.waited_for == {0: 9, 2: 2, 4: 3}


def test_a_second_work_is_told_where_the_first_does_not_suffice() -> None:
    slow = profile(CODE, {2: {"barrier": 60, "long_scoreboard": 50}, 3: {"wait": 90}})
    fast = profile(CODE, {3: {"wait": 100}})
    # Of 110 µs that the slower one spends more, 60 are of the barrier and 50 of the load; the rest takes 10 µs less.
    found = coded([slow], [fast], (200_000.0, 100_000.0))
    assert found and (found.cause, found.lines, found.share) == (Cause.BARRIERS, "12", pytest.approx(1.0))
    assert found.less == "barriers take 0 ns in place of 60.0 µs and loads from global memory take 0 ns in place of 50.0 µs"


def test_a_second_work_that_makes_up_little_is_not_told() -> None:
    slow = profile(CODE, {2: {"barrier": 130, "long_scoreboard": 3}, 3: {"wait": 67}})
    fast = profile(CODE, {3: {"wait": 100}})
    # The slower one spends 133 µs more, 130 of them at the barrier, and 33 less on the rest.
    found = coded([slow], [fast], (200_000.0, 100_000.0))
    assert found and found.less == "barriers take 0 ns in place of 130 µs"
    assert found.share == pytest.approx(130 / 133)


def test_few_samples_name_nothing() -> None:
    # 9 and 4 samples differ by 5, and the standard error of their difference is 3.6.
    slow, fast = (profile(CODE, {2: {"barrier": number}, 3: {"wait": 10}}) for number in (9, 4))
    assert coded([slow], [fast], (19_000.0, 14_000.0)) is None
    more = [profile(CODE, {2: {"barrier": 10 * number}, 3: {"wait": 100}}) for number in (9, 4)]
    found = coded(more[:1], more[1:], (190_000.0, 140_000.0))
    assert found and found.cause is Cause.BARRIERS


def test_a_load_of_the_pass_before_is_found_through_the_loop() -> None:
    chain = "MOV R4, RZ\nIMAD.WIDE R2, R4, 0x4, R6\nLDG.E R4, desc[UR4][R2.64]\n@P0 BRA 0x10\nEXIT"
    found = profile(chain, {1: {"long_scoreboard": 7}})
    assert found.waited_for == {1: 0, 2: 7}
    assert found.is_chased
    counted = "MOV R4, RZ\nIMAD.WIDE R2, R4, 0x4, R6\nLDG.E R5, desc[UR4][R2.64]\nIADD3 R4, R4, 0x1, RZ\n@P0 BRA 0x10\nEXIT"
    assert not profile(counted, {}).is_chased


def test_the_work_whose_time_differs_the_most_is_named_with_its_line() -> None:
    slow = profile(CODE, {2: {"long_scoreboard": 90}, 3: {"wait": 10}})
    fast = profile(CODE, {2: {"long_scoreboard": 5}, 3: {"wait": 5}})
    # 90 of 100 µs and 10 of 20 µs are of the load: 80 of the 80 µs between them.
    assert coded([slow], [fast], (100_000.0, 20_000.0)) == Coded(
        Cause.LOADS,
        pytest.approx(1.0),
        "11",
        "loads from global memory take 10.0 µs in place of 90.0 µs",
        "loads from global memory take 90.0 µs in place of 10.0 µs",
        "100 instructions, most of them LDG",
    )
    assert coded([fast], [slow], (20_000.0, 100_000.0)) is None
    assert coded([profile(CODE, {3: {"wait": 9}, 5: {"wait": 1}})], [fast], (100_000.0, 50_000.0)).cause is Cause.FP64  # type: ignore[union-attr]


def test_lanes_that_go_different_ways_are_divergence() -> None:
    few = dict.fromkeys(range(6), 800)
    slow = profile(CODE, {3: {"wait": 10}}, **{metrics.THREADS_EXECUTED: few})
    fast = profile(CODE, {3: {"wait": 10}})
    assert (lanes([slow]), lanes([fast])) == (8.0, 32.0)
    found = coded([slow], [fast], (4000.0, 1000.0))
    assert found and (found.cause, found.share) == (Cause.DIVERGENCE, pytest.approx(1.0))
    assert found.words(less=True) == (
        "32.0 of 32 lanes are active in an instruction in place of 8.00, at lines 11, 12, 13, 14 of the slower one "
        "(the lanes of a warp go different ways)"
    )


@pytest.mark.parametrize(
    ("counters", "cause", "detail"),
    [
        ({metrics.SECTORS: {4: 100}}, Cause.SAME_ADDRESS_STORES, "at least 8 lanes of a warp store to one address"),
        (
            {metrics.SECTORS: {4: 3200}, metrics.SECTORS_IDEAL: {4: 800}},
            Cause.SCATTERED_STORES,
            "4.00 times the sectors that the bytes need",
        ),
        ({metrics.SECTORS: {4: 800}, metrics.SECTORS_IDEAL: {4: 800}}, Cause.STORES, "100 instructions, most of them STG.64"),
    ],
)
def test_stores_are_told_apart_by_their_sectors(counters: dict[str, dict[int, int]], cause: Cause, detail: str) -> None:
    slow = profile(CODE, {4: {"lg_throttle": 90}, 3: {"wait": 10}}, **counters)
    found = coded([slow], [profile(CODE, {3: {"wait": 10}})], (10_000.0, 1000.0))
    assert found and (found.cause, found.detail, found.lines) == (cause, detail, "15")


def test_scattered_accesses_are_those_with_more_sectors_beyond_the_least() -> None:
    ideal = {metrics.SECTORS_IDEAL: {0: 400, 4: 800}}
    for sectors, cause, lines in (
        ({0: 1600, 4: 900}, Cause.SCATTERED_LOADS, "11"),
        ({0: 500, 4: 3200}, Cause.SCATTERED_STORES, "15"),
    ):
        assert of_sectors([profile(CODE, {}, **{metrics.SECTORS: sectors}, **ideal)]) == (cause, lines)


def test_narrow_loads_and_lines_without_weight() -> None:
    narrow = CODE.replace("LDG.E", "LDG.E.U8")
    slow = profile(narrow, {0: {"lg_throttle": 90}, 3: {"wait": 10}})
    found = coded([slow], [profile(CODE.replace("LDG.E", "LDG.E.128"), {3: {"wait": 10}})], (10_000.0, 1000.0))
    assert found and (found.cause, found.detail) == (Cause.SPLIT_VECTORS, "8.00 bits of a lane at a time in place of 128")
    assert lines_of([slow], lambda each: {}) == ""


@pytest.mark.parametrize(
    ("sectors", "cause"),
    [(1600, Cause.SPLIT_VECTORS), (3200, Cause.SCATTERED_LOADS)],
    ids=["four parts of a vector", "a sector for each lane"],
)
def test_narrow_loads_that_touch_more_sectors_than_the_parts_of_a_vector_are_scattered(sectors: int, cause: Cause) -> None:
    of_load = {metrics.SECTORS: {0: sectors}, metrics.SECTORS_IDEAL: {0: 400}}
    slow = profile(CODE, {0: {"lg_throttle": 90}, 3: {"wait": 10}}, **of_load)
    fast = profile(CODE.replace("LDG.E", "LDG.E.128"), {3: {"wait": 10}})
    found = coded([slow], [fast], (10_000.0, 1000.0))
    assert found and found.cause is cause


def test_idle_lanes_are_behind_the_instructions_that_are_executed_for_them() -> None:
    """Eight times the instructions with 4 of 32 lanes, in five times the time: the slower one issues them 1.6 times as fast."""
    few = {metrics.EXECUTED: dict.fromkeys(range(6), 800), metrics.THREADS_EXECUTED: dict.fromkeys(range(6), 3200)}
    slow, fast = profile(CODE, {3: {"wait": 500}}, **few), profile(CODE, {3: {"wait": 100}})
    found = coded([slow], [fast], (500_000.0, 100_000.0))
    assert found and (found.cause, found.share) == (Cause.DIVERGENCE, 1.0)
    # Twice the instructions are not of the lanes: then their excess over the time stays unexplained.
    more = {metrics.EXECUTED: dict.fromkeys(range(6), 1600), metrics.THREADS_EXECUTED: dict.fromkeys(range(6), 6400)}
    found = coded([profile(CODE, {3: {"wait": 500}}, **more)], [fast], (500_000.0, 100_000.0))
    assert found and found.share == pytest.approx(1 - abs(1 - math.log(8) / math.log(5)))


ADDS = """LDG.E R4, desc[UR4][R2.64]
FADD R5, R4, R4
STG.E desc[UR4][R2.64], R5
REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R6.64], R9
EXIT"""


def test_what_waits_behind_atomic_operations_is_theirs_where_it_is_no_more_work_than_before() -> None:
    # Of 900 µs more, warps wait 500 for the load and 300 at the store, which both variants have; 100 at the operation itself.
    slow = profile(ADDS, {1: {"long_scoreboard": 550}, 2: {"lg_throttle": 350}, 3: {"lg_throttle": 100}})
    rare = {metrics.THREADS_EXECUTED: {**dict.fromkeys((0, 1, 2, 4), 3200), 3: 100}}
    fast = profile(ADDS, {1: {"long_scoreboard": 50}, 2: {"lg_throttle": 50}}, **rare)
    found = coded([slow], [fast], (1_000_000.0, 100_000.0))
    assert found and (found.cause, found.lines, found.share) == (Cause.ATOMICS, "14", pytest.approx(1.0))
    assert found.less == "atomic operations, with all that waits behind them, take 0 ns in place of 900 µs"
    # Without more of them, it is the load whose time differs most.
    found = coded([slow], [profile(ADDS, {1: {"long_scoreboard": 50}, 2: {"lg_throttle": 50}})], (1_000_000.0, 100_000.0))
    assert found and found.cause is Cause.LOADS
