"""The source of a function."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any


def source_of(function: Callable[..., Any]) -> str:
    """The function's source."""
    try:
        return inspect.getsource(inspect.unwrap(function))
    except (TypeError, OSError):
        return str(getattr(function, "__name__", ""))


def source_file_of(function: Callable[..., Any]) -> Path | None:
    """The file that defines it."""
    try:
        return Path(inspect.getfile(inspect.unwrap(function)))
    except TypeError:
        return None
