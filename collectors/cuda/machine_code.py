"""The machine code of the kernels of a plan, as rows of `launches` and `machine_code`. Uses no GPU."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.plan import Plan
from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.compiled import CompiledKernel, CompiledModule
from warpladder.collectors.cuda.disassembly import Instruction, disassemble_all
from warpladder.collectors.cuda.transfers import kernel_names, plan_parts
from warpladder.data import source_text
from warpladder.workloads.api import CudaVariant, Launch, format_params, kernels_of

Rows = dict[str, list[dict[str, Any]]]

_PADDING: Final = "NOP"


def rows_of(plan: Plan, cells: Collection[Cell], architecture: str) -> Rows:
    """The launches of cells and their code.

    Args:
        plan: has the workloads of the cells.
        cells: cells that are right; those whose variant has no kernel of CUDA C++ are passed over.
        architecture: such as `sm_90`.

    Raises:
        DisassemblyError: there is no disassembler.
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
    return {"launches": launches, "machine_code": list(codes.values())}


def _row_of(
    variant: CudaVariant, name: str, kernel: CompiledKernel, instructions: Sequence[Instruction], ptx: str, architecture: str
) -> dict[str, Any]:
    file = variant.source_file.name if variant.source_file else variant.name
    return code_row(
        name,
        variant.only_architecture or architecture,
        f"NVRTC {compiler.version()}",
        instructions,
        _places(variant.source_text, variant.source_path or file),
        registers=kernel.registers,
        static_shared_bytes=kernel.static_shared_bytes,
        spill_bytes=kernel.spill_bytes,
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
    return {"kernel": launch.kernel, "code": code, **sizes, "dynamic_shared_bytes": launch.dynamic_shared_bytes}


@cache
def _places(text: str, name: str) -> Mapping[tuple[str, int], int]:
    return source_text.places(text, name)


def code_row(
    kernel: str,
    architecture: str,
    compiled_by: str,
    instructions: Sequence[Instruction],
    places: Mapping[tuple[str, int], int],
    *,
    registers: int | None,
    static_shared_bytes: int | None,
    spill_bytes: int | None,
    ptx: str | None,
) -> dict[str, Any]:
    """A row of `machine_code`.

    Args:
        places: line of the variant's source for each place that the compiler gives; see `source_text.places`.
        The others are columns of the row.
    """
    code = _without_padding(instructions)
    sass = "\n".join(each.text for each in code)
    lines = "\n".join(str(next((places[place] for place in each.places if place in places), 0)) for each in code)
    resources = {"registers": registers, "static_shared_bytes": static_shared_bytes, "spill_bytes": spill_bytes}
    content = "\0".join([kernel, architecture, sass, lines, repr(resources)])
    return {
        "code": hashlib.sha256(content.encode()).hexdigest()[:16],
        "kernel": kernel,
        "architecture": architecture,
        "compiler": compiled_by,
        **resources,
        "sass": sass,
        "lines": lines,
        "ptx": ptx,
    }


def _without_padding(instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """Without the NOPs at the end, which align the next function, and the branch to itself before them, which is never reached."""
    end = len(instructions)
    while end and instructions[end - 1].text == _PADDING:
        end -= 1
    if end and instructions[end - 1].text == f"BRA {16 * (end - 1):#x}":
        end -= 1
    return instructions[:end]


def ptx_of(module: str, symbol: str) -> str | None:
    """The PTX of one kernel out of the PTX of a module; None if it is not there."""
    return next((text for name, text in _entries(module) if name == symbol), None)


_ENTRY: Final = re.compile(r"^(?:\.visible |\.weak )*\.entry ([^\s(]+)\(.*?^\}", re.MULTILINE | re.DOTALL)


def _entries(module: str) -> Iterator[tuple[str, str]]:
    return ((match[1], match[0]) for match in _ENTRY.finditer(module))
