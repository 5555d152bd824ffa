"""Instructions, loops, mixes and differences of machine code, against what was counted by hand."""

import pytest

from tests.synthetic.made_code import NAIVE, RENAMED, TILED
from warpladder.dashboard.core.sass import Code, Instruction, Loop, Piece, Unit, difference


def code(lines: tuple[tuple[int, str], ...]) -> Code:
    return Code.of("\n".join(text for _, text in lines), "\n".join(str(line) for line, _ in lines))


@pytest.mark.parametrize(
    ("text", "unit", "name", "bits"),
    [
        ("@P0 LDG.E.128.CONSTANT R4, desc[UR6][R2.64]", Unit.GLOBAL, "LDG.128", 128),
        ("STG.E.64 desc[UR4][R2.64], R4", Unit.GLOBAL, "STG.64", 64),
        ("LDS.U8 R4, [R2]", Unit.SHARED, "LDS.U8", 8),
        ("STL [R1], R5", Unit.LOCAL, "STL", 32),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", Unit.TENSOR, "HMMA.1688", 0),
        ("HGMMA.64x256x8.F32.TF32 R24, gdesc[UR4], R24", Unit.TENSOR, "HGMMA.64x256x8", 0),
        ("@!UP0 UIADD3 UR4, UR4, 0x1, URZ", Unit.UNIFORM, "UIADD3", 0),
        ("FFMA.FTZ R5, R2.reuse, R8, R5", Unit.FP32, "FFMA", 0),
        ("DFMA R4, R6, R8, R4", Unit.FP64, "DFMA", 0),
        ("HFMA2 R4, R6, R8, R4", Unit.FP16, "HFMA2", 0),
        ("@P0 HFMA2.MMA R5, -RZ, RZ, 0, 0", Unit.MOVE, "HFMA2", 0),  # it puts a constant into a register
        ("BAR.SYNC.DEFER_BLOCKING 0x0", Unit.SYNC, "BAR", 0),
        ("EXIT", Unit.CONTROL, "EXIT", 0),
        ("XYZZY R1", Unit.OTHER, "XYZZY", 0),
        ("", Unit.OTHER, "", 0),
    ],
)
def test_an_instruction_has_a_unit_a_name_and_a_width(text: str, unit: Unit, name: str, bits: int) -> None:
    instruction = Instruction(text)
    assert (instruction.unit, instruction.name, instruction.bits) == (unit, name, bits)


def test_a_target_is_the_place_of_an_instruction_of_branches_alone() -> None:
    assert Instruction("@!P0 BRA 0x1b0").target == 27
    assert Instruction("BSSY B0, 0x2a0").target is None, "it leads nowhere by itself"
    assert Instruction("IADD3 R1, R2, 0x10, RZ").target is None


def test_loops_are_nested_and_the_inner_one_is_hot() -> None:
    naive = code(NAIVE)
    outer, inner = Loop(3, 11, 0, innermost=False), Loop(4, 9, 1, innermost=True)
    assert naive.loops == (outer, inner), "a branch to itself, behind the end of a kernel, is no loop"
    assert (len(outer), len(inner)) == (9, 6)
    assert naive.of_loop(outer) == (3, 10, 11)
    assert naive.hot_loop() == inner, "it has both multiply-adds"
    assert naive.hot_loop(dict.fromkeys((3, 10, 11), 1_000)) == outer, "counts come before arithmetic"
    assert code(NAIVE[:3]).hot_loop() is None


def test_the_mix_of_a_loop_leaves_out_loops_inside_it() -> None:
    naive = code(NAIVE)
    outer, inner = naive.loops
    assert naive.mix(inner) == {
        (Unit.FP32, "FFMA"): 2, (Unit.GLOBAL, "LDG.128"): 1, (Unit.INTEGER, "IADD3"): 1, (Unit.INTEGER, "ISETP"): 1,
        (Unit.CONTROL, "BRA"): 1,
    }  # fmt: skip
    assert naive.mix(outer) == {(Unit.GLOBAL, "LDG"): 1, (Unit.INTEGER, "IADD3"): 1, (Unit.CONTROL, "BRA"): 1}
    assert naive.mix().total() == len(naive) == 18
    assert naive.arithmetic_share(inner) == pytest.approx(2 / 6)
    assert naive.arithmetic_share() == pytest.approx(2 / 18)
    assert Code.of("", "").arithmetic_share() == 0


def test_lines_may_be_fewer_than_instructions() -> None:
    assert [each.line for each in Code.of("EXIT\nNOP", "7").instructions] == [7, 0]
    assert [each.line for each in Code.of("EXIT", "").instructions] == [0]
    assert [each.line for each in Code.of("NOP\nEXIT", "king\n-3").instructions] == [0, 0], "a damaged file has any text"


def test_other_registers_and_addresses_are_no_difference() -> None:
    assert difference(code(NAIVE), code(RENAMED)) == (Piece(True, 0, 18, 0, 18),)


def test_addresses_of_code_are_no_difference_and_constants_are() -> None:
    one = ("BSSY B0, 0x1c0", "CALL.REL.NOINC 0x40", "@P1 BRA 0x10", "IADD3 R1, R2, 0x10, RZ")
    other = ("BSSY B1, 0x380", "CALL.REL.NOINC 0x90", "@P0 BRA 0x20", "IADD3 R1, R2, 0x20, RZ")
    assert [Instruction(a).normal == Instruction(b).normal for a, b in zip(one, other, strict=True)] == [
        True,
        True,
        True,
        False,
    ]


def test_a_difference_has_the_fewest_pieces_in_order() -> None:
    assert difference(code(NAIVE), code(TILED)) == (
        Piece(True, 0, 4, 0, 4),
        Piece(False, 4, 5, 4, 5),  # LDG.E.128 became LDS.128
        Piece(True, 5, 8, 5, 8),
        Piece(False, 8, 9, 8, 9),  # the last index
        Piece(True, 9, 12, 9, 12),
        Piece(False, 12, 14, 12, 12),  # the spill
        Piece(True, 14, 18, 12, 16),
    )


def test_an_empty_code_differs_in_all() -> None:
    naive, empty = code(NAIVE), Code(())
    assert difference(empty, empty) == ()
    assert difference(naive, empty) == (Piece(False, 0, 18, 0, 0),)
