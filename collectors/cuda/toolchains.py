"""The same kernels under two versions of NVRTC in one plan: each variant in CUDA C++, and beside it the source as the earlier one compiles it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.plan import Plan, WorkloadRef
from warpladder.collectors.cuda import compiler, machine_code
from warpladder.collectors.cuda.compile_ahead import Compilers, jobs_of
from warpladder.collectors.cuda.disassembly import DisassemblyError
from warpladder.collectors.cuda.kernels_of_file import cuda_cells
from warpladder.collectors.cuda.nvrtc import Nvrtc, find, nvrtc
from warpladder.errors import Error
from warpladder.workloads.api import CudaVariant, Variant, Workload, format_params
from warpladder.workloads.declare.functions.benchmark import at_version

_MOST: Final = 2


@dataclass(frozen=True)
class TwoCompilers(WorkloadRef):
    """Identifies a workload with the variants of two compilers.

    Attributes:
        before, after: paths of NVRTC.
    """

    before: str = ""
    after: str = ""

    def load(self) -> Workload:
        return with_both(super().load(), nvrtc(self.before), nvrtc(self.after))


def found(names: Sequence[str]) -> tuple[Nvrtc, Nvrtc]:
    """The compilers of one or two names, see `nvrtc.find`; without a second one it is the installed one.

    Raises:
        Error: one is not there, or both are of one version.
    """
    if len(names) > _MOST:
        raise Error(f"--toolchain {names[_MOST]}: one too many; name the version before and the one after")
    before, after = find(names[0]), find(names[1]) if len(names) == _MOST else nvrtc()
    if before.version == after.version:
        raise Error(f"--toolchain: both are NVRTC {before.version} ({before.path}); name another version to compare with")
    return before, after


def version_name(before: Nvrtc) -> str:
    """What stands after the `@` of a variant that this compiler compiles."""
    return f"nvrtc-{before.version}"


def is_compiled(variant: object) -> bool:
    """Whether NVRTC compiles a variant."""
    return isinstance(variant, CudaVariant) and not compiler.is_ptx(variant.source_text)


def with_both(workload: Workload, before: Nvrtc, after: Nvrtc) -> Workload:
    """A workload whose kernels `after` compiles, each with a variant beside it that `before` compiles."""
    variants = list[Variant]()
    for each in workload.variants:
        if is_compiled(each):
            assert isinstance(each, CudaVariant)
            of_before = replace(each, place=each.rung, nvrtc=before.path)
            variants += [at_version(of_before, version_name(before)), replace(each, nvrtc=after.path)]
        else:
            variants.append(each)
    return replace(workload, variants=tuple(variants))


def code_of(plan: Plan, architecture: str) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Rows of `cell_launches` and `machine_code` of a plan of both, and for each variant without code, why. Uses no GPU."""
    with Compilers(jobs_of(plan, [architecture], libraries=False), lambda *report: None, lambda: None) as compilers:
        compilers.wait_for()
    rows: dict[str, list[dict[str, Any]]] = {"cell_launches": [], "machine_code": []}
    problems = []
    for cells in _by_variant(plan, architecture):
        try:
            of_variant = machine_code.rows_of(plan, cells, architecture)
        except (compiler.CompileError, DisassemblyError) as error:
            problems.append(f"{cells[0].variant}: {next(iter(str(error).splitlines()))}")
            continue
        for table, own in rows.items():
            own += of_variant[table]
    return rows, problems


def _by_variant(plan: Plan, architecture: str) -> Iterable[list[Cell]]:
    """The cells of each variant that can run."""
    found: dict[tuple[str, str], list[Cell]] = {}
    workloads = {each.name: each for each in plan.workloads}
    for cell in cuda_cells(plan, architecture):
        workload = workloads[cell.workload]
        variant = workload.variant(cell.variant)
        config = next(each for each in variant.configs if format_params(each) == cell.config)
        if variant.skip(workload.case(cell.case), config) is None:
            found.setdefault((cell.workload, cell.variant), []).append(cell)
    return found.values()
