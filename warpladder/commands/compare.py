"""`warpladder compare`: two runs, cell by cell."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from warpladder.commands.common import ExitCode, data_dirs_option, folders, format_option, load
from warpladder.dashboard.text import formats

if TYPE_CHECKING:
    from warpladder.dashboard.core.changes import Side


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

    A, B: a run by its id, label or folder, or one variant of a run as RUN@VARIANT.
    """
    from warpladder.dashboard.core import changes
    from warpladder.dashboard.core.between_runs import Recordings
    from warpladder.dashboard.text import compare

    before, after = _side(a, data_dirs), _side(b, data_dirs)
    options = changes.Options(scope, match, smallest, without_shift, any_device, partial)
    comparison = changes.compare(before, after, options, Recordings(folders(data_dirs), after.data.info))
    print(compare.render(comparison, before.data, after.data, fail_above, form), end="")
    if compare.failures(comparison, fail_above):
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
