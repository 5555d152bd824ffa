"""Runs the command `versus`, after `warpladder.collectors.cli` has parsed its options."""

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from warpladder.collectors import answers, choice
from warpladder.collectors.core import runs
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.nsight_systems.tool import NSYS
from warpladder.collectors.programs import words
from warpladder.collectors.programs.profiled import NsightSystems
from warpladder.collectors.programs.record import Request, record
from warpladder.collectors.screen import print_id, say
from warpladder.data import store
from warpladder.errors import Error
from warpladder.workloads.driver import has_nvidia_driver

#: Collectors that time whole programs, and `auto` for the first that can run here.
COLLECTORS: Final = ("auto", "host_clock", "nsight_systems")


def request_of(
    texts: Sequence[str],
    *,
    name: str,
    runs: int | None,
    warmup: int,
    timeout_s: float,
    same_output: bool,
    check: str,
    shell: bool,
) -> Request:
    """Make the request of the command's options.

    Raises:
        Error: an option or a command line cannot be used.
    """
    if runs is not None and runs < 1:
        raise Error(f"--runs {runs}: give 1 or more, or leave it out to stop when the medians are known well enough")
    if warmup < 0:
        raise Error(f"--warmup {warmup}: give 0 or more")
    if not (timeout_s > 0 and math.isfinite(timeout_s)):
        raise Error(f"--timeout {timeout_s:g}: give seconds above 0")
    if same_output and check:
        raise Error("--same-output and --check: both judge the outputs; give one of them")
    if name.strip() != name or not name.isprintable():
        raise Error(f"--name {name.strip()!r}: give one line of text")
    programs = words.parse_all(texts, shell=shell)
    return Request(programs, name, runs, warmup, timeout_s, same_output, words.parse(check, shell=shell) if check else None)


def versus(request: Request, collector: str, data_dir: Path, label: str, form: str) -> None:
    """Measure the programs, write the run, and print the answer.

    Args:
        request: what to compare.
        collector: one of `COLLECTORS`.
        data_dir: folder for the run.
        label: the user's name for the run.
        form: format of the answer: `table`, `markdown`, `csv` or `json`.

    Raises:
        CollectorError: the collector cannot run here.
        Error: the label cannot be stored.
        StoreError: the data folder cannot be written.
        click.exceptions.Exit: the comparison was interrupted, or a program is not right.
    """
    runs.check_label(label)
    name, why = choose(collector)
    salvage(data_dir)
    with Stop() as stop:
        with _Progress(f"collector {name}: {why}") as progress:
            profiler = NsightSystems() if name == "nsight_systems" else None
            run_id = record(request, profiler, data_dir, label, _arguments(request), stop, progress.told)
        _tell_doubts(data_dir / run_id)
        if not (request.same_output or request.check):
            say("outputs were not compared; --same-output or --check compares them")
        answers.ask_dashboard("versus", data_dir / run_id, form)
        if form == "table":
            print_id(run_id)
    if stop.number:
        raise click.exceptions.Exit(stop.exit_code)
    answers.exit_if_wrong(data_dir / run_id)


def choose(collector: str) -> tuple[str, str]:
    """The collector to use, and the reason. A program needs no Python package to use a GPU, so none is asked for.

    Raises:
        CollectorError: it does not time programs, or cannot run here.
    """
    if collector not in COLLECTORS:
        raise CollectorError(f"--collector {collector}: does not time whole programs; choose {', '.join(COLLECTORS)}")
    if collector == "host_clock":
        return collector, "asked for"
    problem = choice.driver_problem() or NSYS.problem
    if problem and collector == "auto":
        return (
            "host_clock",
            f"times alone, without a trace: {problem if has_nvidia_driver() else 'this machine has no NVIDIA driver'}",
        )
    if collector == "nsight_systems":
        if problem:
            raise CollectorError(f"nsight_systems: {problem}")
        return collector, "asked for"
    return "nsight_systems", "the best that can run here"


def _arguments(request: Request) -> list[str]:
    """The command line that is kept with the run, without folders."""
    found = ["versus", *(program.shown for program in request.programs)]
    found += [f"--name={request.name}"] if request.name else []
    found += [f"--runs={request.runs}"] if request.runs else []
    found += [f"--warmup={request.warmup}"] if request.warmup != Request.warmup else []
    found += ["--same-output"] if request.same_output else []
    found += [f"--check={request.check.shown}"] if request.check else []
    found += ["--shell"] if any(program.shell for program in request.programs) else []
    return found


class _Progress:
    """Shows progress on stderr: on a terminal a bar, in a file a line for each step."""

    def __init__(self, headline: str) -> None:
        self._screen = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Bar(*columns, console=self._screen, disable=not self._screen.is_terminal, transient=True)
        self._task = self._bar.add_task("starting", total=None)
        self._headline, self._last = headline, ""

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        with suppress(OSError):
            self._bar.stop()

    def told(self, text: str, done: int, of: int | None) -> None:
        """Show what is done now."""
        if self._headline:  # not before: the data folder may prove unwritable
            say(self._headline)
            self._headline = ""
            self._bar.start()
        with suppress(OSError):
            self._bar.update(self._task, description=text, completed=done, total=of)
        if self._bar.disable and text != self._last:
            say(text)
        self._last = text


def _tell_doubts(path: Path) -> None:
    """Print the warnings and errors of a run on stderr."""
    for row in store.open_run(path).table("diagnostics").query("severity != 'info'").to_dict("records"):
        about = f"{row['variant']}: " if isinstance(row["variant"], str) else ""
        say(f"{row['severity']}: {about}{row['text']}")
