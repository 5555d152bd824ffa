"""Runs the command `record`, after `warpladder.collectors.cli` has parsed its options."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from warpladder.collectors import answers, choice, trace_pass
from warpladder.collectors.core import plan, record, runs
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.nsight_compute import record as nsight_compute_record
from warpladder.collectors.nsight_systems import record as nsight_systems_record
from warpladder.collectors.progress import BarProgress
from warpladder.collectors.ranks import launchers
from warpladder.collectors.screen import print_id, say
from warpladder.collectors.trace.report import ReportError
from warpladder.collectors.wiring import collector_of

#: Collectors that are tools: the recording runs as a child of the tool.
UNDER_TOOL: Final = {
    "nsight_systems": partial(nsight_systems_record.record, inside="cuda_events"),
    "nsight_compute": partial(nsight_compute_record.record, inside=choice.SINGLE_LAUNCH),
}


def record_run(
    request: plan.Request,
    collector: str,
    launcher: launchers.Launcher,
    data_dir: Path,
    label: str,
    form: str,
    *,
    summary: bool = True,
    verbose: bool = False,
    trace: bool = False,
) -> None:
    """Verify and measure the request, write the run, and print the answer.

    Args:
        request: workloads, cases and variants to record.
        collector: name of a collector, or `auto`.
        launcher: starts the ranks that share a case.
        data_dir: folder for the run.
        label: the user's name for the run.
        form: format of the answer: `table`, `markdown`, `csv` or `json`.
        summary: False where another recording started this one and reads only the run's id.
        verbose: whether each finding has a line of its own.
        trace: take a trace too, in a further pass.

    Raises:
        PlanError, WorkloadError: the request cannot be planned.
        Error: the label cannot be stored.
        CollectorError, ReportError: the collector cannot run here, or its tool failed.
        StoreError: the data folder cannot be written.
        click.exceptions.Exit: the recording was interrupted, or a cell is not right; see `answers.exit_if_wrong`.
    """
    runs.check_label(label)
    planned = choose(request, collector, launcher)
    if trace:
        planned = replace(planned, tracer=trace_pass.tracer_for(planned.name, planned.work.most_gpus))
    with Stop() as stop:
        run_id = measure(planned, launcher, data_dir, label, stop)
        if summary:
            sizes = bool(request.files) or len(planned.work.workloads) == 1
            answers.report(data_dir / run_id, form, typed=sys.argv[1:], sizes=sizes, every=verbose)
        if form == "table":
            print_id(run_id)
    if stop.number:
        raise click.exceptions.Exit(stop.exit_code)
    if summary:
        answers.exit_if_wrong(data_dir / run_id, request.variants)


@dataclass(frozen=True)
class Planned:
    """What to record, and by which collector.

    Attributes:
        name, why: the collector that was chosen, and the reason.
        tracer: the collector that takes a trace in a further pass; empty for none.
    """

    request: plan.Request
    work: plan.Plan
    name: str
    why: str
    tracer: str = ""


def choose(request: plan.Request, collector: str, launcher: launchers.Launcher) -> Planned:
    """Plan a request and choose its collector. `record_run` has the arguments and the errors."""
    work = plan.make_plan(request)
    name, why = choice.choose(collector)
    launcher.check(work, name)
    return Planned(request, work.on_host(why) if name == "host_clock" else work, name, why)


def measure(
    planned: Planned,
    launcher: launchers.Launcher,
    data_dir: Path,
    label: str,
    stop: Stop,
    known: record.Known | None = None,
) -> str:
    """Verify and measure what is planned, and write the run. Returns its id. `record_run` has the other arguments and the errors.

    Args:
        known: see `Recorder`.
    """
    salvage(data_dir)

    def into(of: Planned) -> trace_pass.RecordInto:
        return lambda folder: _record(of, folder, label, launcher, stop, known)

    try:
        if not planned.tracer:
            return into(planned)(data_dir)
        return trace_pass.record(data_dir, label, into(planned), into(_further(planned)), stop)
    except (CollectorError, ReportError) as error:
        if not stop.number:
            raise
        say(str(error))
        raise click.exceptions.Exit(stop.exit_code) from error


def _further(planned: Planned) -> Planned:
    """The further pass, which traces."""
    request = trace_pass.request_of(planned.request)
    why = "a further pass for the trace, whose times do not count"
    return Planned(request, plan.make_plan(request), planned.tracer, why)


def headline_of(name: str, why: str) -> str:
    """The line that tells which collector measures, and why."""
    skipped = "; variants for a GPU are skipped" if name == "host_clock" and why != "asked for" else ""
    return f"collector {name}: {why}{skipped}"


def _record(
    planned: Planned, data_dir: Path, label: str, launcher: launchers.Launcher, stop: Stop, known: record.Known | None
) -> str:
    """Record with one collector. Returns the run's id."""
    headline = headline_of(planned.name, planned.why) if planned.why else known.told if known else ""
    if planned.name in UNDER_TOOL:
        if headline:
            say(headline)
        return UNDER_TOOL[planned.name](planned.request, data_dir, label, sys.argv[1:], stop)[0]
    with BarProgress(headline) as progress:
        recorder = record.Recorder(planned.work, collector_of(planned.name), progress, launcher.start, known=known)
        return recorder.record(data_dir, label, sys.argv[1:], stop)[0]
