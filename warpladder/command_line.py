"""What the command lines of the rooms share."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from warpladder.data.files import one_line

#: Of every group of commands.
SETTINGS: Final[dict[str, Any]] = {"no_args_is_help": True, "context_settings": {"show_default": True}}


class OneLineErrors(click.Group):
    """A group of commands that prints a user's mistake as one line on stderr and exits with code 2.

    Args:
        mistakes: module -> name of its exception that stands for a user's mistake. The message says where, what, and what to do.
    """

    def __init__(self, *args: Any, mistakes: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._mistakes = mistakes

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not isinstance(error, imported(self._mistakes)):
                raise
            print(one_line(str(error)), file=sys.stderr)
            raise click.exceptions.Exit(2) from error


def imported(mistakes: Mapping[str, str]) -> tuple[type[Exception], ...]:
    """The exceptions for a user's mistakes, of the modules that have been imported: no other can be raised."""
    return tuple(getattr(sys.modules[module], name) for module, name in mistakes.items() if module in sys.modules)
