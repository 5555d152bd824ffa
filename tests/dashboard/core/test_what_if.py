"""The occupancy of a kernel as it is and over other registers, shared memory and block sizes, counted by hand."""

from typing import Any

import pytest

from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.sass import Code
from warpladder.dashboard.views.why.occupancy.query import Choice, own_choice, what_if

SMS = 132


def kernel(**changes: Any) -> Kernel:
    """A kernel of 1,056 blocks with 256 threads, 40 registers and 16 KiB."""
    facts: dict[str, Any] = {
        "index": 0, "count": 1, "name": "k", "code_id": "c", "architecture": "sm_90", "compiler": "", "code": Code(()), "ptx": "",
        "registers": 40, "static_shared_bytes": 4096, "spill_bytes": 0, "stack_bytes": 0, "dynamic_shared_bytes": 12288,
        "grid": (132, 8, 1), "block": (64, 4, 1),
    }  # fmt: skip
    return Kernel(**{**facts, **changes})


def test_a_kernel_as_it_is() -> None:
    result = what_if(kernel(), "9.0", SMS)
    assert result is not None
    own = result.own
    assert own.choice == Choice(40, 16384, 256) == own_choice(kernel())
    # 16384 registers of a scheduler / 1280 of a warp = 12 warps, 48 of 64, in blocks of 8.
    assert (own.occupancy.blocks, own.occupancy.percent, own.occupancy.limiters) == (6, 75, ("registers",))
    # 1056 blocks / (6 * 132) = 4 / 3.
    assert own.waves == (pytest.approx(4 / 3), pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("changes", "blocks", "limiters"),
    [
        ({"registers": 32}, 8, ("registers", "warps")),
        ({"registers": 128}, 2, ("registers",)),
        # 228 / (63 + 1) KiB.
        ({"dynamic_shared_bytes": 59 * 1024}, 3, ("shared memory",)),
        # 48 warps / 4.
        ({"block": (128, 1, 1)}, 12, ("registers",)),
    ],
)
def test_another_kernel(changes: dict[str, Any], blocks: int, limiters: tuple[str, ...]) -> None:
    result = what_if(kernel(**changes), "9.0", SMS)
    assert result is not None
    assert (result.own.occupancy.blocks, result.own.occupancy.limiters) == (blocks, limiters)


def test_where_no_block_fits_there_are_no_waves() -> None:
    result = what_if(kernel(registers=128, block=(1024, 1, 1)), "9.0", SMS)
    assert result is not None
    assert (result.own.occupancy.blocks, result.own.occupancy.percent, result.own.waves) == (0, 0, None)


def test_a_curve_goes_through_the_kernel_and_holds_the_other_two() -> None:
    result = what_if(kernel(registers=64, dynamic_shared_bytes=46 * 1024, block=(128, 1, 1)), "9.0", SMS)
    assert result is not None
    for number, value in (("registers", 64), ("shared_bytes", 50 * 1024), ("threads", 128)):
        assert result.curves[number][value] == result.own.occupancy.percent
    # 4 blocks of 51 KiB with 4 warps each: 16 of 64 warps, as long as registers do not take more.
    assert (result.curves["registers"][:128] == 25).all()
    # Of 256 threads 4 blocks have room too, in shared memory and in registers: 32 warps.
    assert result.curves["threads"][256] == 50


def test_without_limits_registers_or_multiprocessors() -> None:
    assert what_if(kernel(), "5.2", SMS) is None
    assert what_if(kernel(registers=None), "9.0", SMS) is None
    unknown = what_if(kernel(), "9.0", 0)
    assert unknown is not None and unknown.own.waves is None
