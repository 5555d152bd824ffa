"""Programs that start several processes, found without loading anything."""

import shutil
import sys
from pathlib import Path
from typing import Final

#: Collectors that can measure what several ranks do together.
TOGETHER: Final = ("cuda_events", "host_clock")

#: Launcher of several processes, as `--launcher` names it -> its program.
LAUNCHERS: Final = {"local": "mpiexec", "mpirun": "mpirun", "srun": "srun"}


def launcher_program(name: str) -> str | None:
    """Path of a launcher's program, on PATH or beside Python, where MPICH's package puts it; None where it is not there.

    Args:
        name: a key of `LAUNCHERS`.
    """
    word, beside = LAUNCHERS[name], str(Path(sys.executable).parent)
    if name == "local":  # what was installed with mpi4py fits it
        return shutil.which(word, path=beside) or shutil.which(word)
    return shutil.which(word) or shutil.which(word, path=beside)
