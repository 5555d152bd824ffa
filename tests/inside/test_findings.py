import numpy as np
import pytest

from warpladder.collectors.inside import marks, ptx
from warpladder.dashboard.core.inside import Cause, Inside
from warpladder.dashboard.text import inside as text

CELL = {"workload": "w", "variant": "v", "config": "", "case": "n=1", "kernel": "k"}


def row(experiment: str, what: str, value: float, lines: str = "", note: str = "") -> dict[str, object]:
    ends = {"low": 0.98 * value, "high": 1.02 * value}
    return {**CELL, "experiment": experiment, "what": what, "value": value, **ends, "unit": "", "lines": lines, "note": note}


def rows_of(*further: dict[str, object], sms: float = 132, blocks: float = 132) -> list[dict[str, object]]:
    return [
        row("time", "original", 40_000),
        row("fact", "blocks", blocks),
        row("fact", "multiprocessors", sms),
        row("fact", "resident blocks of a multiprocessor", 1),
        *further,
    ]


LOADS, STORES, SHARED = "loads from global memory", "stores to global memory", "accesses of shared memory"


@pytest.mark.parametrize(
    ("rows", "cause", "lines"),
    [
        ([row("without", LOADS, 12_000, "3")], Cause.LOADS, "3"),
        (
            [row("without", LOADS, 12_000, "3,4"), row("fact", "address from the load before", 1, "4")],
            Cause.POINTER_CHASING,
            "4",
        ),
        (
            [
                row("without", LOADS, 12_000, "3,4"),
                *(row("access", what, value, "3", LOADS) for what, value in (("times", 90), ("sectors over the least", 1))),
                *(row("access", what, value, "4", LOADS) for what, value in (("times", 90), ("sectors over the least", 8))),
            ],
            *(Cause.SCATTERED_LOADS, "4"),
        ),
        (
            [
                row("without", SHARED, 12_000, "3"),
                *(row("access", what, value, "5", SHARED) for what, value in (("times", 90), ("passes of the banks", 32))),
            ],
            *(Cause.BANK_CONFLICTS, "5"),
        ),
        (
            [
                row("without", STORES, 12_000, "3"),
                row("access", "times", 9, "3", STORES),
                row("access", "different addresses of a lane", 1 / 32, "3", STORES),
            ],
            *(Cause.SAME_ADDRESS_STORES, "3"),
        ),
        ([row("without", "the limit of registers", 10_000)], Cause.SPILLS, ""),
        ([row("fact", "active lanes of an instruction", 4)], Cause.DIVERGENCE, ""),
    ],
)
def test_the_cause_and_its_line(rows: list[dict[str, object]], cause: Cause, lines: str) -> None:
    first = Inside(rows_of(*rows)).findings()[0]
    assert (first.cause, first.lines) == (cause, lines)


@pytest.mark.parametrize(("blocks", "cause"), [(32, Cause.TOO_FEW_BLOCKS), (133, Cause.TAIL), (264, Cause.IMBALANCE)])
def test_multiprocessors_without_a_block(blocks: float, cause: Cause) -> None:
    rows = rows_of(row("fact", "time with a block, of all multiprocessors", 0.3), blocks=blocks)
    (finding,) = Inside(rows).findings()
    assert finding.cause is cause and finding.share == pytest.approx(0.7)


def test_of_a_kernel_among_others_multiprocessors_and_lanes_explain_no_more_than_its_part() -> None:
    part = row("fact", "time of the kernel, of all launches", 0.5), row("fact", "launches", 9)
    (few,) = Inside(rows_of(*part, row("fact", "time with a block, of all multiprocessors", 0.3), blocks=32)).findings()
    assert few.share == pytest.approx(0.35)
    (idle,) = Inside(rows_of(*part, row("fact", "active lanes of an instruction", 8))).findings()
    assert (idle.cause, idle.share) == (Cause.DIVERGENCE, pytest.approx(0.375))
    unknown = row("fact", "launches", 99), row("fact", "time with a block, of all multiprocessors", 0.3)
    assert Inside(rows_of(*unknown)).findings() == [] and Inside(rows_of(*unknown)).about == "k (of 99 launches)"
    first = text.lines(rows_of(*part)).splitlines()[0]
    assert first == "w n=1  v  k (50% of the time of 9 launches)"


def test_a_class_that_is_not_known_is_no_finding_and_a_time_without_ends_is_its_own_interval() -> None:
    alone = {**row("without", LOADS, 10_000), "low": None, "high": None}
    (found,) = Inside(rows_of(alone, row("without", "work of tomorrow", 10_000))).findings()
    assert found.cause is Cause.LOADS and found.without_ns == (10_000, 10_000, 10_000)


def test_marks_with_one_name_are_one() -> None:
    marks = row("delay", "barrier at line 4", 0.7), row("delay", "loop at line 2", 0.8), row("delay", "barrier at line 4", 0.9)
    parts = row("stage", "to the end", 0.5), row("stage", "up to line 4", 0.3), row("stage", "to the end", 0.2)
    found = Inside(rows_of(*marks, *parts))
    assert [(each["what"], each["value"], each["low"]) for each in found.delays()] == [
        ("barrier at line 4, the largest of 2 copies", 0.9, pytest.approx(0.98 * 0.9)),
        ("loop at line 2", 0.8, pytest.approx(0.98 * 0.8)),
    ]
    assert [(each["what"], each["value"]) for each in found.stages()] == [("to the end", 0.7), ("up to line 4", 0.3)]


