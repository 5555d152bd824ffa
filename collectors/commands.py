"""Runs the command `record`, after `warpladder.collectors.cli` has parsed its options."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import click

from warpladder import IMPORT_ROOT
from warpladder.collectors import choice
from warpladder.collectors.core import plan, record, runs
from warpladder.collectors.core.salvage import salvage
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.tools import CollectorError
from warpladder.collectors.core.verdicts import Cell
from warpladder.collectors.nsight_compute import record as nsight_compute_record
from warpladder.collectors.nsight_systems import record as nsight_systems_record
from warpladder.collectors.progress import BarProgress
from warpladder.collectors.ranks import launchers
from warpladder.collectors.ranks.programs import TOGETHER
from warpladder.collectors.screen import print_id, say
from warpladder.collectors.trace.report import ReportError
from warpladder.collectors.wiring import collector_of
from warpladder.data import store

#: Collectors that are tools: the recording runs as a child of the tool.
UNDER_TOOL: Final = {
    "nsight_systems": partial(nsight_systems_record.record, inside="cuda_events"),
    "nsight_compute": partial(nsight_compute_record.record, inside=choice.SINGLE_LAUNCH),
}


def record_run(
    request: plan.Request, collector: str, launcher: launchers.Launcher, data_dir: Path, label: str, form: str, summary: bool
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

    Raises:
        PlanError, WorkloadError: the request cannot be planned.
        LabelError: the label cannot be stored.
        CollectorError, ReportError: the collector cannot run here, or its tool failed.
        StoreError: the data folder cannot be written.
    """
    runs.check_label(label)
    work = plan.make_plan(request)
    name, why = choice.choose(collector, TOGETHER if work.most_gpus > 1 else choice.TIMING)
    launcher.check(work, name)
    work = work.on_host() if name == "host_clock" else work
    salvage(data_dir)
    with Stop() as stop:
        try:
            run_id, _ = _record(name, why, request, work, data_dir, label, launcher, stop)
        except (CollectorError, ReportError) as error:
            if stop.number:
                say(str(error))
                raise click.exceptions.Exit(stop.exit_code) from error
            if collector != "auto":
                raise
            why = f"{name} was tried first: {error}"
            run_id, _ = _record("cuda_events", why, request, work, data_dir, label, launcher, stop)
        if summary:
            for line in summary_of(data_dir / run_id):
                say(line)
            _answer(data_dir / run_id, form)
        if form == "table":
            print_id(run_id)
    if stop.number:
        raise click.exceptions.Exit(stop.exit_code)


def _record(
    name: str,
    why: str,
    request: plan.Request,
    work: plan.Plan,
    data_dir: Path,
    label: str,
    launcher: launchers.Launcher,
    stop: Stop,
) -> tuple[str, int]:
    """Record with one collector. Returns the run's id and the number of the signal that interrupted it, or 0."""
    headline = f"collector {name}: {why}"
    if name in UNDER_TOOL:
        say(headline)
        return UNDER_TOOL[name](request, data_dir, label, sys.argv[1:], stop)
    with BarProgress(headline) as progress:
        return record.Recorder(work, collector_of(name), progress, launcher.start).record(data_dir, label, sys.argv[1:], stop)


def _answer(path: Path, form: str) -> None:
    """Print which variants win. The dashboard compares them in a process of its own, because `collectors` may not import it."""
    command = [sys.executable, "-m", "warpladder.dashboard.answer", str(path.resolve()), form]
    done = subprocess.run(command, cwd=IMPORT_ROOT, capture_output=True, text=True, check=False)
    with suppress(OSError):
        print(done.stdout, end="", flush=True)
    if done.returncode:
        say(f"{path.name}: the answer could not be made ({done.stderr.strip().splitlines()[-1:] or 'nothing was said'})")


def summary_of(path: Path) -> Iterator[str]:
    """The verdicts and diagnostics of a run, line by line."""
    run = store.open_run(path)
    results, diagnostics = run.table("results"), run.table("diagnostics")
    counts = ", ".join(f"{count} {status}" for status, count in results["status"].value_counts().items())
    skipped = results.loc[results["status"] == "skipped", "detail"].value_counts()
    reasons = [f"{count}: {reason}" for reason, count in skipped.head(3).items()]
    more = f"; {len(skipped) - 3} more reasons on Runs & checks" if len(skipped) > 3 else ""
    why = f" ({'; '.join(reasons)}{more})" if reasons else ""
    yield f"{counts}{why}"
    for row in results.query("status not in ('ok', 'skipped')").to_dict("records"):
        yield f"{Cell.of(row)}: {row['status']}: {row['detail']}"
    for row in diagnostics.query("severity != 'info' or source == 'not_reached'").to_dict("records"):
        about = [row[name] for name in ("workload", "variant", "case") if isinstance(row[name], str)]
        yield f"{row['severity']}: {'/'.join(about)} {row['source']}: {row['text']}"
