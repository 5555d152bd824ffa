"""Measure kernel variants, and compare the recorded runs."""

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def command() -> "click.Group":
    """The commands of all rooms as one group."""
    import click

    from warpladder import __version__
    from warpladder.collectors import cli as collectors
    from warpladder.command_line import SETTINGS, OneLineErrors
    from warpladder.dashboard import cli as dashboard

    group = OneLineErrors(
        "warpladder",
        commands={**collectors.app.commands, **dashboard.app.commands},
        help=__doc__,
        **SETTINGS,
    )
    return click.version_option(__version__)(group)


def main() -> None:
    """Run a command. Until it has set its own handlers, a signal ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command()(prog_name="warpladder")


if __name__ == "__main__":
    main()
