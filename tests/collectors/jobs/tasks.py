"""Tasks for the engine. The processes that run them import this file, so it imports little."""

import os
import signal
from pathlib import Path


def squared(number: int) -> int:
    return number * number


def dies_once(path: Path) -> str:
    """Kills its own process the first time that it sees a path."""
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def dies_if_named(path: Path) -> str:
    if path.name == "killer":
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name
