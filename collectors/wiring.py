"""Builds each collector by name, from the parts in `host`, `cuda`, `cupti` and `trace`.

Parts are imported when they are called, because most of them load the GPU packages.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import pyarrow as pa

from warpladder.collectors.choice import ENERGY, ENTRIES, SINGLE_LAUNCH
from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.collector import Collector, Compiling, Description, JobProgress, NoCapture
from warpladder.collectors.core.entry import late
from warpladder.collectors.core.plan import Plan
from warpladder.data.names import Source, found_by_size
from warpladder.data.store import RunWriter, conform

#: By the name of a collector, the bench of kernels and libraries; that of CUDA events for the others.
_ON_GPU: Final = {
    SINGLE_LAUNCH: late("warpladder.collectors.cuda.events:SingleLaunchBench"),
    ENERGY: late("warpladder.collectors.cuda.energy_bench:EnergyBench"),
}
_BY_EVENTS: Final = late("warpladder.collectors.cuda.events:CudaBench")


def collector_of(name: str) -> Collector:
    """Return the collector of this name."""
    if name == "host_clock":
        return Collector(
            name,
            host_benches,
            _describe_host,
            NoCapture,
            partial(_compile_ahead, on_gpu=False),
            lambda plan: {},
            _add_captured,
            lambda plan, cells: {},
        )
    single, energy = name == SINGLE_LAUNCH, name == ENERGY
    capture = ENTRIES[name].capture if name in ENTRIES else None
    return Collector(
        name,
        (lambda: dict.fromkeys(("cuda", "library"), _ON_GPU[name])) if name in _ON_GPU else benches,
        # Under a tool every launch is slow, so that ceilings would be wrong. A further pass keeps none.
        partial(_describe, ceilings=not single and not energy),
        capture or NoCapture,
        partial(_compile_ahead, on_gpu=True, libraries=not single),
        late("warpladder.collectors.cuda.steps:sizes_of"),
        _add_captured,
        (lambda plan, cells: {}) if energy else _machine_code,
    )


def benches() -> Mapping[str, MakeBench]:
    """Return the bench for each kind of variant, GPU kinds first."""
    return {"cuda": _BY_EVENTS, "library": _BY_EVENTS, **host_benches()}


def host_benches() -> Mapping[str, MakeBench]:
    """Return the bench of host variants."""
    from warpladder.collectors.host.host_clock import HostBench

    return {"host": HostBench}


def _describe_host(by_size: bool) -> Description:
    from warpladder.collectors.core.environment import NO_GPU
    from warpladder.collectors.host.ceilings import host_ceilings

    return NO_GPU, host_ceilings()


def _describe(by_size: bool, ceilings: bool) -> Description:
    from warpladder.collectors.cuda.bandwidths import DeviceMemory
    from warpladder.collectors.cuda.ceilings import cuda_ceilings
    from warpladder.collectors.cuda.device import current_device
    from warpladder.collectors.host.ceilings import host_ceilings

    device = current_device()
    if not ceilings:
        return device.facts(), []
    rows = [*DeviceMemory(device, by_size).rows(), *cuda_ceilings(device), *host_ceilings()]
    return device.facts(), sorted(rows, key=lambda row: found_by_size(row["name"]) is not None)  # the many rows come last


def _compile_ahead(
    plan: Plan, report: JobProgress, check: Callable[[], object], *, on_gpu: bool, libraries: bool = True
) -> AbstractContextManager[Compiling]:
    from warpladder.collectors.cuda import compile_ahead

    if not on_gpu:
        return compile_ahead.Compilers(compile_ahead.jobs_of(plan, (), libraries), report, check)
    from warpladder.collectors.cuda import gpu_state

    jobs = compile_ahead.jobs_of(plan, gpu_state.architectures(), libraries)
    return compile_ahead.Compilers(jobs, report, check, gpu_state.least_memory())


def _machine_code(plan: Plan, cells: Sequence[Cell]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    from warpladder.collectors.cuda import machine_code
    from warpladder.collectors.cuda.gpu_state import architectures

    return machine_code.rows_of(plan, cells, architectures()[0])


def _add_captured(writer: RunWriter, captured: Sequence[Any], samples: pa.Table) -> tuple[pa.Table, list[dict[str, Any]]]:
    from warpladder.collectors.cupti.trace import CapturedTrace
    from warpladder.collectors.trace.notes import Notes
    from warpladder.collectors.trace.samples import add_trace

    trace, notes = CapturedTrace(captured), Notes()
    retimed, trace_diagnostics = add_trace(writer, trace, samples.to_pandas(), notes)
    notes.count(
        "error", Source.DROPPED, "CUPTI dropped {} records because its buffers were full; their times are lost", trace.dropped
    )
    return conform("samples", retimed), [*notes.finish(), *trace_diagnostics]
