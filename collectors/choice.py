"""Which collectors this machine can run, and which of them `auto` takes."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: Best first.
COLLECTORS: Final = ("cuda_events", "host_clock")

#: Python modules that recording on a GPU needs -> the package that brings them.
GPU_MODULES: Final = {"cupy": "cupy-cuda13x", "cuda.bindings": "cuda-bindings", "pynvml": "nvidia-ml-py"}


class CollectorError(Exception):
    """A collector that cannot run here. The message says why, and what to do, in one line."""


def gpu_problem() -> str | None:
    """Why no GPU can be measured here, with the cure; None where one can. Touches no GPU."""
    if shutil.which("nvidia-smi") is None and not Path("/proc/driver/nvidia").exists():
        return "this machine has no NVIDIA driver; on one with a GPU, install NVIDIA's driver"
    if not has_module("pynvml"):
        return "nvidia-ml-py is not installed; pip install -r requirements-gpu.txt"
    import pynvml

    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return f"no NVIDIA driver answers ({error}); install the driver, or record with --collector host_clock"
    if count == 0:
        return "the NVIDIA driver finds no GPU; record with --collector host_clock"
    missing = [package for module, package in GPU_MODULES.items() if not has_module(module)]
    if missing:
        return f"{', '.join(missing)} not installed; pip install -r requirements-gpu.txt"
    return None


def has_module(module: str) -> bool:
    """Whether a module could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def choose(name: str) -> tuple[str, str]:
    """The collector to use.

    Args:
        name: a collector, or `auto` for the best that can run here.

    Returns:
        its name, and why it was taken.

    Raises:
        CollectorError: there is none of that name, or it cannot run here.
    """
    if name not in ("auto", *COLLECTORS):
        raise CollectorError(f"{name}: no such collector; choose auto, {', '.join(COLLECTORS)}")
    if name == "host_clock":
        return name, "asked for"
    problem = gpu_problem()
    if problem is None:
        return "cuda_events", "asked for" if name != "auto" else "a GPU and CuPy are here"
    if name == "auto":
        return "host_clock", problem
    raise CollectorError(f"{name}: needs a GPU: {problem}")
