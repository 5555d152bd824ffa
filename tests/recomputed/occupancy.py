"""The figures of the section Occupancy, from the tables `launches` and `machine_code`, for compute capability 9.0."""

import math
from collections.abc import Mapping
from typing import Any, Final

from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Expected, Rule, Rules

Row = Mapping[str, Any]
#: What a multiprocessor has: registers of each of four parts, shared memory and what is reserved of it for a block, warps, blocks.
_PART_REGISTERS, _SHARED, _RESERVED, _WARPS, _BLOCKS = 16384, 228 * 1024, 1024, 64, 32


def _launch(run: Shipped, row: Row, shown: Shown) -> dict[str, Any]:
    """The launch of a row, with its code."""
    workload, case, _ = shown.where
    launches, codes = run.table("cell_launches"), run.table("machine_code").set_index("code")
    of = {"workload": workload, "case": case, **{name: row[name] for name in ("variant", "config", "launch_index")}}
    for name, value in of.items():
        launches = launches[launches[name] == value]
    (launch,) = launches.to_dict("records")
    return {**launch, **codes.loc[launch["code"]].to_dict()}


def _product(launch: Row, what: str) -> int:
    return math.prod(int(launch[f"{what}_{axis}"]) for axis in "xyz")


def _shared(launch: Row) -> int:
    return int(launch["static_shared_bytes"]) + int(launch["dynamic_shared_bytes"])


def _allowed(launch: Row) -> dict[str, int]:
    """The blocks that each resource allows."""
    warps = math.ceil(_product(launch, "block") / 32)
    of_warp = 256 * math.ceil(int(launch["registers"]) * 32 / 256)
    of_block = 128 * math.ceil((_shared(launch) + _RESERVED) / 128)
    by_registers = 0 if of_warp * 4 * math.ceil(warps / 4) > 4 * _PART_REGISTERS else 4 * (_PART_REGISTERS // of_warp) // warps
    return {
        "registers": by_registers,
        "shared memory": _SHARED // of_block,
        "warps": _WARPS // warps,
        "blocks": _BLOCKS,
    }


def _blocks(launch: Row) -> int:
    return min(_allowed(launch).values())


def _limiter(launch: Row) -> str:
    return ", ".join(name for name, blocks in _allowed(launch).items() if blocks == _blocks(launch))


def _percent(launch: Row) -> float:
    return 100 * _blocks(launch) * math.ceil(_product(launch, "block") / 32) / _WARPS


def _places(run: Shipped, launch: Row) -> int:
    return _blocks(launch) * int(run.info["sm_count"])


def _last_wave(run: Shipped, launch: Row) -> float:
    rest = _product(launch, "grid") % _places(run, launch)
    return 100.0 if rest == 0 else 100 * rest / _places(run, launch)


def _of(compute: Any) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        value: Expected = compute(_launch(run, row, shown))
        return value

    return rule


OCCUPANCY: Final[Rules] = {
    **dict.fromkeys(("variant", "config", "launch_index")),
    "kernel": _of(lambda launch: launch["kernel"]),
    "registers": _of(lambda launch: int(launch["registers"])),
    "shared_bytes": _of(_shared),
    "threads": _of(lambda launch: _product(launch, "block")),
    "blocks": _of(_blocks),
    "limiter": _of(_limiter),
    "occupancy_percent": _of(_percent),
    "waves": lambda run, row, shown: _product(_launch(run, row, shown), "grid") / _places(run, _launch(run, row, shown)),
    "last_wave_percent": lambda run, row, shown: _last_wave(run, _launch(run, row, shown)),
}
