"""The program `compute-sanitizer`."""

from typing import Final

from warpladder.collectors.core.environment import Tool

SANITIZER: Final = Tool("compute-sanitizer", "the CUDA toolkit", ("/usr/local/cuda*/bin/compute-sanitizer",))
