"""Finds programs and Python packages that a collector needs, and asks programs for their versions."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from warpladder.errors import Error


class CollectorError(Error):
    """A collector cannot run here. The message is one line: the reason, and what to do."""


@dataclass(frozen=True)
class Tool:
    """A profiler of NVIDIA.

    Attributes:
        name: name of the program.
        product: name of the product that contains it.
        places: glob patterns of install folders, searched after PATH; the last match is the newest version.
    """

    name: str
    product: str
    places: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """Path of the program: the one on PATH, else the newest in the usual install folders; None if there is none."""
        on_path = shutil.which(self.name)
        if on_path:
            return on_path
        found = [path for place in self.places for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
        return str(found[0]) if found else None

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


@cache
def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(r"\b(?:Version )?(20\d\d\.\d+(?:\.\d+)?)", done.stdout)
    return match[1] if match and done.returncode == 0 else ""


def has_module(module: str) -> bool:
    """Whether a module could be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
