"""Compiles everything that a plan needs before anything is timed, in parallel, with one process per core.

It compiles kernels, Numba functions, and library variants that use PyTorch's compiler. The machine code goes to the caches on
disk, where the measuring process finds it. A compile error is ignored here: the measuring process meets it again and reports the
cell's status. `python -m warpladder.collectors.child compile COUNT` reads one job per line from stdin, and reports each job
when it is done.
"""

import inspect
import json
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
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.bench import MakeBench
from warpladder.collectors.core.children import ENTRY, POLL_S, Guarded
from warpladder.collectors.core.environment import cpu_name
from warpladder.collectors.core.plan import HeldWorkload, Plan, WorkloadRef
from warpladder.collectors.cuda.transfers import kernel_names, plan_parts
from warpladder.installation import IMPORT_ROOT
from warpladder.workloads import torch_bridge
from warpladder.workloads.api import Case, CudaVariant, HostVariant, LibraryVariant, Params, Variant, Workload, format_params
from warpladder.workloads.declare.stepwise import Stepwise

#: Compiling ahead is given up after this many seconds without a finished job.
_PATIENCE_S: Final = 120.0
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


@dataclass(frozen=True)
class RunOnce:
    """Run a variant that compiles itself at its first call.

    Attributes:
        workload, file: name of the workload, and the user's file that declares it, or None.
        variant: name of the variant.
        config: the values of its tunables, as text.
        case: name of the case to run it on.
        mark: cache key of an entry that says that this job was done.
    """

    workload: str
    file: str
    variant: str
    config: str
    case: str
    mark: str


Job = Kernels | RunOnce
MakeBenches = Callable[[], Mapping[str, MakeBench]]


def jobs_of(plan: Plan, architectures: Sequence[str], libraries: bool = True) -> list[Job]:
    """Return the jobs of a plan that are not in the cache: kernels, and variants that compile at their first call. Those that take longest
    come first.

    Args:
        plan: the cells to measure.
        architectures: such as `sm_90`; empty if no kernels are measured.
        libraries: whether to run library variants; under a tool that inspects every launch this would take minutes.
    """
    jobs: dict[Job, int] = {}
    for job in plan.jobs:
        workload = next(each for each in plan.workloads if each.name == job.workload.name)
        case = workload.case(job.case)
        for cell in job.cells:
            variant = workload.variant(cell.variant)
            with suppress(Exception):  # the measuring process reports the error in the status
                config = next(config for config in variant.configs if format_params(config) == cell.config)
                if variant.skip(case, config) is not None:
                    continue
                if isinstance(variant, CudaVariant):
                    for share in _shares(workload, case, job.gpus):
                        jobs |= dict.fromkeys(_kernels(workload, share, variant, config, architectures), _rank(variant))
                elif not isinstance(job.workload, HeldWorkload) and (
                    first := _first_call(workload, variant, case, config, architectures if libraries else ())
                ):
                    once = RunOnce(job.workload.name, str(job.workload.file or ""), variant.name, cell.config, *first)
                    jobs[once] = _rank(variant)
    return sorted(jobs, key=jobs.__getitem__)


def _rank(variant: Variant) -> int:
    """PyTorch's compiler takes longest, NVRTC least."""
    if isinstance(variant, CudaVariant):
        return 2
    requires = variant.requires if isinstance(variant, HostVariant | LibraryVariant) else ()
    return 0 if {*requires} >= {*torch_bridge.COMPILER} else 1


def _first_call(
    workload: Workload, variant: Variant, case: Case, config: Params, architectures: Sequence[str]
) -> tuple[str, str] | None:
    """For a variant that compiles at its first call, return the case to run it on and the cache key that marks it as done.
    None if the variant compiles nothing, or the cache has the key.
    """
    least = min((each for each in workload.cases if variant.skip(each, config) is None), key=lambda each: each.min_bytes or 0)
    requires = set(variant.requires) if isinstance(variant, HostVariant | LibraryVariant) else set()
    on, targets = least, architectures
    if isinstance(variant, HostVariant) and "numba" in requires:  # the machine code depends on types, not on sizes
        versions = _versions("numba")
        targets = (cpu_name(), os.environ.get("NUMBA_CACHE_DIR", ""), *_place_and_time(variant.run))
    elif not (isinstance(variant, LibraryVariant) and architectures and requires):
        return None
    elif requires >= {*torch_bridge.COMPILER}:
        on, versions = case, _versions("torch", "triton")
    elif requires <= {"cupy", "cupyx"}:
        versions = _versions("cupy")
    elif isinstance(variant.prepare, type) and issubclass(variant.prepare, Stepwise) and bool(variant.prepare.caches):
        versions = _versions(*sorted(requires))
    else:
        return None
    cell = variant.name, format_params(config), on.name
    mark = kernel_cache.key_of(_RUN_ONCE, workload.name, *cell, variant.source_sha256, targets, versions)
    return None if kernel_cache.holds(mark) else (on.name, mark)


def _place_and_time(function: Callable[..., object]) -> tuple[str, str]:
    """The file of a function and when it was written. Numba's machine code belongs to both, so that another clone compiles again."""
    path = inspect.unwrap(function).__code__.co_filename
    return path, str(Path(path).stat().st_mtime_ns)


@cache
def _versions(*modules: str) -> tuple[str, ...]:
    """Return the versions of the packages that contain these modules."""
    packages = metadata.packages_distributions()
    return tuple(f"{package} {metadata.version(package)}" for module in modules for package in packages.get(module, ()))


