"""The command line: `python -m collectors record|profile|import|list|runs|doctor`."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from typer.core import TyperGroup

from collectors import choice, doctor, launchers, plan, record, runs
from collectors.nsight_compute import parse as nsight_compute
from collectors.nsight_compute import record as nsight_compute_record
from collectors.nsight_systems import profile
from collectors.nsight_systems import record as nsight_systems_record
from collectors.nsight_systems.parse import import_report
from collectors.salvage import salvage
from collectors.signals import Leave, Stop
from collectors.trace.report import ReportError
from data import store
from data.naming import Naming, NamingError
from workloads import registry
from workloads.api import WorkloadError, format_params

#: What a user can get wrong; each message is one line that says where, what, and what to do.
MISTAKES = (
    plan.PlanError, WorkloadError, choice.CollectorError, store.StoreError, ReportError, NamingError, runs.LabelError,
)  # fmt: skip


class OneLineErrors(TyperGroup):
    """Turns a user's mistake into its line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MISTAKES as error:
            print(error, file=sys.stderr)
            raise typer.Exit(2) from error


app = typer.Typer(cls=OneLineErrors, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


class _Screen(Console):
    """Stderr, which may go before the recording does; Rich would end the command then."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


_screen = _Screen(stderr=True, highlight=False, soft_wrap=True)

DataDir = Annotated[Path, typer.Option("--data-dir", parser=store.folder, help="Folder that runs are written to.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Workloads; all when none is named.")]
Files = Annotated[list[Path] | None, typer.Option("--workload", help="A Python file of your own that declares a workload.")]
VariantFrom = Annotated[str, typer.Option(help="nvtx:REGEX with groups variant, workload, config, case.")]

_FORMATS: Final = ("table", "markdown", "csv", "json")

#: Collectors under which a recording runs, instead of in them.
UNDER_TOOL: Final = {"nsight_systems": nsight_systems_record.record, "nsight_compute": nsight_compute_record.record}


@app.command("record")
def record_command(
    workloads: Names = None,
    workload_files: Files = None,
    case_set: Annotated[str, typer.Option("--cases", help="quick, report or full.")] = "quick",
    cases: Annotated[
        list[str] | None, typer.Option("--case", help="One case, by name or axes: n=3000; may be given again.")
    ] = None,
    axes: Annotated[list[str] | None, typer.Option("--axis", help="A sweep: n=1000,2000,4000; may be given again.")] = None,
    variants: Annotated[str, typer.Option("--variants", help="Variants to take, with commas between; all when empty.")] = "",
    collector: Annotated[str, typer.Option(help=f"auto, {', '.join(choice.COLLECTORS)}.")] = "auto",
    label: Annotated[str, typer.Option(help="Your name for the run.")] = "",
    data_dir: DataDir = store.LOCAL,
    seed: Annotated[int, typer.Option(min=0, help="Of the inputs and of the order of the rounds.")] = 0,
    max_rounds: Annotated[int, typer.Option(min=0, help="Most rounds of a scope; 0 for the case set's own limit.")] = 0,
    gpus: Annotated[
        str, typer.Option(help="Numbers of GPUs (processes without a GPU) that share a case, such as 1,2,4.")
    ] = "1",
    launcher: Annotated[str, typer.Option(help="What starts several: local (mpiexec on this host), mpirun or srun.")] = "local",
    launcher_args: Annotated[str, typer.Option(help="Further arguments of the launcher.")] = "",
    form: Annotated[str, typer.Option("--format", help=f"Of the answer: {', '.join(_FORMATS)}.")] = "table",
    summary: Annotated[bool, typer.Option("--summary/--no-summary", hidden=True)] = True,
    if_none: Annotated[bool, typer.Option("--if-none", help="Record only if the folder has no run yet.")] = False,
) -> None:
    """Verify and measure every variant, write the run, and print which win. The run's id is the last line of the table."""
    runs.check_label(label)
    if form not in _FORMATS:
        raise plan.PlanError(f"--format {form}: no such format; choose {', '.join(_FORMATS)}")
    if if_none and (existing := store.list_runs([data_dir])[0]):
        print(existing[0].run_id)
        return
    request = plan.Request(
        names=workloads or [],
        files=workload_files or [],
        case_set=case_set,
        cases=[*(cases or []), *plan.sweep_of(axes or [])],
        variants=[name.strip() for name in variants.split(",") if name.strip()],
        seed=seed,
        max_rounds=max_rounds or None,
        gpus=plan.counts_of(gpus),
    )
    work = plan.make_plan(request)
    starter = launchers.Launcher.parse(launcher, launcher_args)
    name, why = choice.choose(collector, choice.TOGETHER if work.most_gpus > 1 else choice.TIMING)
    starter.check(work, name)
    work = work.on_host() if name == "host_clock" else work
    salvage(data_dir)
    with Stop() as stop:
        try:
            run_id, _ = _record(name, why, request, work, data_dir, label, starter, stop)
        except (choice.CollectorError, ReportError) as error:
            if stop.number:
                _say(str(error))
                raise typer.Exit(stop.exit_code) from error
            if collector != "auto":
                raise
            why = f"{name} was tried first: {error}"
            run_id, _ = _record("cuda_events", why, request, work, data_dir, label, starter, stop)
        if summary:
            _summarize(data_dir / run_id)
            _answer(data_dir / run_id, form)
        if form == "table":
            _print_id(run_id)
    if stop.number:
        raise typer.Exit(stop.exit_code)


def _record(
    name: str,
    why: str,
    request: plan.Request,
    work: plan.Plan,
    data_dir: Path,
    label: str,
    launcher: launchers.Launcher,
    stop: Stop,
) -> tuple[str, int]:
    """The run's id, and the signal that interrupted it, or 0."""
    headline = f"collector {name}: {why}"
    if name in UNDER_TOOL:
        _say(headline)
        return UNDER_TOOL[name](request, data_dir, label, sys.argv[1:], stop)
    with _BarProgress(headline) as progress:
        return record.Recorder(work, name, progress, launcher).record(data_dir, label, sys.argv[1:], stop)


@app.command(
    "profile", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
)
def profile_command(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program to profile, with its arguments.")],
    data_dir: DataDir = store.LOCAL,
    label: Annotated[str, typer.Option(help="Your name for the run.")] = "",
    variant_from: VariantFrom = "",
    keep: Annotated[Path | None, typer.Option(help="Keep the report as this .nsys-rep file.")] = None,
) -> None:
    """Profile a program of your own under Nsight Systems and import what it did. The run's id is the last line of stdout."""
    runs.check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    salvage(data_dir)
    with Stop() as stop:
        run_id, exit_code = profile.profile(command, data_dir, label, naming, keep, sys.argv[1:], stop)
        if exit_code:
            _say(f"{command[0]} ended with exit code {exit_code}; what was captured by then is imported")
        _print_id(run_id)
    exit_code = stop.exit_code or exit_code
    if exit_code:
        raise typer.Exit(exit_code)


@app.command("import")
def import_command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help=".nsys-rep, .qdrep, .sqlite, a parquetdir export, or .ncu-rep.")
    ],
    data_dir: DataDir = store.LOCAL,
    label: Annotated[str, typer.Option(help="Your name for the runs.")] = "",
    variant_from: VariantFrom = "",
) -> None:
    """Import reports of Nsight Systems and Nsight Compute, a run each. The last run's id is the last line of stdout."""
    runs.check_label(label)
    naming = Naming.parse(variant_from) if variant_from else None
    refused = False
    salvage(data_dir)
    with Leave():
        for path in paths:
            try:
                read = nsight_compute.import_report if nsight_compute.is_report(path) else import_report
                print(read(path, data_dir, label, naming, sys.argv[1:]), flush=True)
            except (ReportError, NamingError, store.StoreError) as error:
                print(error, file=sys.stderr)
                refused = True
    if refused:
        raise typer.Exit(2)


