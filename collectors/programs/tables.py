"""Rows of the tables `variants` and `cases` about programs."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.environment import without_folders
from warpladder.collectors.programs.names import Names
from warpladder.collectors.programs.words import Program
from warpladder.data import naming

#: Largest file that is hashed.
_MOST_BYTES: Final = 1 << 28
_EMPTY: Final = ("idea", "bottleneck", "next", "source_path", "min_compute_capability")
_UNKNOWN: Final = ("registers", "shared_bytes", "spill_bytes", "transfer")

#: A diagnostic of every run of programs.
HOW_MEASURED: Final = (
    "the variants are whole programs: operation is the wall-clock time from the start of the process until it and all that it "
    "started have ended, which includes the start of the program and all of its input and output, read from a pipe. Precision is not known and stands as fp32, caches are as the "
    "programs left them and stand as hot, and no floor is known"
)


def cells_of(names: Names) -> tuple[Cell, ...]:
    """The cell of each program."""
    return tuple(Cell(names.workload, variant, "", names.case) for variant in names.variants)


def case_rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Rows of `cases`. The work of a program is not known."""
    return naming.case_rows([naming.CellName(cell.workload, cell.variant, cell.config, cell.case) for cell in cells])


def variant_rows(cells: Sequence[Cell], programs: Sequence[Program], paths: Sequence[str | None]) -> list[dict[str, Any]]:
    """Rows of `variants`: the programs are the rungs of a ladder, in their order.

    Args:
        cells: the cell of each program.
        programs: the programs.
        paths: file of each program; None where there is none.
    """
    every = zip(cells, programs, paths, strict=True)
    return [_variant(cell, rung, program, path) for rung, (cell, program, path) in enumerate(every)]


def _variant(cell: Cell, rung: int, program: Program, path: str | None) -> dict[str, Any]:
    text = source_text(program, path)
    return {
        "workload": cell.workload,
        "variant": cell.variant,
        "rung": rung,
        "kind": "host",
        "role": "rung",
        "precision": "fp32",
        "title": text.partition("\n")[0],
        "source": "a whole program, timed from its start to its exit",
        "source_text": text,
        "source_sha256": hashlib.sha256(text.encode()).hexdigest(),
        **dict.fromkeys(_EMPTY, ""),
        **dict.fromkeys(_UNKNOWN),
    }


def source_text(program: Program, path: str | None) -> str:
    """The command line and a hash of each file that it names, without folders: a program that was built again has another text."""
    files = program.own_words if program.shell else (path, *program.words[1:])
    lines = [program.shown]
    lines += [
        f"{without_folders(file)}: SHA-256 {digest}" for file in dict.fromkeys(files) if file and (digest := _digest(file))
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace").decode()


def _digest(name: str) -> str:
    """SHA-256 of a file; empty if the path is not a file, or if it cannot be read or is very large."""
    try:
        file = Path(name)
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return ""
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
