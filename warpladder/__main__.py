"""Measure kernels written in several ways: which is fastest, where, by how much, why, and whether to believe it."""

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def command() -> "click.Group":
    """The commands as one group."""
    import click

    from warpladder import __version__
    from warpladder.commands import (
        capture,
        compare,
        disassemble,
        doctor,
        export,
        extract,
        imports,
        look,
        mcp,
        new,
        record,
        sql,
        versus,
        why,
    )
    from warpladder.commands.common import Commands

    every = (
        *(record.command, new.command, why.command, versus.command, imports.profile_command, imports.import_command),
        *(extract.command, extract.forecast_command, capture.command),
        *(look.list_command, look.runs_command, look.summary_command, sql.command, compare.command),
        *(export.command, export.app_command, doctor.command, disassemble.command, mcp.command),
    )
    return click.version_option(__version__)(Commands(every, help=__doc__ or ""))


def main(name: str = "warpladder") -> None:
    """Run a command. Until it has set its own handlers, a signal ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command()(prog_name=name)


if __name__ == "__main__":
    main()
