"""Loads a benchmark's file for tests of its sources."""

import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from warpladder.workloads import neighbours
from warpladder.workloads.functions.sources import source_of


def loaded(folder: Path, text: str, **beside: str) -> ModuleType:
    """A file `bench.py` with others beside it, run as a workload file is."""
    for name, content in beside.items():
        file = folder / (name.replace("_in_", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(content))
    (folder / "bench.py").write_text(textwrap.dedent(text))
    return neighbours.load(folder / "bench.py")


def text_of(function: Any) -> list[str]:
    """The text in parts: what blank lines separate."""
    return source_of(function).rstrip("\n").split("\n\n")
