"""`warpladder record`: verify and measure variants."""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpladder.collectors.choice import ENTRIES
from warpladder.commands.common import (
    ABOVE_ZERO,
    axes_of,
    cases_of,
    data_dir_option,
    format_option,
    label_option,
    names_and_files,
    split,
    workloads_argument,
)
from warpladder.commands.gate import Asks, gate_options, refuse_gate_options
from warpladder.dashboard.text.formats import FORMS, Form
from warpladder.data.files import one_line
from warpladder.errors import Error

if TYPE_CHECKING:
    from warpladder.recording import Order, Planned


@click.command("record")
@workloads_argument
@click.option("--set", "case_set", default="quick", help="quick, report or full.")
@click.option("--case", "cases", multiple=True, help="A case, by name or axes: n=3000; several as n=3000,n=4000.")
@click.option("--axis", "axes", multiple=True, help="A sweep: n=1000,2000,4000; further axes likewise.")
@click.option(
    "--variants",
    multiple=True,
    show_default=False,
    help="Variants to take, with commas between; may be given again. Default: all but drafts.",
)
@click.option("--collector", default="auto", help=f"auto, {', '.join(ENTRIES)}.")
@click.option(
    "--trace",
    is_flag=True,
    help="Take a trace too, in a further pass under nsys or with CUPTI; the times stay the first pass's.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Read hardware counters of the fastest config of each variant too, in a further pass under ncu.",
)
@click.option(
    "--energy",
    is_flag=True,
    help="Measure energy, power and the clock held of the fastest config of each variant too, in a further pass: loops of a second.",
)
@click.option(
    "--sanitize",
    is_flag=True,
    help="Run each variant at its smallest case under compute-sanitizer too: bad accesses, races, unwritten memory, barriers.",
)
@click.option(
    "--stress",
    is_flag=True,
    help="Run each variant many times at its smallest case with random delays in its kernels too: races that change results.",
)
@label_option
@data_dir_option
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the inputs and of the order of the rounds.")
@click.option("--max-rounds", type=click.IntRange(min=1), help="Most rounds of a scope. Default: the limit of the case set.")
@click.option(
    "--seconds",
    type=ABOVE_ZERO,
    help="Time limit for the rounds of a scope, in seconds. Default: 0.4 to 3 with --set quick, else 2 or 3.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Most processes that take the rounds, one after another. Default: 3, or 1 with --watch.",
)
@click.option(
    "--no-limit", is_flag=True, help="Measure every case, however long it takes; else quick takes 60 s, or 30 s without a GPU."
)
@click.option("--gpus", multiple=True, help="Numbers of GPUs that share a case, such as 1,2,4. Default: 1.")
@click.option("--ranks", multiple=True, help="Numbers of processes without a GPU that share a case, such as 1,2,4. Default: 1.")
@click.option("--launcher", default="local", help="What starts the ranks: local (mpiexec on this host), mpirun or srun.")
@click.option("--launcher-args", default="", show_default=False, help="Further arguments of the launcher.")
@click.option(
    "--against",
    default=None,
    show_default=False,
    metavar="REF",
    help="Record the files of this git revision (or folder) too, in the same rounds, and exit as `compare` does: with 1 where a variant of "
    "yours is slower, wrong or lost.",
)
@gate_options("With --against: ")
@format_option("answer", (*FORMS, "junit"))
@click.option("--verbose", "-v", is_flag=True, help="Print each finding; without it, findings of one kind share a line.")
@click.option("--quiet", "-q", is_flag=True, help="Print no progress: only what was found, and the answer.")
@click.option("--summary/--no-summary", default=True, hidden=True)
@click.option("--cells", type=click.Path(path_type=Path), hidden=True)
@click.option("--if-none", is_flag=True, help="Record only if the folder has no run yet.")
@click.option(
    "--watch",
    is_flag=True,
    help="Stay, and record what changed whenever the file is saved, in the same rounds as the last version. Ctrl-C ends.",
)
def command(
    workloads: Sequence[str],
    case_set: str,
    cases: Sequence[str],
    axes: Sequence[str],
    variants: Sequence[str],
    collector: str,
    label: str,
    data_dir: Path,
    gpus: Sequence[str],
    ranks: Sequence[str],
    launcher: str,
    launcher_args: str,
    form: Form,
    verbose: bool,
    quiet: bool,
    summary: bool,
    if_none: bool,
    watch: bool,
    against: str | None,
    **limits: Any,
) -> None:
    """Verify every variant, time it, and print which one wins.

    Writes a run, whose id is the last line of the table.

    WORKLOAD: workloads by name, or your Python files that declare one. Default: every workload of the project.
    """
    from warpladder.collectors.core import plan
    from warpladder.collectors.ranks.launchers import Launcher
    from warpladder.data import store
    from warpladder.recording import Order

    if watch and (form != "table" or if_none):
        other = "--if-none" if if_none else f"--format {form}"
        raise Error(f"--watch {other}: --watch records again and prints lines to read; leave out one of the two")
    passes = [name for name in ("trace", "counters", "energy", "sanitize", "stress") if limits.pop(name)]
    asks = Asks(**{each.name: limits.pop(each.name) for each in fields(Asks)})
    if against is None:
        refuse_gate_options()
    elif not against.strip():
        raise Error("--against: is empty; name a revision or a folder")
    if (watch or against) and passes:
        option = f"--{passes[0]}"
        one = "--watch" if watch else "--against"
        raise Error(f"{one} {option}: {one} takes times alone; record once more with {option} when it ends")
    if watch and against:
        raise Error("--watch --against: --watch compares with the version recorded last; leave out one of the two")
    if form == ("csv" if against else "junit"):
        raise Error(
            f"--format {form}: {'of a comparison, choose table, markdown, json or junit' if against else 'is for --against'}"
        )
    if gpus and ranks:
        raise Error("--gpus --ranks: either GPUs share a case, or processes without a GPU; leave out one of the two")
    if if_none and (existing := store.list_runs([data_dir])[0]):
        print(one_line(existing[0].run_id))
        return
    names, files = names_and_files(workloads)
    request = plan.Request(
        names,
        files,
        case_set,
        cases=[*cases_of(cases), *plan.sweep_of(axes_of(axes))],
        variants=split(variants),
        gpus=plan.counts_of(",".join(ranks), "--ranks") if ranks else plan.counts_of(",".join(gpus) or "1"),
        on_gpus=not ranks,
        **limits,
    )
    starter = Launcher.parse(launcher, launcher_args)
    order = Order(request, data_dir, sys.argv[1:], collector, label, starter, passes)
    if watch:
        from warpladder.commands.watch import watch as watching

        watching(order)
    elif against:
        _record_against(order, against, asks, form, quiet=quiet)
    else:
        _record(order, form, summary=summary, verbose=verbose, quiet=quiet)


