"""Recordings as processes: started, watched by what they write, and searched for what they left running."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
QUICK_CASES = Path(__file__).parent / "quick_cases.py"
FORKING = Path(__file__).parent / "forking.py"
RANKS = Path(__file__).parents[1] / "ranks" / "misbehaving_ranks.py"
MISBEHAVING = Path(__file__).parent / "misbehaving.py"
_PATIENCE_S = 120.0


class Recording:
    """`warpladder record` as a process of its own, outside the terminal's group.

    Args:
        folder: the run's data folder is `data` in it.
        arguments: further ones of the command.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.data_dir = folder / "data"
        self._mark = f"WARPLADDER_TEST={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        command = [
            sys.executable,
            "-m",
            "warpladder",
            "record",
            "--collector",
            "host_clock",
            "--max-rounds",
            "7",
            "--no-summary",
        ]
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*command, *arguments, "--data-dir", str(self.data_dir)],
                cwd=ROOT, stdout=out, stderr=err, env={**os.environ, name: value}, start_new_session=True,
            )  # fmt: skip

    @property
    def stdout(self) -> str:
        return self._out.read_text()

    @property
    def stderr(self) -> str:
        return self._err.read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it has kept on disk so far."""
        lines = [line for file in self.data_dir.glob(".*/events.jsonl") for line in file.read_text().splitlines(keepends=True)]
        return [json.loads(line)["event"] for line in lines if line.endswith("\n")]

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Until that has happened, which it must before the process ends."""
        deadline = time.monotonic() + _PATIENCE_S
        while not happened():
            assert self.process.poll() is None and time.monotonic() < deadline, self.stderr
            time.sleep(0.005)

    def wait_for_cases(self, count: int) -> None:
        self.wait_for(lambda: sum("results" in event.get("tables", ()) for event in self.events) >= count)

    def wait_for_ceilings(self) -> None:
        self.wait_for(lambda: any("ceilings" in event.get("tables", ()) for event in self.events))

    def wait(self) -> int:
        """Its exit code, negative for a signal."""
        return self.process.wait(_PATIENCE_S)

    def processes(self) -> list[int]:
        """Every living process that it or its descendants have started, itself included."""
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._is_of_ours(entry)]

    def is_gone(self) -> bool:
        """Whether nothing of it is left soon."""
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.005)
        return not self.processes()

    def _is_of_ours(self, entry: Path) -> bool:
        try:
            return self._mark.encode() in (entry / "environ").read_bytes() and "State:\tZ" not in (entry / "status").read_text()
        except OSError:  # it has ended
            return False
