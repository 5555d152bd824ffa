"""The section Machine code, against a run that was written and counted by hand: queries, words, chart, export."""

from dataclasses import replace
from time import process_time

import pytest

from tests.synthetic import made_code
from tests.synthetic.made_code import CASE, NAIVE, RENAMED, TILED, WORKLOAD
from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.core.sass import Code, Unit
from warpladder.dashboard.views.why.machine_code import query
from warpladder.dashboard.views.why.machine_code.query import Family, Kind, Row
from warpladder.data import store
from warpladder.data.naming import CellName

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_code.write(tmp_path_factory.mktemp("code"))))


@pytest.fixture(scope="module")
def uncounted(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_code.write(tmp_path_factory.mktemp("code"), "uncounted", counted=False)))


def at(data: RunData, variant: str, config: str = "", launch: int = 0) -> tuple[CellName, Kernel]:
    cell = CellName(WORKLOAD, variant, config, CASE)
    return cell, data.code.kernels(cell)[launch]


def code(lines: tuple[tuple[int, str], ...]) -> Code:
    return Code.of("\n".join(text for _, text in lines), "\n".join(str(line) for line, _ in lines))


def test_cells_with_launches_are_offered_and_the_fastest_rung_comes_first(data: RunData) -> None:
    assert data.code.workloads == [WORKLOAD]
    assert query.cases(data, WORKLOAD) == [CASE]
    assert query.variants(data, WORKLOAD, CASE) == {
        "v01_naive": ["block=8", "block=16"], "v02_shared": ["block=8"], "v03_register_tile": [""], "cudnn": [""],
    }  # fmt: skip
    assert query.first_variant(data, WORKLOAD, CASE) == "v03_register_tile"
    assert query.first_config(data, WORKLOAD, CASE, "v01_naive") == "block=16", "it reaches 19 % and the other one 17 %"


def test_the_main_launch_executes_most_or_is_the_longest(data: RunData) -> None:
    assert query.main_launch(data, at(data, "v02_shared", "block=8")[0]) == 1, "4 and 16 instructions"
    assert query.main_launch(data, at(data, "v01_naive", "block=8")[0]) == 0


def test_the_answer_names_the_hot_loop_and_the_spills(data: RunData, uncounted: RunData) -> None:
    assert query.answer(data, *at(data, "v01_naive", "block=8")) == (
        "The hot loop of 6 instructions (lines 5 to 6) is 33 % floating-point arithmetic; 1 local load and 1 local store, none of them in "
        "the hot loop."
    )
    assert query.answer(uncounted, *at(uncounted, "v03_register_tile")) == (
        "The hot loop of 6 instructions (lines 5 to 6) is 33 % floating-point arithmetic; no local loads or stores."
    )
    assert query.answer(data, *at(data, "v02_shared", "block=8")) == (
        "The kernel of 4 instructions (lines 2 to 9) has no loop and is 0 % floating-point arithmetic; no local loads or stores."
    )


def test_arithmetic_outside_of_the_hot_loop_is_told(uncounted: RunData) -> None:
    cell, kernel = at(uncounted, "v01_naive", "block=8")
    outside = replace(kernel, code=code((*NAIVE, *((8, "FADD R1, R1, R2") for _ in range(3)))))
    assert "is 33 % floating-point arithmetic, with 2 of the kernel's 5 such instructions; " in query.answer(
        uncounted, cell, outside
    )


def test_the_mix_counts_the_hot_loop_the_kernel_and_what_was_executed(data: RunData, uncounted: RunData) -> None:
    frame = query.mix(data, *at(data, "v01_naive", "block=8"))
    assert list(frame.columns) == ["unit", "name", "hot", "all", "executed"]
    assert frame.to_numpy().tolist() == [
        ["integer and logic", "IADD3", 1, 2, 260], ["integer and logic", "ISETP", 1, 1, 250],
        ["fp32", "FFMA", 2, 2, 500],
        ["control flow", "BRA", 1, 3, 260], ["control flow", "EXIT", 0, 1, 1], ["control flow", "NOP", 0, 1, 0],
        ["global memory", "LDG.128", 1, 1, 250], ["global memory", "LDG", 0, 1, 10], ["global memory", "STG", 0, 1, 1],
        ["local memory", "LDL", 0, 1, 1], ["local memory", "STL", 0, 1, 1],
        ["moves", "MOV", 0, 1, 1], ["moves", "S2R", 0, 1, 1],
        ["constants", "LDC", 0, 1, 1],
    ]  # fmt: skip
    assert "executed" not in query.mix(uncounted, *at(uncounted, "v01_naive", "block=8"))


