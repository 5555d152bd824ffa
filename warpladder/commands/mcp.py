"""`warpladder mcp`: the tools of a server for programs that write kernels, over the Model Context Protocol on stdin and stdout.

Each tool runs a command of Warpladder in a child process, so that nothing that a variant does reaches the server. A score is a speedup that
was verified, with its 95 % interval; the times of what is refused are not told.
"""

import functools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from warpladder.commands.common import ABOVE_ZERO, ExitCode, data_dir_option, folders
from warpladder.errors import Error

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_MOST_ROWS, _MOST_LINES, _MOST_TEXT = 40, 12, 400
_GRACE_S: Final = 20
#: Limits the memory that a process and its children may have for data, then becomes the command.
_LIMITED: Final = "import os, resource, sys; b = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_DATA, (b, b)); os.execvp(sys.argv[2], sys.argv[2:])"
_INSTRUCTIONS: Final = (
    "Measures variants of GPU kernels and CPU functions against a reference. Write a Python file with a warpladder.Benchmark, call "
    "`record`, read `why`, change a variant, `record` again, then `compare` the two runs. What counts is `compare`'s `passed` and a "
    "speedup whose interval is above 1. A changed reference or tolerance fails."
)


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """A variant at a case. Without `speedup` it is refused, or has none to be compared with.

    Attributes:
        refused: why its results or its times do not count; empty where they do.
        speedup: over the baseline, as many times as fast.
        percent_of_floor: 100 is the least time that the hardware allows; None where no floor is known.
    """

    workload: str
    case: str
    variant: str
    config: str
    timing: str
    refused: str
    speedup: Interval | None
    verdict: str
    baseline: str
    percent_of_floor: float | None
    distrusted: str


@dataclass(frozen=True)
class Recorded:
    run: str
    passed: bool
    scores: list[Score]
    left_out: int
    findings: list[str]
    next: str


@dataclass(frozen=True)
class Cell:
    """A cell of two runs. `ratio` is the time of B over A's: below 1, B is faster."""

    workload: str
    case: str
    variant: str
    config: str
    verdict: str
    ratio: Interval | None
    least_visible_percent: float | None


@dataclass(frozen=True)
class Compared:
    passed: bool
    sentence: str
    cells: list[Cell]
    left_out: int
    reasons: list[str]
    next: str


@dataclass(frozen=True)
class Limit:
    workload: str
    case: str
    variant: str
    bound_by: str
    percent_of_floor: Interval
    ceiling: str


@dataclass(frozen=True)
class Why:
    run: str
    limits: list[Limit]
    sentences: list[str]
    next: str


@dataclass(frozen=True)
class Kernel:
    variant: str
    kernel: str
    architecture: str
    registers: int
    spill_bytes: int | None
    static_shared_bytes: int
    instructions: int
    hot_loop: dict[str, int]


@dataclass(frozen=True)
class MachineCode:
    kernels: list[Kernel]
    left_out: int
    next: str


@dataclass(frozen=True)
class Findings:
    run: str
    summary: dict[str, Any]
    warnings: list[str] = field(default_factory=list)
    next: str = ""


