"""Finds the profilers of this machine and asks for their versions; finds what starts several processes."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

#: Launcher of several processes, as `--launcher` names it -> its program.
LAUNCHERS: Final = {"local": "mpiexec", "mpirun": "mpirun", "srun": "srun"}


@dataclass(frozen=True)
class Tool:
    """A program of NVIDIA's.

    Attributes:
        name: of the program.
        product: that it belongs to.
        places: where it is looked for besides PATH, as patterns of which the last match is the newest.
    """

    name: str
    product: str
    places: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """On PATH first, then the newest in the usual install folders; None where there is none."""
        on_path = shutil.which(self.name)
        if on_path:
            return on_path
        found = [path for place in self.places for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
        return str(found[0]) if found else None

    @property
    def version(self) -> str:
        """Such as `2025.3.1`; empty where the program does not run."""
        return _version(self.path or "")

    @property
    def problem(self) -> str | None:
        """Why it cannot be used here, with the cure; None where it can."""
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


def launcher_program(name: str) -> str | None:
    """Path of a launcher's program, on PATH or beside Python, where MPICH's package puts it; None where it is not there.

    Args:
        name: a key of `LAUNCHERS`.
    """
    word, beside = LAUNCHERS[name], str(Path(sys.executable).parent)
    if name == "local":  # what was installed with mpi4py fits it
        return shutil.which(word, path=beside) or shutil.which(word)
    return shutil.which(word) or shutil.which(word, path=beside)


NSYS: Final = Tool(
    "nsys",
    "Nsight Systems",
    (
        "/opt/nvidia/nsight-systems/*/bin/nsys",
        "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
        "/usr/local/cuda*/bin/nsys",
        "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
    ),
)
NCU: Final = Tool("ncu", "Nsight Compute", ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda*/bin/ncu"))
