"""Runs a program of this package, which prints each step and each row as a line of JSON, in a process that an altered kernel may break."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from warpladder.collectors.inside import START

#: A step that takes longer is ended: an altered kernel waits for what never comes.
_SECONDS_A_STEP: Final = 120.0


def once(
    program: str, request: dict[str, Any], told: Callable[[str], object], seconds: float = _SECONDS_A_STEP
) -> tuple[list[dict[str, Any]], str, str]:
    """The rows of one process, its last step, and how it ended; empty if well.

    Args:
        program: the module of this package that it runs.
        seconds: that a step may take.

    What `told` raises ends the process.
    """
    command = [sys.executable, "-m", f"warpladder.collectors.inside.{program}", json.dumps(request)]
    rows, step, why = list[dict[str, Any]](), START, ""
    with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as child:
        assert child.stdout
        try:
            for line in _lines(child.stdout.fileno(), seconds):
                if line is None:
                    child.kill()
                    why = f"took longer than {seconds:.0f} s"
                elif isinstance(message := json.loads(line), str):
                    step = message
                    told(step)
                else:
                    rows.append(message)
        except BaseException:
            child.kill()
            raise
        if child.wait() != 0 and not why:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()
            why = last[-1] if last else f"exit code {child.returncode}"
    return rows, step, why


def _lines(number: int, seconds: float) -> Iterator[str | None]:
    """The lines of a pipe as they come; None and no more where the next one takes longer."""
    pending, deadline = b"", time.monotonic() + seconds
    while True:
        if not select.select([number], [], [], max(deadline - time.monotonic(), 0))[0]:
            yield None
            return
        read = os.read(number, 1 << 16)
        if not read:
            return
        *whole, pending = (pending + read).split(b"\n")
        for line in whole:
            deadline = time.monotonic() + seconds
            yield line.decode(errors="replace")
