"""Runs every config of a workload's CUDA variants once at odd sizes and checks the outputs: the program that compute-sanitizer watches.

    compute-sanitizer --tool racecheck python -m tests.collectors.cuda.run_every_kernel cnn_conv --variants v02_naive

The cells run as in the pass `--sanitize`.
"""

import argparse
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Final

from warpladder.collectors.choice import gpu_problem
from warpladder.collectors.sanitizer.child import run
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CudaVariant, Params, Workload, WorkloadError

#: Of an odd case: a tool watches the threads of larger ones for minutes.
_MOST_BYTES: Final = 32_000_000


def cells(workload: Workload, names: Collection[str] = ()) -> list[tuple[Case, CudaVariant, Params]]:
    """Every config of the CUDA variants (of those names only, if any) at every odd case; where it serves none, at the smallest it does.

    Odd cases are those of a set that no chart shows, and those of the emulator, whose extents fit no tile.
    """
    odd = [case for case in workload.cases if case.size_rank is None and case.sets and case.min_bytes < _MOST_BYTES] + emulated(
        workload
    )
    ranked = sorted((case for case in workload.cases if case.size_rank is not None), key=lambda case: case.min_bytes)
    found = []
    for variant in workload.variants:
        if isinstance(variant, CudaVariant) and (not names or variant.name in names):
            for config in variant.configs:
                served = [case for case in odd if variant.skip(case, config) is None]
                smallest = [case for case in ranked if variant.skip(case, config) is None][:1]
                found += [(case, variant, config) for case in served or smallest]
    order = [*workload.cases, *emulated(workload)]
    return sorted(found, key=lambda cell: order.index(cell[0]))


def emulated(workload: Workload) -> list[Case]:
    """The cases of a shipped workload that the tests run in the emulator; none of a workload of a file."""
    module = f"warpladder.workloads.{workload.name}.workload"
    return list(import_module(module).emulation_cases()) if workload.name in registry.names() else []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="run_every_kernel", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("workload", help="its name, or a .py file that sets WORKLOAD")
    parser.add_argument("--variants", nargs="+", default=(), metavar="NAME", help="only these")
    parser.add_argument(
        "--leave-unwritten",
        action="store_true",
        help="for initcheck: outputs and scratch are left as they are allocated, not filled with NaN",
    )
    chosen = parser.parse_args(arguments)
    try:
        is_file = chosen.workload.endswith(".py")
        workload = registry.load_file(Path(chosen.workload))[0] if is_file else registry.load(chosen.workload)
    except WorkloadError as error:
        parser.error(str(error))
    unknown = set(chosen.variants) - {variant.name for _, variant, _ in cells(workload)}
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: no such CUDA variant of {workload.name}")
    problem = gpu_problem()
    if problem:
        parser.error(problem)
    all_right = True
    for right, line in run(workload, cells(workload, chosen.variants), leave_unwritten=chosen.leave_unwritten):
        print(line, flush=True)
        all_right &= right
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
