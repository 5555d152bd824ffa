"""Records a comparison of whole programs: warm-up and verification, shuffled rounds, verification of timed runs, and the run."""

import math
import multiprocessing
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import NO_GPU_STATE, Failed, Pass, Reading
from warpladder.collectors.core.cells import Cell, result_row
from warpladder.collectors.core.children import POLL_S, Guarded
from warpladder.collectors.core.environment import CollectorError, without_folders
from warpladder.collectors.core.journal import Journal
from warpladder.collectors.core.recording import begin_with, diagnostic_event, rows_event, withdrawn_event
from warpladder.collectors.core.rounds import Entry, Limits, SampleFailed, Turn, relative_half_width, run_rounds
from warpladder.collectors.core.signals import Stop, Stopped
from warpladder.collectors.programs.names import (
    HOW_MEASURED,
    Program,
    case_rows,
    cells_of,
    names_of,
    parse,
    parse_all,
    variant_rows,
)
from warpladder.collectors.programs.outputs import CANNOT_BE_KEPT, Outputs, failure
from warpladder.collectors.programs.profiled import Execution, NoTrace, NsightSystems
from warpladder.collectors.programs.runner import Ended, Launch, Waiting
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.store import conform
from warpladder.errors import Error

HOW: Final = Pass("operation", "hot")
#: When the rounds stop, without a number of the user's. Ten rounds at least, as hyperfine takes.
LIMITS: Final = Limits(min_rounds=10, max_rounds=500, seconds=30.0)
TIMEOUT_S: Final = 600.0
#: Most rounds under the profiler.
PROFILED_ROUNDS: Final = 3
#: The longest variable `runner.PADDING`: a page of memory.
_MOST_PADDING: Final = 4096
#: Timed runs of each program whose outputs are judged.
_JUDGED_RUNS: Final = 5
#: Work after a program's exit that is not worth a word, in ns.
_SOON_NS: Final = 1_000_000

#: Receives what is done now as a text, the number of rounds done, and the number of all rounds (None if it is not known).
ShowProgress = Callable[[str, int, int | None], None]


_RUNNER: Final = "warpladder.collectors.programs.runner"
_STDERR: Final = 2


class Launcher:
    """The process that runs programs. It ends with this process, and everything that it started with it. Raises
    CollectorError: the process cannot be started.

    Args:
        check: called before a program runs and meanwhile; an exception that it raises ends the wait.
        told: called where a program has exited, and what it started runs on for seconds.
    """

    def __init__(
        self, check: Callable[[], None] = lambda: None, show: Callable[[Waiting], None] = lambda waiting: None
    ) -> None:
        self._check, self._show = check, show
        self._connection, runner_end = multiprocessing.Pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from {_RUNNER} import main; main({runner_end.fileno()})"
        try:
            with runner_end:
                command = [sys.executable, "-c", code]
                self._process = Guarded(command, pass_fds=(runner_end.fileno(),), stdin=subprocess.DEVNULL, stdout=_STDERR)
        except OSError as error:
            raise CollectorError(
                f"the process that runs the programs cannot be started ({error.strerror}); try again"
            ) from error

    def run(self, launch: Launch) -> Ended:
        """Run a program and return how it ended. Raises CollectorError: the process that runs the programs died."""
        self._check()
        try:
            self._connection.send(launch)
            while True:
                while not self._connection.poll(POLL_S):
                    self._check()
                message: Ended | Waiting = self._connection.recv()
                if isinstance(message, Ended):
                    return message
                self._show(message)
        except (EOFError, ConnectionError) as error:
            raise CollectorError(f"{launch.words[0]}: the process that runs it died; record again") from error

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(self, *_: Any) -> None:
        self._connection.close()
        self._process.end()


