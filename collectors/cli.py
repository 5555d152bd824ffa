"""The commands that measure and import: `new`, `record`, `versus`, `profile`, `import`, `list`, `summary`, `runs`, `doctor`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from warpladder import IS_CHECKOUT
from warpladder.collectors import choice
from warpladder.collectors.mistakes import MISTAKES
from warpladder.command_line import SETTINGS, OneLineErrors
from warpladder.data.files import LOCAL, one_line


def _folder(text: str) -> Path:
    from warpladder.data import store

    return store.folder(text)


_FORMATS: Final = ("table", "markdown", "csv", "json")
_FILE: Final = click.Path(path_type=Path)

#: Arguments and options that several commands have.
_names = click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
_files = click.option(
    "--workload",
    "workload_files",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="A Python file of your own that declares a workload.",
)
_data_dir = click.option(
    "--data-dir",
    type=_folder,
    metavar="FOLDER",
    default=LOCAL,
    show_default="data/local" if IS_CHECKOUT else str(LOCAL),
    help="Folder that runs are written to.",
)
_label = click.option("--label", default="", show_default=False, help="Your name for the run.")
_variant_from = click.option(
    "--variant-from",
    default="",
    show_default=False,
    metavar="nvtx:REGEX",
    help="nvtx:REGEX with groups variant, workload, config, case.",
)


def _names_of(words: Sequence[str]) -> list[str]:
    """The workloads of the project among the arguments."""
    return [word for word in words if not word.endswith(".py")]


def _files_of(words: Sequence[str], files: Sequence[Path]) -> list[Path]:
    """The user's files: those of `--workload`, and the arguments that end in `.py`."""
    return list(dict.fromkeys([*files, *(Path(word) for word in words if word.endswith(".py"))]))


@click.group(cls=OneLineErrors, mistakes=MISTAKES, help=__doc__, **SETTINGS)
def app() -> None:
    pass


@app.command("record")
@_names
@_files
@click.option("--cases", "case_set", default="quick", help="quick, report or full.")
@click.option("--case", "cases", multiple=True, help="One case, by name or axes: n=3000; may be given again.")
@click.option("--axis", "axes", multiple=True, help="A sweep: n=1000,2000,4000; may be given again.")
@click.option(
    "--variants", default="", show_default=False, help="Variants to take, with commas between; all but drafts when empty."
)
@click.option("--collector", default="auto", help=f"auto, {', '.join(choice.COLLECTORS)}.")
@click.option(
    "--trace",
    is_flag=True,
    help="Take a trace too, in a further pass under nsys or by CUPTI; the times stay those of CUDA events.",
)
@_label
@_data_dir
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the inputs and of the order of the rounds.")
@click.option(
    "--max-rounds", type=click.IntRange(min=0), default=0, help="Most rounds of a scope; 0 for the limit of the case set."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Time limit for the rounds of a scope, in seconds; 0 for that of the case set: 0.4, 2 or 3.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=0),
    default=0,
    help="Most processes that take the rounds, one after another; 0 for 3, or 1 with --watch.",
)
@click.option(
    "--no-limit", is_flag=True, help="Measure every case, however long it takes; else quick takes 60 s, or 30 s without a GPU."
)
@click.option("--gpus", default="1", help="Numbers of GPUs (processes without a GPU) that share a case, such as 1,2,4.")
@click.option("--launcher", default="local", help="What starts the ranks: local (mpiexec on this host), mpirun or srun.")
@click.option("--launcher-args", default="", show_default=False, help="Further arguments of the launcher.")
@click.option("--format", "form", default="table", help=f"Format of the answer: {', '.join(_FORMATS)}.")
@click.option("--verbose", "-v", is_flag=True, help="Print each finding; else those of one kind take one line.")
@click.option("--summary/--no-summary", default=True, hidden=True)
@click.option("--if-none", is_flag=True, help="Record only if the folder has no run yet.")
@click.option(
    "--watch",
    is_flag=True,
    help="Stay, and record what changed whenever the file is saved: the verdict against the last run. Ctrl-C ends.",
)
def record_command(
    workloads: Sequence[str],
    workload_files: Sequence[Path],
    case_set: str,
    cases: Sequence[str],
    axes: Sequence[str],
    variants: str,
    collector: str,
    trace: bool,
    label: str,
    data_dir: Path,
    seed: int,
    max_rounds: int,
    seconds: float,
    processes: int,
    no_limit: bool,
    gpus: str,
    launcher: str,
    launcher_args: str,
    form: str,
    verbose: bool,
    summary: bool,
    if_none: bool,
    watch: bool,
) -> None:
    """Verify and measure every variant, write the run, and print which win. The run's id is the last line of the table.

    WORKLOAD: workloads to record, or Python files of your own that declare one; all of the project when none is named.
    """
    from warpladder.collectors import commands
    from warpladder.collectors.core import plan
    from warpladder.collectors.ranks import launchers
    from warpladder.data import store

    if form not in _FORMATS:
        raise plan.PlanError(f"--format {form}: no such format; choose {', '.join(_FORMATS)}")
    if watch and (form != "table" or if_none):
        other = "--if-none" if if_none else f"--format {form}"
        raise plan.PlanError(f"--watch {other}: --watch records again and prints lines to read; leave out one of the two")
    if watch and trace:
        raise plan.PlanError("--watch --trace: --watch takes times alone; record once more with --trace when it ends")
    if if_none and (existing := store.list_runs([data_dir])[0]):
        print(one_line(existing[0].run_id))
        return
    request = plan.Request(
        names=_names_of(workloads),
        files=_files_of(workloads, workload_files),
        case_set=case_set,
        cases=[*cases, *plan.sweep_of(list(axes))],
        variants=[name.strip() for name in variants.split(",") if name.strip()],
        seed=seed,
        max_rounds=max_rounds or None,
        seconds=seconds or None,
        processes=processes or None,
        gpus=plan.counts_of(gpus),
        no_limit=no_limit,
    )
    starter = launchers.Launcher.parse(launcher, launcher_args)
    if watch:
        from warpladder.collectors import watching

        watching.watch(request, collector, starter, data_dir, label)
        return
    commands.record_run(request, collector, starter, data_dir, label, form, summary=summary, verbose=verbose, trace=trace)


