"""Parses the command lines of programs. No shell is started, unless the user asks for one."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from warpladder.collectors.core.environment import without_folders
from warpladder.data.files import one_line
from warpladder.errors import Error

#: Characters that only a shell interprets, outside of quotes; `$` and the backquote also within double quotes.
_OF_SHELLS: Final = frozenset("|&;<>()$`*?[\n")
_WITHIN_DOUBLE_QUOTES: Final = frozenset("$`")
#: Characters with a meaning at the beginning of a word.
_AT_THE_BEGINNING: Final = frozenset("~#")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_SHELL: Final = "/bin/sh"


@dataclass(frozen=True)
class Program:
    """A program with its arguments.

    Attributes:
        text: the command line as the user wrote it.
        words: the program and its arguments, as they are started.
        shell: whether a shell runs `text`.
    """

    text: str
    words: tuple[str, ...]
    shell: bool = False

    @property
    def own_words(self) -> tuple[str, ...]:
        """The words that the user wrote, also where a shell runs them; one word if they cannot be split."""
        if not self.shell:
            return self.words
        try:
            return tuple(shlex.split(self.text)) or (self.text,)
        except ValueError:
            return (self.text,)

    @property
    def shown(self) -> str:
        """The command line as text for a run: without the folders of its paths, in valid UTF-8."""
        return " ".join(map(without_folders, self.own_words)).encode("utf-8", "replace").decode()


def parse(text: str, *, shell: bool = False) -> Program:
    """Split a command line into words, as a shell does.

    Args:
        text: a command line such as `./solver 2048`.
        shell: run it by `/bin/sh`, so that pipes and variables work.

    Raises:
        Error: there is no program in it, its quotes are not closed, or it needs a shell.
    """
    if not text.strip():
        raise Error("an empty command: name a program, as in: warpladder versus './old 2048' './new 2048'")
    if shell:
        return Program(text, (_SHELL, "-c", text), shell=True)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Error(f"{one_line(text)}: cannot be split into words ({error}); close its quotes") from error
    character = _for_a_shell(text)
    if character:
        description = "a line break" if character == "\n" else f"the character {character}"
        raise Error(f"{one_line(text)}: {description} has a meaning to a shell only; quote it, or give --shell to run a shell")
    if not words or not words[0]:
        raise Error(f"{one_line(text)}: names no program; write for example './solver 2048'")
    if _ASSIGNMENT.match(words[0]) and "/" not in words[0].partition("=")[0]:
        raise Error(f"{one_line(text)}: sets a variable, which a shell does; write env {words[0]} …, or give --shell")
    return Program(text, tuple(words))


def parse_all(texts: Sequence[str], *, shell: bool = False) -> tuple[Program, ...]:
    """Parse the command lines to compare.

    Raises:
        Error: there are fewer than two, or one cannot be measured.
    """
    if len(texts) < 2:
        count = "no program" if not texts else "one program"
        raise Error(
            f"versus: {count} to compare; name two or more, each in quotes: warpladder versus './old 2048' './new 2048'"
        )
    return tuple(parse(text, shell=shell) for text in texts)


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
