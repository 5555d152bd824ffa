"""A user's regular expression on many texts, within a time that holds.

`naming` uses it for both rooms that share it, and the page that suggests patterns does. Some patterns take minutes or more.
`re` cannot be stopped, but a process can. This file is run as a process of its own, so it imports only the standard library.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

#: Values of the pattern's named groups, in the order of the groups' numbers; None for a group without a match.
Groups = list[str | None]
_ISOLATED: Final = ("-I", "-S")


class TooSlow(Exception):
    """The search did not end in time."""


def find(expression: str, texts: Sequence[str]) -> list[Groups | None]:
    """The named groups of the first match in each text; None for a text without a match."""
    pattern = re.compile(expression)
    numbers = sorted(pattern.groupindex.values())
    search = pattern.search
    return [[match[number] for number in numbers] if (match := search(text)) else None for text in texts]


def find_within(expression: str, texts: Sequence[str], seconds: float) -> list[Groups | None]:
    """`find` in a process of its own, which is killed when the time is over.

    Args:
        expression: a regular expression that compiles.

    Raises:
        TooSlow: it did not end within that many seconds.
    """
    command = [sys.executable, *_ISOLATED, str(Path(__file__).resolve())]
    question = json.dumps([expression, list(texts)])
    try:
        done = subprocess.run(command, input=question, capture_output=True, encoding="ascii", timeout=seconds, check=True)
    except subprocess.TimeoutExpired as error:
        raise TooSlow(f"not done within {seconds:g} s") from error
    found: list[Groups | None] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    json.dump(find(*json.load(sys.stdin)), sys.stdout)
