"""The pass `--sanitize` of a recording: every variant at its smallest case under the tools of compute-sanitizer."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core import journal, under_tool
from warpladder.collectors.core.plan import Plan, WorkloadRef
from warpladder.collectors.sanitizer import report
from warpladder.collectors.sanitizer.report import SANITIZER
from warpladder.data import store
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.words import counted
from warpladder.installation import IMPORT_ROOT
from warpladder.workloads.api import Case, Variant, Workload, format_params

#: Tools, and what each is given besides its name.
TOOLS: Final[Mapping[str, Sequence[str]]] = {
    # Padding: what an access past the end of a buffer meets is never another buffer.
    "memcheck": ("--padding", "4096"),
    # Its analysis names each pair of accesses once.
    "racecheck": ("--racecheck-report", "analysis"),
    "initcheck": (),
    "synccheck": (),
}
#: The tool for which memory that is filled with NaN would count as written.
UNWRITTEN: Final = "initcheck"
#: Exit status of the tool where it found something and the program itself ended well.
FOUND: Final = 99
#: A tool slows kernels down by a hundred and more.
_SECONDS: Final = 600
#: Different findings of a tool that are kept of a variant.
_MOST: Final = 8

#: A variant with a config at a case, by their names.
Names = tuple[str, str, str]


@dataclass(frozen=True)
class Watched:
    """What a tool printed about some cells, the program's own lines among it, and the exit code; None where it was ended."""

    printed: str
    code: int | None

    @property
    def is_clean(self) -> bool:
        return self.code == 0 and report.is_clean(self.printed)

    @property
    def broken(self) -> str:
        """Why the program did not run to its end under the tool."""
        if self.code is None:
            return f"it did not end within {_SECONDS} s"
        last = [line for line in self.printed.splitlines() if line.strip() and not line.startswith("=")]
        return last[-1].strip()[:300] if last else f"exit code {self.code}"


def command(tool: str, program: Sequence[str]) -> list[str]:
    """The command that runs a Python program under a tool."""
    # Errors of API calls: packages ask for functions that a driver may lack, as they are imported.
    options = ["--tool", tool, "--error-exitcode", str(FOUND), "--report-api-errors", "no", *TOOLS[tool]]
    return [SANITIZER.path or SANITIZER.name, *options, sys.executable, *program]


def watch(tool: str, program: Sequence[str], seconds: float = _SECONDS) -> Watched:
    """Run a Python program under a tool."""
    # PyTorch takes memory in large pieces, in which an access past the end of a tensor meets another one.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    with subprocess.Popen(
        command(tool, program),
        cwd=IMPORT_ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the program too, which would hold the GPU and the pipe
            printed, _ = process.communicate()
            return Watched(printed, None)
    return Watched(printed, process.returncode)


def cells_of(workload: Workload, variants: Sequence[str]) -> list[tuple[Case, Variant, Mapping[str, Any]]]:
    """Every config of the variants at the smallest case that it serves. Cells of one case stand together."""
    cases = sorted(workload.cases, key=lambda case: case.min_bytes or 0)
    found = [
        (case, variant, config)
        for variant in workload.variants
        if variant.name in variants
        for config in variant.configs
        if (case := next((each for each in cases if variant.skip(each, config) is None), None))
    ]
    return sorted(found, key=lambda cell: cases.index(cell[0]))


def _is_own(row: Mapping[str, Any]) -> bool:
    """Whether a variant runs on a GPU, and is no library to compare with."""
    return bool(row["kind"] == "cuda" or (row["kind"] == "library" and row["role"] == "rung"))


class Pass:
    """The pass over the workloads of a plan.

    Args:
        run: the run with the times. Its variants for a GPU are checked, wrong ones too, except libraries that are peers.
    """

    def __init__(self, plan: Plan, run: store.Run) -> None:
        measured = {(row["workload"], row["variant"]) for row in run.records("results") if row["status"] != "skipped"}
        own = {(row["workload"], row["variant"]) for row in run.records("variants") if _is_own(row)} & measured
        self.cells: dict[WorkloadRef, list[Names]] = {}
        for ref in dict.fromkeys(job.workload for job in plan.jobs):
            workload = next(each for each in plan.workloads if each.name == ref.name)
            cells = cells_of(workload, [variant for name, variant in own if name == ref.name])
            self.cells[ref] = [(variant.name, format_params(config), case.name) for case, variant, config in cells]

    @property
    def about(self) -> str:
        """What the pass does, in words."""
        number = len({(ref.name, name) for ref, cells in self.cells.items() for name, _, _ in cells})
        if not number:
            return "no variant under compute-sanitizer: none that runs kernels was measured"
        return f"{counted(number, 'variant')} under {', '.join(TOOLS)} of compute-sanitizer, at the smallest case of each"

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `diagnostics`. The tools run at once."""
        asked = [(tool, ref, cells) for ref, cells in self.cells.items() if cells for tool in TOOLS]
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            found = list(chain.from_iterable(pool.map(lambda each: list(_rows(*each)), asked)))
        told = f"compute-sanitizer {SANITIZER.version} checked {self.about}: {counted(len(found), 'finding')}"
        return [diagnostic_row("info", Source.SANITIZER, told), *found]


def _rows(tool: str, ref: WorkloadRef, cells: Sequence[Names]) -> Iterator[dict[str, Any]]:
    """What a tool finds in some cells. Where it finds anything in several variants, each half runs again, to know in which."""
    request = {"file": str(ref.file.resolve()) if ref.file else "", "workload": ref.name, "cells": list(cells)}
    program = ("-m", "warpladder.collectors.sanitizer.child", json.dumps({**request, "leave_unwritten": tool == UNWRITTEN}))
    watched = watch(tool, program)
    if watched.is_clean:
        return
    variants = list(dict.fromkeys(variant for variant, _, _ in cells))
    if len(variants) == 1:
        yield from _of_variant(tool, watched, {"workload": ref.name, "variant": variants[0]})
        return
    half = len(variants) // 2
    rows = [
        row
        for part in (variants[:half], variants[half:])
        for row in _rows(tool, ref, [cell for cell in cells if cell[0] in part])
    ]
    yield from rows
    if not rows:
        first = next((str(finding) for finding in report.findings(watched.printed)), watched.broken)
        text = f"{tool}: {first}; in one process with all of {', '.join(variants)}, and in none of its own"
        yield diagnostic_row("warning", Source.SANITIZER, text)


def _of_variant(tool: str, watched: Watched, about: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    found = report.findings(watched.printed)
    for finding, times in found.most_common(_MOST):
        text = f"{tool}: {finding}{f', {times} times' if times > 1 else ''}"
        yield diagnostic_row("warning" if finding.doubted else "error", Source.SANITIZER, text, about)
    if not found:
        yield diagnostic_row("warning", Source.SANITIZER, f"{tool} could not watch it: {watched.broken}", about)


def record(plan: Plan, run: store.Run, data_dir: Path, say: Callable[[str], object]) -> str:
    """Check the variants of a run, and write the findings as a run. Returns its id."""
    checked = Pass(plan, run)
    say(checked.about)
    with under_tool.begin(data_dir, "") as writer:
        journal.copy_run(run, writer, checked.rows())
        writer.commit()
    return writer.run_id