def test_loops_are_listed_with_offsets_lines_and_depth(data: RunData) -> None:
    assert query.loops(data, *at(data, "v01_naive", "block=8")).round(1).to_numpy().tolist() == [
        ["0x0030", "0x00b0", "4", 0, 3, 0.0, False],
        ["0x0040", "0x0090", "5 to 6", 1, 6, 33.3, True],
    ]


def test_columns_of_counters_have_ideals_and_reasons(data: RunData, uncounted: RunData) -> None:
    executed, samples, sectors = query.heats(data, *at(data, "v01_naive", "block=8"))
    assert [heat["name"] for heat in (executed, samples, sectors)] == ["executed", "samples", "sectors"]
    assert sum(value for _, value in executed["values"]) == 6 * 250 + 3 * 10 + 7
    assert samples["reasons"] == [[5, [("long scoreboard", 25), ("wait", 5)]], [6, [("wait", 10)]]]
    assert [4, 4000] in sectors["values"] and [4, 1000] in sectors["ideal"]
    assert not executed["ideal"] and not executed["reasons"]
    assert query.heats(uncounted, *at(uncounted, "v01_naive", "block=8")) == []


def test_a_unit_has_a_family() -> None:
    families = {unit: query.family(unit) for unit in Unit}
    assert families[Unit.TENSOR] == families[Unit.FP32] == Family.ARITHMETIC
    assert families[Unit.SHARED] == families[Unit.LOCAL] == Family.MEMORY
    assert families[Unit.SYNC] == Family.CONTROL
    assert families[Unit.INTEGER] == Family.OTHER


def test_instructions_of_one_name_stand_side_by_side() -> None:
    rows = query.rows(code(NAIVE), code(TILED))
    assert [row for row in rows if row.kind is not Kind.SAME] == [
        Row(Kind.ONLY_A, 4, -1), Row(Kind.ONLY_B, -1, 4), Row(Kind.CHANGED, 8, 8), Row(Kind.ONLY_A, 12, -1), Row(Kind.ONLY_A, 13, -1),
    ]  # fmt: skip
    assert [row.a for row in rows if row.a >= 0] == list(range(18))
    assert [row.b for row in rows if row.b >= 0] == list(range(16))


def test_a_difference_is_told_with_the_counts_that_changed() -> None:
    changed = query.changes(code(NAIVE), code(TILED))
    assert changed.to_numpy().tolist() == [
        ["global memory", "LDG.128", 1, 0, -1],
        ["local memory", "LDL", 1, 0, -1],
        ["shared memory", "LDS.128", 0, 1, 1],
        ["local memory", "STL", 1, 0, -1],
    ]
    assert query.difference_sentence(query.rows(code(NAIVE), code(TILED)), changed) == (
        "14 instructions equal, 1 changed, 3 only in A, 1 only in B; LDG.128 1 → 0, LDL 1 → 0, LDS.128 0 → 1."
    )


def test_equal_code_is_told_to_be_the_same() -> None:
    rows, changed = query.rows(code(NAIVE), code(RENAMED)), query.changes(code(NAIVE), code(RENAMED))
    assert changed.empty
    assert (
        query.difference_sentence(rows, changed) == "The machine code is the same, apart from register numbers and addresses."
    )
    assert query.rows(Code(()), Code(())) == ()


def test_a_changed_operand_alone_leaves_the_counts() -> None:
    other = tuple((line, text.replace("0x19", "0x18")) for line, text in NAIVE)
    rows, changed = query.rows(code(NAIVE), code(other)), query.changes(code(NAIVE), code(other))
    assert query.difference_sentence(rows, changed) == "17 instructions equal, 1 changed; the counts by name are the same."


def test_a_difference_of_thousands_of_instructions_takes_less_than_a_second() -> None:
    one = code(NAIVE * 400)
    other = code(tuple((line, text) for place, (line, text) in enumerate(TILED * 400) if place % 7))
    start = process_time()
    rows = query.rows(one, other)
    assert process_time() - start < 1.0
    assert sum(row.a >= 0 for row in rows) == len(one) == 7_200
    assert sum(row.b >= 0 for row in rows) == len(other)