@app.command("new")
@click.argument("name", metavar="NAME")
@click.option("--kind", default="functions", help="functions: NAME.py. cuda: NAME/bench.py and NAME/kernel.cu.")
@click.option(
    "--arrays", default="", help="Library of the arrays: numpy, torch, cupy or triton. Default: one that is installed."
)
@click.option("--folder", is_flag=True, help="Write NAME/bench.py in place of NAME.py.")
def new_command(name: str, kind: str, arrays: str, folder: bool) -> None:
    """Write a commented file to start from: axes, inputs, a reference, and two variants. It is right and can be recorded.

    NAME: of the file and of the workload. No file is overwritten.
    """
    from warpladder.collectors import skeleton

    arrays = arrays or skeleton.usual_arrays()
    files = skeleton.texts(name, kind, arrays, folder=folder)
    skeleton.write(files)
    if lacking := skeleton.missing(arrays):
        print(lacking, file=sys.stderr)
    print(one_line(f"wrote {' and '.join(map(str, files))}; next:"))
    for line in skeleton.commands(list(files)):
        print(one_line(line))


@app.command("versus")
@click.argument("programs", nargs=-1, metavar="COMMAND COMMAND...")
@click.option(
    "--runs", type=int, help="Rounds, each a run of every program; until the medians are known well enough if not given."
)
@click.option("--warmup", type=int, default=1, help="Runs of each program before the first round.")
@click.option("--same-output", is_flag=True, help="Each program has to print what the first one prints, byte for byte.")
@click.option(
    "--check",
    default="",
    show_default=False,
    metavar="CMD",
    help="Command that reads the output of a program and exits with 0 if it is right.",
)
@click.option("--timeout", "timeout_s", type=float, default=600.0, help="Seconds that a run may take.")
@click.option("--shell", is_flag=True, help="Run the commands by /bin/sh, for pipes and variables.")
@click.option("--name", default="", show_default=False, help="Name of the workload; by default from the programs.")
@click.option("--collector", default="auto", help="auto, host_clock, nsight_systems.")
@_label
@_data_dir
@click.option("--format", "form", default="table", help=f"Format of the answer: {', '.join(_FORMATS)}.")
def versus_command(
    programs: Sequence[str],
    runs: int | None,
    warmup: int,
    same_output: bool,
    check: str,
    timeout_s: float,
    shell: bool,
    name: str,
    collector: str,
    label: str,
    data_dir: Path,
    form: str,
) -> None:
    """Compare whole programs by their wall-clock time, in shuffled rounds. The run's id is the last line of the table.

    COMMAND: a program with its arguments, in quotes; two or more. The first one is the baseline.
    """
    from warpladder.collectors import versus_command
    from warpladder.collectors.programs.words import ProgramError

    if form not in _FORMATS:
        raise ProgramError(f"--format {form}: no such format; choose {', '.join(_FORMATS)}")
    request = versus_command.request_of(
        programs,
        name=name,
        runs=runs,
        warmup=warmup,
        timeout_s=timeout_s,
        same_output=same_output,
        check=check,
        shell=shell,
    )
    versus_command.versus(request, collector, data_dir, label, form)


