"""`warpladder why`: what limits a kernel, by experiments inside it, without hardware counters."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from warpladder.commands.common import ABOVE_ZERO, cases_of, data_dir_option, format_option, label_option, names_and_files
from warpladder.dashboard.text.formats import TABLE_OR_JSON, TableOrJson, json_text
from warpladder.errors import Error

if TYPE_CHECKING:
    from warpladder.collectors.core import plan
    from warpladder.collectors.core.cells import Cell
    from warpladder.collectors.inside.record import Shown
    from warpladder.data import store

#: Rounds of the times that come first.
_ROUNDS: Final = 30


@click.command("why")
@click.argument("workload", metavar="WORKLOAD")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    help="A variant to look into; it has kernels in CUDA C++. Repeat it for several.",
)
@click.option("--case", "cases", multiple=True, help="The case, by name or axes: n=3000.")
@click.option("--seconds", type=ABOVE_ZERO, default=3.0, help="Time limit for the rounds of an experiment.")
@label_option
@data_dir_option
@format_option("findings", TABLE_OR_JSON)
def command(
    workload: str, variants: Sequence[str], cases: Sequence[str], seconds: float, label: str, data_dir: Path, form: TableOrJson
) -> None:
    """Find what limits a kernel, with experiments on the GPU.

    It takes times without each class of work and with waits at marks, and counts lanes and addresses. You need no right to read counters. The variant is verified and timed first. This takes about a minute.

    WORKLOAD: a workload, or your Python file that declares one.
    """
    from warpladder import recording, screen
    from warpladder.collectors.core.plan import Request
    from warpladder.collectors.core.signals import Stop
    from warpladder.collectors.further_passes import TIMED_BY, counted_cells
    from warpladder.dashboard.text import inside as text
    from warpladder.data import store
    from warpladder.progress import TerminalProgress
    from warpladder.workloads import registry

    names, files = names_and_files([workload])
    if missing := [option for option, given in (("--variant", variants), ("--case", cases)) if not given]:
        registry.load_all(names, files)  # which tells what is wrong with it
        raise Error(f"{workload}: {' and '.join(missing)} missing; warpladder list {workload} has its variants and cases")
    _check()
    request = Request(names, files, cases=cases_of(cases), variants=variants, max_rounds=_ROUNDS, processes=1)
    planned = recording.plan(recording.Order(request, data_dir, sys.argv[1:], TIMED_BY, label))
    _check_kinds(planned.work, variants)
    from warpladder.collectors.inside import record as inside

    problems = list[str]()

    def look(run: "store.Run") -> list[tuple["Cell", "Shown"]]:
        file = files[0].resolve() if files else None
        found, _ = counted_cells(run)
        if not found:
            raise Error(f"{workload}: {', '.join(variants)}: not right at {', '.join(cases)}, so there is nothing to explain")
        shown = [(cell, inside.look_into(cell, file, seconds, partial(_told, screen.say, cell))) for cell in found]
        problems.extend(f"{cell}: {each.problem}" for cell, each in shown if each.problem)
        return shown

    with Stop() as stop:

        def times(folder: Path) -> str:
            into = replace(planned, order=replace(planned.order, data_dir=folder))
            return recording.record(into, stop, TerminalProgress, screen.say)

        run_id = inside.record(data_dir, label, times, look, stop)
    rows = store.open_run(data_dir / run_id).records("experiments")
    if form == "json":
        screen.print_text(json_text({"run": run_id, "experiments": rows, "findings": text.facts(rows)}))
    else:
        screen.print_text(text.lines(rows))
        screen.print_id(run_id)
    if problems:
        raise Error(f"{problems[0]}; the run {run_id} has its times")


def _told(say: Callable[[str], object], cell: "Cell", step: str) -> None:
    say(f"{cell.variant}: {step}")


def _check() -> None:
    """Raise Error where kernels cannot be altered here."""
    from warpladder.collectors.cuda import assembly

    if problem := assembly.problem():
        raise Error(problem)


def _check_kinds(work: "plan.Plan", variants: Sequence[str]) -> None:
    for workload in work.workloads:
        for variant in variants:
            if workload.variant(variant).kind != "cuda":
                raise Error(
                    f"--variant {variant}: has no kernel in CUDA C++; choose one that has, or record it with --counters"
                )