@dataclass(frozen=True)
class Request:
    """The programs to compare, and how.

    Attributes:
        programs: two or more; the first one is the baseline.
        name: the user's name for the workload; empty for one from the programs.
        runs: number of rounds; None to stop when the medians are known well enough.
        warmup: runs of each program before the first round.
        timeout_s: seconds that one run may take.
        same_output: each program has to print what the first one prints.
        check: command that reads a program's output and exits with 0 if it is right; None for none.
        seed: seed of the order of the rounds.
    """

    programs: tuple[Program, ...]
    name: str = ""
    runs: int | None = None
    warmup: int = 1
    timeout_s: float = TIMEOUT_S
    same_output: bool = False
    check: Program | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise Error(f"--runs {self.runs}: give 1 or more, or leave it out to stop when the medians are known well enough")
        if self.warmup < 0:
            raise Error(f"--warmup {self.warmup}: give 0 or more")
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            raise Error(f"--timeout {self.timeout_s:g}: give seconds above 0")
        if self.same_output and self.check:
            raise Error("--same-output and --check: both judge the outputs; give one of them")
        if self.check and shutil.which(self.check.words[0]) is None:
            raise Error(f"--check {self.check.shown}: no such program; name one that reads the output")
        if self.name.strip() != self.name or not self.name.isprintable():
            raise Error(f"--name {self.name.strip()!r}: give one line of text")

    @classmethod
    def parse(cls, texts: Sequence[str], *, check: str = "", **options: Any) -> "Request":
        """Make a request of the options of `warpladder versus`. Raises Error: an option or a command line cannot be used."""
        return cls(parse_all(texts), check=parse(check) if check else None, **options)

    def arguments(self) -> list[str]:
        """The arguments of `warpladder versus` that are kept with the run, without folders."""
        words = ["versus", *(program.shown for program in self.programs)]
        words += [f"--name={self.name}"] if self.name else []
        words += [f"--runs={self.runs}"] if self.runs else []
        words += [f"--warmup={self.warmup}"] if self.warmup != Request.warmup else []
        words += ["--same-output"] if self.same_output else []
        return words + ([f"--check={self.check.shown}"] if self.check else [])

    @property
    def limits(self) -> Limits:
        """When the rounds stop."""
        if self.runs is None:
            return LIMITS
        return replace(LIMITS, min_rounds=self.runs, max_rounds=self.runs, seconds=float("inf"))


def record(
    request: Request,
    profiler: NsightSystems | None,
    data_dir: Path,
    label: str,
    arguments: Sequence[str],
    stop: Stop,
    show: ShowProgress,
) -> str:
    """Measure the programs and write the run. Returns the run's id.

    Args:
        profiler: runs the programs once more for a trace; None for the clock of the host alone.
        stop: receives signals; a run that they interrupt holds the rounds that were done.

    Raises:
        StoreError: the data folder cannot be written. This is checked before measuring; later the message names another
            folder, which holds the run.
        Error: the label cannot be stored.
        CollectorError: the process that runs the programs cannot be started, or died.
    """
    names = names_of([program.words for program in request.programs], request.name)
    paths = [shutil.which(program.words[0]) for program in request.programs]
    cells = cells_of(names)
    first = begin_with(
        [[*cell.key.values(), 1] for cell in cells],
        case_rows(cells),
        variant_rows(cells, request.programs, paths),
        "host_clock",
        label,
        datetime.now(UTC),
        arguments,
    )
    with ExitStack() as stack:
        journal = Journal(data_dir, first, profiler.add_trace if profiler is not None else None)
        try:
            journal.note(diagnostic_event("info", Source.PROGRAMS, HOW_MEASURED))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpladder-")))
            measurement = _Measurement(request, dict(zip(cells, paths, strict=True)), folder, journal, show)
            try:
                with Launcher(stop.check, measurement.tell_waiting) as launcher:
                    measurement.measure(launcher)
                if profiler is not None and measurement.ok:
                    _profile(profiler, measurement, folder, journal, stack, stop)
            except Stopped:
                text = "the run was interrupted; the rounds that were done by then are kept"
                journal.note(diagnostic_event("warning", Source.INTERRUPTED, text))
            measurement.conclude()
            return journal.commit("the run was interrupted before it")
        except BaseException:
            journal.leave()
            raise


def _profile(
    profiler: NsightSystems, measurement: "_Measurement", folder: Path, journal: Journal, stack: ExitStack, stop: Stop
) -> None:
    """Run the programs under the profiler, and hand its trace to the journal. Without a trace the run has a diagnostic."""
    try:
        trace = stack.enter_context(profiler.profile(measurement.executions(), folder, stop))
    except NoTrace as reason:
        journal.note(diagnostic_event("warning", Source.TRACING, str(reason)))
        return
    journal.recording.captured.append(trace)
    journal.note(rows_event({"run": [profiler.facts(trace)]}))


