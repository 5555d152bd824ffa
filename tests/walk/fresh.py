"""Fresh runs of this machine: of the shipped workloads, and of a file of one's own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

#: The workload whose last cases no host variant can be timed at; and the smallest case of the file. It takes ten seconds.
BRIEF: Final = ("call_routes", "--set", "quick", "--max-rounds", "6")
#: As `make app` records. It takes a minute.
WHOLE: Final = ("--set", "quick")


def record(folder: Path, *shipped: str) -> Path:
    """Record the shipped workloads with these arguments, and the file that `warpladder new` writes; the folder of the runs."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = folder / "runs"
    brief = () if shipped == WHOLE else ("--case", "n=256", "--max-rounds", "6")
    commands = (
        ("record", *shipped, "--label", "this machine, the shipped workloads", "--data-dir", str(runs)),
        ("new", "my_kernel"),
        ("record", "my_kernel.py", *brief, "--data-dir", str(runs)),
    )
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "warpladder", *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    return runs
