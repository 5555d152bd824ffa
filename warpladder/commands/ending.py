"""Print the answer of a run, as `record`, `versus` and `summary` do at their end."""

import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from warpladder.collectors.core.environment import measure_all
from warpladder.collectors.trace.notes import told
from warpladder.commands.common import ExitCode
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import summary
from warpladder.dashboard.text.formats import Form
from warpladder.dashboard.text.parts import SCREEN, WIDTH, fitting, wrapped
from warpladder.dashboard.ui.text import columns
from warpladder.data import store
from warpladder.screen import print_text, say

#: The most lines of warnings about a profile.
_MOST_WARNED: Final = 6


def report(path: Path, form: Form = "table", *, typed: Sequence[str] = (), sizes: bool = False, every: bool = False) -> None:
    """Print what failed and what was distrusted in a run on stderr, and which variants win on stdout.

    Args:
        path: the run's folder.
        typed: the arguments of the recording. The run has them without folders.
        sizes: whether the form `table` starts with the time of every variant at every size.
        every: whether each finding has its own line, and no row is left out.
    """
    run = store.open_run(path)
    if _is_profile(run):
        _answer(run, told(run.table("diagnostics").to_dict("records"), every=every), form, every=every)
        return
    findings = list(summary.findings(run, every=every))
    if run.rows("results"):
        for line in findings:
            say(line.replace(measure_all(typed), measure_all(typed, folders=True)))
        findings = []
    _answer(run, findings, form, sizes=sizes, every=every)


def imported(path: Path, warnings: Sequence[str], taken: int = 0) -> None:
    """Print the warnings of an import on stderr, and what the run comes to on stdout. `taken`: lines of the screen that
    other output takes."""
    _answer(store.open_run(path), warnings, "table", taken=taken)


def _answer(
    run: store.Run, findings: Sequence[str], form: Form, *, sizes: bool = False, every: bool = False, taken: int = 0
) -> None:
    """Print findings, and the answer: which variants win, or where the time of a profile or a job goes.

    Args:
        taken: lines of the screen that other output takes. A profile with its findings fits on the others.
    """
    profiled = _is_profile(run)
    pages = _pages(run) if profiled and form == "table" else ""
    taken += min(len(wrapped(findings)), _MOST_WARNED) + pages.count("\n")

    def text(data: RunData) -> str:
        if profiled:
            return _profiled(run, data, form, SCREEN - taken, every=every)
        if every and form in ("csv", "json"):
            from warpladder.dashboard.run import table

            return summary.render(table.table(data, data.workloads, table.ALL, None), form)
        if form != "table":
            return summary.render(summary.figures(data, every_size=every), form)
        return summary.terminal(data, columns(), sizes=sizes, every=every)

    answer = _text_of(run.path, text)
    for line in fitting(findings, _MOST_WARNED) if profiled and not every else wrapped(findings):
        say(line)
    print_text(answer + pages)


def _profiled(run: store.Run, data: RunData, form: Form, lines: int = SCREEN, *, every: bool = False) -> str:
    """What a profile or a job comes to."""
    from warpladder.dashboard.text import job, profile

    if run.info["kind"] == "job":
        return job.render(data, form, every=every, lines=lines)
    return profile.render(data, form, lines)


def facts(path: Path) -> Any:
    """What `summary` has of an imported run, for programs; None where it cannot be summarized."""
    run = store.open_run(path)
    render = (
        partial(_profiled, run, form="json") if _is_profile(run) else lambda data: summary.render(summary.figures(data), "json")
    )
    return json.loads(_text_of(path, render) or "null")


def _pages(run: store.Run) -> str:
    """The command for the pages of a run."""
    command = f"warpladder app {run.argument}"
    between = " " if len(command) <= WIDTH - len("pages: ") else "\n  "
    return f"pages:{between}{command}\n"


def _is_profile(run: store.Run) -> bool:
    """Whether a run is an imported profile or a job, whose time is what there is to tell."""
    return run.info["kind"] == "job" or (run.info["kind"] == "import" and not run.rows("samples"))


def print_of(path: Path, text: Callable[[RunData], str]) -> None:
    """Print a text about a run."""
    print_text(_text_of(path, text))


def _text_of(path: Path, text: Callable[[RunData], str]) -> str:
    """A text about a run. The run is written: whatever goes wrong here takes one line on stderr, and its id is still printed."""
    try:
        return text(run_data.load(store.open_run(path)))
    except Exception as error:
        say(f"{path.name}: cannot be summarized ({type(error).__name__}: {error})")
        return ""


def exit_if_wrong(path: Path, required: Collection[str] = ()) -> None:
    """Exit with `ExitCode.WRONG` after a line about the first cell of a run that is not right, if there is one.
    `required`: variants that the user named, which have to be right whatever their role."""
    if line := summary.not_right(store.open_run(path), required):
        say(line)
        raise click.exceptions.Exit(ExitCode.WRONG)