class _Measurement:
    """The programs that are measured together.

    Args:
        paths: file of each program; None where there is none.

    Attributes:
        ok: cells that have not failed, in the order of the programs.
    """

    def __init__(
        self, request: Request, paths: dict[Cell, str | None], folder: Path, journal: Journal, show: ShowProgress
    ) -> None:
        self._request, self._paths, self._folder, self._journal, self._show = request, paths, folder, journal, show
        self._words = dict(zip(paths, (program.words for program in request.programs), strict=True))
        self.ok = list(paths)
        self._rng = np.random.default_rng(request.seed)
        self._durations: dict[Entry, list[int]] = {}
        self._cpu_ns: dict[Cell, list[int]] = {}
        self._after_ns: dict[Cell, int] = {}
        self._timed_runs: Counter[Cell] = Counter()
        self._judged_runs: Counter[Cell] = Counter()
        self._unpredictable = random.SystemRandom()
        self._why_stopped: dict[Cell, str] = {}
        self._launcher: Launcher
        self._outputs: Outputs
        self._running = self.ok[0]

    def measure(self, launcher: Launcher) -> None:
        """Verify the programs, sample them, and verify what timed runs printed. Raises Stopped."""
        self._launcher = launcher
        request = self._request
        self._outputs = Outputs(request.same_output, request.check, self._folder, request.timeout_s, launcher.run)
        for cell in list(self.ok):
            self._show(f"warm-up of {cell.variant}", 0, request.runs)
            self._attempt(cell, self._warm_up)
        self._rounds()
        for cell in list(self.ok) if self._outputs.judged else ():
            self._show(f"verifying what {cell.variant} printed when it was timed", 0, None)
            self._attempt(cell, self._verify_timed)

    def tell_waiting(self, waiting: Waiting) -> None:
        """Tell that a program has exited, and that what it left is waited for."""
        names, seconds = ", ".join(waiting.names), self._request.timeout_s
        text = f"{self._running.variant} has exited, and {names} goes on: waiting until {seconds:g} s have passed (--timeout)"
        self._show(text, 0, None)

    def executions(self) -> list[Execution]:
        """The runs to profile: up to three shuffled rounds of the programs that are ok."""
        rounds = min(PROFILED_ROUNDS, self._request.runs or PROFILED_ROUNDS)
        return [
            Execution(cell, number, self._launch(cell, padding=0))
            for number in range(rounds)
            for cell in (self.ok[index] for index in self._rng.permutation(len(self.ok)))
        ]

    # -- verifying -------------------------------------------------------------------------------------------------

    def _attempt(self, cell: Cell, step: Callable[[Cell], None]) -> None:
        """Do a step of a program; if it fails, report the program's status."""
        try:
            step(cell)
        except Failed as failed:
            self._fail(cell, failed)

    def _warm_up(self, cell: Cell) -> None:
        """Run a program before the first round. Its first output is judged."""
        if self._paths[cell] is None:
            word = without_folders(self._words[cell][0])
            raise Failed("launch_error", f"{word}: no such program; check its name and its folder")
        runs = max(self._request.warmup, int(self._outputs.judged))
        for number in range(runs):
            if number == 0 and self._outputs.judged:
                self._verify(cell)
            elif number == 0:
                self._tell_other_output(cell)
            else:
                self._run(cell)
        self._journal.note(rows_event({"results": [result_row(cell, "ok", self._outputs.right(cell.variant))]}), durable=False)

    def _verify(self, cell: Cell) -> None:
        output = self._folder / "output"
        self._run(cell, stdout=output)
        if wrong := self._outputs.judge(cell.variant, output):
            raise wrong

    def _tell_other_output(self, cell: Cell) -> None:
        """Run a program whose output need not be that of the first, and tell whether it is. One that cannot be kept is dropped."""
        output = self._folder / "output"
        try:
            self._run(cell, stdout=output)
        except Failed as failed:
            if not failed.detail.startswith(CANNOT_BE_KEPT):
                raise
            self._run(cell)
            return
        if differs := self._outputs.other(cell.variant, output):
            self._journal.note(
                rows_event({"diagnostics": [diagnostic_row("info", Source.PROGRAMS, differs, cell.key)]}), durable=False
            )

    def _verify_timed(self, cell: Cell) -> None:
        """Judge what timed runs printed."""
        for place in range(_JUDGED_RUNS):
            output = self._stdout_file(cell, place)
            if output.exists():
                if wrong := self._outputs.judge(cell.variant, output):
                    raise Failed(wrong.status, f"right at first, and not when it was timed: {wrong.detail}")
                self._judged_runs[cell] += 1

    def _stdout_file(self, cell: Cell, place: int) -> Path:
        return self._folder / f"timed-{list(self._paths).index(cell)}-{place}"

    def _stdout_or_none(self, cell: Cell) -> Path | None:
        """The file for the output of the next timed run; None to drop it. Which runs are kept cannot be predicted.

        Each run is as likely as any other to be among those that are kept at the end (Vitter, Random sampling with a reservoir, ACM
        Transactions on Mathematical Software 11, 1985, algorithm R).
        """
        if not self._outputs.judged:
            return None
        self._timed_runs[cell] += 1
        place = self._timed_runs[cell] - 1
        if place >= _JUDGED_RUNS:
            place = self._unpredictable.randrange(self._timed_runs[cell])
        return self._stdout_file(cell, place) if place < _JUDGED_RUNS else None

    def _fail(self, cell: Cell, failed: Failed) -> None:
        self.ok.remove(cell)
        self._journal.note(rows_event({"results": [result_row(cell, failed.status, failed.detail)]}), durable=False)
        self._journal.note(withdrawn_event([cell]))

    # -- sampling --------------------------------------------------------------------------------------------------

    def _rounds(self) -> None:
        """Sample in rounds. A program that fails leaves, and the others go on; the first of them is then the baseline."""
        limits = self._request.limits
        one_round = replace(limits, min_rounds=1, max_rounds=1)
        aim = f" until each median is known to ±{limits.target:.1%}, for {limits.seconds:g} s at most"
        until = "" if self._request.runs else aim
        started, rounds = time.monotonic(), 0
        while self.ok and not self._is_done(limits, rounds, time.monotonic() - started):
            self._show(f"rounds{until}", rounds, self._request.runs)
            entries = [*map(Entry, self.ok), Entry(self.ok[0], twin=1)]
            try:
                result = run_rounds(entries, HOW, self._take, Turn(0, rounds, one_round), self._rng, gpus=0)
            except SampleFailed as failure:
                if not isinstance(failure.__cause__, Failed):
                    assert failure.__cause__ is not None
                    raise failure.__cause__ from None
                self._fail(failure.cell, failure.__cause__)
                continue
            for row in result.rows:
                self._durations.setdefault(Entry(Cell.of(row), row["twin"]), []).append(row["duration_ns"])
            self._journal.note(rows_event({}), conform("samples", result.rows), durable=False)
            rounds += 1

    def _is_done(self, limits: Limits, rounds: int, seconds: float) -> bool:
        """Whether the rounds stop, as in `core.rounds`; notes why."""
        if rounds < limits.min_rounds:
            return False
        widths = {cell: relative_half_width(self._durations[Entry(cell)]) for cell in self.ok}
        converged = self._request.runs is None and all(width <= limits.target for width in widths.values())
        if not converged and rounds < limits.max_rounds and seconds < limits.seconds:
            return False
        limit = f"{limits.max_rounds} rounds" if rounds >= limits.max_rounds else f"{limits.seconds:g} s"
        for cell, width in widths.items():
            reason = "converged" if width <= limits.target else f"at the limit of {limit}"
            self._why_stopped[cell] = f"{HOW.scope} {HOW.cache}: {reason}, n={len(self._durations[Entry(cell)])}, ±{width:.2%}"
        return True

    def _take(self, entry: Entry, number: int) -> Reading:
        stdout = self._stdout_or_none(entry.cell)
        ended = self._run(entry.cell, stdout=stdout, padding=int(self._rng.integers(_MOST_PADDING)))
        self._cpu_ns.setdefault(entry.cell, []).append(ended.cpu_ns)
        return Reading(ended.duration_ns, state=NO_GPU_STATE)

    def _run(self, cell: Cell, *, stdout: Path | None = None, padding: int | None = None) -> Ended:
        """Run a program once. Raises Failed."""
        launch = self._launch(cell, stdout=stdout, padding=padding)
        self._running = cell
        ended = self._launcher.run(launch)
        self._after_ns[cell] = max(self._after_ns.get(cell, 0), ended.after_ns)
        if failed := failure(ended, launch.timeout_s, Path(launch.stderr)):
            raise failed
        return ended

    def _launch(self, cell: Cell, *, stdout: Path | None = None, padding: int | None = None) -> Launch:
        path, printed = self._paths[cell], str(stdout or "")
        assert path is not None
        stderr = str(self._folder / "stderr")
        return Launch(path, self._words[cell], self._request.timeout_s, stdout=printed, stderr=stderr, padding=padding)

    def conclude(self) -> None:
        """Note why sampling stopped, how many timed runs were judged, and what ran on after a program's exit."""
        results = []
        for cell in self.ok:
            n = len(self._durations.get(Entry(cell), ()))
            if n:
                why = self._why_stopped.get(cell, f"{HOW.scope} {HOW.cache}: interrupted, n={n}")
                cpu_ms = statistics.median(self._cpu_ns[cell]) / 1e6
                detail = f"{why}; processor time of user and system {cpu_ms:.3g} ms in the median"
                if judged := self._judged_runs[cell]:
                    detail += f"; outputs of timed runs that were judged too, chosen at random: {judged}"
                results.append(result_row(cell, "ok", detail))
        diagnostics = [
            diagnostic_row("info", Source.PROGRAMS, _RAN_ON.format(after_ns / 1e6), cell.key)
            for cell, after_ns in self._after_ns.items()
            if after_ns > _SOON_NS
        ]
        self._journal.note(rows_event({"results": results, "diagnostics": diagnostics}))


_RAN_ON: Final = (
    "processes that it started ran on after its exit, for up to {:.3g} ms; its time lasts until the last of them has ended"
)
