"""`warpladder profile` and `warpladder import`: reports of Nsight Systems and Nsight Compute as runs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    comes to is printed, as by summary, and the command for its pages. The last run's id is the last line of stdout.

    PATH: .nsys-rep, .qdrep, .sqlite, a parquetdir export, .ncu-rep, or a trace of
    PyTorch's profiler or of JAX as JSON, compressed or not.
    """
    from warpladder.collectors.core.signals import Leave
    from warpladder.collectors.trace.report import ReportError
    from warpladder.data.naming import NamingError
    from warpladder.data.store import StoreError
    from warpladder.screen import say

    naming = _prepare(data_dir, label, variant_from)
    if job:
        if variant_from:
            raise click.UsageError("--variant-from names ranges of one trace; leave it out with --job")
        if not _import_job(_profiles(paths), data_dir, label, workers or 0, scheduler or "").complete:
            raise click.exceptions.Exit(ExitCode.WRONG)
        return
    given = click.get_current_context().get_parameter_source("scheduler")
    if workers or given is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--workers and --scheduler need --job")
    refused = False
    merged: list[Path] = []
    with Leave():
        for path in paths:
            try:
                if not _import(path, data_dir, label, naming, answered=len(paths) == 1):
                    merged.append(path)
            except (ReportError, NamingError, StoreError) as error:
                say(str(error))
                refused = True
    jobs = [_import_merged(path, data_dir, label) for path in merged]
    if refused or not all(job.complete for job in jobs):
        raise click.exceptions.Exit(ExitCode.REFUSED if refused else ExitCode.WRONG)


class _ImportedJob(NamedTuple):
    """The id of a job, and whether all of its ranks could be imported."""

    run_id: str
    complete: bool


def run_of(file: Path, data_dir: Path) -> Path:
    """The run of a report or trace: its earlier import into the data folder, or a new one with what it comes to on the screen.

    Raises:
        Error: it cannot be imported.
    """
    from warpladder.collectors.core.signals import Leave
    from warpladder.data import store
    from warpladder.screen import say

    if known := store.import_of(file, data_dir):
        say(f"{file.name}: was imported before, as {known.run_id}")
        return known.path
    with Leave():
        run_id = _import(file, data_dir, "", None)
    return data_dir / (run_id or _import_merged(file, data_dir, "").run_id)


def _import(path: Path, data_dir: Path, label: str, naming: "Naming | None", *, answered: bool = True) -> str:
    """Import one report or trace, and print its warnings and its id; with what it comes to, where that is asked for.

    Returns:
        the run's id; empty for a trace of several processes, which is no single run.

    Raises:
        Error: it cannot be imported.
    """
    from warpladder.collectors.kineto import parse as kineto
    from warpladder.collectors.nsight_compute import parse as nsight_compute
    from warpladder.collectors.nsight_systems.parse import import_report
    from warpladder.collectors.trace.notes import Notes
    from warpladder.screen import print_id

    of_ncu = nsight_compute.is_report(path) or nsight_compute.is_printed(path)
    otherwise = kineto.import_report if kineto.is_trace(path) else import_report
    read = nsight_compute.import_report if of_ncu else otherwise
    notes = Notes()
    try:
        run_id = read(path, data_dir, label, naming, sys.argv[1:], notes)
    except kineto.SeveralProcesses:
        if naming:
            raise
        return ""
    if answered:
        _answer(data_dir / run_id, notes.warnings())
    else:
        _warn([f"{path.name}: {text}" for text in notes.warnings()])
    print_id(run_id)
    return run_id


def _import_merged(path: Path, data_dir: Path, label: str) -> _ImportedJob:
    """Import a trace of several processes as a job."""
    from warpladder.dashboard.text.parts import wrapped
    from warpladder.screen import say

    lines = wrapped([f"{path.name}: holds the traces of several processes, and becomes a job with a rank for each"])
    for line in lines:
        say(line)
    return _import_job([path], data_dir, label or path.name.split(".")[0], 0, "", len(lines))


def _profiles(places: Sequence[Path]) -> list[Path]:
    """The profiles in folders and of patterns, each once."""
    from warpladder.collectors.jobs.job import profiles

    return list(dict.fromkeys(path for place in places for path in profiles(str(place))))


def _import_job(
    paths: Sequence[Path], data_dir: Path, label: str, workers: int, scheduler: str, taken: int = 0
) -> _ImportedJob:
    """Import the ranks of a job, with a bar, where so many lines are printed already."""
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
    return _ImportedJob(run_id, all(row["severity"] != "error" for row in notes.rows))


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
    from warpladder.dashboard.text.parts import SCREEN, fitting
    from warpladder.screen import say

    for line in fitting(warnings, SCREEN // 2):
        say(line)
