"""Compiles what a plan needs while nothing is timed, in parallel, with one process per core.

It compiles kernels, Numba functions, and library variants that use PyTorch's compiler. The machine code goes to the caches on
disk, where the measuring process finds it. The first case is measured as soon as its own code is there; while a case is measured, the
processes that compile are stopped. A compile error is ignored here: the measuring process meets it again and reports the cell's status.
`python -m warpladder.collectors.child compile COUNT` reads one job per line from stdin, and reports each job when it is done.
"""

import inspect
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.children import ENTRY, POLL_S, Guarded
from warpladder.collectors.core.collector import JobProgress
from warpladder.collectors.core.environment import cpu_name
from warpladder.collectors.core.plan import Job as Planned
from warpladder.collectors.core.plan import Plan, WorkloadRef
from warpladder.collectors.cuda.transfers import kernel_names, plan_parts
from warpladder.installation import IMPORT_ROOT
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Case, CudaVariant, HostVariant, LibraryVariant, Params, Variant, Workload, format_params
from warpladder.workloads.declare.stepwise import Stepwise

#: Compiling ahead is given up after this many seconds without a finished job.
_PATIENCE_S: Final = 120.0
#: Bytes that the context of a process on a GPU and its arrays may take.
_BYTES_A_PROCESS: Final = 2 << 30
#: Seconds after which all processes that compile have stopped; their guard takes 0.1 s.
_STOPPED_S: Final = 0.2
_RUN_ONCE: Final = "run once"


@dataclass(frozen=True)
class Kernels:
    """Compile kernels. The attributes are the same as for `warpladder.collectors.cuda.compiler.Compilation`."""

    source: str
    where: str
    kernels: Sequence[str]
    constants: Sequence[str]
    arch: str
    options: Sequence[str]
    nvrtc: str = ""

    @property
    def name(self) -> str:
        return self.where


@dataclass(frozen=True)
class RunOnce:
    """Run a variant that compiles itself at its first call.

    Attributes:
        config: the values of its tunables, as text.
        mark: cache key of an entry that says that this job was done.
        ranks: that share the case. The job runs the share of the first of them.
    """

    workload: str
    file: str
    variant: str
    config: str
    case: str
    mark: str
    ranks: int = 1

    @property
    def name(self) -> str:
        return f"{self.workload}/{self.variant}"


Job = Kernels | RunOnce
_KINDS: Final = {kind.__name__: kind for kind in (Kernels, RunOnce)}
MakeBenches = Callable[[], Mapping[str, MakeBench]]


def jobs_of(plan: Plan, architectures: Sequence[str], libraries: bool = True) -> dict[Job, list[int]]:
    """Return the jobs of a plan that are not in the cache: kernels, and variants that compile at their first call.

    What the first case of the plan needs comes first, then what the first case of each workload needs, which a budget reaches, and then the
    rest; of these two, what takes longest comes first.

    Args:
        architectures: such as `sm_90`; empty if no kernels are measured.
        libraries: whether to run library variants; under a tool that inspects every launch this would take minutes.

    Returns:
        For each job, which cases of the plan need it, as ascending positions in `plan.jobs`.
    """
    needed, ranks = dict[Job, list[int]](), dict[Job, int]()
    for number, planned in enumerate(plan.jobs):
        workload = next(each for each in plan.workloads if each.name == planned.workload.name)
        for cell in planned.cells:
            variant = workload.variant(cell.variant)
            with suppress(Exception):  # the measuring process reports the error in the status
                config = next(config for config in variant.configs if format_params(config) == cell.config)
                for job in _jobs_of_cell(planned, workload, variant, config, architectures, libraries):
                    needed.setdefault(job, []).append(number)
                    ranks[job] = _rank(variant)
    firsts = {planned.workload: number for number, planned in reversed([*enumerate(plan.jobs)])}.values()

    def turn(job: Job) -> tuple[bool, bool, int]:
        first = needed[job][0]
        return first > 0, first not in firsts, ranks[job]

    return {job: needed[job] for job in sorted(needed, key=turn)}


def _jobs_of_cell(
    planned: Planned, workload: Workload, variant: Variant, config: Any, architectures: Sequence[str], libraries: bool
) -> Iterator[Job]:
    case = workload.case(planned.case)
    if variant.skip(case, config) is not None:
        return
    shares = workload.shares if planned.gpus > 1 else None
    if isinstance(variant, CudaVariant):
        for share in [part.case for part in shares(case, planned.gpus)] if shares else [case]:
            yield from _kernels(workload, share, variant, config, architectures)
    elif type(planned.workload) is WorkloadRef and (  # which another process loads by its name and file
        first := _first_call(workload, variant, case, config, architectures if libraries else (), planned.gpus if shares else 1)
    ):
        file = str(planned.workload.file or "")
        yield RunOnce(planned.workload.name, file, variant.name, format_params(config), *first)


