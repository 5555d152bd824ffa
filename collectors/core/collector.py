"""A collector as the core sees it: what it measures with, handed down from where collectors are known by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.captures import AddCaptured, Capture
from warpladder.collectors.core.plan import Plan

#: Facts of the GPU, as columns of `run`, and the ceilings of GPU and processor, as rows of `ceilings`.
Description = tuple[dict[str, Any], list[dict[str, Any]]]
#: Told how many jobs are done, and of how many.
Told = Callable[[int, int], object]


@dataclass(frozen=True)
class Collector:
    """What a recording and its child processes need of a collector.

    Attributes:
        name: as runs hold it.
        make_benches: gives the bench of each kind of variant that it runs, GPU kinds first.
        describe: in the child, what the device is and can do.
        start_capture: in the child, before anything of CUDA or NVTX is loaded there.
        compile_ahead: in the recorder, compiles what a plan needs; what the last argument raises ends it.
        averages: in the recorder, bytes of the averages among GPUs that ranks time for a plan, by number of ranks.
        add_captured: in the recorder, writes the trace tables of what was captured.
    """

    name: str
    make_benches: Callable[[], Mapping[str, MakeBench]]
    describe: Callable[[], Description]
    start_capture: Callable[[], Capture]
    compile_ahead: Callable[[Plan, Told, Callable[[], object]], None]
    averages: Callable[[Plan], Mapping[int, Sequence[int]]]
    add_captured: AddCaptured