@dataclass(frozen=True)
class Tools:
    """The limits and folders that the tools share.

    Attributes:
        limit_s, memory_gb: most time and most memory for data of a command.
        isolate: what starts a process without network; empty where the system does not allow it.
    """

    data_dir: Path
    limit_s: int
    memory_gb: float
    isolate: Sequence[str]

    def _run(self, *words: str, with_code: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command, with limits where it runs a user's code. Raises Error where it refuses its arguments or takes too long."""
        command = [sys.executable, "-m", "warpladder", *words]
        if with_code:
            command = [*self.isolate, sys.executable, "-c", _LIMITED, str(int(self.memory_gb * 2**30)), *command]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            out, err = process.communicate(timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise Error(f"{words[0]}: ended after {self.limit_s} s; give fewer cases or variants, or fewer seconds") from None
        if process.returncode not in (0, ExitCode.WRONG, ExitCode.UNSEEN):
            raise Error("\n".join(_short(_refusal(err.splitlines()))) or f"{words[0]}: exit code {process.returncode}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def record(self, file: str, variants: str = "", case: str = "", seconds: float = 0, label: str = "") -> Recorded:
        """Verify every variant of a Python file against its reference, and measure them side by side.

        Args:
            file: path of a Python file that declares a warpladder.Benchmark. Its code runs on this machine.
            variants: names with commas between; all by default.
            case: a case such as n=4096; the quick ones by default.
            seconds: time limit for the rounds of a scope; 0 for the usual one.
            label: your name for the run.
        """
        options = _options(variants=variants, case=case, seconds=seconds, label=label)
        path = Path(file)
        if path.suffix != ".py" or not path.is_file():
            raise Error(f"{file}: give the path of a Python file that declares a warpladder.Benchmark")
        done = self._run("record", str(path), "--data-dir", str(self.data_dir), *options, with_code=True)
        run = done.stdout.splitlines()[-1]
        scores = list(self._scores(run))
        refused = [each for each in scores if each.refused]
        findings = _short(done.stderr.splitlines()[-_MOST_LINES:])
        return Recorded(
            run,
            done.returncode == 0,
            scores[:_MOST_ROWS],
            max(0, len(scores) - _MOST_ROWS),
            findings,
            _after(run, scores, refused),
        )

    def _scores(self, run: str) -> Iterator[Score]:
        for row in self._rows(run):
            refused = "" if row["status"] == "ok" else f"{row['status']}: {row['detail']}"[:_MOST_TEXT]
            yield Score(
                **{name: row[name] for name in ("workload", "case", "variant", "config")},
                timing=" ".join(filter(None, (row["scope"], row["cache"]))),
                refused=refused,
                speedup=None if refused else _interval(row, "speedup"),
                verdict="" if refused else row["verdict"] or "",
                baseline=row["baseline"] or "",
                percent_of_floor=None if refused else _number(row["percent_of_floor"]),
                distrusted=row["flags"] or "",
            )

    def _rows(self, run: str) -> list[Mapping[str, Any]]:
        import pandas as pd

        from warpladder.api import open_run

        opened = open_run(run, data_dir=self.data_dir)
        tables = [opened.table(workload) for workload in opened.workloads]
        return [
            {str(name): None if pd.isna(value) else value for name, value in row.items()}
            for table in tables
            for row in table.to_dict("records")
        ]

    def compare(self, a: str, b: str) -> Compared:
        """Judge run B against run A, cell by cell: whether something is slower, wrong, lost, or was asked otherwise.

        Args:
            a, b: runs by id or label, or one variant of a run as RUN@VARIANT.
        """
        done = self._run("compare", a, b, "--format", "json", "--data-dir", str(self.data_dir))
        found = json.loads(done.stdout)
        if "changes" not in found or any("ratio" not in each for each in found["changes"]):
            raise Error(f"{a}, {b}: no recordings with cells; warpladder compare prints their figures")
        lost = [f"{each['workload']} {each['case']}: {each['reason']}"[:_MOST_TEXT] for each in found["lost"]]
        cells = [
            Cell(
                **{name: each[name] for name in ("workload", "case", "variant", "config", "verdict")},
                ratio=each["ratio"] and Interval(**{name: each["ratio"][name] for name in ("value", "low", "high")}),
                least_visible_percent=None if each["least_effect"] is None else 100 * each["least_effect"],
            )
            for each in sorted(found["changes"], key=lambda each: each["verdict"] == "tied")
        ]
        passed = done.returncode == 0
        advice = (
            "keep B"
            if any(each.verdict == "faster" for each in cells)
            else "B is no faster: read `why` of B, and change a variant"
        )
        return Compared(
            passed,
            found["sentence"],
            cells[:_MOST_ROWS],
            max(0, len(cells) - _MOST_ROWS),
            [*found["gate"], *lost][:_MOST_LINES],
            advice if passed else "correct what `reasons` and the slower cells name, and record again",
        )

    def why(self, run: str) -> Why:
        """Tell what limits each variant of a run, how far it is from the hardware's floor, and why one is faster than another.

        Args:
            run: its id or label.
        """
        from warpladder.dashboard.core import run_data
        from warpladder.dashboard.text import further, summary
        from warpladder.data import store

        opened = store.find_run(run, folders([self.data_dir]))
        counted = further.limits(run_data.load(opened))
        limits = [
            Limit(
                **{name: row[name] for name in ("workload", "case", "variant")},
                bound_by=row["floor_bound"] or "",
                percent_of_floor=share,
                ceiling=row["floor_ceiling"] or "",
            )
            for row in self._rows(run)
            if row["status"] == "ok" and (share := _interval(row, "percent_of_floor"))
        ]
        limits.sort(key=lambda each: -each.percent_of_floor.value)
        advice = (
            "change the variant where its limit is"
            if counted
            else "on a GPU, `warpladder record FILE --counters` adds what limits each kernel; `machine_code` needs no GPU"
        )
        lines = [*counted, *summary.findings(opened, every=True)]
        return Why(opened.run_id, limits[:_MOST_ROWS], _short(lines[:_MOST_LINES]), advice)

    def machine_code(self, file: str, kernel: str = "", architecture: str = "") -> MachineCode:
        """Give registers, spills, shared memory and the hot loop of the kernels in a file. Needs no GPU.

        Args:
            file: a .cu, a .py that declares a Benchmark, a .cubin, a program or a library.
            kernel: a kernel such as 'transpose<2, 1>'; all by default.
            architecture: such as sm_90; by default sm_90 for a source, all that a program has.
        """
        chosen = _options(kernel=kernel, arch=architecture)
        kernels = json.loads(self._run("disassemble", file, "--format", "json", *chosen, with_code=True).stdout)
        names = ("variant", "kernel", "architecture", "registers", "spill_bytes", "static_shared_bytes", "instructions")
        rows = [
            Kernel(
                **{name: each[name] for name in names}, hot_loop=dict([*(each["hot_loop"] or {"mix": {}})["mix"].items()][:12])
            )
            for each in kernels
        ]
        spills = any(each.spill_bytes for each in rows)
        advice = "spills cost memory traffic: use fewer registers or smaller blocks" if spills else "record the change"
        return MachineCode(rows[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS), advice)

    def trace_findings(self, profile: str) -> Findings:
        """Tell where the time of a profile goes: of PyTorch's profiler, Nsight Systems or Nsight Compute.

        Args:
            profile: path of a report, which is imported, or an imported run by id or label.
        """
        warnings: list[str] = []
        if Path(profile).is_file():
            done = self._run("import", profile, "--data-dir", str(self.data_dir))
            warnings, profile = _short(done.stderr.splitlines()[-_MOST_LINES:]), done.stdout.splitlines()[-1]
        found = json.loads(self._run("summary", profile, "--format", "json", "--data-dir", str(self.data_dir)).stdout)
        summary = found if isinstance(found, dict) else {"rows": found}
        return Findings(
            profile, _small(summary), warnings, str(summary.get("next") or "extract the hottest operators: warpladder extract")
        )


def _options(**given: Any) -> list[str]:
    """The options of a command that are given."""
    return [word for name, value in given.items() if value for word in (f"--{name}", str(value))]


def _end(process: subprocess.Popen[str]) -> None:
    """End a command and all that it started: at first as Ctrl-C does, so that what was measured is kept."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=_GRACE_S)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def _after(run: str, scores: Sequence[Score], refused: Sequence[Score]) -> str:
    if refused:
        return f"{refused[0].variant} is refused ({refused[0].refused.partition(':')[0]}): correct it; its time does not count"
    if not any(each.verdict == "faster" for each in scores):
        return f"nothing is faster than the baseline for certain: read why({run}), or record for more seconds"
    return f"read why({run}), then change a variant, record again, and compare the two runs"


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _interval(row: Mapping[str, Any], name: str) -> Interval | None:
    values = [_number(row[each]) for each in (name, f"{name}_low", f"{name}_high")]
    return None if None in values else Interval(*(each for each in values if each is not None))


def _refusal(lines: Sequence[str]) -> Sequence[str]:
    """The message with which a command ends: its last line that is not indented, and the first of those that belong to it."""
    start = max((place for place, line in enumerate(lines) if not line.startswith(" ")), default=0)
    return lines[start : start + _MOST_LINES]


def _short(lines: Sequence[str]) -> list[str]:
    return [line[:_MOST_TEXT] for line in lines]


def _small(value: Any) -> Any:
    """A value of JSON whose lists end after the first rows."""
    if isinstance(value, dict):
        return {name: _small(each) for name, each in value.items()}
    return [_small(each) for each in value[:_MOST_LINES]] if isinstance(value, list) else value


def _isolating() -> list[str]:
    """The words that start a process in a network of its own, which reaches nothing; empty where the system does not allow it."""
    words = ["unshare", "--map-root-user", "--net"]
    if not shutil.which(words[0]) or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        return []
    return words


def server(data_dir: Path, limit_s: int = 600, memory_gb: float = 64, *, network: bool = False) -> "MCPServer[Any]":
    """The server with its tools.

    Args:
        data_dir: folder for runs, which is looked in first.
        limit_s, memory_gb: most time, and most memory for data, of a command that runs a user's code.
        network: whether such a command may use the network.
    """
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    from warpladder import __version__

    made: MCPServer[Any] = MCPServer("warpladder", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    tools = Tools(data_dir, limit_s, memory_gb, [] if network else _isolating())

    def offer(tool: Any) -> None:
        @functools.wraps(tool)
        def call(**arguments: Any) -> Any:
            try:
                return tool(**arguments)
            except Error as error:
                raise ToolError("\n".join(error.lines())) from error

        made.add_tool(call, structured_output=True)

    for tool in (tools.record, tools.compare, tools.why, tools.machine_code, tools.trace_findings):
        offer(tool)
    return made


@click.command("mcp")
@data_dir_option
@click.option("--limit", type=click.IntRange(1), default=600, metavar="SECONDS", help="Most time of a recording.")
@click.option("--memory", type=ABOVE_ZERO, default=64.0, metavar="GB", help="Most memory of a process that runs a user's code.")
@click.option(
    "--network", is_flag=True, help="Let variants use the network. By default they cannot, where the system allows it."
)
def command(data_dir: Path, limit: int, memory: float, network: bool) -> None:
    """Let a coding agent measure what it writes.

    Serves the Model Context Protocol on stdin and stdout. Its client can run code.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    server(data_dir.resolve(), limit, memory, network=network).run("stdio")
