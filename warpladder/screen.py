"""Prints lines to stderr and stdout. A closed terminal or pipe is no error, so that the run is still stored."""

import errno
import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import Final

from warpladder.data.files import one_line

#: Errors of a disk that takes no more.
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def say(text: str) -> None:
    """Print a line on stderr, on a terminal in as many as it takes without cutting words; do nothing if stderr is closed."""
    lines = one_line(text)
    with suppress(OSError):
        if sys.stderr.isatty():
            columns = shutil.get_terminal_size().columns
            lines = textwrap.fill(lines, columns, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        print(lines, file=sys.stderr, flush=True)


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
