"""Compiles everything that a plan needs side by side, one process a core, before anything is timed.

That is kernels, functions of Numba, and what PyTorch's compiler makes of library variants. The machine code goes to the caches on disk, where
the process that measures finds it. What does not compile here is left for that process, which gives the cell its verdict.
`python -m collectors.compile_ahead COUNT` takes a job a line on its input and says of each when it is done.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from collectors import kernel_cache
from collectors.environment import cpu_name
from collectors.plan import Plan, WorkloadRef
from collectors.processes import POLL_S, Guarded
from collectors.transfers import kernel_names, plan_parts
from workloads import torch_bridge
from workloads.api import Case, CudaVariant, HostVariant, LibraryVariant, Params, Variant, Workload, format_params

#: The phase is given up when nothing was done for so long.
_PATIENCE_S: Final = 120.0
_KERNELS, _RUN_ONCE = "kernels", "run once"

Job = tuple[Any, ...]


def jobs_of(plan: Plan, architectures: Sequence[str], libraries: bool = True) -> list[Job]:
    """What is not in the cache yet of what the cells of a plan need, each once: kernels for GPUs, and variants that are compiled
    when they run.

    Args:
        plan: what will be measured.
        architectures: such as `sm_90`; none where kernels are not measured.
        libraries: whether library variants are run; a tool that looks at every launch would take minutes for it.
    """
    found: dict[Job, None] = {}
    for job in plan.jobs:
        workload = next(each for each in plan.workloads if each.name == job.workload.name)
        case = workload.case(job.case)
        for cell in job.cells:
            variant = workload.variant(cell.variant)
            with suppress(Exception):  # whatever is wrong with it is for its verdict
                config = next(config for config in variant.configs if format_params(config) == cell.config)
                if variant.skip(case, config) is not None:
                    continue
                if isinstance(variant, CudaVariant):
                    for share in _shares(workload, case, job.gpus):
                        found |= dict.fromkeys(_kernels(workload, share, variant, config, architectures))
                elif first := _first_call(workload, variant, case, config, architectures if libraries else ()):
                    found[_RUN_ONCE, job.workload.name, str(job.workload.file or ""), variant.name, *first] = None
    return list(found)


def _first_call(
    workload: Workload, variant: Variant, case: Case, config: Params, architectures: Sequence[str]
) -> tuple[str, str] | None:
    """Where a variant is compiled when it runs: the case to run it on, and the key under which the cache notes that this was done.
    None where nothing is compiled, or it has been done."""
    least = min((each for each in workload.cases if variant.skip(each, config) is None), key=lambda each: each.min_bytes)
    requires = set(variant.requires) if isinstance(variant, HostVariant | LibraryVariant) else set()
    on, targets = least, architectures
    if isinstance(variant, HostVariant) and "numba" in requires:  # its machine code depends on types, not on sizes
        versions, targets = _versions("numba"), (cpu_name(), os.environ.get("NUMBA_CACHE_DIR", ""))
    elif not (isinstance(variant, LibraryVariant) and architectures and requires):
        return None
    elif requires >= {*torch_bridge.COMPILER}:
        on, versions = case, _versions("torch", "triton")
    elif requires <= {"cupy", "cupyx"}:
        versions = _versions("cupy")
    else:
        return None
    mark = kernel_cache.key_of(_RUN_ONCE, workload.name, variant.name, variant.source_sha256, on.name, targets, versions)
    return None if kernel_cache.holds(mark) else (on.name, mark)


@cache
def _versions(*modules: str) -> tuple[str, ...]:
    """Of the packages that these modules come from."""
    packages = metadata.packages_distributions()
    return tuple(f"{package} {metadata.version(package)}" for module in modules for package in packages.get(module, ()))


def _shares(workload: Workload, case: Case, gpus: int) -> list[Case]:
    """The cases that the ranks launch kernels for."""
    return [part.case for part in workload.shares(case, gpus)] if workload.shares and gpus > 1 else [case]


def _kernels(workload: Workload, case: Case, variant: CudaVariant, config: Any, architectures: Sequence[str]) -> Iterator[Job]:
    from collectors.compiler import compilation_of

    parts = plan_parts(workload, case, variant, config)
    names = kernel_names(variant.launches(case, config), parts)
    for architecture in architectures:
        compilation = compilation_of(variant, names, architecture)
        if not kernel_cache.holds(compilation.key):
            yield _KERNELS, *astuple(compilation)


def compile_all(jobs: Sequence[Job], told: Callable[[int], object], check: Callable[[], object]) -> None:
    """Do the jobs, one process a core.

    Args:
        jobs: as of `jobs_of`.
        told: called with the number of jobs that are done.
        check: called ten times a second; what it raises ends the phase.
    """
    if not jobs:
        return
    workers = min(len(os.sched_getaffinity(0)), len(jobs))
    command = [sys.executable, "-m", "collectors.compile_ahead", str(workers)]
    project = Path(__file__).resolve().parent.parent
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with Guarded(command, cwd=project, **pipes) as guarded:
        said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_converse, args=(guarded.process, jobs, said), daemon=True).start()
        done, since = 0, time.monotonic()
        while done < len(jobs) and time.monotonic() - since < _PATIENCE_S:
            check()
            with suppress(queue.Empty):
                if not said.get(timeout=POLL_S):
                    return  # it ended early
                done, since = done + 1, time.monotonic()
                told(done)


def _converse(process: "subprocess.Popen[str]", jobs: Sequence[Job], said: "queue.SimpleQueue[str]") -> None:
    """Hand the jobs over and pass on what is said of them; an empty text is the end."""
    assert process.stdin and process.stdout
    with suppress(OSError, ValueError):  # it may end before it has taken all
        process.stdin.write("".join(f"{json.dumps(job)}\n" for job in jobs))
        process.stdin.close()
        for line in process.stdout:
            said.put(line)
    said.put("")


# -- in the processes that compile ---------------------------------------------------------------------------------------


def _do(job: Sequence[Any]) -> None:
    """One job. What goes wrong is left for the process that measures."""
    kind, *rest = job
    with suppress(Exception):
        if kind == _KERNELS:
            from collectors.compiler import Compilation, compiled

            source, where, kernels, constants, arch, options = rest
            compiled(Compilation(source, where, tuple(kernels), tuple(constants), arch, tuple(options)))
        else:
            name, file, variant, case, mark = rest
            workload = WorkloadRef(name, Path(file) if file else None).load()
            _run_once(workload, workload.case(case), workload.variant(variant))
            kernel_cache.write(mark, {}, b"")


def _run_once(workload: Workload, case: Case, variant: Variant) -> None:
    """Run a variant and compare what it gives, so that what both compile at their first call is in the caches."""
    from collectors.problem import Problem
    from collectors.verify import compare
    from collectors.worker import make_benches

    torch_bridge.time_algorithms = False
    problem = Problem(workload, case, np.random.default_rng(0))
    bench = make_benches("cuda_events")[variant.kind](workload, case, problem.inputs)
    outputs = bench.run(bench.prepare(variant, variant.configs[0]))
    if variant.kind != "host":
        compare(outputs, bench.place({name: array.astype(np.float64) for name, array in outputs.items()}), 1.0)


def main(workers: int) -> None:
    """Take jobs until the input ends."""
    for number in (signal.SIGINT, signal.SIGHUP):  # the recorder's business
        signal.signal(number, signal.SIG_IGN)
    jobs = [json.loads(line) for line in sys.stdin]
    with ProcessPoolExecutor(workers) as pool, suppress(BrokenProcessPool):
        for each in as_completed([pool.submit(_do, job) for job in jobs]):
            each.result()
            print("done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
