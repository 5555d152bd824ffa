"""`warpladder compare`: two runs, cell by cell, or two jobs."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from warpladder.commands.common import ExitCode, data_dirs_option, folders, format_option, load
from warpladder.dashboard.text import formats

if TYPE_CHECKING:
    from warpladder.dashboard.core.changes import Side
    from warpladder.data import store


class _Percent(click.ParamType[float]):
    """A fraction from 0 on, written as `2%`."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            fraction = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            fraction = -1.0
        if not 0 <= fraction < 100:
            self.fail(f"{value}: write a percentage such as 2%", param, ctx)
        return fraction


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--fail-above", type=_Percent(), default="0%", help="A slower cell fails only above this.")
@click.option("--smallest", type=_Percent(), default="1%", help="Smaller differences are tied.")
@click.option(
    "--scope", default="", show_default=False, help="One scope, such as device, or all. Default: the first of each workload."
)
@click.option(
    "--match", type=click.Choice(("config", "best")), default="config", help="Equal configs, or the fastest of each side."
)
@click.option("--without-shift", is_flag=True, help="Judge ratios after the common shift of their case is taken out.")
@click.option("--any-device", is_flag=True, help="Compare although the GPUs differ.")
@click.option("--partial", is_flag=True, help="B recorded a part of A: a cell without a row in its results is not lost.")
@format_option("comparison", formats.COMPARISONS)
@data_dirs_option
def command(
    a: str,
    b: str,
    fail_above: float,
    smallest: float,
    scope: str,
    match: Any,
    without_shift: bool,
    any_device: bool,
    partial: bool,
    form: formats.Comparison,
    data_dirs: Sequence[str],
) -> None:
    """Compare run B with run A, cell by cell. Exit code 0: no cell is slower; 1: a cell is slower, wrong or lost; 2: not comparable.

    A, B: a run by its id, label or folder, or one variant of a run as RUN@VARIANT. Two jobs are compared by the figures of an
    iteration and by kernel.
    """
    if jobs := _jobs((a, b), data_dirs):
        _refuse_of_recordings(scope=bool(scope), match=match != "config", without_shift=without_shift, partial=partial)
        _compare_jobs(*jobs, fail_above, smallest, form, any_device=any_device)
        return
    from warpladder.dashboard.core import changes
    from warpladder.dashboard.core.between_runs import Recordings
    from warpladder.dashboard.text import compare

    before, after = _side(a, data_dirs), _side(b, data_dirs)
    options = changes.Options(scope, match, smallest, without_shift, any_device, partial)
    comparison = changes.compare(before, after, options, Recordings(folders(data_dirs), after.data.info))
    print(compare.render(comparison, before.data, after.data, fail_above, form), end="")
    if compare.failures(comparison, fail_above):
        raise click.exceptions.Exit(ExitCode.WRONG)


def _jobs(names: Sequence[str], data_dirs: Sequence[str]) -> "tuple[store.Run, store.Run] | None":
    """The two runs if both are jobs, None if neither is. Raises NotComparable for a job and another run."""
    from warpladder.dashboard.core.changes import NotComparable
    from warpladder.data import store

    found = []
    for name in names:
        with suppress(store.StoreError):  # `_side` tells it, or finds RUN@VARIANT
            found.append(store.find_run(name, folders(data_dirs)))
    jobs = [run for run in found if run.info["kind"] == "job"]
    if not jobs or len(found) < len(names):
        return None
    if len(jobs) < len(found):
        other = next(run for run in found if run.info["kind"] != "job")
        one = "a recording" if other.info["kind"] == "recording" else "an import of one profile"
        raise NotComparable(
            f"{jobs[0].run_id} is a job, {other.run_id} is {one}; compare two jobs (`warpladder import --job` makes one of a single "
            "profile too) or two runs of the other kind"
        )
    return jobs[0], jobs[1]


def _refuse_of_recordings(**given: bool) -> None:
    """Raises NotComparable where an option is given that jobs do not have."""
    from warpladder.dashboard.core.changes import NotComparable

    if names := [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given]:
        raise NotComparable(f"{', '.join(names)}: is about the cells of recordings, and jobs have none; leave it out")


def _compare_jobs(
    a: "store.Run", b: "store.Run", fail_above: float, smallest: float, form: formats.Comparison, *, any_device: bool
) -> None:
    from warpladder.dashboard.core import job_changes
    from warpladder.dashboard.text import compare_jobs

    before, after = job_changes.JobData.of(a), job_changes.JobData.of(b)
    comparison = job_changes.compare(before, after, smallest, any_device=any_device)
    print(compare_jobs.render(comparison, before, after, fail_above, form), end="")
    if compare_jobs.failures(comparison, fail_above):
        raise click.exceptions.Exit(ExitCode.WRONG)


def _side(text: str, data_dirs: Sequence[str]) -> "Side":
    """A run, or RUN@VARIANT. Raises StoreError, NotComparable."""
    from warpladder.dashboard.core.changes import NotComparable, Side
    from warpladder.data import store

    run, at, variant = text.rpartition("@")
    try:
        return Side(load(text, data_dirs))
    except store.StoreError:
        if not at:
            raise
    data = load(run, data_dirs)
    if variant not in set(data.variants["variant"]):
        raise NotComparable(f"{text}: the run has no variant {variant}; it has {', '.join(data.variants['variant'].unique())}")
    return Side(data, variant)
