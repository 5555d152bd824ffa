"""Facts about this machine and this checkout, as columns of table `run`, and the programs and packages that collectors need.

The facts name no person, host or path."""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from warpladder.errors import Error
from warpladder.installation import IS_CHECKOUT, ROOT

#: Packages whose version can change a measurement.
_PACKAGES: Final = (
    "numpy numba pyarrow nvtx cupti-python cupy-cuda13x cupy-cuda12x cuda-bindings nvidia-cuda-nvrtc torch nvmath-python "
    "cutensor-cu13 cutensor-cu12 nvidia-cudnn-cu13 nvidia-cudnn-cu12 nvidia-cublas nvidia-cublas-cu12"
)

#: The option whose value is a git revision or a path.
_AGAINST: Final = "--against"
#: Columns about the GPU on a machine without one.
NO_GPU: Final[dict[str, Any]] = {
    **dict.fromkeys(("device_name", "compute_capability", "driver_version", "cuda_version"), ""),
    **dict.fromkeys(("sm_count", "l2_bytes", "memory_bytes")),
    "device_count": 0,
}


def host_facts(arguments: Sequence[str] | str) -> dict[str, Any]:
    """Return the columns about processor, software and checkout. `arguments`: the command line without the program's
    name; or a call in Python as one text."""
    return {
        "cpu_name": cpu_name(),
        "cpu_threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "os": f"{platform.system()} {platform.release()}",
        "packages": json.dumps({name: version for name in _PACKAGES.split() if (version := _version_of(name))}, sort_keys=True),
        **_process_facts(arguments),
    }


def _process_facts(arguments: Sequence[str] | str) -> dict[str, Any]:
    """Return the columns about this process: its Python, the checkout and the command."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain")
    return {
        "python_version": platform.python_version(),
        "git_commit": commit or "",
        "git_dirty": None if commit is None else bool(changes),
        "command": arguments if isinstance(arguments, str) else command_line(arguments),
    }


def import_facts(arguments: Sequence[str]) -> dict[str, Any]:
    """The same of an import: of this process what is known, and of the machine of the capture nothing."""
    of_machine = dict.fromkeys(("cpu_name", "os", "collector_version"), "")
    return {**_process_facts(arguments), **NO_GPU, **of_machine, "cpu_threads": None, "packages": "{}", "kind": "import"}


def command_line(arguments: Sequence[str]) -> str:
    """Return the command line, with each path cut to its last part, and a git revision such as `origin/main` whole."""
    words = ["warpladder", *arguments]
    cut = (each if _is_revision(before, each) else without_folders(each) for before, each in pairwise(words))
    return shlex.join(["warpladder", *cut])


def _is_revision(before: str, argument: str) -> bool:
    """Whether an argument names a revision for `--against`, given the argument before it."""
    option, _, value = argument.partition("=")
    reference = argument if before == _AGAINST else value if option == _AGAINST else ""
    return bool(reference) and not Path(reference).exists()


def measure_all(arguments: Sequence[str] | str, *, folders: bool = False) -> str:
    """Return the command line or the call that measures every case of a recording, however long it takes.

    Args:
        arguments: the arguments of the recording, as in `host_facts`.
        folders: whether paths are whole.
    """
    if isinstance(arguments, str):
        return f"{arguments.removesuffix(')')}, no_limit=True)"
    words = [*(each for each in arguments if each not in ("--if-none", "--watch")), "--no-limit"]
    return shlex.join(["warpladder", *words]) if folders else command_line(words)


def cpu_name() -> str:
    """Return the processor's name, as the system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def without_folders(argument: str) -> str:
    """Return an argument whose path is cut to its last part: `--in=/data/x.csv` becomes `--in=x.csv`."""
    option, equals, value = argument.partition("=")
    text = value if equals else option
    name = Path(text).name if "/" in text else text
    return f"{option}={name}" if equals else name


@cache
def _git(*arguments: str) -> str | None:
    """Return git's output for this checkout, as at the first call of the process, whose code it describes.

    It is None for an installed package, which may lie in another checkout.
    """
    if not IS_CHECKOUT:
        return None
    try:
        completed = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()


@cache
def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# -- programs and packages that collectors need ------------------------------------------------------------------------------------


class CollectorError(Error):
    """A collector cannot run here. The message is one line: the reason, and what to do."""


@dataclass(frozen=True)
class Tool:
    """A profiler of NVIDIA. `places`: glob patterns of install folders, searched after PATH; the last match is the
    newest version."""

    name: str
    product: str
    places: tuple[str, ...]
    page: str = ""

    @property
    def path(self) -> str | None:
        """Path of the program: the one on PATH, else the newest in the usual install folders; None if there is none."""
        on_path = shutil.which(self.name)
        if on_path:
            return on_path
        installed = [path for place in self.places for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
        return str(installed[0]) if installed else None

    @property
    def version(self) -> str:
        """Version, such as `2025.3.1`; empty if the program does not run."""
        return _version(self.path or "")

    @property
    def problem(self) -> str | None:
        """Why the program cannot be used here and how to fix it; None if it can."""
        if self.path is None:
            return f"no {self.name} on PATH or in the usual folders; install {self.product}"
        if not self.version:
            return f"{self.name} does not run (try {self.name} --version); install {self.product} again"
        return None

    @property
    def found(self) -> str:
        """The tool that was found, or how to get it."""
        problem = self.problem
        return f"{problem}; optional: {self.page}" if problem else f"{self.version}, {self.path}"


@cache
def _version(path: str) -> str:
    try:
        completed = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(r"\b(?:Version )?(20\d\d\.\d+(?:\.\d+)?)", completed.stdout)
    return match[1] if match and completed.returncode == 0 else ""


def has_module(module: str) -> bool:
    """Whether a module could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
