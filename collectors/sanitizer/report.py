"""Reads what a tool of compute-sanitizer prints: its findings, each with the kernel and the line."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from warpladder.collectors.core.demangle import without_parameters
from warpladder.collectors.core.environment import Tool

SANITIZER: Final = Tool("compute-sanitizer", "the CUDA toolkit", ("/usr/local/cuda*/bin/compute-sanitizer",))


_PREFIX: Final = "========="
_SUMMARY: Final = re.compile(r"(?:RACECHECK|ERROR) SUMMARY: (\d+)")
#: Lines of the tool about itself, or about what the program meets after a finding.
_ASIDE: Final = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Target application", "Program hit")
#: A place as the versions of the tool write it: `at f(int)+0x50 in a.cu:14`, `at 0x50 in a.cu:14:f(int)`, `at 0x50 in f(int)`.
_PLACES: Final = tuple(
    re.compile(text)
    for text in (
        r"\bat (?P<kernel>.+?)[+:]0x[0-9a-f]+(?: in (?P<file>.+?):(?P<line>\d+))?(?: \[.*)?$",
        r"\bat 0x[0-9a-f]+ in (?P<file>.+?):(?P<line>\d+):(?P<kernel>.+?)(?: \[.*)?$",
        r"\bat 0x[0-9a-f]+ in (?P<kernel>.+?)(?: \[.*)?$",
    )
)
_ACCESS: Final = re.compile(r"(\w+) access at ")


@dataclass(frozen=True)
class Place:
    """An instruction. `file`, `line`: of its source; empty and 0 where the code has no lines."""

    kernel: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"at {self.file}:{self.line} in {self.kernel}" if self.line else f"in {self.kernel}"


@dataclass(frozen=True)
class Finding:
    """A finding of a tool.

    Attributes:
        what: in the tool's words.
        places: where; of a race both accesses.
        doubted: the tool calls it a warning.
    """

    what: str
    places: tuple[Place, ...]
    doubted: bool = False

    def __str__(self) -> str:
        return " ".join([self.what, *(f"{'and ' if number else ''}{place}" for number, place in enumerate(self.places))])


def is_clean(printed: str) -> bool:
    """Whether the tool ended and found nothing."""
    counts = [int(match[1]) for match in _SUMMARY.finditer(printed)]
    return bool(counts) and not any(counts)


def findings(printed: str) -> Counter[Finding]:
    """The findings, and how often each was printed: a tool prints one a thread, or one a pair of accesses."""
    return Counter(_finding(block) for block in _blocks(printed))


def _blocks(printed: str) -> Iterator[list[str]]:
    """The lines of each finding: a headline, and what is indented below it."""
    block: list[str] = []
    for line in printed.splitlines():
        if not line.startswith(_PREFIX):
            continue
        text = line.removeprefix(_PREFIX)
        if text.startswith("  "):
            block += [text.strip()] if block else []
            continue
        if block:
            yield block
        headline = text.strip()
        block = [] if not headline or headline.startswith(_ASIDE) else [headline]
    if block:
        yield block


def _finding(block: list[str]) -> Finding:
    headline = block[0]
    doubted = headline.startswith("Warning: ")
    what = headline.removeprefix("Warning: ").removeprefix("Error: ")
    is_race = what.startswith("Race reported")
    lines = [headline, *(line for line in block[1:] if line.startswith("and "))][:2] if is_race else block[1:2]
    places = tuple(dict.fromkeys(place for line in lines if (place := _place(line))))
    if is_race:
        what = f"race of {' and '.join(f'a {word.lower()}' for word in _ACCESS.findall(' '.join(lines)))}"
    return Finding(what.rstrip("."), places, doubted)


def _place(line: str) -> Place | None:
    match = next((match for each in _PLACES if (match := each.search(line))), None)
    if match is None:
        return None
    found = match.groupdict()
    file = re.split(r"[/\\]", found.get("file") or "")[-1]
    return Place(without_parameters(found["kernel"].strip()), file, int(found.get("line") or 0))