def _shares(workload: Workload, case: Case, gpus: int) -> list[Case]:
    """Return the cases of the ranks' shares."""
    return [part.case for part in workload.shares(case, gpus)] if workload.shares and gpus > 1 else [case]


def _kernels(workload: Workload, case: Case, variant: CudaVariant, config: Any, architectures: Sequence[str]) -> Iterator[Job]:
    from warpladder.collectors.cuda.compiler import compilation_of

    parts = plan_parts(workload, case, variant, config)
    names = kernel_names(variant.launches(case, config), parts)
    for architecture in architectures:
        compilation = compilation_of(variant, names, architecture)
        if not kernel_cache.holds(compilation.key):
            yield Kernels(*astuple(compilation))


def compile_all(jobs: Sequence[Job], report: Callable[[int, str], object], check: Callable[[], object]) -> None:
    """Do the jobs, with one process per core.

    Args:
        jobs: jobs from `jobs_of`.
        report: called with the number of finished jobs, and the name and the time of the longest.
        check: called ten times a second; an exception that it raises ends the compilation.
    """
    if not jobs:
        return
    workers = min(len(os.sched_getaffinity(0)), len(jobs))
    command = [sys.executable, "-m", ENTRY, "compile", str(workers)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with Guarded(command, cwd=IMPORT_ROOT, **pipes) as guarded:
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_converse, args=(guarded.process, jobs, lines), daemon=True).start()
        finished, last_line_s, longest = 0, time.monotonic(), (0.0, "")
        while finished < len(jobs) and time.monotonic() - last_line_s < _PATIENCE_S:
            check()
            with suppress(queue.Empty):
                if not (line := lines.get(timeout=POLL_S)):
                    return  # the process ended early
                seconds, name = line.split(maxsplit=1)
                finished, last_line_s, longest = finished + 1, time.monotonic(), max(longest, (float(seconds), name.strip()))
                report(finished, f"{longest[1]} {longest[0]:.1f} s")


def _converse(process: "subprocess.Popen[str]", jobs: Sequence[Job], lines: "queue.SimpleQueue[str]") -> None:
    """Send the jobs to the process, and put its output lines into the queue; an empty text marks the end."""
    assert process.stdin and process.stdout
    with suppress(OSError, ValueError):  # the process may end before it has read all jobs
        process.stdin.write("".join(f"{_to_line(job)}\n" for job in jobs))
        process.stdin.close()
        for line in process.stdout:
            lines.put(line)
    lines.put("")


# -- in the processes that compile ---------------------------------------------------------------------------------------


def _to_line(job: Job) -> str:
    """Return the job as JSON on one line; `_of_line` reads it."""
    return json.dumps([isinstance(job, Kernels), *astuple(job)])


def _of_line(line: str) -> Job:
    is_kernels, *values = json.loads(line)
    return Kernels(*values) if is_kernels else RunOnce(*values)


def _do(job: Job, make_benches: MakeBenches) -> str:
    """Do one job. Errors are ignored: the measuring process reports them. Returns its time in seconds and its name."""
    started = time.monotonic()
    with suppress(Exception):
        if isinstance(job, Kernels):
            from warpladder.collectors.cuda.compiler import Compilation, compiled

            kernels, constants, options = map(tuple, (job.kernels, job.constants, job.options))
            compiled(Compilation(job.source, job.where, kernels, constants, job.arch, options))
        else:
            workload = WorkloadRef(job.workload, Path(job.file) if job.file else None).load()
            _run_once(workload, workload.case(job.case), workload.variant(job.variant), job.config, make_benches)
            kernel_cache.write(job.mark, {}, b"")
    name = job.where if isinstance(job, Kernels) else f"{job.workload}/{job.variant}"
    return f"{time.monotonic() - started:.2f} {name}"


def _run_once(workload: Workload, case: Case, variant: Variant, config: str, make_benches: MakeBenches) -> None:
    """Run a variant and compare its outputs, so that the caches hold everything that either compiles at its first call."""
    from warpladder.collectors.core.agreement import compare
    from warpladder.collectors.core.judge import Problem

    torch_bridge.time_algorithms = False
    problem = Problem(workload, case, np.random.default_rng(0))
    bench = make_benches()[variant.kind](workload, case, problem.inputs)
    outputs = bench.run(bench.prepare(variant, next(each for each in variant.configs if format_params(each) == config)))
    if variant.kind != "host":
        compare(outputs, bench.place({name: array.astype(np.float64) for name, array in outputs.items()}), 1.0)


def main(workers: int, make_benches: MakeBenches) -> None:
    """Read jobs from stdin until it ends.

    Args:
        workers: number of processes.
        make_benches: returns the bench for each kind of variant; a function at module level, which each process imports.
    """
    for number in (signal.SIGINT, signal.SIGHUP):  # the recorder handles these
        signal.signal(number, signal.SIG_IGN)
    jobs = [_of_line(line) for line in sys.stdin]
    # What libraries print goes to stderr, so that stdout has a line for each job and no other.
    with ProcessPoolExecutor(workers, initializer=os.dup2, initargs=(2, 1)) as pool, suppress(BrokenProcessPool):
        for each in as_completed([pool.submit(_do, job, make_benches) for job in jobs]):
            print(each.result(), flush=True)
