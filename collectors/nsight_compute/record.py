"""Collector `nsight_compute`: runs each cell once under `ncu`, which reads its hardware counters."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.journal import make_folder
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.core.under_tool import begin, finish, record_inside, take_over
from warpladder.collectors.nsight_compute.entry import NCU
from warpladder.collectors.nsight_compute.metrics import METRICS
from warpladder.collectors.nsight_compute.parse import tables_of
from warpladder.collectors.nsight_compute.tables import at_own_places, with_own_code
from warpladder.data.store import RunWriter

NAME: Final = "nsight_compute"
#: Sections of a report with rules whose findings are kept. Each costs passes over the kernel.
SECTIONS: Final = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "SchedulerStats",
    "WarpStateStats",
    "LaunchStats",
    "Occupancy",
    "WorkloadDistribution",
    "SourceCounters",
)
_DENIED: Final = "ERR_NVGPUCTRPERM"


def record(
    request: Request, data_dir: Path, label: str, arguments: Sequence[str], stop: Stop | None = None, *, inside: str
) -> tuple[str, int]:
    """Record under `ncu` and write the run. It has counters and no samples, because times of replayed launches are meaningless.

    The arguments and the result are those of `nsight_systems.record.record`.

    Raises:
        CollectorError: the driver denies counters, the recording under `ncu` wrote no run, or `ncu` no report that can be read.
        StoreError: the data folder cannot be written.
    """
    with begin(data_dir, label) as writer:
        folder, runs = make_folder(writer.staging)
        report = folder / "report.ncu-rep"
        once = replace(request, max_rounds=1, processes=1, no_limit=True)
        run, interrupted, printed = record_inside(_command(report), once, inside, runs, stop)
        if _DENIED in printed:
            raise CollectorError(
                f"ncu: the driver lets only administrators read hardware counters ({_DENIED}); run as root, or set "
                "NVreg_RestrictProfilingToAdminUsers=0 for the kernel module nvidia and restart the machine"
            )

        def fill(into: RunWriter) -> None:
            if not report.exists():
                last_words = " ".join(printed.split())[-300:]
                raise CollectorError(f"ncu wrote no report: {last_words}; record with --collector cuda_events")
            tables = tables_of(report, run.records("variants"))
            code = {name: run.records(name) for name in ("cell_launches", "machine_code")}
            take_over(run, into, label, NAME, NCU.version, arguments, without=tuple(code))
            findings = [*run.records("diagnostics"), *tables.pop("diagnostics")]
            for name, rows in {**at_own_places(tables, code), **with_own_code(tables, code), "diagnostics": findings}.items():
                into.append(name, rows)

        return finish(writer, data_dir, label, run, fill, interrupted), interrupted


def _command(report: Path) -> list[str]:
    """Return the command of `ncu`. It does not lock the clocks, and flushes the caches before each replay."""
    assert NCU.path
    sections = [f"--section={name}" for name in SECTIONS]
    what = ("--profile-from-start=off", "--target-processes=all", "--nvtx", *sections, f"--metrics={','.join(METRICS)}")
    how = ("--clock-control=none", "--cache-control=all", "--force-overwrite", f"--export={report}")
    return [NCU.path, *what, *how]