def _rank(variant: Variant) -> int:
    """PyTorch's compiler takes longest, NVRTC least."""
    if isinstance(variant, CudaVariant):
        return 2
    requires = variant.requires if isinstance(variant, HostVariant | LibraryVariant) else ()
    return 0 if {*requires} >= {*torch_bridge.COMPILER} else 1


def _first_call(
    workload: Workload, variant: Variant, case: Case, config: Params, architectures: Sequence[str], ranks: int
) -> tuple[str, str, int] | None:
    """For a variant that compiles at its first call, return the case to run it on, the cache key that marks it as done, and how many ranks
    share the case. None if the variant compiles nothing, or the cache has the key.
    """
    least = min((each for each in workload.cases if variant.skip(each, config) is None), key=lambda each: each.min_bytes or 0)
    requires = set(variant.requires) if isinstance(variant, HostVariant | LibraryVariant) else set()
    on, targets, sharing = least, architectures, 1
    if isinstance(variant, HostVariant) and "numba" in requires:  # the machine code depends on types, not on sizes
        versions = _versions("numba")
        targets = (cpu_name(), os.environ.get("NUMBA_CACHE_DIR", ""), *_place_and_time(variant.run))
    elif not (isinstance(variant, LibraryVariant) and architectures and requires):
        return None
    elif requires >= {*torch_bridge.COMPILER}:
        on, versions, sharing = case, _versions("torch", "triton"), ranks
    elif requires <= {"cupy", "cupyx"}:
        versions = _versions("cupy")
    elif isinstance(variant.prepare, type) and issubclass(variant.prepare, Stepwise) and bool(variant.prepare.caches):
        versions = _versions(*sorted(requires))
    else:
        return None
    cell = variant.name, format_params(config), on.name
    mark = kernel_cache.key_of(_RUN_ONCE, workload.name, *cell, str(sharing), variant.source_sha256, targets, versions)
    return None if kernel_cache.holds(mark) else (on.name, mark, sharing)


def _place_and_time(function: Callable[..., object]) -> tuple[str, str]:
    """The file of a function and when it was written. Numba's machine code belongs to both, so that another clone compiles again."""
    path = inspect.unwrap(function).__code__.co_filename
    return path, str(Path(path).stat().st_mtime_ns)


@cache
def _versions(*modules: str) -> tuple[str, ...]:
    """Return the versions of the packages that contain these modules."""
    return tuple(f"{package} {metadata.version(package)}" for module in modules for package in _packages(module))


def _packages(module: str) -> Sequence[str]:
    """Return the packages that contain a module. Most have its name; to look for the others takes a second."""
    with suppress(metadata.PackageNotFoundError):
        metadata.version(module)
        return [module]
    return _packages_by_module().get(module, ())


@cache
def _packages_by_module() -> Mapping[str, Sequence[str]]:
    return metadata.packages_distributions()


def _kernels(workload: Workload, case: Case, variant: CudaVariant, config: Any, architectures: Sequence[str]) -> Iterator[Job]:
    if not architectures:  # without a GPU, which the compiler need not be loaded for
        return
    from warpladder.collectors.cuda.compiler import compilation_of

    parts = plan_parts(workload, case, variant, config)
    names = kernel_names(variant.launches(case, config), parts)
    for architecture in architectures:
        compilation = compilation_of(variant, names, architecture)
        if not kernel_cache.holds(compilation.key):
            yield Kernels(*astuple(compilation))