@app.command("list")
def list_command(workloads: Names = None, workload_files: Files = None) -> None:
    """List workloads, their variants and their cases."""
    for workload in registry.load_all(workloads or [], workload_files or []):
        print(f"{workload.name}: {workload.title}")
        for variant in workload.variants:
            configs = " ".join(f"[{format_params(config)}]" for config in variant.configs if config)
            print(
                f"  variant {variant.name:28} {variant.kind:8} {variant.role:9} {variant.precision:7} {variant.title} {configs}"
            )
        for case in workload.cases:
            print(f"  case    {case.name:28} {','.join(case.sets)}")


@app.command("runs")
def runs_command(data_dir: DataDir = store.LOCAL) -> None:
    """List the runs there are: those that ship with the project, and those in the data folder."""
    good, bad = store.list_runs([store.RECORDED, data_dir])
    for run in good:
        print(f"{run.run_id}  {run.title}")
    for broken in bad:
        print(f"{broken.path.name}  cannot be opened: {broken.reason}", file=sys.stderr)


@app.command("doctor")
def doctor_command() -> None:
    """Say what is found on this machine, what is missing, and how to get it."""
    table = Table("", "what", "found, or how to get it", box=None)
    for finding in doctor.examine():
        table.add_row("[green]yes[/]" if finding.found else "[yellow]no[/]", finding.what, finding.detail)
    Console(highlight=False).print(table)


