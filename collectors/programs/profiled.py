"""Runs the programs once more under `nsys`, and hands its trace to the run.

All executions are of one session of the profiler: `warpladder.collectors.programs.traced` runs the programs in turn, with an NVTX
range around each. Clocks are not compared: the executions are found in the trace by these ranges.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.children import POLL_S, Guarded
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.nsight_systems.entry import NSYS, profile_command
from warpladder.collectors.nsight_systems.parse import device_facts
from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.programs.executions import ProgramsTrace, phase_samples
from warpladder.collectors.programs.runner import Launch
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.tables import write_tables
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.store import RunWriter, conform

NAME: Final = "nsight_systems"
_TRACED: Final = "warpladder.collectors.programs.traced"
#: A program may take this many times as long under the profiler.
_SLOWER: Final = 3

_FROM_THE_TRACE: Final = (
    "the trace and the phases (phase:compute, phase:h2d and phase:d2h, the times in which kernels or copies ran) are of further "
    "executions under nsys, {} of each program; operation is of executions without it"
)


class NoTrace(Exception):
    """The programs could not be profiled. The message is the reason."""


class Execution(NamedTuple):
    """A run of a program under the profiler: its cell, its round and how it is started."""

    cell: Cell
    round: int
    launch: Launch


class Trace(NamedTuple):
    """The files that the profiler left.

    Attributes:
        report: the report.
        programs: its trace, with ranges around the executions.
        cells: cell and round of each execution.
        failed: cells that failed under the profiler, with the reason.
    """

    report: Report
    programs: ProgramsTrace
    cells: Sequence[tuple[Cell, int]]
    failed: Sequence[tuple[Cell, str]]


class NsightSystems:
    """Runs the programs once more under Nsight Systems, and records what they do on the GPU."""

    @contextmanager
    def profile(self, executions: Sequence[Execution], folder: Path, stop: Stop) -> Iterator[Trace]:
        """Run the programs, and give their trace, which can be read within the block. Raises NoTrace and Stopped."""
        plan, ends, report = (folder / name for name in ("executions.json", "ends.jsonl", "programs.nsys-rep"))
        plan.write_text(
            json.dumps([{**asdict(each.launch), "timeout_s": _SLOWER * each.launch.timeout_s} for each in executions])
        )
        code = f"import sys; sys.path[:] = {sys.path!r}; from {_TRACED} import main; main({str(plan)!r}, {str(ends)!r})"
        printed = _run([*profile_command(report, capture_range=False), sys.executable, "-c", code], stop)
        if not report.exists():
            raise NoTrace(f"the run has no trace: nsys wrote no report ({printed or 'it said nothing'})")
        problems = [json.loads(line) for line in ends.read_text().splitlines()] if ends.exists() else []
        failed = [(execution.cell, problem) for execution, problem in zip(executions, problems, strict=False) if problem]
        cells = [(execution.cell, execution.round) for execution in executions]
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(open_report(report))
                programs = ProgramsTrace(NsightTrace(opened), cells)
            except ReportError as error:
                raise NoTrace(f"the run has no trace: {error}") from error
            yield Trace(opened, programs, cells, tuple(dict.fromkeys(failed)))

    def facts(self, trace: Trace) -> dict[str, Any]:
        """Columns of table `run` about the profiler and the GPU."""
        devices = trace.programs.devices()
        facts = device_facts(trace.report, devices) if devices else {}
        return {**facts, "collector": NAME, "collector_version": NSYS.version}

    def add_trace(
        self, writer: RunWriter, captured: Sequence[Trace], samples: pa.Table
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """Write the trace. Returns the samples, including those of the trace, and rows of `diagnostics`."""
        (trace,) = captured
        notes = Notes()
        try:
            write_tables(trace.programs, writer, None, "", notes)
            phases = phase_samples(trace.programs)
        except ReportError as error:
            writer.start_again()
            return samples, [diagnostic_row("warning", Source.TRACING, f"the run has no trace: {error}")]
        rounds = 1 + max(number for _, number in trace.cells)
        notes.add("info", Source.TRACING, _FROM_THE_TRACE.format(rounds))
        # About no cell, since the wall-clock times are not in doubt.
        failed = [
            diagnostic_row("warning", Source.TRACING, f"{cell.variant} failed under nsys, which does not count: {why}")
            for cell, why in trace.failed
        ]
        return pa.concat_tables([samples, conform("samples", phases)]), [*notes.finish(), *failed]


def _run(command: Sequence[str], stop: Stop) -> str:
    """Run a command until it ends. Returns the last line of what it printed. Raises NoTrace and Stopped."""
    try:
        with Guarded(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as tool:
            while True:
                stop.check()
                with suppress(subprocess.TimeoutExpired):
                    lines = tool.process.communicate(timeout=POLL_S)[0].split("\n")
                    break
    except OSError as error:
        raise NoTrace(f"the run has no trace: {command[0]} cannot be started ({error.strerror})") from error
    return next((line.strip()[-300:] for line in reversed(lines) if line.strip()), "")
