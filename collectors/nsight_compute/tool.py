"""The program `ncu`."""

from typing import Final

from warpladder.collectors.core.environment import Tool

NCU: Final = Tool(
    "ncu",
    "Nsight Compute",
    ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu"),
    "developer.nvidia.com/nsight-compute",
)
