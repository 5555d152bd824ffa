"""Shows the progress of a recording: as a bar on a terminal, as a bar in a notebook, or as lines in a file."""

import html
import math
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from warpladder.collectors.core.progress import Progress
from warpladder.data.files import one_line


class _Screen(Console):
    """A console on stderr. It goes quiet when stderr is closed; Rich's default ends the command."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


_screen = _Screen(stderr=True, highlight=False, soft_wrap=True, force_jupyter=False)


class _TimeLeft(ProgressColumn):
    """The time left, which is no longer than the recording may take."""

    limit_s = math.inf

    def render(self, task: Task) -> Text:
        until_limit = max(self.limit_s - (task.elapsed or 0), 0)
        remaining_s = min(math.inf if task.time_remaining is None else task.time_remaining, until_limit)
        return Text(f"left {timedelta(seconds=int(remaining_s))}" if remaining_s < math.inf else "")


class TerminalProgress(Progress):
    """Shows progress on stderr: on a terminal a bar with the time left, in a file one line for each finished job."""

    def __init__(self, headline: str) -> None:
        self._headline = headline
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._time_left = _TimeLeft()
        self._bar = Bar(*columns, self._time_left, console=_screen, disable=not _screen.is_terminal, transient=True)
        self._task = self._bar.add_task("starting", total=None)
        self._since = time.monotonic()
        self._measures = False
        self._last = ""

    def __enter__(self) -> "TerminalProgress":
        return self

    def __exit__(self, *_: Any) -> None:
        if not self._bar.disable:  # below 14.3, Rich ends a bar that it did not draw with an empty line
            with suppress(OSError):
                self._bar.stop()

    def compiling(self, finished: int, jobs: int, times: str) -> None:
        if finished == 0:
            self._begin()
        self._bar.update(self._task, description=f"compiling {finished} of {jobs}")
        if not self._measures:
            self._bar.update(self._task, completed=finished, total=jobs)
        if self._bar.disable and finished == jobs:
            _screen.print(f"compiled {jobs}: {times}", markup=False)

    def start(self, jobs: int) -> None:
        self._begin()
        self._measures = True
        self._bar.reset(self._task, total=jobs)

    def limit(self, seconds: float) -> None:
        self._time_left.limit_s = seconds

    def _begin(self) -> None:
        if self._headline:
            _screen.print(one_line(self._headline), markup=False)
            self._headline = ""
        self._bar.start()
        self._since = time.monotonic()

    def job(self, text: str) -> None:
        self._bar.update(self._task, description=one_line(text))
        self._since = time.monotonic()

    def advance(self) -> None:
        self._bar.advance(self._task)
        if self._bar.disable:
            (task,) = self._bar.tasks
            took = f"{task.completed:.0f}/{task.total:.0f} {task.description}: {time.monotonic() - self._since:.1f} s"
            _screen.print(took, markup=False)

    def step(self, text: str, finished: int, steps: int | None) -> None:
        """Show what is done now: in a file a line for each text. `versus` calls this in place of `job` and `advance`."""
        if self._headline:  # not before: the data folder may prove unwritable
            self._begin()
        with suppress(OSError):
            self._bar.update(self._task, description=one_line(text), completed=finished, total=steps)
            if self._bar.disable and text != self._last:
                _screen.print(one_line(text), markup=False)
        self._last = text

    def end(self, lines: Sequence[str]) -> None:
        """Print what the recording found."""
        for line in lines:
            _screen.print(one_line(line), markup=False)


#: The most lines of what a recording found.
_MOST_LINES: Final = 12


class NotebookProgress(Progress):
    """Shows progress in the output of a notebook's cell, which is replaced as the recording goes on.

    Rich's own bar needs ipywidgets in a notebook, which Jupyter does not install; without it, Rich shows a warning and no bar.
    """

    def __init__(self, headline: str) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._headline, self._text, self._lines = headline, "starting", list[str]()
        self._finished, self._jobs = 0, 0
        self._since = self._since_jobs = time.monotonic()
        self._cell = display(HTML(self._drawn()), display_id=True)

    def __enter__(self) -> "NotebookProgress":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def compiling(self, finished: int, jobs: int, times: str) -> None:
        self._text = f"compiling {finished} of {jobs}"
        self._draw()

    def start(self, jobs: int) -> None:
        self._finished, self._jobs, self._since_jobs = 0, jobs, time.monotonic()

    def job(self, text: str) -> None:
        self._text = text
        self._draw()

    def advance(self) -> None:
        self._finished += 1
        self._draw()

    def end(self, lines: Sequence[str]) -> None:
        """Show what the recording found in place of the bar."""
        self._lines, self._text = list(lines), ""
        self._draw()

    def _draw(self) -> None:
        self._cell.update(self._html(self._drawn()))

    def _drawn(self) -> str:
        took = f"{time.monotonic() - self._since:.1f} s"
        if not self._text:
            lines = [*self._lines[:_MOST_LINES], *(["…"] if len(self._lines) > _MOST_LINES else [])]
            small = f'<small style="opacity:.7">{html.escape(f"{took}; {self._headline}")}</small>'
            return "<br>".join([*map(html.escape, lines), small])
        bar = f'<progress style="width:16em" value="{self._finished}" max="{max(self._jobs, 1)}"></progress>'
        words = f"{self._finished} of {self._jobs or '?'} · {took}{self._time_left()} · {self._text}"
        return f"{html.escape(self._headline)}<br>{bar} {html.escape(words)}"

    def _time_left(self) -> str:
        """The time that the jobs left will take, if they are like those that are done."""
        if not 0 < self._finished < self._jobs:
            return ""
        left = (time.monotonic() - self._since_jobs) / self._finished * (self._jobs - self._finished)
        return f", about {left:.0f} s left"


def progress(headline: str) -> TerminalProgress | NotebookProgress:
    """The progress that suits the place where Python runs. `headline`: the first line; it says which collector
    measures, and why."""
    return NotebookProgress(headline) if in_notebook() else TerminalProgress(headline)


def in_notebook() -> bool:
    """Whether a kernel runs this code, whose client shows HTML."""
    shell = _shell()
    return shell is not None and hasattr(shell, "kernel")


def is_interactive() -> bool:
    """Whether someone types the code: in a notebook, in IPython, or at Python's own prompt."""
    return _shell() is not None or hasattr(sys, "ps1")


def _shell() -> Any:
    """The shell of IPython that runs this code; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
