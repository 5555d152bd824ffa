"""Names the workload, the case and the variants of a comparison of programs, from their command lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from warpladder.collectors.core.environment import without_folders

#: The case of programs that share no argument.
NO_ARGUMENTS: Final = "whole"
#: A program whose name has no printable character.
_NAMELESS: Final = "program"
_MOST_CHARACTERS: Final = 60
_MOST_FOLDERS: Final = 16
#: What remains of `solver_v` and `build-`, the beginnings of `solver_v1` and `build-2`.
_VERSION: Final = re.compile(r"[\W_]*(?:(?<![^\W_])v)?[\W_]*$", re.IGNORECASE)


@dataclass(frozen=True)
class Names:
    """Names for the columns `workload`, `case` and `variant`; the variants are in the order of the programs."""

    workload: str
    case: str
    variants: tuple[str, ...]


def names_of(commands: Sequence[Sequence[str]], name: str = "") -> Names:
    """Name a comparison.

    The last arguments that all programs share are the case. The other words name the variants, without the first words that all
    share, unless nothing would be left. Of a path only the last part is used, and as many folders as tell the programs apart.

    Args:
        commands: the words of each program.
        name: the user's name for the workload; empty for the words or letters that the programs begin with.
    """
    end = _shared([list(reversed(words[1:])) for words in commands])
    own = [list(words[: len(words) - end]) for words in commands]
    begin = min(_shared(own), *(len(words) - 1 for words in own))
    case = _text([without_folders(word) for word in commands[0][len(commands[0]) - end :]]) or NO_ARGUMENTS
    rest = [words[begin:] for words in own]
    variants = _told_apart([_clean(text) or _NAMELESS for text in _cut(rest)])
    return Names(_clean(name) or _of_workload(own, begin, variants), case, variants)


def _of_workload(commands: Sequence[Sequence[str]], begin: int, variants: Sequence[str]) -> str:
    """The words that all begin with; else the name of a program in several folders, the first letters, or all names."""
    shared = _text([without_folders(word) for word in commands[0][:begin]])
    programs = {without_folders(words[0]) for words in commands}
    if shared or len(programs) == 1:
        return shared or _clean(*programs) or _NAMELESS
    stem = _VERSION.sub("", variants[0][: _shared(variants)])
    if len(stem) > 1:
        return stem
    others = variants[1] if len(variants) == 2 else f"{len(variants) - 1} others"
    return _short(f"{variants[0]} vs {others}")


def _cut(commands: Sequence[Sequence[str]]) -> list[str]:
    """The words of each command as text, with as few folders of each path as tell the commands apart."""
    texts = [" ".join(map(without_folders, words)) for words in commands]
    if len({tuple(words) for words in commands}) > len(set(texts)):
        for folders in range(1, _MOST_FOLDERS):
            texts = [" ".join(_last_parts(word, 1 + folders) for word in words) for words in commands]
            if len(set(texts)) == len({tuple(words) for words in commands}):
                break
    return texts


def _last_parts(word: str, number: int) -> str:
    return "/".join(part for part in PurePath(word).parts[-number:] if part != "/") if "/" in word else word


def _told_apart(texts: Sequence[str]) -> tuple[str, ...]:
    """Number texts that occur before."""
    numbered: list[str] = []
    for text in texts:
        number, name = 1, text
        while name in numbered:
            number += 1
            name = f"{text} #{number}"
        numbered.append(name)
    return tuple(numbered)


def _shared(lists: Sequence[Sequence[str]]) -> int:
    """How many first words all lists share, or first letters all texts."""
    count = 0
    for words in zip(*lists, strict=False):
        if len(set(words)) > 1:
            break
        count += 1
    return count


def _text(words: Sequence[str]) -> str:
    return _clean(" ".join(words))


def _clean(text: str) -> str:
    """Text for a name: one line of valid UTF-8. A bracket would begin a config."""
    valid = text.encode("utf-8", "replace").decode()
    printable = "".join(letter if letter.isprintable() else " " for letter in valid)
    return _short(" ".join(printable.replace("[", "(").replace("]", ")").split()))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
