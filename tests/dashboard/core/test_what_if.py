"""The occupancy of a kernel with other registers, shared memory and block sizes, counted by hand."""

from typing import Any

import pytest

from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.sass import Code
from warpladder.dashboard.views.why.occupancy.query import (
    Choice,
    WhatIf,
    own_choice,
    register_choices,
    shared_choices,
    thread_choices,
    what_if,
)
from warpladder.data.occupancy import LIMITS

SMS = 132


def kernel(**changes: Any) -> Kernel:
    """A kernel of 1,056 blocks with 256 threads, 40 registers and 16 KiB."""
    facts: dict[str, Any] = {
        "index": 0, "count": 1, "name": "k", "code_id": "c", "architecture": "sm_90", "compiler": "", "code": Code(()), "ptx": "",
        "registers": 40, "static_shared_bytes": 4096, "spill_bytes": 0, "stack_bytes": 0, "dynamic_shared_bytes": 12288,
        "grid": (132, 8, 1), "block": (64, 4, 1),
    }  # fmt: skip
    return Kernel(**{**facts, **changes})


def result_of(**choice: int) -> WhatIf:
    own = {"registers": 40, "shared_bytes": 16384, "threads": 256}
    result = what_if(kernel(), "9.0", SMS, **{**own, **choice})
    assert result is not None
    return result


def test_a_kernel_as_it_is() -> None:
    own = result_of().own
    assert own.choice == Choice(40, 16384, 256) == own_choice(kernel())
    # 16384 registers of a scheduler / 1280 of a warp = 12 warps, 48 of 64, in blocks of 8.
    assert (own.occupancy.blocks, own.occupancy.percent, own.occupancy.limiters) == (6, 75, ("registers",))
    # 1056 blocks / (6 * 132) = 4 / 3.
    assert own.waves == (pytest.approx(4 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("choice", "blocks", "limiters"),
    [
        ({"registers": 32}, 8, ("registers", "warps")),
        ({"registers": 128}, 2, ("registers",)),
        # 228 / (63 + 1) KiB.
        ({"shared_bytes": 63 * 1024}, 3, ("shared memory",)),
        # 48 warps / 4.
        ({"threads": 128}, 12, ("registers",)),
    ],
)
def test_another_choice(choice: dict[str, int], blocks: int, limiters: tuple[str, ...]) -> None:
    result = result_of(**choice)
    assert (result.changed.occupancy.blocks, result.changed.occupancy.limiters) == (blocks, limiters)
    assert result.own.occupancy.blocks == 6


def test_another_block_size_has_a_grid_with_as_many_threads() -> None:
    # 2112 blocks of 128 threads, and 12 of them on each of 132 multiprocessors.
    assert result_of(threads=128).changed.waves == (pytest.approx(2112 / 1584), pytest.approx(528 / 1584))
    # 270336 threads / 1000 = 270.3: 271 blocks, one on each multiprocessor.
    assert result_of(threads=1000).changed.waves == (pytest.approx(271 / 132), pytest.approx(7 / 132))


def test_where_no_block_fits_there_are_no_waves() -> None:
    changed = result_of(registers=128, threads=1024).changed
    assert (changed.occupancy.blocks, changed.occupancy.percent, changed.waves) == (0, 0, None)


def test_a_curve_goes_through_the_choice_and_holds_the_other_two() -> None:
    result = result_of(registers=64, shared_bytes=50 * 1024, threads=128)
    for number, value in (("registers", 64), ("shared_bytes", 50 * 1024), ("threads", 128)):
        assert result.curves[number][value] == result.changed.occupancy.percent
    # 4 blocks of 51 KiB with 4 warps each: 16 of 64 warps, as long as registers do not take more.
    assert (result.curves["registers"][:128] == 25).all()
    # Of 256 threads 4 blocks have room too, in shared memory and in registers: 32 warps.
    assert result.curves["threads"][256] == 50


def test_without_limits_registers_or_multiprocessors() -> None:
    assert what_if(kernel(), "5.2", SMS, 40, 0, 256) is None
    assert what_if(kernel(registers=None), "9.0", SMS, 40, 0, 256) is None
    unknown = what_if(kernel(), "9.0", 0, 40, 0, 256)
    assert unknown is not None and unknown.own.waves is None


def test_the_choices_have_the_own_value() -> None:
    h100 = LIMITS["9.0"]
    assert register_choices(18)[:3] == [16, 18, 24] and register_choices(18)[-1] == 255
    assert shared_choices(h100, 100)[:3] == [0, 100, 1024] and shared_choices(h100)[-1] == 227 * 1024
    assert thread_choices(h100, 100)[2:5] == [96, 100, 128] and thread_choices(h100)[-1] == 1024
