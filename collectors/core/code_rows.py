"""Rows of `machine_code` and `cell_launches`, from the instructions and the launches of kernels."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

#: A file and a line in it, as the compiler knows them.
Place = tuple[str, int]

_PADDING: Final = "NOP"
_BYTES: Final = 16  # of an instruction


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        text: predicate, opcode and operands; a branch names its target as the offset in bytes from the function's first instruction.
        places: where it comes from, innermost first: a line, and the lines at which it was inlined. Empty without line information.
    """

    text: str
    places: tuple[Place, ...] = ()


def launch_rows(launches: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `cell_launches`, in which launches that are alike are one row.

    Args:
        launches: the columns of each launch of some cells, in order, without `count`. Launches with other `scalars`, which are not kept,
            are not alike.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for launch in launches:
        alike = tuple(value for name, value in launch.items() if name != "launch_index")
        row = rows.setdefault(alike, {**{name: launch[name] for name in launch if name != "scalars"}, "count": 0})
        row["count"] += 1
    return list(rows.values())


def code_row(
    kernel: str,
    architecture: str,
    compiled_by: str,
    instructions: Sequence[Instruction],
    places: Mapping[Place, int],
    *,
    registers: int | None,
    static_shared_bytes: int | None,
    spill_bytes: int | None,
    ptx: str | None,
    stack_bytes: int | None = None,
) -> dict[str, Any]:
    """A row of `machine_code`. `places`: line of the variant's source for each place that the compiler gives; see
    `source_text.places`."""
    code = _without_padding(instructions)
    sass = "\n".join(each.text for each in code)
    lines = "\n".join(str(next((places[place] for place in each.places if place in places), 0)) for each in code)
    resources = {"registers": registers, "static_shared_bytes": static_shared_bytes, "spill_bytes": spill_bytes}
    content = "\0".join([kernel, architecture, sass, lines, repr(resources)])
    return {
        "code": hashlib.sha256(content.encode()).hexdigest()[:16],
        "kernel": kernel,
        "architecture": architecture,
        "compiler": compiled_by,
        **resources,
        "stack_bytes": stack_bytes,
        "sass": sass,
        "lines": lines,
        "ptx": ptx,
    }


def _without_padding(instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """Without the NOPs at the end, which align the next function, and the branch to itself before them, which is never reached."""
    end = len(instructions)
    while end and instructions[end - 1].text == _PADDING:
        end -= 1
    if end and instructions[end - 1].text == f"BRA {_BYTES * (end - 1):#x}":
        end -= 1
    return instructions[:end]
