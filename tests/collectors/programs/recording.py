"""Comparisons of small shell scripts, recorded in this process."""

import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from warpladder.collectors.core.environment import Tool
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.nsight_systems import entry, source
from warpladder.collectors.programs import profiled
from warpladder.collectors.programs.names import parse
from warpladder.collectors.programs.profiled import NsightSystems
from warpladder.collectors.programs.record import Request, record
from warpladder.data import store

ROOT = Path(__file__).resolve().parents[3]


def script(path: Path, text: str) -> str:
    """Write a shell script that can be started; return its command line, quoted."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"'{path}'"


def compared(
    folder: Path, *commands: str, profiler: NsightSystems | None = None, told: list[str] | None = None, **settings: Any
) -> store.Run:
    """Record a comparison and open its run."""
    settings = {"runs": 3, "timeout_s": 30.0, **settings}
    check = settings.pop("check", "")
    request = Request(tuple(map(parse, commands)), check=parse(check) if check else None, **settings)
    data_dir, lines = folder / "runs", [] if told is None else told
    with Stop() as stop:
        run_id = record(request, profiler, data_dir, "", ["versus", *commands], stop, lambda text, done, of: lines.append(text))
    assert not list(data_dir.glob(".*"))
    return store.open_run(data_dir / run_id)


def statuses(run: store.Run) -> dict[str, tuple[str, str]]:
    """Status and detail of each program."""
    rows = run.table("results").to_dict("records")
    return {row["variant"]: (row["status"], row["detail"]) for row in rows}


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """An nsys whose `profile` is this shell command."""
    path = folder / "nsys"
    version = "echo NVIDIA Nsight Systems version 2025.3.1.90"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then {version}; exit 0; fi\n{profile}\n')
    path.chmod(0o755)
    found = Tool("no-such-nsys-on-path", "Nsight Systems", (str(path),))
    for module in (entry, source, profiled):
        monkeypatch.setattr(module, "NSYS", found)


def fake_nsys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nsys of `tests.collectors.programs.fake_nsys`."""
    python = f"PYTHONPATH={shlex.quote(str(ROOT))} {sys.executable} -m tests.collectors.programs.fake_nsys"
    tool(folder, monkeypatch, f'{python} "$@"')
