"""`warpladder profile` and `warpladder import`: reports and traces of profilers as runs."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from warpladder.commands.common import (
    FILE,
    ExitCode,
    data_dir_option,
    format_option,
    label_option,
    take_up,
    variant_from_option,
)
from warpladder.dashboard.text.formats import TABLE_OR_JSON, TableOrJson, json_text

if TYPE_CHECKING:
    from warpladder.collectors.trace.notes import Notes
    from warpladder.data.naming import Naming

#: Lines of the screen that the id of a run takes, and those that the progress of a job takes.
_OF_ID, _OF_PROGRESS = 1, 1


@click.command("profile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@data_dir_option
@label_option
@variant_from_option
@click.option("--keep", type=FILE, metavar="FILE", help="Keep the report as this .nsys-rep file.")
@format_option("answer", TABLE_OR_JSON)
def profile_command(
    command: Sequence[str], data_dir: Path, label: str, variant_from: str, keep: Path | None, form: TableOrJson
) -> None:
    """Profile your program under Nsight Systems, and import it.

    The last line of stdout is the run's id.
    """
    from warpladder.collectors.core.signals import Stop
    from warpladder.collectors.nsight_systems.record import profile
    from warpladder.collectors.trace.notes import Notes
    from warpladder.screen import say

    naming = _prepare(data_dir, label, variant_from)
    with Stop() as stop:
        notes = Notes()
        run_id, exit_code = profile(command, data_dir, label, naming, keep, sys.argv[1:], stop, notes)
        if exit_code:
            say(f"{command[0]} ended with exit code {exit_code}; what was captured by then is imported")
        _print([_Imported(command[0], data_dir / run_id, notes.warnings())], form)
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
    help="Import the ranks of one job as one run: PATH is the folder of their profiles, a pattern in quotes, or a report of several ranks.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="With --job: processes on this machine. Default: as many as fit.",
)
@format_option("answer", TABLE_OR_JSON)
def import_command(
    paths: Sequence[Path],
    data_dir: Path,
    label: str,
    variant_from: str,
    job: bool,
    workers: int | None,
    form: TableOrJson,
) -> None:
    """Import profiles of Nsight, PyTorch, JAX or Triton as runs.

    You see where the time of a single one goes, as from summary, and the command for its pages. The last line of stdout is the last run's
    id.

    PATH: .nsys-rep, .qdrep, .sqlite, a parquetdir export, .ncu-rep, or a trace of
    PyTorch's profiler, of JAX or of Triton's Proton as JSON, compressed or not.
    """
    from warpladder.collectors.core.signals import Leave
    from warpladder.collectors.trace.model import ReportError
    from warpladder.data.naming import NamingError
    from warpladder.data.store import StoreError
    from warpladder.screen import say

    naming = _prepare(data_dir, label, variant_from)
    if job:
        from warpladder.collectors.jobs.job import profiles

        if variant_from:
            raise click.UsageError("--variant-from names ranges of one trace; leave it out with --job")
        found = dict.fromkeys(path for place in paths for path in profiles(str(place)))
        imported = _import_job(list(found), data_dir, label, workers or 0)
        _print([imported], form)
        if not imported.complete:
            raise click.exceptions.Exit(ExitCode.WRONG)
        return
    if workers:
        raise click.UsageError("--workers needs --job")
    refused = False
    runs: list[_Imported] = []
    with Leave():
        for path in paths:
            try:
                runs.append(_import(path, data_dir, label, naming))
                if form == "table":
                    _print(runs[-1:], form, answered=len(paths) == 1)
            except (ReportError, NamingError, StoreError) as error:
                say(str(error))
                refused = True
    if form == "json":
        _print(runs, form)
    elif len(paths) > 1 and runs:
        say("where the time of each goes: warpladder summary RUN, or warpladder app RUN")
    if refused or not all(run.complete for run in runs):
        raise click.exceptions.Exit(ExitCode.REFUSED if refused else ExitCode.WRONG)


class _Imported(NamedTuple):
    """A run that was imported.

    Attributes:
        source: name of the report, the program or the job.
        path: the run's folder.
        complete: whether it has all ranks of the job.
        printed: lines that were printed already.
    """

    source: str
    path: Path
    warnings: Sequence[str]
    complete: bool = True
    printed: int = 0


def run_of(file: Path, data_dir: Path) -> Path:
    """The run of a report or trace: its earlier import into the data folder, or a new one with what it comes to on the
    screen. Raises Error: it cannot be imported."""
    from warpladder.collectors.core.signals import Leave
    from warpladder.data import store
    from warpladder.screen import say

    if known := store.import_of(file, data_dir):
        say(f"{file.name}: was imported before, as {known.run_id}")
        return known.path
    with Leave():
        imported = _import(file, data_dir, "", None)
    _print([imported], "table")
    return imported.path


def _import(path: Path, data_dir: Path, label: str, naming: "Naming | None") -> _Imported:
    """Import one report or trace; a trace of several processes as a job. Raises Error: it cannot be imported."""
    from warpladder.collectors.kineto.parse import SeveralProcesses
    from warpladder.collectors.trace.notes import Notes

    notes = Notes()
    try:
        run_id = _reader_of(path)(path, data_dir, label, naming, sys.argv[1:], notes)
    except SeveralProcesses:
        if naming:
            raise
        return _import_merged(path, data_dir, label)
    return _Imported(path.name, data_dir / run_id, notes.warnings())


def _reader_of(path: Path) -> "Callable[[Path, Path, str, Naming | None, Sequence[str], Notes], str]":
    """The `import_report` of the first tool that knows a file; of Nsight Systems for others, which says why it cannot read them."""
    from warpladder.collectors.kineto import parse as kineto
    from warpladder.collectors.nsight_compute import parse as nsight_compute
    from warpladder.collectors.nsight_systems import parse as nsight_systems
    from warpladder.collectors.proton import parse as proton

    readers = (
        (nsight_compute.is_report, nsight_compute.import_report),
        (nsight_compute.is_printed, nsight_compute.import_report),  # it says what to import instead
        (proton.is_trace, proton.import_report),
        (kineto.is_trace, kineto.import_report),
    )
    return next((read for knows, read in readers if knows(path)), nsight_systems.import_report)


def _import_merged(path: Path, data_dir: Path, label: str) -> _Imported:
    """Import a trace of several processes as a job."""
    from warpladder.dashboard.text.parts import wrapped
    from warpladder.screen import say

    lines = wrapped([f"{path.name}: holds the traces of several processes, and becomes a job with a rank for each"])
    for line in lines:
        say(line)
    return _import_job([path], data_dir, label or path.name.split(".")[0], 0, len(lines))


def _import_job(paths: Sequence[Path], data_dir: Path, label: str, workers: int, printed: int = 0) -> _Imported:
    """Import the ranks of a job, with a bar, where so many lines are printed already."""
    from warpladder.collectors.core.signals import Leave
    from warpladder.collectors.jobs.job import Request, import_job
    from warpladder.collectors.trace.notes import Notes
    from warpladder.progress import TerminalProgress

    notes = Notes()
    what = paths[0].name if len(paths) == 1 else f"{len(paths)} profiles"
    with Leave(), TerminalProgress(f"importing a job of {what}") as progress:
        request = Request(paths, label, workers, sys.argv[1:])
        run_id = import_job(request, data_dir, notes, lambda done, of, _: progress.step("", done, of))
    complete = all(row["severity"] != "error" for row in notes.rows)
    return _Imported(label, data_dir / run_id, notes.warnings(), complete, printed + _OF_PROGRESS)


def _prepare(data_dir: Path, label: str, variant_from: str) -> "Naming | None":
    """Check the options, and take up what an earlier recording left. Returns how ranges name variants. Raises Error."""
    from warpladder.collectors.core.new_runs import check_label
    from warpladder.data.naming import Naming

    check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    take_up(data_dir)
    return naming


def _print(runs: Sequence[_Imported], form: TableOrJson, *, answered: bool = True) -> None:
    """Print what runs come to, where that is asked for, with their warnings and ids. What that needs is loaded only after an import."""
    from warpladder.commands import ending
    from warpladder.dashboard.text.parts import SCREEN, fitting
    from warpladder.screen import print_id, print_text, say

    if form == "json":
        print_text(json_text([_facts(each) for each in runs]))
        return
    for each in runs:
        if answered:
            ending.imported(each.path, each.warnings, each.printed + _OF_ID)
        else:
            for line in fitting([f"{each.source}: {text}" for text in each.warnings], SCREEN // 2):
                say(line)
        print_id(each.path.name)


def _facts(imported: _Imported) -> dict[str, Any]:
    """A run that was imported, for programs; with what `summary` has of it."""
    from warpladder.commands import ending

    return {
        "run_id": imported.path.name,
        "path": str(imported.path),
        **{name: getattr(imported, name) for name in ("source", "complete", "warnings")},
        "summary": ending.facts(imported.path),
    }
