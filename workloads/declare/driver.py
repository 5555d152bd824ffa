"""Whether this machine can have a GPU, found without loading anything of CUDA."""

import shutil
from pathlib import Path


def has_nvidia_driver() -> bool:
    """Whether a driver of NVIDIA is installed."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists()
