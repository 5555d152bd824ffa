"""The text of a kernel source with the files that it includes in place of its `#include` lines.

Three rooms read sources, and need the same text: `workloads` compiles it, the recorder stores it with its hash, and `dashboard`
compares the recorded hash with the file of today. This is the only module of `data` that `workloads` imports.
"""

import errno
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[ \t]*(?://.*|/\*.*)?(?:\n|\Z)', re.MULTILINE)
_ANY: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_ONCE: Final = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
#: Headers of the CUDA toolkit, which the compiler finds itself, also where a source names them in quotes.
_OF_CUDA: Final = re.compile(
    r"(cuda|cub|thrust|nv|crt|cooperative_groups)/|cu(da|rand|Complex)|cooperative_groups|(mma|math_\w+|device_\w+|vector_\w+|nvrtc)\.h"
)

_RAW: Final = r'R"(?P<end>[^()\\\s]*)\(.*?\)(?P=end)"'
_COMMENT: Final = re.compile(
    rf"""(?P<literal>{_RAW}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])*')|//(?:\\\n|[^\n])*|/\*.*?\*/""", re.DOTALL
)
_LINE: Final = re.compile(r"[ \t]*#[ \t]*line\b")


class MissingInclude(Exception):
    """An included file is not there. The message names the source, the line and the file."""


def read(file: Path, *, lenient: bool = False, folders: Sequence[Path] = ()) -> str:
    """The text of a source. With `#line`, the places in a compiler's messages are places in the files.

    A file with `#pragma once` counts once. A file that includes itself through others is left out there: its guard would do so.

    Args:
        file: a `.cu` or `.cuh` file.
        lenient: a file that is not there counts as empty, and bytes that are not UTF-8 are replaced.
        folders: further folders to search for an included file, after the folder of the file that includes it.

    Raises:
        MissingInclude: an included file is not there.
        OSError: the file cannot be read.
    """
    return _Reader(lenient, folders).read(file, PurePosixPath(file.name))


class _Reader:
    def __init__(self, lenient: bool, folders: Sequence[Path]) -> None:
        self._lenient, self._folders = lenient, folders
        self._once: set[Path] = set()
        self._open: list[Path] = []

    def read(self, file: Path, shown_path: PurePosixPath) -> str:
        """The text of a file that messages call `shown_path`."""
        if not file.is_file():
            if self._lenient:
                return ""
            if file.exists():  # opening a FIFO would wait for a writer
                raise OSError(errno.EINVAL, "is not a file", str(file))
        same = file.resolve()
        if same in self._once or same in self._open:
            return ""
        text = file.read_text(errors="replace" if self._lenient else "strict")
        if _ONCE.search(text):
            self._once.add(same)
        self._open.append(same)
        text = _INCLUDE.sub(lambda match: self._included(file, shown_path, text, match), text)
        self._open.pop()
        return text

    def _included(self, file: Path, shown_path: PurePosixPath, text: str, match: re.Match[str]) -> str:
        name = match[1]
        line = text.count("\n", 0, match.start()) + 1
        other = next((folder / name for folder in (file.parent, *self._folders) if (folder / name).is_file()), None)
        if other is None:
            if _OF_CUDA.match(name):
                return match[0]
            if not self._lenient:
                raise MissingInclude(f'{shown_path}:{line}: #include "{name}"')
            other = file.parent / name
        inner = PurePosixPath(name) if ".." not in name else PurePosixPath(other.name)
        if other.parent.resolve().is_relative_to(file.parent.resolve()):
            inner = shown_path.parent / inner
        included = self.read(other, inner)
        included += "\n" if included and not included.endswith("\n") else ""
        return f'#line 1 "{inner}"\n{included}#line {line + 1} "{shown_path}"\n'


def code(text: str) -> list[str]:
    """The lines of a source without its comments, its `#line` directives and what is empty then."""
    bare = _COMMENT.sub(lambda match: match["literal"] or "\n" * match[0].count("\n") or " ", text)
    return [line.rstrip() for line in bare.splitlines() if line.strip() and not _LINE.match(line)]


def files_of(file: Path, folders: Sequence[Path] = ()) -> set[Path]:
    """A source and every file that it includes from its own folder, whether or not they are there, and from further folders."""
    visited: set[Path] = set()
    todo = [file]
    while todo:
        each = todo.pop()
        if each not in visited:
            visited.add(each)
            text = each.read_text(errors="replace") if each.is_file() else ""
            todo += [each.parent / name for name in _INCLUDE.findall(text) if not _OF_CUDA.match(name)]
            todo += [folder / name for folder in folders for name in _ANY.findall(text) if (folder / name).is_file()]
    return visited


_DIRECTIVE: Final = re.compile(r'^[ \t]*#[ \t]*line[ \t]+(\d+)(?:[ \t]+"([^"\n]*)")?')


def places(text: str, name: str) -> dict[tuple[str, int], int]:
    """The line of a text of `read` for each place in its files.

    Args:
        text: the source, with its `#line` directives.
        name: name of the file that the text begins with.

    Returns:
        By the last part of a file's name and the line in that file, both as a compiler gives them: the line of the text, from 1.
    """
    numbers: dict[tuple[str, int], int] = {}
    file, line = PurePosixPath(name).name, 1
    for number, each in enumerate(text.split("\n"), start=1):
        if directive := _DIRECTIVE.match(each):
            line = int(directive[1])
            file = PurePosixPath(directive[2]).name if directive[2] else file
            continue
        numbers.setdefault((file, line), number)
        line += 1
    return numbers


def files(text: str, name: str) -> dict[str, str]:
    """The files that a text of `read` was made of, with their `#include` lines.

    Args:
        text: the source, with its `#line` directives.
        name: name of the file that the text begins with.

    Returns:
        The text of each file by its name, first `name`, then the included ones as they follow. A file that is included again is there once.
    """
    found: dict[str, list[str]] = {name: []}
    within = [(name, found[name])]
    for line in text.splitlines(keepends=True):
        _, lines = within[-1]
        directive = _DIRECTIVE.match(line)
        if directive and directive[1] == "1" and directive[2]:
            lines.append(f'#include "{directive[2]}"\n')
            again = directive[2] in found
            within.append((directive[2], [] if again else found.setdefault(directive[2], [])))
        elif directive and len(within) > 1 and directive[2] == within[-2][0]:
            within.pop()
        else:
            lines.append(line)
    return {of: "".join(lines) for of, lines in found.items()}
