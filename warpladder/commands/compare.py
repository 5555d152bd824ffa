"""`warpladder compare`: two runs, cell by cell, or two jobs."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from warpladder.commands.common import ExitCode, data_dirs_option, folders, format_option, load
from warpladder.commands.gate import Asks, end, gate_options
from warpladder.dashboard.text import formats

if TYPE_CHECKING:
    from warpladder.dashboard.compare import job_changes
    from warpladder.dashboard.compare.changes import Side
    from warpladder.dashboard.core.run_data import RunData
    from warpladder.data import store

_NAMES: Final = {"job": "a job", "trace": "an import of one trace", "cells": "a run with cells, such as a recording"}


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@gate_options()
@click.option("--absolute", is_flag=True, help="Judge the times as they are, not relative to the unchanged variants.")
@click.option("--any-device", is_flag=True, help="Compare although the GPUs differ, or without a GPU the processors.")
@click.option("--partial", is_flag=True, help="B has a part of A: cells without results, and ranks, are not lost.")
@format_option("comparison", formats.COMPARISONS)
@data_dirs_option
def command(
    a: str,
    b: str,
    absolute: bool,
    any_device: bool,
    partial: bool,
    form: formats.Comparison,
    data_dirs: Sequence[str],
    **options_of_gate: Any,
) -> None:
    """Compare two runs: what is slower, faster, wrong or lost in B.

    Exit code 0: no cell is slower; 1: a cell is slower, wrong or lost, or the reference or the tolerance differs; 2: not comparable; 3: a
    cell could not be judged, or a job lacks a rank.

    A, B: a run by its id, label or folder, or one variant of a run as RUN@VARIANT. Two jobs, and two imported traces, are compared by
    the figures of an iteration and by kernel.
    """
    asks = Asks(**options_of_gate)
    if jobs := _jobs((a, b), data_dirs):
        _refuse_of_recordings(
            scope=bool(asks.scope),
            match=asks.match != "config",
            absolute=absolute,
            allow=bool(asks.allow),
        )
        _compare_jobs(*jobs, asks, form, any_device=any_device, partial=partial)
        return
    from warpladder.dashboard.compare import changes
    from warpladder.dashboard.compare.between_runs import Recordings
    from warpladder.dashboard.compare.versions import compare_versions_of_variant

    before, after = _side(a, data_dirs), _side(b, data_dirs)
    options = changes.Options(asks.scope, asks.match, asks.smallest, absolute, any_device, partial)
    if versions := compare_versions_of_variant(before, after, options):
        comparison, a_data, b_data = versions
    else:
        comparison = changes.compare(before, after, options, Recordings(folders(data_dirs), after.data.info))
        a_data, b_data = before.data, after.data
    if code := end(comparison, a_data, b_data, asks, form):
        raise click.exceptions.Exit(code)


def _jobs(names: Sequence[str], data_dirs: Sequence[str]) -> "tuple[store.Run, store.Run] | None":
    """The two runs if both are jobs, or both are traces without cells; None if they have cells.

    Raises NotComparable for a job and another run, and for a trace and a run with cells.
    """
    from warpladder.dashboard.compare.changes import NotComparable
    from warpladder.data import store

    found = []
    for name in names:
        with suppress(store.StoreError):  # `_side` tells it, or finds RUN@VARIANT
            found.append(store.find_run(name, folders(data_dirs)))
    if len(found) < len(names):
        return None
    a, b = found
    kinds = [_kind(run) for run in found]
    if kinds[0] != kinds[1] and not {"job", "trace"}.isdisjoint(kinds):
        raise NotComparable(
            f"{a.run_id} is {_NAMES[kinds[0]]}, {b.run_id} is {_NAMES[kinds[1]]}; compare two runs of one kind "
            "(`warpladder import --job` makes a job of a single profile too)"
        )
    return None if kinds[0] == "cells" else (a, b)


def _kind(run: "store.Run") -> str:
    """Tell how a run is compared: as `job`, `trace`, or `cells` of a recording or of an import with variants."""
    if run.info["kind"] == "job":
        return "job"
    has_cells = run.info["kind"] == "recording" or run.rows("samples") or run.rows("counters")
    return "cells" if has_cells else "trace"


def _refuse_of_recordings(**given: bool) -> None:
    """Raises NotComparable where an option is given that jobs and traces do not have."""
    from warpladder.dashboard.compare.changes import NotComparable

    if names := [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given]:
        raise NotComparable(
            f"{', '.join(names)}: is about the cells of recordings, and jobs and traces have none; leave it out"
        )


def _compare_jobs(
    a: "store.Run", b: "store.Run", asks: Asks, form: formats.Comparison, *, any_device: bool, partial: bool
) -> None:
    from warpladder.dashboard.compare import job_changes
    from warpladder.dashboard.text import compare_jobs

    before, after = (job_changes.JobData.of(run) if run.info["kind"] == "job" else _as_job(run) for run in (a, b))
    comparison = job_changes.compare(before, after, asks.smallest, any_device=any_device)
    gate = compare_jobs.JobGate(asks.fail_above, asks.detect, partial)
    print(compare_jobs.render(comparison, before, after, gate, form), end="")
    if gate.failures(comparison):
        raise click.exceptions.Exit(ExitCode.WRONG)
    if gate.lines(comparison):
        raise click.exceptions.Exit(ExitCode.UNSEEN)


def _as_job(run: "store.Run") -> "job_changes.JobData":
    """A trace as a job of one rank, whose collectives are not matched."""
    from warpladder.collectors.jobs.rank import by_iteration
    from warpladder.dashboard.compare.job_changes import JobData
    from warpladder.data import store
    from warpladder.data.iterations import steps_of
    from warpladder.data.timeline import device_work

    rows = by_iteration(device_work(run), steps_of(run), 0)
    iterations, kernels, waits = (
        store.frame(name, rows.get(name, [])) for name in ("iterations", "rank_kernels", "collectives")
    )
    return JobData.of_tables(run.info, iterations, kernels, waits)


def _side(text: str, data_dirs: Sequence[str]) -> "Side":
    """A run, or RUN@VARIANT. Raises StoreError, NotComparable."""
    from warpladder.dashboard.compare.changes import NotComparable, Side
    from warpladder.data import store

    try:
        return Side(load(text, data_dirs))
    except store.StoreError:
        if "@" not in text:
            raise
    data, variant = _run_and_variant(text, data_dirs)
    if variant not in set(data.variants["variant"]):
        raise NotComparable(f"{text}: the run has no variant {variant}; it has {', '.join(data.variants['variant'].unique())}")
    return Side(data, variant)


def _run_and_variant(text: str, data_dirs: Sequence[str]) -> "tuple[RunData, str]":
    """The run and the variant of `RUN@VARIANT`. Both may have an `@` in their names. Raises StoreError."""
    from warpladder.data import store

    parts = text.split("@")
    for count in range(len(parts) - 1, 1, -1):
        with suppress(store.StoreError):
            return load("@".join(parts[:count]), data_dirs), "@".join(parts[count:])
    return load(parts[0], data_dirs), "@".join(parts[1:])
