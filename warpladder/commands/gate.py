"""What `compare` and `record --against` share: the options of the gate, and how it ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from warpladder.commands.common import ExitCode
from warpladder.dashboard.text import formats
from warpladder.data.names import ASKED, Asked
from warpladder.errors import Error

if TYPE_CHECKING:
    from warpladder.dashboard.compare.changes import Comparison
    from warpladder.dashboard.core.run_data import RunData

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asks:
    """The values of the gate's options."""

    fail_above: float
    detect: float | None
    allow: Sequence[Asked]
    smallest: float
    scope: str
    match: Any


def gate_options(when: str = "") -> Callable[[_F], _F]:
    """The options of the gate, which a command takes as the values of `Asks`.

    Args:
        when: goes before the help of each.
    """
    options = (
        click.option(
            "--fail-above",
            type=_percent,
            metavar="PERCENT",
            default="0%",
            help=f"{when}A slower cell fails only above this.",
        ),
        click.option(
            "--detect",
            type=_percent,
            metavar="PERCENT",
            default=None,
            show_default=False,
            help=f"{when}Exit with 3 where a slowdown by this could not be seen; without it, 30 % in a tied cell.",
        ),
        click.option(
            "--allow",
            type=click.Choice(ASKED),
            multiple=True,
            show_default=False,
            help=f"{when}It may differ; else it fails. May be repeated.",
        ),
        click.option("--smallest", type=_percent, metavar="PERCENT", default="1%", help=f"{when}Smaller differences are tied."),
        click.option(
            "--scope",
            default="",
            show_default=False,
            help=f"{when}One scope, such as device, or all. Default: the first of each workload.",
        ),
        click.option(
            "--match",
            type=click.Choice(("config", "best")),
            default="config",
            help=f"{when}Equal configs, or the fastest of each side.",
        ),
    )

    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def refuse_gate_options() -> None:
    """Raise Error where the user gives an option of the gate to a command that runs without it."""
    context = click.get_current_context()
    for each in fields(Asks):
        if context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE:
            raise Error(f"--{each.name.replace('_', '-')}: is for --against; add --against REF, or leave it out")


def _percent(text: str) -> float:
    """A fraction from 0 on, written as `2%`."""
    try:
        fraction = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction < 100:
        raise click.BadParameter(f"{text}: write a percentage such as 2%")
    return fraction


def end(comparison: "Comparison", before: "RunData", after: "RunData", asks: Asks, form: formats.Comparison) -> ExitCode | None:
    """Print a comparison. Returns how the command ends; None where the gate passes."""
    from warpladder.dashboard.text import compare

    gate = compare.Gate(asks.fail_above, asks.detect, tuple(asks.allow))
    print(compare.render(comparison, before, after, gate, form), end="")
    if gate.failures(comparison) or gate.other_questions(comparison):
        return ExitCode.WRONG
    return ExitCode.UNSEEN if gate.unseen(comparison) else None