def _record(order: "Order", form: Form, *, summary: bool, verbose: bool, quiet: bool) -> None:
    """Record, and print which variants win.

    Args:
        summary: False where another recording started this one and reads only the run's id.
        verbose: whether each finding has its own line.
        quiet: whether no progress is printed.

    Raises:
        Error: the order cannot be carried out.
        click.exceptions.Exit: the recording was interrupted, or a cell is not right; see `ending.exit_if_wrong`.
    """
    from warpladder import recording, screen

    with screen.set_aside():
        planned = recording.plan(order)
    from warpladder.commands import ending  # imports pandas and the dashboard, which no order that is refused needs

    def answer(path: Path) -> None:
        if summary:
            sizes = bool(order.request.files) or len(planned.work.workloads) == 1
            ending.report(path, form, typed=order.arguments, sizes=sizes, every=verbose)
        if form == "table":
            screen.print_id(path.name)

    path = _recorded(planned, answer, quiet=quiet)
    if summary:
        ending.exit_if_wrong(path, order.request.variants)


def _check_against(order: "Order") -> None:
    """Raise PlanError where an order names what has no versions, or a collector that starts the recording again."""
    from warpladder.collectors.core.plan import PlanError
    from warpladder.recording import UNDER_TOOL

    if not order.request.files or order.request.names:
        raise PlanError("--against: compares files of your own; name FILE.py, and no workload of the project")
    if order.collector in UNDER_TOOL:
        raise PlanError(f"--against: {order.collector} starts the recording as another program; choose another --collector")


def _record_against(order: "Order", reference: str, asks: Asks, form: Any, *, quiet: bool) -> None:
    """Record two versions, print how they compare, and exit as the gate does.

    Raises:
        Error: there is no such version, or the order cannot be carried out.
        click.exceptions.Exit: the recording was interrupted, or the gate fails.
    """
    from warpladder import revisions, screen

    _check_against(order)
    codes = []
    with revisions.versions(order.request.files, reference) as pairs:
        from warpladder.commands.against import judge, load, plan  # imports pandas and the dashboard too

        with screen.set_aside():
            planned, declared = plan(order, load(pairs))

        def answer(path: Path) -> None:
            codes.append(judge(path, declared, asks, form))
            if form == "table":
                screen.print_id(path.name)

        _recorded(planned, answer, quiet=quiet)
    if codes[0]:
        raise click.exceptions.Exit(codes[0])


def _recorded(planned: "Planned", answer: Callable[[Path], None], *, quiet: bool) -> Path:
    """Record, and answer. Returns the run's folder.

    Raises:
        Error: the order cannot be carried out.
        click.exceptions.Exit: the recording was interrupted; after the answer.
    """
    from warpladder import recording, screen
    from warpladder.collectors.core.environment import CollectorError
    from warpladder.collectors.core.progress import Progress
    from warpladder.collectors.core.signals import Stop
    from warpladder.progress import TerminalProgress

    with Stop() as stop:
        show: recording.Show = (lambda _: nullcontext(Progress())) if quiet else TerminalProgress
        try:
            run_id = recording.record(planned, stop, show, screen.say)
        except CollectorError as error:
            if not stop.number:
                raise
            screen.say(str(error))
            raise click.exceptions.Exit(stop.exit_code) from error
        path = planned.order.data_dir / run_id
        try:
            answer(path)
        finally:
            if stop.number:
                raise click.exceptions.Exit(stop.exit_code)
    return path
