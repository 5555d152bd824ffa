"""The program `nsys`, its command that profiles, and the entry of the collector `nsight_systems`."""

from pathlib import Path
from typing import Final

from warpladder.collectors.core.entry import Entry, late
from warpladder.collectors.core.environment import Tool

NSYS: Final = Tool(
    "nsys",
    "Nsight Systems",
    (
        "/opt/nvidia/nsight-systems/*/bin/nsys",
        "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
        "/usr/local/cuda*/bin/nsys",
        "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
    ),
    "developer.nvidia.com/nsight-systems",
)
ENTRY: Final = Entry(
    "nsight_systems",
    (NSYS,),
    traces=True,
    inside="cuda_events",
    record=late("warpladder.collectors.nsight_systems.record:record"),
)
_TRACE: Final = ("--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node", "--force-overwrite=true")
#: Captures from the first cudaProfilerStart to the end of the program. With `stop` instead of `none`, the end of the first
#: measuring process ends the capture of those that follow.
_CAPTURE_RANGE: Final = ("--capture-range=cudaProfilerApi", "--capture-range-end=none")


def profile_command(report: Path, *, capture_range: bool) -> list[str]:
    """Return the prefix for a command that `nsys` profiles: traces CUDA and NVTX, and does not sample the processor.

    Args:
        report: file that `nsys` writes, with suffix `.nsys-rep`.
        capture_range: capture from cudaProfilerStart on, instead of from the program's start.
    """
    assert NSYS.path
    return [NSYS.path, "profile", *_TRACE, *(_CAPTURE_RANGE if capture_range else ()), f"--output={report}"]
