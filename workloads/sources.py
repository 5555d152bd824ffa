"""The source of a variant: its text, and what the comment that opens it says."""

import itertools
import re
from pathlib import Path
from typing import Final

from warpladder.workloads.cases import WorkloadError

_HEADER_FIELDS: Final = ("Idea", "Bottleneck", "Next", "Source")
_INCLUDE: Final = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


def read_source(file: Path) -> str:
    """The text of a CUDA source, each `#include "name"` in it replaced by the text of that file.

    What is compiled, recorded and hashed is this one text; `#line` keeps the places that a compiler names those of the files.

    Raises:
        WorkloadError: an included file is not there.
    """
    text = file.read_text()

    def included(match: re.Match[str]) -> str:
        other = file.parent / match[1]
        line = text.count("\n", 0, match.start()) + 1
        if not other.is_file():
            raise WorkloadError(f'{file.name}:{line}: #include "{match[1]}": no such file beside it; mend the path')
        return f'#line 1 "{other.name}"\n{read_source(other)}#line {line + 1} "{file.name}"\n'

    return _INCLUDE.sub(included, text)


def parse_header(text: str) -> dict[str, str]:
    """The labelled paragraphs `Idea:`, `Bottleneck:`, `Next:` and `Source:` of the comment or docstring that opens a source.

    Returns:
        Lower-case label -> text on one line; the empty string for a label that is not there.
    """
    parts = re.split(rf"^\s*({'|'.join(_HEADER_FIELDS)}):", _opening_comment(text), flags=re.MULTILINE)
    found = {label.lower(): " ".join(words.split()) for label, words in zip(parts[1::2], parts[2::2], strict=True)}
    return {label.lower(): found.get(label.lower(), "") for label in _HEADER_FIELDS}


def _opening_comment(text: str) -> str:
    """The first `//` block of a CUDA source, or the first docstring of Python code, without its marks."""
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("//"):
        return "\n".join(line[2:] for line in itertools.takewhile(lambda line: line.startswith("//"), lines))
    docstring = re.search(r'"""(.*?)"""', text, flags=re.DOTALL)
    return docstring.group(1) if docstring else ""
