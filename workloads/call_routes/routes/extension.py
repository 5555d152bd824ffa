"""Folders and tools for extension modules that a route builds: nvcc, the user's cache, the architecture of the GPU."""

import ctypes
import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from warpladder.workloads.api import NotInstalled

#: Variable of the environment that names the user's cache of the project.
CACHE_VARIABLE: Final = "WARPLADDER_CACHE_DIR"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


def nvcc() -> str:
    """The path of nvcc: on PATH, in CUDA_HOME, or in the usual folder.

    Raises:
        NotInstalled: there is none.
    """
    folders = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    found = [shutil.which("nvcc"), *(shutil.which("nvcc", path=str(Path(folder, "bin"))) for folder in folders if folder)]
    for path in found:
        if path:
            return path
    raise NotInstalled("needs nvcc, which is neither on PATH nor in CUDA_HOME nor in /usr/local/cuda; install the CUDA toolkit")


def folder_for(*texts: str) -> Path:
    """A folder of the user's cache for what is built from these texts; made if it is not there."""
    named = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME")
    cache = Path(named) if named else (Path(home) if home else Path.home() / ".cache") / "warpladder"
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    folder = cache.expanduser().absolute() / "extensions" / digest
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compute_capability() -> tuple[int, int]:
    """Major and minor compute capability of the first GPU that the driver shows.

    Raises:
        NotInstalled: there is no driver, or no GPU.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NotInstalled(f"needs an NVIDIA driver ({error})") from error
    device, value, found = ctypes.c_int(), ctypes.c_int(), list[int]()
    if status := driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        raise NotInstalled(f"needs a GPU: the driver gives status {status}")
    for attribute in (_MAJOR, _MINOR):
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        found.append(value.value)
    return found[0], found[1]