def test_lanes_explain_what_nothing_else_does() -> None:
    rows = rows_of(row("without", LOADS, 10_000), row("fact", "active lanes of an instruction", 8))
    assert [(each.cause, each.share) for each in Inside(rows).findings()] == [
        (Cause.LOADS, 0.75),
        (Cause.DIVERGENCE, 0.25 * 0.75),
    ]


def test_a_cause_in_doubt_counts_half() -> None:
    rows = rows_of(
        row("without", "double-precision arithmetic", 4_000, note="conversions went too"), row("without", "barriers", 20_000)
    )
    assert [(each.cause, each.doubt) for each in Inside(rows).findings()] == [
        (Cause.BARRIERS, ""),
        (Cause.FP64, "conversions went too"),
    ]


def test_the_sentence_has_the_time_without_the_work_and_what_to_try() -> None:
    rows = rows_of(row("without", "barriers", 12_000, "7,9"))
    assert text.sentence(Inside(rows)) == (
        "Barriers (lines 7,9): if they were free, 12.0 us (11.8 us to 12.2 us) in place of 40.0 us. "
        "Try this: have fewer barriers, or smaller groups that wait."
    ).replace(" us", " µs")


def test_a_symbol_of_numba_is_named_by_its_function() -> None:
    symbol = "_ZN8__main__4blurB2v1B22cw51cXTLSUwv1sDUaKthqaE5ArrayIfLi2E1C7mutable7alignedEx"
    assert Inside([{**each, "kernel": symbol} for each in rows_of()]).about == "__main__::blur"


def test_a_kernel_that_nothing_explains_is_no_guess() -> None:
    assert text.sentence(Inside(rows_of(row("without", LOADS, 39_000)))).startswith("No class of work explains 10% of the time")


def test_the_table_has_what_is_left_out_the_largest_saving_first() -> None:
    lines = text.lines(rows_of(row("without", LOADS, 39_000, "3"), row("without", "barriers", 12_000, "7"))).splitlines()
    assert [line.split("  ")[1] for line in lines if line.startswith(("  barriers", "  loads"))] == [
        "barriers",
        "loads from global memory",
    ]


def test_an_assembler_that_makes_other_code_is_told() -> None:
    assert "+20%" in text.lines(rows_of(row("time", "assembled", 48_000)))
    assert "assembled" not in text.lines(rows_of(row("time", "assembled", 40_400)))


def test_the_time_of_multiprocessors_with_a_block_is_their_union() -> None:
    records = np.zeros(4, [("start_ns", "u8"), ("end_ns", "u8"), ("sm", "u4")])
    records["start_ns"], records["end_ns"], records["sm"] = [10, 15, 30, 12], [20, 25, 40, 22], [0, 0, 0, 1]
    assert marks.busy_ns(records) == 15 + 10 + 10
    assert marks.busy_ns(marks.until(records, 10)) == 10 + 8


def test_warps_with_another_task_do_not_lower_the_passes_of_a_mark() -> None:
    records = np.zeros(4, [("start_ns", "u8"), ("end_ns", "u8"), ("sm", "u4"), ("passed", "u4", (2,))])
    records["passed"] = [[8, 0], [8, 0], [0, 2], [0, 4]]
    records["end_ns"], records["start_ns"], records["sm"] = [10, 20, 10, 20], [0, 10, 0, 10], [0, 0, 1, 1]
    assert marks.passes(records).tolist() == [8, 3]
    assert marks.in_sequence(records) == 2


def test_blocks_have_the_time_of_their_warps_in_each_stage() -> None:
    probes = marks.Probes(ptx.Module(()), ("load", "add", "load"), warps=2, records=8)
    records = np.zeros(8, probes.dtype)
    records["start_ns"][:4], records["end_ns"][:4] = [100, 100, 150, 150], [150, 140, 250, 250]
    records["sm"][:4], records["cycles"][:4] = [3, 3, 5, 5], [100, 80, 200, 200]
    records["spent"][:4] = [[50, 50, 0], [40, 20, 20], [100, 50, 50], [100, 50, 50]]
    shown = [tuple(row.values()) for row in marks.blocks_of(records, probes)]
    # Half a nanosecond a cycle; the mean of the two warps.
    assert shown == [
        (3, 0, 0, 50, "load", 28),
        (3, 0, 0, 50, "add", 18),
        (5, 1, 50, 150, "load", 75),
        (5, 1, 50, 150, "add", 25),
    ]


def test_of_many_blocks_those_of_the_first_and_the_last_multiprocessor_to_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "_MOST_BLOCKS", 4)
    probes = marks.Probes(ptx.Module(()), ("to the end",), warps=1, records=12)
    records = np.zeros(12, probes.dtype)
    records["sm"] = np.arange(12) % 6
    records["start_ns"], records["end_ns"] = 1000, 2000 + 100 * (records["sm"] ^ 1)
    assert {row["multiprocessor"] for row in marks.blocks_of(records, probes)} == {1, 4}
