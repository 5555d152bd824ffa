"""Lines on stderr and stdout that may be read by nobody any more: a run is stored all the same."""

import os
import sys
from contextlib import suppress


def say(text: str) -> None:
    """A line on stderr, which may be gone with its terminal."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def print_id(run_id: str) -> None:
    """A run's id on stdout."""
    try:
        print(run_id, flush=True)
    except OSError:  # nobody reads it; nor should Python try again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
