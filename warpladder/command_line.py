"""What the command lines of the rooms share."""

import sys
from typing import Any, Final

import click

from warpladder.data.files import one_line
from warpladder.errors import Error

#: Of every group of commands.
SETTINGS: Final[dict[str, Any]] = {"no_args_is_help": True, "context_settings": {"show_default": True}}


class OneLineErrors(click.Group):
    """A group of commands that prints a user's mistake as one line on stderr and exits with code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Error as error:
            print(one_line(str(error)), file=sys.stderr)
            raise click.exceptions.Exit(2) from error
