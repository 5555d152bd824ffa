"""The program `ncu`, and the entry of the collector `nsight_compute`."""

from typing import Final

from warpladder.collectors.core.entry import Entry, Package, late
from warpladder.collectors.core.environment import Tool

NCU: Final = Tool(
    "ncu",
    "Nsight Compute",
    ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu"),
    "developer.nvidia.com/nsight-compute",
)
ENTRY: Final = Entry(
    "nsight_compute",
    (NCU, Package("ncu-report", "ncu_report", "ncu", "reads reports of Nsight Compute")),
    inside="single_launch",
    record=late("warpladder.collectors.nsight_compute.record:record"),
)
