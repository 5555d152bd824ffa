"""Programs as texts."""

import re


def programs(text: str) -> dict[str, tuple[str, str, str]]:
    """The programs of a text that are headed `## NAME | WORD | WORD`: by name the two words, of which the last may be left out, and the program."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    headings = [f"{heading} | ".split(" | ") for heading in parts[::2]]
    return {name: (first, second, body) for (name, first, second, *_), body in zip(headings, parts[1::2], strict=True)}
