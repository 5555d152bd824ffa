"""What changed between two kernels is named with its effect."""

from dataclasses import replace
from typing import Any

import pytest

from tests.dashboard.core.test_what_if import kernel
from warpladder.dashboard.core.code_changes import Change, changes
from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.sass import Code

LOOP = ("LDG.E R4, [R2.64]", "FFMA R8, R4, R4, R8", "IADD3 R2, R2, 0x4, RZ", "@P0 BRA 0x10")


def code(*body: str, lines: str = "") -> Code:
    """A kernel with a loop over this body; its lines are 20, 21 and so on."""
    texts = ("MOV R1, RZ", *body, "EXIT")
    return Code.of("\n".join(texts), lines or "\n".join(["1", *(str(20 + place) for place in range(len(body))), "2"]))


def of(kernel_code: Code, **facts: Any) -> Kernel:
    return kernel(code=kernel_code, **facts)


def test_equal_kernels_have_no_changes() -> None:
    assert changes(of(code(*LOOP)), of(code(*LOOP))) == ()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {"registers": 72}, Change("registers 40 → 72: 3 blocks in place of 6 on a multiprocessor", True)),
        ({"registers": 72}, {}, Change("registers 72 → 40: 6 blocks in place of 3 on a multiprocessor", False)),
        ({}, {"registers": 38}, Change("registers 40 → 38, and as many blocks (6) on a multiprocessor")),
        ({}, {"spill_bytes": 48}, Change("spills 0 → 48 bytes", True)),
        ({"stack_bytes": 1024}, {}, Change("stack 1,024 → 0 bytes", False)),
        (
            {},
            {"static_shared_bytes": 65536},
            Change("static shared memory 4,096 → 65,536 bytes: 2 blocks in place of 6 on a multiprocessor", True),
        ),
        ({"spill_bytes": None}, {"spill_bytes": 48}, None),
    ],
)
def test_resources_are_named_with_the_blocks_of_a_multiprocessor(
    before: dict[str, Any], after: dict[str, Any], change: Change | None
) -> None:
    own = code(*LOOP)
    assert changes(of(own, **before), of(own, **after)) == ((change,) if change else ())


def test_an_architecture_whose_limits_are_not_known_has_registers_alone() -> None:
    own = of(code(*LOOP), architecture="sm_999")
    assert changes(own, replace(own, registers=72)) == (Change("registers 40 → 72"),)


def test_a_loop_with_more_instructions_lengthens_a_kernel() -> None:
    more = code(LOOP[0], "IMAD R5, R5, R6, R7", "IMAD R6, R5, R6, R7", *LOOP[1:], lines="1\n20\n20\n20\n21\n22\n23\n2")
    assert changes(of(code(*LOOP)), of(more)) == (
        Change("the loop at lines 20 to 23 has 6 instructions in place of 4: +2 IMAD (integer and logic)", True),
    )


def test_a_loop_that_is_unrolled_less_counts_instructions_for_its_arithmetic() -> None:
    wide = code(LOOP[0], *[LOOP[1]] * 4, *LOOP[2:], lines="1\n20\n21\n21\n21\n21\n22\n23\n2")
    (change,) = changes(of(wide), of(code(*LOOP)))
    assert change.text == (
        "a pass of the loop at lines 20 to 23 has 1 floating-point and tensor instructions in place of 4, "
        "with 4.00 instructions for each in place of 1.75"
    )
    assert change.lengthens


def test_what_changed_outside_of_loops_has_no_sure_effect() -> None:
    loop = [*LOOP[:3], "@P0 BRA 0x0", *["MOV R1, RZ"] * 10]
    before, after = (Code.of("\n".join([*loop, *["FADD R1, R1, R8"] * count, "EXIT"]), "") for count in (0, 1))
    assert changes(of(before), of(after)) == (
        Change("the kernel, outside of its loops, has 16 instructions in place of 15: +1 FADD (fp32)"),
    )
    longer = Code.of("\n".join([*loop, *["FADD R1, R1, R8"] * 8, "EXIT"]), "")
    assert changes(of(before), of(longer))[0].lengthens


def test_a_kernel_without_a_loop_is_longer_by_its_instructions() -> None:
    before, after = (Code.of("\n".join([*LOOP[:count], "EXIT"]), "") for count in (1, 2))
    assert changes(of(before), of(after)) == (Change("the kernel has 3 instructions in place of 2: +1 FFMA (fp32)", True),)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ((LOOP[1], LOOP[0], *LOOP[2:]), "the same instructions in another order"),
        (tuple(each.replace("R8", "R9") for each in LOOP), "the same instructions with other numbers of registers"),
        (tuple(each.replace("0x4", "0x8") for each in LOOP), "as many instructions of each name, with other operands"),
    ],
)
def test_other_operands_and_another_order_are_told(body: tuple[str, ...], text: str) -> None:
    assert changes(of(code(*LOOP)), of(code(*body))) == (Change(text),)


def test_a_loop_that_went_is_counted() -> None:
    straight = code(*LOOP[:3])
    found = changes(of(code(*LOOP)), of(straight))
    assert [each.text for each in found] == ["0 loops in place of 1"]