class _BarProgress(record.Progress):
    """A bar on stderr, with the time that is left, from the moment that measuring starts; in a file, a line for each job that is done."""

    def __init__(self, headline: str) -> None:
        self._headline = headline
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left"), TimeRemainingColumn())
        self._bar = Bar(*columns, *left, console=_screen, disable=not _screen.is_terminal)
        self._task = self._bar.add_task("starting", total=None)
        self._since = time.monotonic()

    def __enter__(self) -> "_BarProgress":
        return self

    def __exit__(self, *_: Any) -> None:
        with suppress(OSError):
            self._bar.stop()

    def compiling(self, done: int, jobs: int) -> None:
        if done == 0:
            self._begin()
        self._bar.update(self._task, description=f"compiling {done} of {jobs}", completed=done, total=jobs)
        if self._bar.disable and done == jobs:
            _screen.print(f"compiled {jobs}: {time.monotonic() - self._since:.1f} s", markup=False)

    def start(self, jobs: int) -> None:
        self._begin()
        self._bar.reset(self._task, total=jobs)

    def _begin(self) -> None:
        if self._headline:
            _screen.print(self._headline, markup=False)
            self._headline = ""
        self._bar.start()
        self._since = time.monotonic()

    def job(self, text: str) -> None:
        self._bar.update(self._task, description=text)
        self._since = time.monotonic()

    def advance(self) -> None:
        self._bar.advance(self._task)
        if self._bar.disable:
            (task,) = self._bar.tasks
            took = f"{task.completed:.0f}/{task.total:.0f} {task.description}: {time.monotonic() - self._since:.1f} s"
            _screen.print(took, markup=False)


def _say(text: str) -> None:
    """On stderr, which may be gone with its terminal: the run is stored all the same."""
    with suppress(OSError):
        _screen.print(text, markup=False)


def _print_id(run_id: str) -> None:
    try:
        print(run_id, flush=True)
    except OSError:  # nobody reads it; nor should Python try again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer(path: Path, form: str) -> None:
    """Print which variants win. The dashboard compares runs, and no room here imports it."""
    project = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "dashboard", "answer", str(path.resolve()), "--format", form]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    with suppress(OSError):
        print(done.stdout, end="", flush=True)
    if done.returncode:
        _say(f"{path.name}: the answer could not be made ({done.stderr.strip().splitlines()[-1:] or 'nothing was said'})")


def _summarize(path: Path) -> None:
    """Verdicts and findings of a run, on stderr."""
    run = store.open_run(path)
    results, diagnostics = run.table("results"), run.table("diagnostics")
    counts = ", ".join(f"{count} {status}" for status, count in results["status"].value_counts().items())
    skipped = results.loc[results["status"] == "skipped", "detail"].value_counts()
    reasons = [f"{count}: {reason}" for reason, count in skipped.head(3).items()]
    more = f"; {len(skipped) - 3} more reasons on Runs & checks" if len(skipped) > 3 else ""
    why = f" ({'; '.join(reasons)}{more})" if reasons else ""
    _say(f"{counts}{why}")
    for row in results.query("status not in ('ok', 'skipped')").to_dict("records"):
        _say(f"{plan.Cell.of(row)}: {row['status']}: {row['detail']}")
    for row in diagnostics.query("severity != 'info' or source == 'not_reached'").to_dict("records"):
        about = [row[name] for name in ("workload", "variant", "case") if isinstance(row[name], str)]
        _say(f"{row['severity']}: {'/'.join(about)} {row['source']}: {row['text']}")
