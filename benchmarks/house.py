"""Counts what makes the source hard to walk: python -m benchmarks.house [FOLDER]

Of each room, of the product's rooms together, and of the tests: files, lines, files in its fullest folder, its longest file and function, circles of imports, floors, and repeated lines. A file
stands on floor 1 if it imports no other file of its room, and else one floor above the highest that it imports. Imports are resolved by the
names of packages: `warpladder.data.store` is a file of the folder `data/`, which a link in `warpladder/` leads to. A repeated line belongs to
a block of at least six lines that stands in two places; blank lines, comments and imports do not count.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

#: The rooms of the product, the face `warpladder` last: its own modules, without the rooms that it has links to.
ROOMS: Final = ("workloads", "collectors", "data", "dashboard", "warpladder")
_BLOCK: Final = 6


@dataclass(frozen=True)
class Room:
    """The counts of one room. `longest_file` and `longest_function` are in lines."""

    room: str
    files: int
    lines: int
    fullest_folder: int
    longest_file: int
    longest_function: int
    circles: int
    floors: int
    repeated_lines: int


def room_of(root: Path, *names: str) -> Room:
    """The counts of a room below a project's folder, or of several together."""
    trees = {file: ast.parse(file.read_text()) for name in names for file in sorted((root / name).rglob("*.py"))}
    lines = {file: len(file.read_text().splitlines()) for file in trees}
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    arrows = imports(root, trees)
    circles = list(circles_of(arrows))
    return Room(
        " + ".join(names),
        files=len(trees),
        lines=sum(lines.values()),
        fullest_folder=max(Counter(file.parent for file in trees).values(), default=0),
        longest_file=max(lines.values(), default=0),
        longest_function=max(functions, default=0),
        circles=len(circles),
        floors=floors_of(arrows, circles),
        repeated_lines=repeated_lines([_without_imports(file.read_text(), tree) for file, tree in trees.items()]),
    )


def imports(root: Path, trees: Mapping[Path, ast.Module]) -> dict[Path, set[Path]]:
    """File -> those of the files that it imports, at its top or inside a function."""
    modules = {_module(root, file): file for file in trees}
    arrows: dict[Path, set[Path]] = {}
    for file, tree in trees.items():
        named: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named |= {_below_the_root(alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {_below_the_root(f"{node.module}.{alias.name}") for alias in node.names}
                named |= (inner & modules.keys()) or {_below_the_root(node.module)}
        arrows[file] = {modules[module] for module in named & modules.keys()} - {file}
    return arrows


def _below_the_root(module: str) -> str:
    """A room is `data` in its folder's name and `warpladder.data` where it is imported; a module of the face is `recording`."""
    return module.removeprefix("warpladder.")


def _module(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return _below_the_root(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def circles_of(arrows: Mapping[Path, set[Path]]) -> Iterator[frozenset[Path]]:
    """Groups of files each of which reaches every other of its group."""
    reached = {file: _reached(arrows, file) for file in arrows}
    found = {frozenset(other for other in reached[file] if file in reached[other]) for file in arrows}
    return (circle for circle in found if len(circle) > 1)


def _reached(arrows: Mapping[Path, set[Path]], file: Path) -> set[Path]:
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        for other in arrows[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def floors_of(arrows: Mapping[Path, set[Path]], circles: list[frozenset[Path]]) -> int:
    """How many floors the files stand on; the files of a circle share one."""
    circle_of = {file: circle for circle in circles for file in circle}
    heights: dict[Path, int] = {}

    def height(file: Path) -> int:
        if file not in heights:
            together = circle_of.get(file, frozenset({file}))
            below = set().union(*(arrows[member] for member in together)) - together
            found = 1 + max(map(height, below), default=0)
            heights.update(dict.fromkeys(together, found))
        return heights[file]

    return max(map(height, arrows), default=0)


def _without_imports(text: str, tree: ast.Module) -> str:
    imported = {
        number
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return "\n".join(line for number, line in enumerate(text.splitlines(), 1) if number not in imported)


def repeated_lines(texts: list[str]) -> int:
    """Lines, over all texts, that belong to a block that stands in two places."""
    passed_over = ("#", '"""')
    kept = [[line.strip() for line in text.splitlines()] for text in texts]
    kept = [[line for line in lines if line and not line.startswith(passed_over)] for lines in kept]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, lines in enumerate(kept):
        for start in range(len(lines) - _BLOCK + 1):
            block = tuple(lines[start : start + _BLOCK])
            if any(line not in (")", "]", "}", "),", "],") for line in block):
                places[block].append((number, start))
    repeated = {
        (number, start + offset)
        for where in places.values()
        if len(where) > 1
        for number, start in where
        for offset in range(_BLOCK)
    }
    return len(repeated)


def main(root: Path) -> None:
    """Print a table of the rooms."""
    names = [field.name.replace("_", " ") for field in fields(Room)]
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for several in (*((name,) for name in ROOMS), ROOMS, ("tests",)):
        print("| " + " | ".join(map(str, astuple(room_of(root, *several)))) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
