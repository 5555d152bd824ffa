"""Finds the programs that start ranks, without importing MPI."""

import shutil
import sys
from pathlib import Path
from typing import Final

#: Collectors that can measure several ranks together.
TOGETHER: Final = ("cuda_events", "host_clock")

#: Launcher of several processes, as `--launcher` names it -> its program.
LAUNCHERS: Final = {"local": "mpiexec", "mpirun": "mpirun", "srun": "srun"}


def launcher_program(name: str) -> str | None:
    """Return the path of a launcher, on PATH or next to Python's executable (MPICH's package); None if it is missing.
    `name`: a key of `LAUNCHERS`."""
    word, beside = LAUNCHERS[name], str(Path(sys.executable).parent)
    if name == "local":  # the one installed with mpi4py is compatible with it
        return shutil.which(word, path=beside) or shutil.which(word)
    return shutil.which(word) or shutil.which(word, path=beside)
