"""The way of a recording: plan, choose a collector, salvage what an earlier recording left, measure, and write the run.

The command `record`, `--watch`, scripts and notebooks all come through `plan` and `record`. They hand over an `Order`; nothing here reads
arguments, prints, or ends the process.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from warpladder.collectors import choice, further_passes
from warpladder.collectors.choice import ENTRIES
from warpladder.collectors.core import kernel_cache, recorder, threads
from warpladder.collectors.core.checked import Checks
from warpladder.collectors.core.children import PRINTED, ChildProcess, Forks, printing_to
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.new_runs import check_label
from warpladder.collectors.core.plan import Plan, PlanError, Request, WorkloadRef, held, make_plan, write_cells
from warpladder.collectors.core.progress import Progress
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.further_passes import FurtherPass
from warpladder.collectors.ranks.launchers import Launcher
from warpladder.collectors.sanitizer import record as sanitizer
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads.api import Workload

#: Collectors that are tools: the collector that records as a child of the tool, and what records.
UNDER_TOOL: Final = {name: (entry.inside, entry.record) for name, entry in ENTRIES.items() if entry.record}

#: Collectors whose processes are forked from one that has imported everything. A tool around a recording does not follow forks.
FORKED: Final = ("host_clock",)

#: File of a run with what its variants and their libraries printed, and how many of its lines are shown where a recording fails.
OUTPUT: Final = "output.log"
_LAST_LINES: Final = 10

#: Prints a line.
Say = Callable[[str], None]
#: Shows the progress of a recording below a first line, which names the collector and the reason for it.
Show = Callable[[str], AbstractContextManager[Progress]]

#: Scopes and caches in which a case is sampled, about: on the host an operation; on a device cold and hot, an operation, and end to end.
_PASSES_OF_HOST: Final = 1
_PASSES_OF_DEVICE: Final = 4
#: The share of a budget for the rounds of the first process, so that three processes fit. A device takes longer to compile and verify.
SHARE_OF_HOST: Final = 0.2
SHARE_OF_DEVICE: Final = 0.1


@dataclass(frozen=True)
class Order:
    """An order to record: what, how, and where to.

    Attributes:
        request: workloads, cases and variants.
        data_dir: folder for the run.
        arguments: what records the same again, kept with the run: the arguments of the command, or a call as one text.
        collector: name of a collector, or `auto`.
        label: the user's name for the run.
        launcher: starts the ranks that share a case.
        passes: further passes after the times, by their options: of `further_passes.BY_OPTION`.
        declared: workloads in place of those that the request names, each with how a child finds it.
        why_here: why only this process has them, so that a thread of it measures; empty where a child process can load them.
        script_arguments: the arguments that a script finds when a child loads it.
    """

    request: Request
    data_dir: Path
    arguments: Sequence[str] | str
    collector: str = "auto"
    label: str = ""
    launcher: Launcher = field(default_factory=Launcher)
    passes: Sequence[str] = ()
    declared: Sequence[tuple[Workload, WorkloadRef]] = ()
    why_here: str = ""
    script_arguments: Sequence[str] = ("-c",)


@dataclass(frozen=True)
class Planned:
    """An order, the cells to measure, and the collector.

    Attributes:
        name, why: the collector that was chosen, and the reason; the reason is empty where it was printed before.
        further: the passes after the times.
        plan_ns: how long the plan took.
    """

    order: Order
    work: Plan
    name: str
    why: str
    further: tuple[FurtherPass, ...] = ()
    plan_ns: int = 0

    @property
    def headline(self) -> str:
        """The line that names the collector, and the reason for it."""
        skipped = "; variants for a GPU are skipped" if self.name == "host_clock" and self.why != "asked for" else ""
        place = f"; in this process, because {self.order.why_here}" if self.order.why_here else ""
        return f"collector {self.name}: {self.why}{skipped}{place}"


def plan(order: Order) -> Planned:
    """Plan an order and choose its collector. Raises Error: the label cannot be stored, the request cannot be planned,
    or the collector cannot run here."""
    started_ns = time.monotonic_ns()
    check_label(order.label)
    work = make_plan(order.request, loaded=order.declared)
    name, why = choice.choose(order.collector)
    _check_ranks(order.request, work.most_gpus, name)
    if work.most_gpus > 1:
        order.launcher.check(work.most_gpus, name)
    if order.why_here and (problem := threads.why_not()):
        raise CollectorError(problem)
    further = [by(name, work.most_gpus) for option, by in further_passes.BY_OPTION.items() if option in order.passes]
    further_passes.check_kinds(further, work)
    on_host = name == "host_clock"
    work = work.on_host(why) if on_host else work
    if not order.request.seconds and not order.request.max_rounds:
        work = work.spread(*((_PASSES_OF_HOST, SHARE_OF_HOST) if on_host else (_PASSES_OF_DEVICE, SHARE_OF_DEVICE)))
    return Planned(order, work, name, why, tuple(further), time.monotonic_ns() - started_ns)


def _check_ranks(request: Request, ranks: int, collector: str) -> None:
    """Raise PlanError where GPUs are to share a case that the host measures, or processes one that GPUs measure."""
    on_gpus = collector != "host_clock"
    if ranks > 1 and on_gpus != request.on_gpus:
        cure = "write --gpus, or add --collector host_clock" if on_gpus else "write --ranks, for processes that share a case"
        where = "measures on GPUs" if on_gpus else "uses no GPU"
        raise PlanError(f"{request.ranks_option} {ranks}: the collector {collector} {where}; {cure}")


def record(planned: Planned, stop: Stop, show: Show, say: Say, machine: recorder.MachineFacts | None = None) -> str:
    """Verify and measure what is planned, and write the run. Returns the run's id.

    Args:
        stop: receives signals. An interrupted run holds what was measured until then.
        machine: the device and its ceilings as an earlier recording found them; None to measure the ceilings.

    Raises:
        CollectorError, ReportError: a tool failed.
        StoreError: the data folder cannot be written.
    """
    order = planned.order
    for line in salvage(order.data_dir):
        say(line)
    if above := os.environ.get(PRINTED):  # of the recording that has started this one under a tool
        with Path(above).open("ab") as file, printing_to(file):
            return _record(planned, stop, show, say, machine)
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        printed = Path(folder, OUTPUT)
        try:
            with printed.open("ab") as file, printing_to(file):
                run_id = _record(planned, stop, show, say, machine)
        except Exception:
            for line in printed.read_text(errors="replace").splitlines()[-_LAST_LINES:]:
                say(line)
            raise
        if printed.stat().st_size:
            kept = order.data_dir / run_id / OUTPUT
            shutil.copyfile(printed, kept)
            with kept.open("rb") as lines:
                say(f"variants and libraries printed {sum(1 for _ in lines)} lines: {kept}")
    return run_id


def _record(planned: Planned, stop: Stop, show: Show, say: Say, machine: recorder.MachineFacts | None) -> str:
    order = planned.order

    def times(folder: Path) -> str:
        return _pass(planned, folder, stop, show, say, machine)

    if not planned.further:
        return times(order.data_dir)

    def further(of: FurtherPass, run: store.Run, folder: Path) -> str:
        if of.collector in choice.CHECKS:
            return further_passes.check(_checks_of(of.collector)(planned.work, run, stop), run, folder, say)
        return _pass(_further(planned, of, run, say), folder, stop, show, say, machine)

    passes = {each: partial(further, each) for each in planned.further}
    return further_passes.record(order.data_dir, order.label, times, passes, stop)


def _checks_of(name: str) -> type[Checks]:
    """The pass that looks for faults."""
    if name == choice.SANITIZER:
        return sanitizer.Pass
    from warpladder.collectors.inside import stress

    return stress.Pass


def _further(planned: Planned, of: FurtherPass, run: store.Run, say: Say) -> Planned:
    """A further pass, given the run of the times."""
    file = run.path.with_name("cells.json")
    if chosen := further_passes.cells_of(of, run):
        cells, about = chosen
        write_cells(file, cells)
        say(about)
    request = further_passes.request_of(of, planned.order.request, file)
    why = f"a further pass that {of.what}, whose times do not count"
    return Planned(replace(planned.order, request=request), make_plan(request), of.collector, why)


def _pass(planned: Planned, folder: Path, stop: Stop, show: Show, say: Say, machine: recorder.MachineFacts | None) -> str:
    """Record with one collector into a folder. Returns the run's id."""
    order = planned.order
    headline = planned.headline if planned.why else machine.source if machine else ""
    if planned.name in UNDER_TOOL:
        if headline:
            say(headline)
        inside, under = UNDER_TOOL[planned.name]
        kernel_cache.share_with_libraries()
        # A compiler that runs under a tool takes longer, and Nsight Compute makes some of them crash.
        with collector_of(inside).compile_ahead(planned.work, lambda *report: None, lambda: None) as compilers:
            compilers.wait_for()
        return under(order.request, folder, order.label, order.arguments, stop, inside=inside)[0]
    collector = collector_of(planned.name)
    with (
        _starter(planned) as start,
        show(headline) as progress,
        held(planned.work.workloads) if order.why_here else nullcontext(),
    ):
        recording = recorder.Recorder(planned.work, collector, progress, order.launcher.start, start, machine, planned.plan_ns)
        return recording.record(folder, order.label, order.arguments, stop)[0]


def _starter(planned: Planned) -> AbstractContextManager[recorder.StartChild]:
    """The starter of the child that measures: a thread of this process, a process, or the fork of one that has imported everything."""
    order = planned.order
    if order.why_here:
        return nullcontext(partial(threads.start, collector_of(planned.name)))
    if planned.name in FORKED:
        return Forks(planned.name, list(dict.fromkeys(job.workload for job in planned.work.jobs)), order.script_arguments)
    return nullcontext(partial(ChildProcess, planned.name, argv=order.script_arguments))
