"""Prints lines to stderr and stdout. A closed terminal or pipe is no error, so that the run is still stored."""

import errno
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TextIO

from warpladder.dashboard.ui.text import columns
from warpladder.data.files import one_line

#: Lines that are shown of what a file printed before it failed.
_LAST_LINES: Final = 10
#: Errors of a disk that takes no more.
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def say(text: str) -> None:
    """Print a line on stderr, on a terminal in as many as it takes without cutting words; do nothing if stderr is closed."""
    with suppress(OSError):
        print(_folded(text, sys.stderr), file=sys.stderr, flush=True)


def print_lines(lines: Iterable[str], indent: str = "  ") -> None:
    """Print lines on stdout, on a terminal folded between words. `indent`: what a line goes on with where it is folded."""
    print_text("".join(f"{_folded(line, sys.stdout, indent)}\n" for line in lines))


def _folded(text: str, stream: TextIO, indent: str = "  ") -> str:
    line, width = one_line(text), columns(stream)
    if len(line) <= width:
        return line
    return textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


@contextmanager
def set_aside() -> Iterator[None]:
    """Keep off the terminal what a file prints while it is imported: the processes that measure import it too, and what they print is kept.

    Where the block fails, the last lines are printed on stderr.
    """
    with tempfile.TemporaryFile() as file:
        try:
            with _printing_to(file.fileno()):
                yield
        except BaseException:
            file.seek(0)
            for line in file.read().decode(errors="replace").splitlines()[-_LAST_LINES:]:
                say(line)
            raise


@contextmanager
def _printing_to(file: int) -> Iterator[None]:
    """Let stdout and stderr of this process go to a file; those that are closed stay closed."""
    with ExitStack() as restored:
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            if stream:
                stream.flush()
                restored.callback(os.close, own := os.dup(number))
                restored.callback(os.dup2, own, number)
                restored.callback(stream.flush)
                os.dup2(file, number)
        yield


def print_id(run_id: str) -> None:
    """Print a run's id on stdout."""
    print_text(f"{one_line(run_id)}\n")


def print_text(text: str) -> None:
    """Print a text that ends with a line feed on stdout; do nothing if stdout is closed. A full disk ends the command."""
    try:
        print(text, end="", flush=True)
    except OSError as error:  # the pipe is closed; keep Python from flushing to it again at exit
        leave_stdout()
        if error.errno in FULL:
            say(not_written(error))
            raise SystemExit(2) from error


def not_written(error: OSError) -> str:
    """The message for a stdout that takes no more."""
    return f"stdout cannot be written ({error.strerror}); make room, or print elsewhere"


def leave_stdout() -> None:
    """Drop what is still to be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
