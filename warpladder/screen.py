"""Prints lines to stderr and stdout. A closed terminal or pipe is no error, so that the run is still stored."""

import os
import sys
from contextlib import suppress

from warpladder.data.files import one_line


def say(text: str) -> None:
    """Print a line on stderr; do nothing if stderr is closed."""
    with suppress(OSError):
        print(one_line(text), file=sys.stderr, flush=True)


def print_id(run_id: str) -> None:
    """Print a run's id on stdout."""
    print_text(f"{one_line(run_id)}\n")


def print_text(text: str) -> None:
    """Print a text that ends with a line feed on stdout; do nothing if stdout is closed."""
    try:
        print(text, end="", flush=True)
    except OSError:  # the pipe is closed; keep Python from flushing to it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
