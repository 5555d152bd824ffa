"""Compiles and disassembles every CUDA variant of every workload for each architecture, without a GPU: python -m benchmarks.machine_code

Every case of the set `full` counts, and a variant that is written for one architecture counts for that one alone. The caches of
compiled kernels and of their instructions are left aside, so that each figure is of the first time. It takes minutes.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ARCHITECTURES: Final = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


@dataclass(frozen=True)
class Figures:
    """What the machine code of one architecture takes.

    Attributes:
        variants, launches, kernels: how many there are; a kernel that several cells launch counts once.
        instructions: of all kernels.
        compile_s, disassemble_s: seconds of the compiler, and of the disassembler with the rows of the tables.
        cubin_mb, sass_mb, ptx_mb: MB of machine code, of the text of its instructions, and of PTX.
    """

    architecture: str
    variants: int
    launches: int
    kernels: int
    instructions: int
    compile_s: float
    disassemble_s: float
    cubin_mb: float
    sass_mb: float
    ptx_mb: float


def measure(architectures: tuple[str, ...] = ARCHITECTURES, workloads: tuple[str, ...] = ()) -> Iterator[Figures]:
    """The figures of each architecture; without names, of all workloads that ship."""
    from warpladder.collectors.core.plan import Request, make_plan
    from warpladder.collectors.cuda import compiler, machine_code
    from warpladder.collectors.cuda.kernels_of_file import cuda_cells
    from warpladder.collectors.cuda.transfers import kernel_names, plan_parts
    from warpladder.workloads.api import CudaVariant, format_params

    plan = make_plan(Request(names=workloads, case_set="full"))
    by_name = {workload.name: workload for workload in plan.workloads}
    for architecture in architectures:
        cells, modules = cuda_cells(plan, architecture), set[bytes]()
        start = time.perf_counter()
        for cell in cells:
            workload = by_name[cell.workload]
            variant, case = workload.variant(cell.variant), workload.case(cell.case)
            assert isinstance(variant, CudaVariant)
            config = next(each for each in variant.configs if format_params(each) == cell.config)
            names = kernel_names(variant.launches(case, config), plan_parts(workload, case, variant, config))
            modules.add(compiler.compile_variant(variant, names, architecture).cubin)
        compiled = time.perf_counter()
        rows = machine_code.rows_of(plan, cells, architecture)
        codes = rows["machine_code"]
        yield Figures(
            architecture,
            len({(cell.workload, cell.variant) for cell in cells}),
            len(rows["cell_launches"]),
            len(codes),
            sum(row["sass"].count("\n") + 1 for row in codes),
            compiled - start,
            time.perf_counter() - compiled,
            sum(map(len, modules)) / 1e6,
            sum(len(row["sass"]) for row in codes) / 1e6,
            sum(len(row["ptx"] or "") for row in codes) / 1e6,
        )


def main() -> None:
    heads = (
        "architecture",
        "variants",
        "launches",
        "kernels",
        "instructions",
        "compiled",
        "disassembled",
        "cubins",
        "SASS",
        "PTX",
    )
    print(" ".join(f"{head:>12}" for head in heads), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARPLADDER_CACHE_DIR"] = folder
        for each in measure():
            counts = (each.variants, each.launches, each.kernels, each.instructions)
            seconds, sizes = (each.compile_s, each.disassemble_s), (each.cubin_mb, each.sass_mb, each.ptx_mb)
            cells = [each.architecture, *map(str, counts), *(f"{s:.1f} s" for s in seconds), *(f"{mb:.1f} MB" for mb in sizes)]
            print(" ".join(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
