"""The exception of what a caller asks a run for."""

import difflib
from collections.abc import Sequence
from typing import Final

from warpladder.errors import Error

_MOST_NAMES: Final = 12


class RunError(Error, ValueError):
    """A run does not have what was asked for. The message says what is there, in one line."""


def chosen(asked: str | None, names: Sequence[str], what: str, argument: str) -> str:
    """The name that was asked for, or the only one.

    Args:
        asked: None for the only one.
        what: the run, for the message.
        argument: of the caller, such as `workload`.

    Raises:
        RunError: there is no such name, or none was asked for and there are several.
    """
    if asked is None and len(names) == 1:
        return names[0]
    if asked in names:
        return str(asked)
    close = difflib.get_close_matches(str(asked), names, 3) if asked else []
    shown = close or names[:_MOST_NAMES]
    listed = ", ".join(repr(name) for name in shown) + (
        f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    )
    if asked is None:
        raise RunError(f"{what} has {len(names)} {argument}s; give {argument}= one of {listed}")
    raise RunError(f"{argument}={asked!r}: {what} has no such {argument}; it has {listed}")
