"""Runs the commands `profile` and `import`, after `warpladder.collectors.cli` has parsed their options."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from warpladder.collectors.core import runs
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Leave, Stop
from warpladder.collectors.nsight_compute import parse as nsight_compute
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.collectors.screen import print_id, say
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.report import ReportError
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError

#: Warnings of an import that are printed; a report of Nsight Systems may hold dozens.
_MOST_WARNINGS: Final = 10


def profile(command: Sequence[str], data_dir: Path, label: str, variant_from: str, keep: Path | None) -> None:
    """Profile a program under Nsight Systems and import the report."""
    from warpladder.collectors.nsight_systems import profile as nsight_systems_profile

    runs.check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    salvage(data_dir)
    with Stop() as stop:
        notes = Notes()
        run_id, exit_code = nsight_systems_profile.profile(
            import_report, command, data_dir, label, naming, keep, sys.argv[1:], stop, notes
        )
        _warn(run_id, notes)
        if exit_code:
            say(f"{command[0]} ended with exit code {exit_code}; what was captured by then is imported")
        print_id(run_id)
    exit_code = stop.exit_code or exit_code
    if exit_code:
        raise click.exceptions.Exit(exit_code)


def import_reports(paths: Sequence[Path], data_dir: Path, label: str, variant_from: str) -> None:
    """Import each report as one run. Prints each run's id on stdout, and its warnings on stderr."""
    runs.check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    refused = False
    salvage(data_dir)
    with Leave():
        for path in paths:
            notes = Notes()
            of_ncu = nsight_compute.is_report(path) or nsight_compute.is_printed(path)
            read = nsight_compute.import_report if of_ncu else import_report
            try:
                run_id = read(path, data_dir, label, naming, sys.argv[1:], notes)
                _warn(path.name, notes)
                print_id(run_id)
            except (ReportError, NamingError, store.StoreError) as error:
                say(str(error))
                refused = True
    if refused:
        raise click.exceptions.Exit(2)


def _warn(name: str, notes: Notes) -> None:
    """Print the first warnings and errors of an import on stderr, and the number of the others."""
    warnings = notes.warnings()
    for text in warnings[:_MOST_WARNINGS]:
        say(f"{name}: {text}")
    if len(warnings) > _MOST_WARNINGS:
        more = len(warnings) - _MOST_WARNINGS
        say(f"{name}: {more} more warnings on the dashboard's page Runs & checks")
