"""Records a run: sends the jobs of the plan to the child process, replaces the child if it fails, and writes the run.

All jobs are measured by one process after another, because a kernel's time differs between processes. A job's rounds are
divided among them. Where time is limited, the first process may use all of it, and another one starts only if it has the time that the
first one took.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.cells import Cell, result_row
from warpladder.collectors.core.children import POLL_S, START_TIMEOUT_S, STOP_TIMEOUT_S, Child, ChildLost, ChildProcess
from warpladder.collectors.core.collector import Collector, Compiling
from warpladder.collectors.core.environment import measure_all
from warpladder.collectors.core.journal import Journal
from warpladder.collectors.core.messages import (
    Answer,
    Captured,
    Crashed,
    Describe,
    Described,
    Measure,
    Question,
    Refused,
    Rows,
)
from warpladder.collectors.core.plan import Job, Plan
from warpladder.collectors.core.progress import Progress
from warpladder.collectors.core.recording import begin, diagnostic_event, rows_event, unreached_event
from warpladder.collectors.core.rounds import Turn
from warpladder.collectors.core.signals import Stop, Stopped
from warpladder.collectors.core.stopwatch import Stopwatch
from warpladder.data.names import Source, Spent, diagnostic_row
from warpladder.data.store import StoreError, conform
from warpladder.errors import Error
from warpladder.workloads.api import HostVariant, LibraryVariant

_LEAVE_TIMEOUT_S: Final = 60.0
#: Seconds for a signal, which a child already has, to reach this process.
_SAME_SIGNAL_S: Final = 0.5


#: A job may take so many times as long as in the first process.
_MARGIN: Final = 1.1
_FEWER: Final = (
    "the rounds are of {} and not of {} processes, since another one does not fit into {:g} s of measuring; how far processes differ "
    "is not known"
)

#: Starts the child that measures alone. Argument: modules to import before the first question.
StartChild = Callable[[Sequence[str]], Child]
#: Starts ranks. Arguments: name of the collector, number of ranks, and a function to call while they start.
StartRanks = Callable[[str, int, Callable[[], None]], Child]


@dataclass(frozen=True)
class MachineFacts:
    """Facts about the machine that an earlier recording on it found.

    Attributes:
        facts: columns of `run` about the GPU.
        ceilings: rows of `ceilings`.
        source: which recording, in words.
    """

    facts: Mapping[str, Any]
    ceilings: Sequence[Mapping[Any, Any]]
    source: str


class Recorder:
    """One recording: its state, and the child process that measures.

    Args:
        start_ranks: starts the ranks that share a case; None if no case of the plan is shared.
        start_child: starts the child that measures the other cases; None for a process.
        machine: the device and its ceilings as an earlier recording found them; None to measure the ceilings.
        plan_ns: how long the plan took, for the table `phases`.
    """

    def __init__(
        self,
        plan: Plan,
        collector: Collector,
        progress: Progress | None = None,
        start_ranks: StartRanks | None = None,
        start_child: StartChild | None = None,
        machine: MachineFacts | None = None,
        plan_ns: int = 0,
    ) -> None:
        self._plan, self._collector, self._progress = plan, collector, progress or Progress()
        self._start_ranks, self._start_child = start_ranks, start_child or partial(ChildProcess, collector.name)
        self._children: dict[int, Child] = {}  # by number of ranks
        self._machine = machine
        self._rounds_done: dict[tuple[str, str, int], int] = {}  # by workload, case and number of ranks
        self._took_s: list[float] = []  # by each job in the first process
        self._spare_s = 0.0  # of the budget, for the job that comes next
        self._began = 0.0  # measuring, on the clock of `time.monotonic`, later by each wait since
        self._stop = Stop()
        self._watch = Stopwatch(Spent.WAITING)
        self._watch.add(plan_ns, Spent.PLAN)
        self._early = self._modules()  # that a child imports before its first question
        self._journal: Journal
        self._compilers: Compiling
        self._arguments: Sequence[str] | str = ()

    def record(self, data_dir: Path, label: str, arguments: Sequence[str] | str, stop: Stop | None = None) -> tuple[str, int]:
        """Measure and write the run.

        Args:
            stop: signal handlers that the caller has installed; None to install them for this recording.

        Returns:
            the run's id, and the number of the signal that interrupted it, or 0. An interrupted run holds the finished cases.

        Raises:
            StoreError: the data folder cannot be written. This is checked before measuring; later the message names another
                folder, which holds the run.
            Error: the label cannot be stored.
        """
        self._arguments = arguments
        with nullcontext(stop) if stop else Stop() as self._stop:
            self._journal = Journal(
                data_dir,
                begin(self._plan, self._collector.name, label, datetime.now(UTC), arguments),
                self._collector.add_captured,
            )
            try:
                try:
                    with self._compiling() as self._compilers:
                        self._wait_for_code(0)
                        with self._watch.phase(Spent.CEILINGS):
                            self._describe()
                        self._measure()
                    with self._watch.phase(Spent.MACHINE_CODE):
                        self._keep_code()
                except Stopped:
                    self._diagnose("warning", Source.INTERRUPTED, "the run was interrupted; what was finished by then is kept")
                for child in self._children.values():
                    child.dismiss()
                self._journal.note(rows_event({"phases": self._watch.take_rows()}), durable=False)
                return self._journal.commit("the run was interrupted before it"), self._stop.number
            except BaseException:
                self._journal.leave()
                raise
            finally:
                for gpus in list(self._children):
                    self._end_child(gpus, _LEAVE_TIMEOUT_S)

    # -- measuring -------------------------------------------------------------------------------------------------

    def _compiling(self) -> AbstractContextManager[Compiling]:
        """Start the child, and begin to compile."""
        with self._watch.phase(Spent.COMPILE):
            kernel_cache.share_with_libraries()
            with suppress(OSError):  # the first question raises it again
                self._children[1] = self._start_child(self._early)
            return self._collector.compile_ahead(self._plan, partial(self._show, "compiling"), self._stop.check)

    def _wait_for_code(self, number: int) -> None:
        """Wait until all is compiled that a case of the plan needs. The budget is for measuring: the wait takes nothing of it."""
        started = time.monotonic()
        with self._watch.phase(Spent.COMPILE):
            self._compilers.wait_for(number)
        self._began += time.monotonic() - started

    def _modules(self) -> list[str]:
        """Return the modules that the planned variants import. The child imports them early: PyTorch takes seconds."""
        kinds = self._collector.make_benches()
        planned = {(cell.workload, cell.variant) for job in self._plan.jobs for cell in job.cells}
        requires = (
            variant.requires
            for workload in self._plan.workloads
            for variant in workload.variants
            if isinstance(variant, HostVariant | LibraryVariant)
            and variant.kind in kinds
            and (workload.name, variant.name) in planned
        )
        return list(dict.fromkeys(module for modules in requires for module in modules))

    def _describe(self) -> None:
        self._show("start", len(self._plan.jobs) * self._plan.limits.processes + 1)
        if self._plan.limits.budget_s is not None:
            self._show("limit", self._plan.limits.budget_s)
        self._show("job", "ceilings of this machine")
        if self._machine is None:
            self._ask_ceilings(1, Describe(self._plan.limits.ceilings_by_size), "the device could not be described")
            for gpus, sizes in self._collector.averages(self._plan).items():
                why = f"NCCL's allreduce on {gpus} GPUs could not be timed"
                self._ask_ceilings(gpus, Describe(all_reduces=tuple(sizes)), why)
        else:
            self._journal.note(rows_event({"run": [self._machine.facts], "ceilings": self._machine.ceilings}))
            self._diagnose("info", Source.CEILINGS, self._machine.source)
        self._show("advance")

    def _ask_ceilings(self, gpus: int, question: Question, else_say: str) -> None:
        """Ask a child for facts and ceilings, and store them."""

        def take(answer: Answer) -> bool:
            match answer:
                case Described(facts, ceilings):
                    self._journal.note(rows_event({"run": [facts], "ceilings": ceilings}))
                case Refused(why):
                    self._diagnose("error", Source.CEILINGS, f"{else_say}: {why}")
            return True

        for tries_left in (1, 0):
            try:
                self._ask(gpus, question, (), START_TIMEOUT_S, take)
                return
            except ChildLost as lost:
                self._end_child(gpus)
                # A module that the first child imported may have killed it; later children import modules on first use only.
                self._early = []
                if not tries_left or lost.status == "timeout":
                    self._diagnose("error", Source.CEILINGS, f"{else_say}: {lost.detail}")
                    return

    def _measure(self) -> None:
        limits = self._plan.limits
        self._began = time.monotonic()
        for note in self._plan.notes:
            self._diagnose("info", Source.GPUS, note)
        first_s = 0.0
        for process in range(limits.processes):
            if process:
                if limits.budget_s is not None and self._left_s() < first_s:
                    text = _FEWER.format(process, limits.processes, limits.budget_s)
                    self._diagnose("info", Source.FEWER_PROCESSES, text)
                    return
                self._replace_children()
            self._measure_jobs(process)
            first_s = first_s or time.monotonic() - self._began

    def _left_s(self) -> float:
        """Seconds of the budget that are left for measuring; infinite without a budget."""
        budget_s = math.inf if self._plan.limits.budget_s is None else self._plan.limits.budget_s
        return budget_s - (time.monotonic() - self._began)

    def _keep_code(self) -> None:
        """Store the machine code of the cells that are right, which explains why one is faster. Whatever fails here costs no times."""
        results = self._journal.recording.results
        planned = dict.fromkeys(cell for job in self._plan.jobs if job.gpus == 1 for cell in job.cells)
        cells = [cell for cell in planned if results.has(cell, 1) and not results.is_lost(cell)]
        try:
            self._journal.note(rows_event(self._collector.machine_code(self._plan, cells)))
        except Exception as error:
            why = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            self._diagnose("info", Source.DISASSEMBLY, f"the machine code of the kernels is not kept: {why}")

    def _replace_children(self) -> None:
        """End every child, so that the jobs that follow are measured by new processes."""
        for gpus in list(self._children):
            self._end_child(gpus, _LEAVE_TIMEOUT_S)
        with suppress(OSError):  # the first question raises it again
            self._children[1] = self._start_child(self._early)

    def _measure_jobs(self, process: int) -> None:
        for number, planned in enumerate(self._plan.jobs):
            self._stop.check()
            if self._left_s() < 0:
                if process == 0:
                    self._leave_out(self._plan.jobs[number:])
                return
            self._wait_for_code(number)
            results = self._journal.recording.results
            job = replace(planned, cells=tuple(cell for cell in planned.cells if not results.is_lost(cell)))
            among = f" among {job.gpus}" if job.gpus > 1 else ""
            of = f", process {process + 1} of {self._plan.limits.processes}" if self._plan.limits.processes > 1 else ""
            self._show("job", f"{job.workload.name} {job.case}{among}{of}")
            started = time.monotonic()
            self._spare_s = self._spare(number, process, self._left_s()) if process else 0.0
            if job.cells:
                self._measure_job(job, process)
            if process == 0:
                self._took_s.append(time.monotonic() - started)
            self._show("advance")

    def _spare(self, number: int, process: int, left_s: float) -> float:
        """Seconds of the budget for a job beyond those that it took in the first process: an equal share for all that are to come."""
        later = self._plan.limits.processes - process - 1
        needed_s = sum(self._took_s[number:]) + later * sum(self._took_s)
        to_come = len(self._took_s) - number + later * len(self._took_s)
        return max(left_s - _MARGIN * needed_s, 0.0) / to_come if to_come > 0 else 0.0

    def _leave_out(self, jobs: Sequence[Job]) -> None:
        """Leave jobs out of the run because the time budget is used up. One diagnostic gives the command that measures all."""
        unreached = len({(job.workload.name, job.case) for job in jobs})
        cases = len({(job.workload.name, job.case) for job in self._plan.jobs})
        within = f"{unreached} of {cases} cases not reached within {self._plan.limits.budget_s:g} s of measuring"
        text = f"{within}; to measure all: {measure_all(self._arguments)}"
        self._journal.note(unreached_event(jobs), durable=False)
        self._diagnose("info", Source.NOT_REACHED, text)

    def _measure_job(self, job: Job, process: int) -> None:
        """Measure a case in one process. If a cell ends the child, repeat without that cell in another one."""
        key = (job.workload.name, job.case, job.gpus)
        turn = Turn(process, self._rounds_done.get(key, 0), self._plan.limits.of_process(process).with_more(self._spare_s))
        lost_cells: dict[Cell, dict[str, Any]] = {}
        while True:
            cells = tuple(cell for cell in job.cells if cell not in lost_cells)
            answers = _Answers(replace(job, cells=cells))
            try:
                self._ask(job.gpus, Measure(answers.job, turn), cells, turn.limits.cell_timeout_s, answers.take)
            except Stopped:
                self._journal.note(rows_event({"phases": answers.tables["phases"]}))
                raise
            except ChildLost as lost:
                self._end_child(job.gpus)
                blamed = [lost.cell] if lost.cell else list(cells)
                lost_cells |= {cell: result_row(cell, lost.status, lost.detail) for cell in blamed}
                if len(lost_cells) < len(job.cells):
                    continue
                answers = _Answers(job)
            finally:
                self._watch.move(sum(row["duration_ns"] for row in answers.tables["phases"]))
            answers.tables["results"] += lost_cells.values()
            self._journal.recording.captured += answers.captured
            samples = answers.samples()
            if len(samples):
                self._rounds_done[key] = 1 + pc.max(samples["round"]).as_py()
            self._journal.note(
                rows_event(answers.tables, job.gpus, process, traced=bool(answers.captured)), samples if len(samples) else None
            )
            return

    def _ask(
        self, gpus: int, question: Question, cells: Sequence[Cell], timeout_s: float, take: Callable[[Answer], bool]
    ) -> None:
        """Ask the child, and check for signals while waiting. Raises ChildLost and Stopped."""
        child = self._running_child(gpus)
        try:
            child.ask(question, cells, timeout_s, take, self._stop.check)
        except ChildLost:
            deadline = time.monotonic() + _SAME_SIGNAL_S
            while time.monotonic() < deadline:  # a batch system may have signalled all processes
                self._stop.check()
                time.sleep(POLL_S)
            raise
        finally:
            self._watch.move(child.start_ns, Spent.START)
            child.start_ns = 0

    def _running_child(self, gpus: int) -> Child:
        """Return the child for this number of ranks; start it if needed. Raises ChildLost if it cannot be started."""
        if gpus not in self._children:
            collector = self._collector.name
            try:
                if gpus > 1:
                    assert self._start_ranks
                    self._children[gpus] = self._start_ranks(collector, gpus, self._stop.check)
                else:
                    self._children[gpus] = self._start_child(())
            except OSError as error:
                raise ChildLost(None, "launch_error", f"its process cannot be started ({error.strerror or error})") from error
        return self._children[gpus]

    def _end_child(self, gpus: int, patience_s: float = 0.0) -> None:
        """End a child. After a second signal, or some time after the first, it is not waited for."""
        if gpus in self._children:
            self._children.pop(gpus).stop(patience_s, lambda: self._stop.again or self._stop.seconds_ago > STOP_TIMEOUT_S)

    def _show(self, what: str, *arguments: object) -> None:
        """Tell the progress, until that fails: a closed terminal or pipe must not end a recording."""
        try:
            getattr(self._progress, what)(*arguments)
        except OSError:
            self._progress = Progress()

    def _diagnose(self, severity: str, source: str, text: str) -> None:
        self._journal.note(diagnostic_event(severity, source, text), durable=False)


class _Answers:
    """Collects a child's answers about one case."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.captured: list[Any] = []

    def take(self, answer: Answer) -> bool:
        """Add an answer. Returns whether it was the last."""
        match answer:
            case Rows(table, rows):
                self.tables[table] += rows
            case Captured(batch):
                self.captured += [batch] if batch else []
                return True
            case Crashed(cell, status, detail):
                raise ChildLost(cell, status, detail)
            case Refused(why):
                self._fail(why)
                return True
        return False

    def samples(self) -> pa.Table:
        """The rows of `samples`. Where a variant spoiled the clock, they are no samples, and its case fails."""
        rows = self.tables.pop("samples", [])
        try:
            return conform("samples", rows)
        except StoreError as error:
            self.tables["results"] = [row for row in self.tables["results"] if row["status"] != "ok"]
            self._fail(str(error))
            return conform("samples", [])

    def _fail(self, why: str) -> None:
        """The case as a whole failed: give each cell without a status this reason."""
        reported = {(row["variant"], row["config"]) for row in self.tables["results"]}
        if len(reported) == len(self.job.cells):
            self.tables["diagnostics"].append(diagnostic_row("error", Source.COLLECTOR, f"{self.job.case}: {why}"))
        self.tables["results"] += [
            result_row(cell, "launch_error", why) for cell in self.job.cells if (cell.variant, cell.config) not in reported
        ]
