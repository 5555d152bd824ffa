"""The command line: `python -m collectors record|profile|import|list|runs|doctor`."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from collectors import choice

#: What a user can get wrong, by module; each message is one line that says where, what, and what to do.
_MISTAKES: Final = {
    "collectors.plan": "PlanError",
    "collectors.choice": "CollectorError",
    "collectors.runs": "LabelError",
    "collectors.trace.report": "ReportError",
    "data.naming": "NamingError",
    "data.store": "StoreError",
    "workloads.api": "WorkloadError",
}


class OneLineErrors(TyperGroup):
    """Turns a user's mistake into its line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not isinstance(error, _mistakes()):
                raise
            print(error, file=sys.stderr)
            raise typer.Exit(2) from error


def _mistakes() -> tuple[type[Exception], ...]:
    """Those of the modules that have been imported: of another none can come."""
    return tuple(getattr(sys.modules[module], name) for module, name in _MISTAKES.items() if module in sys.modules)


def _folder(text: str) -> Path:
    from data import store

    return store.folder(text)


app = typer.Typer(cls=OneLineErrors, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


DataDir = Annotated[Path, typer.Option("--data-dir", parser=_folder, help="Folder that runs are written to.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[WORKLOAD]...", help="Workloads; all when none is named.")]
Files = Annotated[list[Path] | None, typer.Option("--workload", help="A Python file of your own that declares a workload.")]
VariantFrom = Annotated[str, typer.Option(help="nvtx:REGEX with groups variant, workload, config, case.")]

_LOCAL: Final = Path(__file__).resolve().parent.parent / "data" / "local"
_FORMATS: Final = ("table", "markdown", "csv", "json")


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
    data_dir: DataDir = _LOCAL,
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
    from collectors import commands, launchers, plan
    from data import store

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
    starter = launchers.Launcher.parse(launcher, launcher_args)
    commands.record_run(request, collector, starter, data_dir, label, form, summary)


@app.command(
    "profile", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
)
def profile_command(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The program to profile, with its arguments.")],
    data_dir: DataDir = _LOCAL,
    label: Annotated[str, typer.Option(help="Your name for the run.")] = "",
    variant_from: VariantFrom = "",
    keep: Annotated[Path | None, typer.Option(help="Keep the report as this .nsys-rep file.")] = None,
) -> None:
    """Profile a program of your own under Nsight Systems and import what it did. The run's id is the last line of stdout."""
    from collectors import commands

    commands.profile(command, data_dir, label, variant_from, keep)


@app.command("import")
def import_command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help=".nsys-rep, .qdrep, .sqlite, a parquetdir export, or .ncu-rep.")
    ],
    data_dir: DataDir = _LOCAL,
    label: Annotated[str, typer.Option(help="Your name for the runs.")] = "",
    variant_from: VariantFrom = "",
) -> None:
    """Import reports of Nsight Systems and Nsight Compute, a run each. The last run's id is the last line of stdout."""
    from collectors import commands

    commands.import_reports(paths, data_dir, label, variant_from)


@app.command("list")
def list_command(workloads: Names = None, workload_files: Files = None) -> None:
    """List workloads, their variants and their cases."""
    from workloads import registry
    from workloads.api import format_params

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
def runs_command(data_dir: DataDir = _LOCAL) -> None:
    """List the runs there are: those that ship with the project, and those in the data folder."""
    from data import store

    good, bad = store.list_runs([store.RECORDED, data_dir])
    for run in good:
        print(f"{run.run_id}  {run.title}")
    for broken in bad:
        print(f"{broken.name}  cannot be opened: {broken.reason}", file=sys.stderr)


@app.command("doctor")
def doctor_command() -> None:
    """Say what is found on this machine, what is missing, and how to get it."""
    from rich.console import Console
    from rich.table import Table

    from collectors import doctor

    table = Table("", "what", "found, or how to get it", box=None)
    for finding in doctor.examine():
        table.add_row("[green]yes[/]" if finding.found else "[yellow]no[/]", finding.what, finding.detail)
    Console(highlight=False).print(table)
