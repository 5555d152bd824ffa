"""The pages that the tests of the docs read, and their fenced blocks."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md", "data/published/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
#: The rung that CONTRIBUTING adds.
NEW_RUNG: Final = "v12_read_only_loads"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text().splitlines(), start=1))
    for number, line in lines:
        if line.strip().startswith("```"):
            text = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                text.append(inner)
            yield Block(page, number + 1, line.strip().removeprefix("```"), textwrap.dedent("\n".join(text)) + "\n")


def prose_of(page: Path) -> list[str]:
    """Lines of a page outside of its blocks."""
    inside, lines = False, []
    for line in page.read_text().splitlines():
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


BLOCKS: Final = [block for page in PAGES for block in blocks_of(page)]
