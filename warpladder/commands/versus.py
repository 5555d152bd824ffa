"""`warpladder versus`: whole programs, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from warpladder.commands.common import data_dir_option, format_option, label_option, take_up
from warpladder.dashboard.text.formats import TABLE_OR_JSON, Form
from warpladder.errors import Error

#: Options of the comparison of programs alone, and of that of toolchains alone.
_OF_PROGRAMS: Final = ("warmup", "same_output", "check", "timeout_s", "name", "collector")
_OF_TOOLCHAINS: Final = ("cases", "variants", "architecture")


@click.command("versus")
@click.argument("programs", nargs=-1, metavar="COMMAND COMMAND...")
@click.option("--runs", type=int, help="Rounds, each a run of every program. Default: until the medians are known well enough.")
@click.option("--warmup", type=int, default=1, help="Runs of each program before the first round.")
@click.option("--same-output", is_flag=True, help="Require each program to print what the first one prints, byte for byte.")
@click.option(
    "--check",
    default="",
    show_default=False,
    metavar="CMD",
    help="Command that reads the output of a program and exits with 0 if it is right.",
)
@click.option("--timeout", "timeout_s", type=float, default=600.0, help="Seconds that a run may take.")
@click.option("--name", default="", show_default=False, help="Name of the workload. Default: from the programs.")
@click.option("--collector", default="auto", help="auto, host_clock, nsight_systems.")
@click.option(
    "--toolchain",
    "toolchains",
    multiple=True,
    metavar="12.4",
    help="Compare the kernels of workloads under this NVRTC, a version or a folder, with those under the installed one, or a second one.",
)
@click.option("--case", "cases", multiple=True, help="With --toolchain: a case, by name or axes: n=3000.")
@click.option("--variants", multiple=True, show_default=False, help="With --toolchain: variants to take. Default: all kernels.")
@click.option(
    "--arch",
    "architecture",
    default="",
    show_default=False,
    metavar="sm_90",
    help="With --toolchain: look at code only, of this architecture.",
)
@label_option
@data_dir_option
@format_option("answer")
def command(
    programs: Sequence[str],
    collector: str,
    label: str,
    data_dir: Path,
    form: Form,
    toolchains: Sequence[str],
    cases: Sequence[str],
    variants: Sequence[str],
    architecture: str,
    **asked: Any,
) -> None:
    """Compare the wall-clock times of whole programs.

    Their runs are in shuffled rounds. The last line of the table is the run's id.

    COMMAND: a program with its arguments, in quotes. Give two or more; the first is the baseline. With --toolchain: workloads, or Python
    files of yours that declare one.
    """
    _refuse_of_others(toolchains)
    if toolchains:
        from warpladder.commands.toolchain import compare

        if form not in TABLE_OR_JSON:
            raise Error(f"--toolchain --format {form}: choose {' or '.join(TABLE_OR_JSON)}")
        options: Any = {"cases": cases, "variants": variants, "architecture": architecture, "rounds": asked["runs"]}
        compare(programs, toolchains, **options, data_dir=data_dir, label=label, form=form)
        return
    from warpladder import screen
    from warpladder.collectors import choice
    from warpladder.collectors.core.new_runs import check_label
    from warpladder.collectors.core.signals import Stop
    from warpladder.collectors.programs.profiled import NsightSystems
    from warpladder.collectors.programs.record import Request, record
    from warpladder.commands import ending
    from warpladder.dashboard.text import versus
    from warpladder.progress import TerminalProgress

    request = Request.parse(programs, **asked)
    check_label(label)
    tool, why = choice.choose_for_programs(collector)
    take_up(data_dir)
    with Stop() as stop:
        with TerminalProgress(f"collector {tool}: {why}") as progress:
            profiler = NsightSystems() if tool == "nsight_systems" else None
            run_id = record(request, profiler, data_dir, label, request.arguments(), stop, progress.step)
        path = data_dir / run_id
        _say_doubts(path)
        if not (asked["same_output"] or asked["check"]):
            screen.say("outputs were not judged; --same-output or --check judges them")
        ending.print_of(path, lambda data: versus.render(versus.figures(data), form))
        if form == "table":
            screen.print_id(run_id)
    if stop.number:
        raise click.exceptions.Exit(stop.exit_code)
    ending.exit_if_wrong(path)


def _refuse_of_others(toolchains: Sequence[str]) -> None:
    """Raise Error for an option of the other comparison: of programs, or of versions of NVRTC."""
    names, of = (_OF_PROGRAMS, "programs") if toolchains else (_OF_TOOLCHAINS, "--toolchain")
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise Error(f"{parameter.opts[0]}: is for {of}; leave it out")


def _say_doubts(path: Path) -> None:
    """Print the warnings and errors of a run on stderr, and which outputs differ."""
    from warpladder.collectors.programs.outputs import OTHER_OUTPUT
    from warpladder.data import store
    from warpladder.screen import say

    for row in store.open_run(path).table("diagnostics").to_dict("records"):
        about = f"{row['variant']}: " if isinstance(row["variant"], str) else ""
        if row["severity"] != "info":
            say(f"{row['severity']}: {about}{row['text']}")
        elif row["text"].endswith(OTHER_OUTPUT):
            say(f"{about}{row['text']}")
