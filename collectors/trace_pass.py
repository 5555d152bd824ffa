"""A trace of the cells of a recording, taken in a further pass, whose times do not count: a tracer lengthens some kernels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from warpladder.collectors import choice
from warpladder.collectors.core import inside
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.plan import PlanError, Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.under_tool import begin, finish
from warpladder.collectors.trace.report import ReportError
from warpladder.data import schema, store
from warpladder.data.names import Source, diagnostic_row

#: Collectors that trace, the first one that can run here is taken: `nsys` sees every library of the process.
TRACERS: Final = ("nsight_systems", "cupti")
#: The collector whose times a trace can stand beside.
TIMED_BY: Final = "cuda_events"
_ROUNDS: Final = 3
_TABLES: Final = ("ranges", "kernels", "memory_ops", "api_calls")
#: Sources of a tracer's findings about its own trace. Findings about cells and samples come from the pass whose times count.
_OF_TRACE: Final = frozenset(
    {
        *(Source.AGREEMENT, Source.ATTRIBUTION, Source.DROPPED, Source.GRAPHS, Source.LAUNCHES, Source.NSYS, Source.NVTX),
        *(Source.REPORT, Source.TABLES, Source.TIMES, Source.TRACING),
    }
)

#: Records into a data folder. Returns the run's id.
RecordInto = Callable[[Path], str]


def tracer_for(collector: str, gpus: int) -> str:
    """The collector that traces beside the one that takes the times.

    Args:
        collector: the one that takes the times.
        gpus: the most GPUs that share a case.

    Raises:
        PlanError: there is nothing that a further pass could trace.
        CollectorError: no tracer can run here.
    """
    if collector in TRACERS:
        raise PlanError(f"--trace: {collector} traces already; leave out --trace, or --collector, so that CUDA events time")
    if collector != TIMED_BY:
        raise PlanError(f"--trace: {collector} times no work of a GPU that could be traced; leave out --trace")
    if gpus > 1:
        raise PlanError(f"--trace: a tracer sees one process; with --gpus {gpus} record without it")
    problems = []
    for name in TRACERS:
        problem = choice.problem_of(name)
        if problem is None:
            return name
        problems.append(f"{name}: {problem}")
    raise CollectorError(f"--trace: {'; '.join(problems)}")


def request_of(request: Request) -> Request:
    """The request of the further pass: a few rounds in one process."""
    return replace(request, processes=1, max_rounds=min(request.max_rounds or _ROUNDS, _ROUNDS))


def record(data_dir: Path, label: str, times: RecordInto, trace: RecordInto, stop: Stop) -> str:
    """Record the times, then the trace, and write both as one run.

    Args:
        data_dir: folder that the run's folder is written to.
        label: the user's name for the run.
        times, trace: record the two passes.
        stop: receives signals. A signal during the first pass leaves the second one out.

    Returns:
        The run's id.

    Raises:
        CollectorError: the trace failed. The times are kept as a run, which the message names.
        StoreError: the data folder cannot be written.
    """
    with begin(data_dir, label) as writer:
        folder, runs = inside.make_folder(writer.staging)
        run = store.open_run(runs / times(runs))
        why = "the recording was interrupted before the pass that traces" if stop.number else ""
        traced = None
        if not why:
            try:
                traced = store.open_run(folder / "trace" / trace(folder / "trace"))
            except (CollectorError, ReportError) as error:
                why = f"the pass that traces failed: {error}"
        fill = partial(_both, run, traced) if traced else partial(inside.without_trace, run, why=why)
        run_id = finish(writer, data_dir, label, run, fill, stop.number)
    if why and not stop.number:
        raise CollectorError(f"--trace: {why}; the times are kept as run {run_id}")
    return run_id


def _both(run: store.Run, traced: store.Run, into: store.RunWriter) -> None:
    by = f"{traced.info['collector']} {traced.info['collector_version']}"
    text = f"the trace is of a further pass by {by}; the times are those of {run.info['collector']}, which no tracer disturbed"
    trace_diagnostics = [row for row in inside.diagnostics(traced) if row["source"] in _OF_TRACE]
    inside.copy(run, into, [*trace_diagnostics, diagnostic_row("info", Source.TRACING, text)])
    for table in _TABLES:
        for rows in _rows(traced, table):
            into.append(table, rows)


def _rows(run: store.Run, table: str) -> Sequence[Any]:
    columns = [column.name for column in schema.TABLES[table].columns]
    return [pa.Table.from_batches([batch]) for batch in run.scan(table, columns)]
