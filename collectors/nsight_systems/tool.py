"""The program `nsys`."""

from typing import Final

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
