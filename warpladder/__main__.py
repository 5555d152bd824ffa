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

    groups = {
        "Measure kernels": (new.command, record.command, compare.command, why.command, versus.command, disassemble.command),
        "Look into a program": (
            *(imports.import_command, imports.profile_command, capture.command),
            *(extract.command, extract.forecast_command),
        ),
        "Look at runs": (export.app_command, look.runs_command, look.summary_command, sql.command, export.command),
        "This machine": (doctor.command, look.list_command, mcp.command),
    }
    return click.version_option(__version__)(Commands(groups, help=__doc__ or ""))


def main(name: str = "warpladder") -> None:
    """Run a command. Until it has set its own handlers, a signal ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command()(prog_name=name)


if __name__ == "__main__":
    main()
