"""The text of a kernel source with the files that it includes in place of its `#include` lines.

Three rooms read sources, and need the same text: `workloads` compiles it, the recorder stores it with its hash, and `dashboard`
compares the recorded hash with the file of today. This is the only module of `data` that `workloads` imports.
"""

import re
from pathlib import Path
from typing import Final

_INCLUDE: Final = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


class MissingInclude(Exception):
    """An included file is not there. The message names the source, the line and the file."""


def read(file: Path, *, lenient: bool = False) -> str:
    """The text of a source. `#line` keeps the places that a compiler names those of the files.

    Args:
        file: a `.cu` or `.cuh` file.
        lenient: a file that is not there counts as empty, and bytes that are not UTF-8 are replaced.

    Raises:
        MissingInclude: an included file is not there.
        OSError: the file cannot be read.
    """
    if lenient and not file.is_file():
        return ""
    text = file.read_text(errors="replace" if lenient else "strict")

    def included(match: re.Match[str]) -> str:
        other = file.parent / match[1]
        line = text.count("\n", 0, match.start()) + 1
        if not (lenient or other.is_file()):
            raise MissingInclude(f'{file.name}:{line}: #include "{match[1]}"')
        return f'#line 1 "{other.name}"\n{read(other, lenient=lenient)}#line {line + 1} "{file.name}"\n'

    return _INCLUDE.sub(included, text)


def files_of(file: Path) -> set[Path]:
    """A source and every file that it includes, whether or not they are there."""
    found: set[Path] = set()
    todo = [file]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            text = each.read_text(errors="replace") if each.is_file() else ""
            todo += [each.parent / name for name in _INCLUDE.findall(text)]
    return found
