"""`warpladder versus --toolchain`: the kernels of a workload under two versions of NVRTC."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from warpladder import recording, screen
from warpladder.collectors import choice
from warpladder.collectors.core.plan import Request, WorkloadRef, make_plan
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.cuda import disassembly, toolchains
from warpladder.collectors.cuda.kernels_of_file import DEFAULT
from warpladder.collectors.cuda.toolchains import TwoCompilers, is_compiled, version_name
from warpladder.commands import ending
from warpladder.commands.common import cases_of, names_and_files, split
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.machine_code import MachineCode
from warpladder.dashboard.text import summary
from warpladder.dashboard.text.formats import TableOrJson
from warpladder.dashboard.text.toolchain import pairs, render
from warpladder.data import store
from warpladder.errors import Error
from warpladder.progress import TerminalProgress
from warpladder.workloads import registry
from warpladder.workloads.api import Workload


def compare(
    words: Sequence[str],
    names: Sequence[str],
    *,
    cases: Sequence[str],
    variants: Sequence[str],
    architecture: str,
    rounds: int | None,
    data_dir: Path,
    label: str,
    form: TableOrJson,
) -> None:
    """Print what changed. Where there is a GPU, and no architecture is named, both versions are timed in the same rounds.

    Args:
        words: workloads and files.
        names: versions or paths of NVRTC.
        The others are options of the command.

    Raises:
        Error: a version, a workload or a variant does not exist, or there is nothing to compare.
        click.exceptions.Exit: the recording was interrupted, or a cell is not right.
    """
    if problem := disassembly.problem():
        raise Error(problem)
    before, after = toolchains.found(names)
    shipped, files = names_and_files(words)
    if not words:
        raise Error("versus --toolchain: no workload; name one, or a Python file of yours that declares one")
    loaded = registry.load_with_files(shipped, files)
    both: list[tuple[Workload, WorkloadRef]] = [
        (
            toolchains.with_both(workload, before, after),
            TwoCompilers(workload.name, file and file.resolve(), before.path, after.path),
        )
        for workload, file in loaded
    ]
    chosen = _variants([workload for workload, _ in loaded], split(variants))
    suffix, versions = f"@{version_name(before)}", (before.version, after.version)
    both_of = [name for each in chosen for name in (f"{each}{suffix}", each)]
    request = Request(shipped, files, cases=cases_of(cases), variants=both_of, max_rounds=rounds)
    tool, why = choice.choose("auto")
    if architecture or tool == "host_clock":
        screen.say("no times: --arch asks for code only" if architecture else f"no times: {why}")
        rows, problems = toolchains.code_of(make_plan(request, loaded=both), architecture or DEFAULT)
        for line in problems:
            screen.say(line)
        found = pairs(MachineCode(None, rows), suffix)
        if not found:
            raise Error(f"{', '.join(words)}: no kernel compiles for {architecture or DEFAULT} with both versions")
        screen.print_text(render(found, versions, "", form))
        return
    with Stop() as stop:
        order = recording.Order(request, data_dir, sys.argv[1:], "cuda_events", label, declared=both)
        run_id = recording.record(recording.plan(order), stop, TerminalProgress, screen.say)
    run = store.open_run(data_dir / run_id)
    for line in summary.findings(run):
        screen.say(line)
    data = run_data.load(run)
    screen.print_text(render(pairs(data.code, suffix, data), versions, run_id, form))
    if form == "table":
        screen.print_id(run_id)
    if stop.number:
        raise click.exceptions.Exit(stop.exit_code)
    ending.exit_if_wrong(run.path, both_of)


def _variants(workloads: Sequence[Workload], asked: Sequence[str]) -> list[str]:
    """The variants to compare, in the order of their workloads: those asked for, else all that NVRTC compiles but drafts."""
    every = [each for workload in workloads for each in workload.variants if is_compiled(each)]
    names = [each.name for each in every]
    for name in asked:
        if name not in names:
            raise Error(f"--variants {name}: NVRTC compiles no such variant; choose {', '.join(names) or 'another workload'}")
    found = [each.name for each in every if (each.name in asked if asked else not each.draft)]
    if not found:
        where = ", ".join(each.name for each in workloads)
        raise Error(f"{where}: NVRTC compiles no variant of it; name a workload with kernels in CUDA C++")
    return list(dict.fromkeys(found))