class Compilers(AbstractContextManager["Compilers"]):
    """Does the jobs in processes of their own, one per core, which go on only while `wait_for` waits.

    Args:
        jobs: jobs from `jobs_of`.
        report: called with the number of finished jobs, the number of all jobs, and the seconds so far with the job that took longest, in
            seconds of processor time.
        check: called ten times a second; an exception that it raises ends the wait.
        gpu_bytes: memory of the GPU. Where it does not hold the arrays of all processes, the first wait is for all jobs, so that these end.
    """

    def __init__(
        self, jobs: Mapping[Job, Sequence[int]], report: JobProgress, check: Callable[[], object], gpu_bytes: float = math.inf
    ) -> None:
        self._needed_by, self._report, self._check = list(jobs.values()), report, check
        self._all_at_once = gpu_bytes < len(os.sched_getaffinity(0)) * _BYTES_A_PROCESS
        self._open = set(range(len(jobs)))
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._longest, self._waited_s = (0.0, ""), 0.0
        self._workers: Guarded | None = None
        if jobs:
            report(0, len(jobs), "")
            command = [sys.executable, "-m", ENTRY, "compile", str(min(len(os.sched_getaffinity(0)), len(jobs)))]
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            self._workers = Guarded(command, cwd=IMPORT_ROOT, **pipes)
            threading.Thread(target=_converse, args=(self._workers.process, list(jobs), self._lines), daemon=True).start()

    def wait_for(self, *numbers: int) -> None:
        """Compile until all is done that these cases need, and stop the processes. `numbers`: positions in `plan.jobs`;
        none for all cases."""
        numbers = () if self._all_at_once else numbers
        if not self._needs(numbers):
            return
        self._tell(signal.SIGCONT)
        started_s = last_line_s = time.monotonic()
        while self._needs(numbers):
            self._check()
            if time.monotonic() - last_line_s > _PATIENCE_S:
                self._give_up()
                break
            with suppress(queue.Empty):
                line = self._lines.get(timeout=POLL_S)
                last_line_s = time.monotonic()
                self._take(line, self._waited_s + last_line_s - started_s)
        self._waited_s += time.monotonic() - started_s
        if self._open:
            self._tell(signal.SIGSTOP)
            time.sleep(_STOPPED_S)

    def _needs(self, numbers: Sequence[int]) -> bool:
        """Whether a job is not done that one of these cases needs, or any job where none is named."""
        return any(not numbers or not {*numbers}.isdisjoint(self._needed_by[job]) for job in self._open)

    def _take(self, line: str, seconds: float) -> None:
        """Take a line of the processes."""
        if not line:
            self._give_up()  # the processes ended early
            return
        job, took_s, name = line.split(maxsplit=2)
        self._open.discard(int(job))
        self._longest = max(self._longest, (float(took_s), name.strip()))
        jobs = len(self._needed_by)
        longest = f"longest: {self._longest[1]}, {self._longest[0]:.1f} s of processor time"
        self._report(jobs - len(self._open), jobs, f"{seconds:.1f} s; {longest}")

    def _give_up(self) -> None:
        """Leave the rest to the process that measures."""
        self._open.clear()

    def _tell(self, number: int) -> None:
        if self._workers:
            self._workers.tell(number)

    def __exit__(self, *_: object) -> None:
        if self._workers:
            self._workers.end()


def _converse(process: "subprocess.Popen[str]", jobs: Sequence[Job], lines: "queue.SimpleQueue[str]") -> None:
    """Send the jobs to the process, and put its output lines into the queue; an empty text marks the end."""
    assert process.stdin and process.stdout
    with suppress(OSError, ValueError):  # the process may end before it has read all jobs
        process.stdin.write("".join(f"{json.dumps([type(job).__name__, *astuple(job)])}\n" for job in jobs))
        process.stdin.close()
        for line in process.stdout:
            lines.put(line)
    lines.put("")


# -- in the processes that compile ---------------------------------------------------------------------------------------


def _of_line(line: str) -> Job:
    kind, *values = json.loads(line)
    job: Job = _KINDS[kind](*values)
    return job


def _do(job: Job, make_benches: MakeBenches) -> str:
    """Do one job. Errors are ignored: the measuring process reports them. Returns its processor time in seconds and its name."""
    started_s = sum(os.times()[:4])
    with suppress(Exception):
        if isinstance(job, Kernels):
            from warpladder.collectors.cuda.compiler import Compilation, compiled
            from warpladder.collectors.cuda.disassembly import disassemble

            kernels, constants, options = map(tuple, (job.kernels, job.constants, job.options))
            module = compiled(Compilation(job.source, job.where, kernels, constants, job.arch, options, job.nvrtc))
            disassemble(module.cubin)  # here, since parsing takes one core seconds at the end of a recording
        else:
            workload = WorkloadRef(job.workload, Path(job.file) if job.file else None).load()
            case = workload.case(job.case)
            if job.ranks > 1 and workload.shares:
                case = workload.shares(case, job.ranks)[0].case
            _run_once(workload, case, workload.variant(job.variant), job.config, make_benches)
            kernel_cache.write(job.mark, {}, b"")
    return f"{sum(os.times()[:4]) - started_s:.2f} {job.name}"


def _run_once(workload: Workload, case: Case, variant: Variant, config: str, make_benches: MakeBenches) -> None:
    """Run a variant, so that the caches hold everything that it compiles at its first call."""
    from warpladder.collectors.core.judge import Problem

    torch_bridge.time_algorithms = False
    problem = Problem(workload, case, np.random.default_rng(0))
    bench = make_benches()[variant.kind](workload, case, problem.inputs)
    bench.run(bench.prepare(variant, next(each for each in variant.configs if format_params(each) == config)))


def main(workers: int, make_benches: MakeBenches) -> None:
    """Read jobs from stdin until it ends.

    Args:
        workers: number of processes.
        make_benches: returns the bench for each kind of variant; a function at module level, which each process imports.
    """
    for number in (signal.SIGINT, signal.SIGHUP):  # the recorder handles these
        signal.signal(number, signal.SIG_IGN)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # each core has a process already
    jobs = [_of_line(line) for line in sys.stdin]
    # What libraries print goes to stderr, so that stdout has a line for each job and no other.
    with ProcessPoolExecutor(workers, initializer=os.dup2, initargs=(2, 1)) as pool, suppress(BrokenProcessPool):
        numbers = {pool.submit(_do, job, make_benches): number for number, job in enumerate(jobs)}
        for each in as_completed(numbers):
            print(numbers[each], each.result(), flush=True)
