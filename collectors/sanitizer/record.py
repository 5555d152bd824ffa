"""The pass `--sanitize` of a recording: every variant at its smallest case under the tools of compute-sanitizer."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from warpladder.collectors.core.checked import Checks, Names, request_of
from warpladder.collectors.core.plan import WorkloadRef
from warpladder.collectors.sanitizer import report
from warpladder.collectors.sanitizer.report import SANITIZER
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.words import counted
from warpladder.installation import IMPORT_ROOT

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


class Pass(Checks):
    """The pass over the workloads of a plan. Libraries that are peers are left out."""

    @staticmethod
    def takes(row: Mapping[str, Any]) -> bool:
        return bool(row["kind"] == "cuda" or (row["kind"] == "library" and row["role"] == "rung"))

    @property
    def about(self) -> str:
        if not self.variant_count:
            return "no variant under compute-sanitizer: none that runs kernels was measured"
        variants = counted(self.variant_count, "variant")
        return f"{variants} under {', '.join(TOOLS)} of compute-sanitizer, at the smallest case of each"

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `diagnostics`. The tools run at once."""
        asked = [(tool, ref, cells) for ref, cells in self.cells.items() if cells for tool in TOOLS]
        with ThreadPoolExecutor(len(TOOLS)) as pool:
            found = list(chain.from_iterable(pool.map(lambda each: list(_rows(*each)), asked)))
        told = f"compute-sanitizer {SANITIZER.version} checked {self.about}: {counted(len(found), 'finding')}"
        return [diagnostic_row("info", Source.SANITIZER, told), *found]


def _rows(tool: str, ref: WorkloadRef, cells: Sequence[Names]) -> Iterator[dict[str, Any]]:
    """What a tool finds in some cells. Where it finds anything in several variants, each half runs again, to know in which."""
    request = {**request_of(ref, cells), "leave_unwritten": tool == UNWRITTEN}
    program = ("-m", "warpladder.collectors.sanitizer.child", json.dumps(request))
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