@app.command("profile", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@_data_dir
@_label
@_variant_from
@click.option("--keep", type=_FILE, metavar="FILE", help="Keep the report as this .nsys-rep file.")
def profile_command(command: Sequence[str], data_dir: Path, label: str, variant_from: str, keep: Path | None) -> None:
    """Profile a program of your own under Nsight Systems and import the report. The run's id is the last line of stdout."""
    from warpladder.collectors import report_commands

    report_commands.profile(command, data_dir, label, variant_from, keep)


@app.command("import")
@click.argument("paths", nargs=-1, required=True, type=_FILE, metavar="PATH...")
@_data_dir
@_label
@_variant_from
def import_command(paths: Sequence[Path], data_dir: Path, label: str, variant_from: str) -> None:
    """Import reports of Nsight Systems and Nsight Compute, each as one run. The last run's id is the last line of stdout.

    PATH: .nsys-rep, .qdrep, .sqlite, a parquetdir export, or .ncu-rep.
    """
    from warpladder.collectors import report_commands

    report_commands.import_reports(paths, data_dir, label, variant_from)


@app.command("list")
@_names
@_files
def list_command(workloads: Sequence[str], workload_files: Sequence[Path]) -> None:
    """List workloads, their variants and their cases.

    WORKLOAD: workloads to list, or Python files of your own that declare one; all of the project when none is named.
    """
    from warpladder.workloads import registry
    from warpladder.workloads.api import format_params

    for workload in registry.load_all(_names_of(workloads), _files_of(workloads, workload_files)):
        print(one_line(f"{workload.name}: {workload.title}{' (draft)' if workload.draft else ''}"))
        for variant in workload.variants:
            configs = " ".join(f"[{format_params(config)}]" for config in variant.configs if config)
            title = f"{variant.title}{' (draft)' if variant.draft else ''}"
            kinds = f"{variant.kind:8} {variant.role:9} {variant.precision:7}"
            print(one_line(f"  variant {variant.name:28} {kinds} {title} {configs}"))
        for case in workload.cases:
            print(one_line(f"  case    {case.name:28} {','.join(case.sets)}"))


@app.command("summary")
@click.argument("run", default="", metavar="[RUN]")
@click.option("--all", "every", is_flag=True, help="Every variant at every size, and each finding on a line of its own.")
@_data_dir
def summary_command(run: str, every: bool, data_dir: Path) -> None:
    """Print again what `record` printed at its end.

    RUN: its id, label or folder; the newest run of the data folder when none is named.
    """
    from warpladder.collectors import answers
    from warpladder.data import store

    if not run and not (own := store.list_runs([data_dir])[0]):
        raise store.StoreError(
            f"{data_dir}: has no run yet; warpladder record FILE.py makes one, or name one of warpladder runs"
        )
    found = store.find_run(run, [data_dir, store.RECORDED]) if run else own[0]
    answers.report(found.path, sizes=every or len(found.table("cases")["workload"].unique()) == 1, every=every)


@app.command("runs")
@_data_dir
def runs_command(data_dir: Path) -> None:
    """List the runs that ship with the project and the runs in the data folder."""
    from warpladder.data import store

    good, bad = store.list_runs([store.RECORDED, data_dir])
    for run in good:
        print(one_line(f"{run.run_id}  {run.title}"))
    for broken in bad:
        print(one_line(f"{broken.name}  cannot be opened: {broken.reason}"), file=sys.stderr)


@app.command("doctor")
def doctor_command() -> None:
    """Show which requirements this machine meets, which are missing and how to get them, and which commands work here."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from warpladder.collectors import doctor

    table = Table("", "what", "found, or how to get it", box=None)
    for finding in doctor.examine():
        table.add_row("[green]yes[/]" if finding.found else "[yellow]no[/]", finding.what, escape(finding.detail))
    console = Console(highlight=False)
    console.print(table)
    now = Table("what you can do now", "", box=None)
    for line in doctor.possible():
        now.add_row(*map(escape, line))
    console.print(now)
