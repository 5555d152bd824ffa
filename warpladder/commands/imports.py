"""`warpladder profile` and `warpladder import`: reports of Nsight Systems and Nsight Compute as runs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpladder.commands.common import FILE, ExitCode, data_dir_option, label_option, take_up, variant_from_option

if TYPE_CHECKING:
    from warpladder.data.naming import Naming

#: Lines of the screen that the id of a run takes, and those that the progress of a job takes.
_OF_ID, _OF_PROGRESS = 1, 2


@click.command("profile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@data_dir_option
@label_option
@variant_from_option
@click.option("--keep", type=FILE, metavar="FILE", help="Keep the report as this .nsys-rep file.")
def profile_command(command: Sequence[str], data_dir: Path, label: str, variant_from: str, keep: Path | None) -> None:
    """Profile a program of your own under Nsight Systems and import the report. The run's id is the last line of stdout."""
    from warpladder.collectors.core.signals import Stop
    from warpladder.collectors.nsight_systems.parse import import_report
    from warpladder.collectors.nsight_systems.profile import profile
    from warpladder.collectors.trace.notes import Notes
    from warpladder.screen import print_id, say

    naming = _prepare(data_dir, label, variant_from)
    with Stop() as stop:
        notes = Notes()
        run_id, exit_code = profile(import_report, command, data_dir, label, naming, keep, sys.argv[1:], stop, notes)
        if exit_code:
            say(f"{command[0]} ended with exit code {exit_code}; what was captured by then is imported")
        _answer(data_dir / run_id, notes.warnings())
        print_id(run_id)
    exit_code = stop.exit_code or exit_code
    if exit_code:
        raise click.exceptions.Exit(exit_code)


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="PATH...")
@data_dir_option
@label_option
@variant_from_option
@click.option(
    "--job",
    is_flag=True,
    help="The profiles are those of the ranks of one job: PATH is their folder, a pattern in quotes, or a report of several ranks.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="With --job: processes on this machine; as many as fit by default.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    envvar="DASK_SCHEDULER_ADDRESS",
    help="With --job: a Dask scheduler, such as tls://host:8786.",
)
def import_command(
    paths: Sequence[Path],
    data_dir: Path,
    label: str,
    variant_from: str,
    job: bool,
    workers: int | None,
    scheduler: str | None,
) -> None:
    """Import reports of Nsight Systems and Nsight Compute and traces of PyTorch's profiler, each as one run. Of a single one, what it
    comes to is printed, as by summary. The last run's id is the last line of stdout.

    PATH: .nsys-rep, .qdrep, .sqlite, a parquetdir export, .ncu-rep, or a trace of
    PyTorch's profiler or of JAX as JSON, compressed or not.
    """
    from warpladder.collectors.core.signals import Leave
    from warpladder.collectors.kineto import parse as kineto
    from warpladder.collectors.nsight_compute import parse as nsight_compute
    from warpladder.collectors.nsight_systems.parse import import_report
    from warpladder.collectors.trace.notes import Notes
    from warpladder.collectors.trace.report import ReportError
    from warpladder.data.naming import NamingError
    from warpladder.data.store import StoreError
    from warpladder.screen import print_id, say

    naming = _prepare(data_dir, label, variant_from)
    if job:
        if variant_from:
            raise click.UsageError("--variant-from names ranges of one trace; leave it out with --job")
        _import_job(_profiles(paths), data_dir, label, workers or 0, scheduler or "")
        return
    given = click.get_current_context().get_parameter_source("scheduler")
    if workers or given is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--workers and --scheduler need --job")
    refused = False
    merged: list[Path] = []
    with Leave():
        for path in paths:
            notes = Notes()
            of_ncu = nsight_compute.is_report(path) or nsight_compute.is_printed(path)
            otherwise = kineto.import_report if kineto.is_trace(path) else import_report
            read = nsight_compute.import_report if of_ncu else otherwise
            try:
                run_id = read(path, data_dir, label, naming, sys.argv[1:], notes)
                if len(paths) == 1:
                    _answer(data_dir / run_id, notes.warnings())
                else:
                    _warn([f"{path.name}: {text}" for text in notes.warnings()])
                print_id(run_id)
            except (ReportError, NamingError, StoreError) as error:
                if isinstance(error, kineto.SeveralProcesses) and not variant_from:
                    merged.append(path)
                    continue
                say(str(error))
                refused = True
    for path in merged:
        from warpladder.dashboard.text.parts import wrapped

        lines = wrapped([f"{path.name}: holds the traces of several processes, and becomes a job with a rank for each"])
        for line in lines:
            say(line)
        _import_job([path], data_dir, label or path.name.split(".")[0], 0, "", len(lines))
    if refused:
        raise click.exceptions.Exit(ExitCode.REFUSED)


def _profiles(places: Sequence[Path]) -> list[Path]:
    """The profiles in folders and of patterns, each once."""
    from warpladder.collectors.jobs.job import profiles

    return list(dict.fromkeys(path for place in places for path in profiles(str(place))))


def _import_job(paths: Sequence[Path], data_dir: Path, label: str, workers: int, scheduler: str, taken: int = 0) -> None:
    """Import the ranks of a job, with a bar, where so many lines are printed already. The exit code is 1 where a rank could not be imported."""
    from warpladder.collectors.core.signals import Leave
    from warpladder.collectors.jobs.job import Request, import_job
    from warpladder.collectors.trace.notes import Notes
    from warpladder.progress import TerminalProgress
    from warpladder.screen import print_id

    notes = Notes()
    with Leave(), TerminalProgress(f"job of {len(paths)} {'profile' if len(paths) == 1 else 'profiles'}") as progress:
        request = Request(paths, label, workers, scheduler, sys.argv[1:])
        run_id = import_job(request, data_dir, notes, lambda done, of, _: progress.step("importing ranks", done, of))
    _answer(data_dir / run_id, notes.warnings(), taken + _OF_PROGRESS)
    print_id(run_id)
    if any(row["severity"] == "error" for row in notes.rows):
        raise click.exceptions.Exit(1)


def _prepare(data_dir: Path, label: str, variant_from: str) -> "Naming | None":
    """Check the options, and take up what an earlier recording left. Returns how ranges name variants. Raises Error."""
    from warpladder.collectors.core import journal
    from warpladder.data.naming import Naming

    journal.check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    take_up(data_dir)
    return naming


def _answer(path: Path, warnings: Sequence[str], taken: int = 0) -> None:
    """Print the warnings of an import, and what the run comes to. What that needs is loaded only where a report was imported."""
    from warpladder.commands import ending

    ending.imported(path, warnings, taken + _OF_ID)


def _warn(warnings: Sequence[str]) -> None:
    """Print the warnings about one of several reports on stderr."""
    from warpladder.dashboard.text.parts import LINES, fitting
    from warpladder.screen import say

    for line in fitting(warnings, LINES // 2):
        say(line)
