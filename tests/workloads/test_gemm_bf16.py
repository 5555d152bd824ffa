"""How the last rungs of the products in BF16 cut their problem."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.emulator.emulator import needs_compiler
from tests.workloads.declared import agreements
from warpladder.workloads.api import Case, Launch, Params, TensorMap
from warpladder.workloads.gemm_bf16.workload import WORKLOAD


def launch_of(variant: str, case: dict[str, object], config: int = 0) -> Launch:
    """The last launch of a variant, with one of its configs."""
    rung = WORKLOAD.variant(variant)
    return rung.launches(WORKLOAD.make_case(case), rung.configs[config])[-1]


@pytest.mark.parametrize(
    ("variant", "config", "case", "blocks"),
    [
        ("v10_plain_copies", 0, {"n": 256}, 32),  # tiles of 64 x 32
        ("v10_plain_copies", 1, {"n": 512}, 128),  # pairs for tiles of 64 x 64
        ("v10_plain_copies", 2, {"shape": "65x16x64"}, 8),  # a row more is a tile more, in four parts
        ("v11_one_warpgroup", 0, {"n": 1024}, 128),  # tiles of 64 x 128
        ("v12_rows_apart", 0, {"shape": "3000x3000x3000"}, 132),
        ("v13_taking_turns", 0, {"shape": "70x136x328"}, 4),  # two tiles of 128 x 320
    ],
)
def test_as_many_blocks_as_tiles_and_their_parts(variant: str, config: int, case: dict[str, object], blocks: int) -> None:
    x, y, z = launch_of(variant, case, config).grid
    assert x * y * z == blocks


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ("3000x3000x3000", (375, 8, 3000)),  # rows of 6,000 bytes
        ("3000x3008x3000", (3000, 1, 3008)),  # of a multiple of 128
        ("3004x3000x3000", (3004, 1, 3000)),  # no whole eights
        ("3000x3009x3000", (375, 8, 3016)),  # padded
    ],
)
def test_rows_of_a_tile_are_eight_apart_where_they_begin_within_a_line(shape: str, rows: tuple[int, int, int]) -> None:
    launch = launch_of("v12_rows_apart", {"shape": shape})
    of_a = launch.args[0]
    assert isinstance(of_a, TensorMap)
    assert of_a.shape == rows
    assert launch.args[-1] == rows[1]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("config", [0, 1])
def test_warpgroups_take_turns_at_the_tiles_of_a_cluster(config: int) -> None:
    rung = WORKLOAD.variant("v13_taking_turns")

    def by_one_cluster(case: Case, of: Params) -> Sequence[Launch]:
        (launch,) = rung.launches(case, of)
        return [replace(launch, grid=(2, 1, 1))]

    case = WORKLOAD.make_case({"shape": "300x456x648"})  # 9 tiles of 128 x 320, or 10 of 256 x 160
    (verdict,) = agreements(WORKLOAD, replace(rung, launches=by_one_cluster), case, rung.configs[config])
    assert verdict.ok, verdict.detail
