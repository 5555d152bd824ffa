"""The machine code of the kernels of a plan, as rows of `cell_launches` and `machine_code`. Uses no GPU."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.code_rows import Instruction, Place, code_row, launch_rows
from warpladder.collectors.core.plan import Plan
from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.compiler import CompiledKernel, CompiledModule
from warpladder.collectors.cuda.disassembly import disassemble_all
from warpladder.collectors.cuda.transfers import kernel_names, plan_parts
from warpladder.data import source_text
from warpladder.workloads.api import CudaVariant, Launch, format_params, kernels_of
from warpladder.workloads.declare.launches import scalars

Rows = dict[str, list[dict[str, Any]]]


def rows_of(plan: Plan, cells: Collection[Cell], architecture: str) -> Rows:
    """The launches of cells and their code. Raises DisassemblyError: there is no disassembler.

    Args:
        cells: cells that are right; those whose variant has no kernel of CUDA C++ are passed over.
        architecture: such as `sm_90`.
    """
    compiled = [each for cell in cells if (each := _compiled(plan, cell, architecture)) is not None]
    modules = list(dict.fromkeys(module.cubin for _, _, _, module in compiled))
    functions = dict(zip(modules, disassemble_all(modules), strict=True))
    launches, codes = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    known = dict[tuple[str, str, str, bytes], str]()
    for cell, variant, steps, module in compiled:
        for index, launch in enumerate(steps):
            key = cell.workload, cell.variant, launch.kernel, module.cubin
            if key not in known:  # a cell may launch a kernel thousands of times
                kernel = module.kernels[launch.kernel]
                instructions = functions[module.cubin][kernel.symbol]
                row = _row_of(variant, launch.kernel, kernel, instructions, module.ptx, architecture)
                known[key] = row["code"]
                codes.setdefault(row["code"], row)
            launches.append({**cell.key, "launch_index": index, **_launch_row(launch, known[key])})
    return {"cell_launches": launch_rows(launches), "machine_code": list(codes.values())}


def _row_of(
    variant: CudaVariant, name: str, kernel: CompiledKernel, instructions: Sequence[Instruction], ptx: str, architecture: str
) -> dict[str, Any]:
    file = variant.source_file.name if variant.source_file else variant.name
    return code_row(
        name,
        variant.only_architecture or architecture,
        f"NVRTC {compiler.version(variant.nvrtc)}",
        instructions,
        _places(variant.source_text, variant.source_path or file),
        registers=kernel.registers,
        static_shared_bytes=kernel.static_shared_bytes,
        spill_bytes=kernel.spill_bytes,
        stack_bytes=kernel.stack_bytes,
        ptx=ptx_of(ptx, kernel.symbol),
    )


def _compiled(plan: Plan, cell: Cell, architecture: str) -> tuple[Cell, CudaVariant, Sequence[Launch], CompiledModule] | None:
    """The launches of a cell and its compiled kernels, which are in the cache; None for a variant without any."""
    workload = next(each for each in plan.workloads if each.name == cell.workload)
    variant, case = workload.variant(cell.variant), workload.case(cell.case)
    if not isinstance(variant, CudaVariant):
        return None
    config = next(config for config in variant.configs if format_params(config) == cell.config)
    steps = variant.launches(case, config)
    names = kernel_names(steps, plan_parts(workload, case, variant, config))
    return cell, variant, kernels_of(steps), compiler.compile_variant(variant, names, architecture)


def _launch_row(launch: Launch, code: str) -> dict[str, Any]:
    sizes = {
        f"{what}_{axis}": size for what in ("grid", "block") for axis, size in zip("xyz", getattr(launch, what), strict=True)
    }
    shape = {**sizes, "dynamic_shared_bytes": launch.dynamic_shared_bytes}
    return {"kernel": launch.kernel, "code": code, **shape, "scalars": scalars(launch.args)}


@cache
def _places(text: str, name: str) -> Mapping[Place, int]:
    return source_text.places(text, name)


def ptx_of(module: str, symbol: str) -> str | None:
    """The PTX of one kernel out of the PTX of a module; None if it is not there."""
    return next((text for name, text in ((match[1], match[0]) for match in _ENTRY.finditer(module)) if name == symbol), None)


_ENTRY: Final = re.compile(r"^(?:\.visible |\.weak )*\.entry ([^\s(]+)\(.*?^\}", re.MULTILINE | re.DOTALL)
