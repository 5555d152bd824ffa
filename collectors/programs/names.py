"""Names the workload, the case and the variants of a comparison of programs, from their command lines."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.environment import without_folders
from warpladder.data import naming, schema
from warpladder.data.files import one_line
from warpladder.data.names import WHOLE_PROGRAM
from warpladder.errors import Error

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


#: Characters that only a shell interprets, outside of quotes; `$` and the backquote also within double quotes.
_OF_SHELLS: Final = frozenset("|&;<>()$`*?[\n")
_WITHIN_DOUBLE_QUOTES: Final = frozenset("$`")
#: Characters with a meaning at the beginning of a word.
_AT_THE_BEGINNING: Final = frozenset("~#")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Program:
    """A program with its arguments.

    Attributes:
        text: the command line as the user wrote it.
        words: the program and its arguments, as they are started.
    """

    text: str
    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The command line as text for a run: without the folders of its paths, in valid UTF-8."""
        return " ".join(map(without_folders, self.words)).encode("utf-8", "replace").decode()


def parse(text: str) -> Program:
    """Split a command line into words, as a shell does. Raises Error: there is no program in it, its quotes are not
    closed, or it needs a shell.

    Args:
        text: a command line such as `./solver 2048`.
    """
    if not text.strip():
        raise Error("an empty command: name a program, as in: warpladder versus './old 2048' './new 2048'")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Error(f"{one_line(text)}: cannot be split into words ({error}); close its quotes") from error
    character = _for_a_shell(text)
    if character:
        description = "a line break" if character == "\n" else f"the character {character}"
        raise Error(f"{one_line(text)}: {description} has a meaning to a shell only; quote it, or write sh -c '…'")
    if not words or not words[0]:
        raise Error(f"{one_line(text)}: names no program; write for example './solver 2048'")
    if _ASSIGNMENT.match(words[0]) and "/" not in words[0].partition("=")[0]:
        raise Error(f"{one_line(text)}: sets a variable, which a shell does; write env {words[0]} …")
    return Program(text, tuple(words))


def parse_all(texts: Sequence[str]) -> tuple[Program, ...]:
    """Parse the command lines to compare. Raises Error: there are fewer than two, or one cannot be measured."""
    if len(texts) < 2:
        count = "no program" if not texts else "one program"
        raise Error(
            f"versus: {count} to compare; name two or more, each in quotes: warpladder versus './old 2048' './new 2048'"
        )
    return tuple(map(parse, texts))


def _for_a_shell(text: str) -> str:
    """Return the first character that only a shell interprets; empty if there is none."""
    quote, escaped, beginning = "", False, True
    for character in text:
        if escaped:
            escaped = beginning = False
            continue
        if character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _WITHIN_DOUBLE_QUOTES:
                return character
        elif character in "'\"":
            quote, beginning = character, False
        elif character in _OF_SHELLS or (beginning and character in _AT_THE_BEGINNING):
            return character
        else:
            beginning = character.isspace()
    return ""


#: Largest file that is hashed.
_MOST_BYTES: Final = 1 << 28

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
    """Rows of `variants`: the programs are the rungs of a ladder, in their order. `paths`: file of each program; None
    where there is none."""
    every = zip(cells, programs, paths, strict=True)
    return [_variant(cell, rung, program, path) for rung, (cell, program, path) in enumerate(every)]


def _variant(cell: Cell, rung: int, program: Program, path: str | None) -> dict[str, Any]:
    text = source_text(program, path)
    return {
        **schema.VARIANTS.blank_row(),
        "workload": cell.workload,
        "variant": cell.variant,
        "rung": rung,
        "kind": "host",
        "role": "rung",
        "precision": "fp32",
        "title": text.partition("\n")[0],
        "source": WHOLE_PROGRAM,
        "source_text": text,
        "source_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def source_text(program: Program, path: str | None) -> str:
    """The command line and a hash of each file that it names, without folders: a program that was built again has another text."""
    files = dict.fromkeys((path, *program.words[1:]))
    lines = [program.shown]
    lines += [f"{without_folders(file)}: SHA-256 {digest}" for file in files if file and (digest := _digest(file))]
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
