"""The plan of a run: the cells to measure, and the time limits. All collectors use the same plan."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.rounds import Limits
from warpladder.data import schema
from warpladder.errors import Error
from warpladder.workloads import registry
from warpladder.workloads.api import (
    LARGEST,
    Buffer,
    Case,
    CaseSet,
    CudaVariant,
    LibraryVariant,
    NotShareable,
    Part,
    Variant,
    Workload,
    WorkloadError,
    format_params,
)
from warpladder.workloads.declare.cases import AxisError, sweep
from warpladder.workloads.declare.functions.sources import source_of
from warpladder.workloads.registry import Version
from warpladder.workloads.torch_bridge import COMPILER

# -- jobs ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkloadRef:
    """Identifies a workload to a child process, by name or by the user's file."""

    name: str
    file: Path | None = None

    def load(self) -> Workload:
        if self.file is None:
            return registry.load(self.name)
        for workload in registry.load_file(self.file):
            if workload.name == self.name:
                return workload
        raise WorkloadError(
            f"{self.file.name}: declares no {self.name} when a measuring process loads it; declare it at the top level of the file, "
            "and not below `if __name__ == '__main__':`"
        )


@dataclass(frozen=True, kw_only=True)
class VersionsRef(WorkloadRef):
    """Identifies a workload of two versions of a user's file."""

    own: Version
    other: Version

    def load(self) -> Workload:
        return next(each for each in registry.load_versions(self.own, self.other) if each.name == self.name)


@dataclass(frozen=True)
class HeldWorkload(WorkloadRef):
    """Identifies a workload that this process alone has, such as one of a notebook, while `held` lasts."""

    def load(self) -> Workload:
        return _registered[self.name]


_registered: Final[dict[str, Workload]] = {}


@contextmanager
def held(workloads: Iterable[Workload]) -> Iterator[None]:
    """Keep workloads for the threads that measure them."""
    by_name = {workload.name: workload for workload in workloads}
    _registered.update(by_name)
    try:
        yield
    finally:
        for name in by_name:
            _registered.pop(name, None)


@dataclass(frozen=True)
class Job:
    """One case of one workload, with the cells to measure on it.

    Attributes:
        gpus: number of ranks that share the case; 1 for a single process. Each rank has one GPU, or none for host variants.
    """

    workload: WorkloadRef
    case: str
    cells: tuple[Cell, ...]
    seed: int
    gpus: int = 1


# -- rows of `cases` and `variants` --------------------------------------------------------------------------------------------


def case_row(workload: Workload, case: Case) -> dict[str, Any]:
    """A row of `cases`. The bytes of a case whose arrays are not made yet are 0. Raises WorkloadError: `buffers` of the
    workload fails, or declares more bytes than a run can hold."""
    where = f"{workload.name}/{case.name}"
    try:
        inputs, outputs = workload.buffers(case) if case.min_bytes is not None else ({}, {})
        copied = copied_bytes(case, inputs, outputs)
        unknown = set(case.resident) - set(inputs) if inputs else set()
    except Exception as error:
        text = " ".join(str(error).split())
        raise WorkloadError(f"{where}: `buffers` fails ({type(error).__name__}: {text}); correct it") from error
    if unknown:
        raise WorkloadError(
            f"{where}: {', '.join(sorted(unknown))} is resident, but no input; name some of {', '.join(inputs)}"
        )
    if max(copied) > LARGEST:
        raise WorkloadError(
            f"{where}: its buffers take {max(copied):.3g} bytes, more than can be recorded; choose a smaller case"
        )
    # The hashes of what the user asks: of the functions `inputs` and `reference`, where they are known.
    asked = tuple(map(_sha256, workload.functions)) if workload.functions else (None, None)
    return {
        "workload": workload.name,
        "case": case.name,
        "size_rank": case.size_rank,
        "params": json.dumps(dict(case.params)),
        "flops": case.flops,
        "min_bytes": case.min_bytes or 0,
        "h2d_bytes": copied[0],
        "d2h_bytes": copied[1],
        "passes": case.passes,
        "inputs_sha256": asked[0],
        "reference_sha256": asked[1],
    }


@cache
def _sha256(function: Callable[..., object]) -> str:
    """Of the source of a user's function, with all that it reaches."""
    return hashlib.sha256(source_of(function).encode()).hexdigest()


def copied_bytes(case: Case, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> tuple[int, int]:
    """Bytes that one operation from end to end copies to the device and back. Resident inputs are not copied."""
    to_device = sum(buffer.nbytes for name, buffer in inputs.items() if name not in case.resident)
    return to_device, sum(buffer.nbytes for buffer in outputs.values())


def variant_row(workload: Workload, variant: Variant) -> dict[str, Any]:
    """A row of `variants`. Registers, shared bytes and spill bytes are None; they are known after compilation. Raises
    WorkloadError: its source cannot be read."""
    try:
        source = {
            **variant.header,
            "source_path": variant.source_path,
            "source_text": variant.source_text,
            "source_sha256": variant.source_sha256,
        }
    except (OSError, TypeError, UnicodeError) as error:
        raise WorkloadError(
            f"{workload.name}/{variant.name}: its source cannot be read ({error}); "
            "give a file in UTF-8, or a function that is written in one"
        ) from error
    # The kind of host memory that the bench copies from and to; None if the variant takes its inputs on the host.
    around = "pageable" if isinstance(variant, LibraryVariant) and variant.device_only else None
    return {
        **schema.VARIANTS.blank_row(),
        "workload": workload.name,
        "variant": variant.name,
        "rung": variant.rung,
        "kind": variant.kind,
        "role": variant.role,
        "precision": variant.precision,
        "title": variant.title,
        **source,
        "min_compute_capability": ".".join(map(str, variant.min_compute_capability))
        if isinstance(variant, CudaVariant)
        else "",
        "transfer": variant.end_to_end.transfer if isinstance(variant, CudaVariant) else around,
    }


# -- parts of a case -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferRows:
    """Rows of a buffer along its first axis."""

    name: str
    start: int
    stop: int

    def of(self, array: Any) -> Any:
        """Return these rows of an array, as a view."""
        return array[self.start : self.stop]


def rows_of(workload: Workload, part: Part, buffers: Mapping[str, Buffer]) -> dict[str, BufferRows]:
    """Return a part's rows of every buffer of the whole case. A buffer of the same shape in both belongs to the part whole."""
    inputs, outputs = workload.buffers(part.case)
    rows = {}
    for name, buffer in {**inputs, **outputs}.items():
        shared = buffer.shape == buffers[name].shape
        start = 0 if shared else part.first
        rows[name] = BufferRows(name, start, start + buffer.shape[0])
    return rows


def check_covered(where: str, buffers: Mapping[str, Buffer], parts: Sequence[Mapping[str, BufferRows]]) -> None:
    """Raise WorkloadError unless the parts, in order, cover all rows of each buffer without gap or overlap."""
    for name, buffer in buffers.items():
        end = 0
        for rows in dict.fromkeys(part[name] for part in parts):
            if rows.start != end:
                raise WorkloadError(
                    f"{where}: a part of {name} begins at row {rows.start}, not at {end}; make parts follow one another"
                )
            end = rows.stop
        if end != buffer.shape[0]:
            raise WorkloadError(f"{where}: the parts of {name} end at row {end} of {buffer.shape[0]}; make them cover the case")


# -- the plan of a run ---------------------------------------------------------------------------------------------------------

CASE_SETS: Final[tuple[CaseSet, ...]] = get_args(CaseSet)


class PlanError(Error):
    """A request that cannot be planned. Its message is one line: what is wrong, and what to do."""


LIMITS: Final[dict[CaseSet, Limits]] = {
    "quick": Limits(max_rounds=50, seconds=0.4, cell_timeout_s=60.0, budget_s=60.0),
    "report": Limits(seconds=2.0),
    "full": Limits(),
}
#: Processes that take the rounds where nothing else is asked. Three show how far processes differ.
PROCESSES: Final = 3
#: `budget_s` of the set `quick` if only host variants are measured.
HOST_BUDGET_S: Final = 30.0


@dataclass(frozen=True)
class Plan:
    """Every job of a run. `notes`: parts of the request that are not planned, each with the reason."""

    workloads: tuple[Workload, ...]
    jobs: tuple[Job, ...]
    limits: Limits
    seed: int
    notes: tuple[str, ...] = ()

    def _kind(self, workload: str, variant: str) -> str:
        return next(each for each in self.workloads if each.name == workload).variant(variant).kind

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the variants that are measured, such as `cuda`."""
        return frozenset(self._kind(cell.workload, cell.variant) for job in self.jobs for cell in job.cells)

    @property
    def most_gpus(self) -> int:
        """The largest number of ranks that share a case."""
        return max(job.gpus for job in self.jobs)

    def on_host(self, why: str) -> "Plan":
        """Return the plan for a recording of host variants alone, with a smaller time budget. Raises PlanError: it has
        no host variant. `why`: why no GPU is measured."""
        variants = dict.fromkeys((cell.workload, cell.variant) for job in self.jobs for cell in job.cells)
        if not any(self._kind(*name) == "host" for name in variants):
            (_, first), *others = variants
            host = [
                each.name for workload in self.workloads for each in workload.variants if each.kind == "host" and not each.draft
            ]
            more = f" and {len(others)} more need" if others else " needs"
            if host:
                todo = f"record {', '.join(dict.fromkeys(host))} here, or these on a machine with one"
            else:
                is_cuda = any(self._kind(*name) == "cuda" for name in variants)
                todo = "record on one with a GPU" + "; `warpladder disassemble FILE` needs none" * is_cuda
            raise PlanError(f"{first}{more} an NVIDIA GPU, and the collector is host_clock ({why}); {todo}")
        if self.limits.budget_s is None:
            return self
        jobs = _breadth_first(self.jobs, self.workloads, smallest_first=True)
        return replace(self, jobs=jobs, limits=replace(self.limits, budget_s=min(self.limits.budget_s, HOST_BUDGET_S)))

    def spread(self, passes: int, share: float) -> "Plan":
        """Return the plan with a share of the budget for the first rounds of its cases, each sampled in so many scopes and caches."""
        if not self.limits.budget_s:
            return self
        return replace(self, limits=replace(self.limits.spread_over(passes * len(self.jobs), share), passes=passes))


@dataclass(frozen=True)
class Request:
    """The user's request.

    Attributes:
        names: workloads of the project; if neither names nor files are given, all but drafts.
        files: Python files of the user that declare a workload.
        case_set: `quick`, `report` or `full`; ignored if cases are named.
        cases: cases to measure instead of a set: declared names, or values of the workload's axes.
        variants: names of the variants to measure; if empty, all but drafts.
        max_rounds: most rounds of one scope and cache; None for the limit of the case set.
        seconds: time limit for the rounds of one scope and cache; None for the limit of the case set.
        processes: number of processes that take the rounds, one after another; None for `PROCESSES`.
        gpus: numbers of ranks. Each number measures the workloads that can be shared; one process measures the others.
        on_gpus: whether each rank has a GPU; without, ranks are processes of the host.
        no_limit: whether every case of the set is measured, however long it takes.
        cells: a file with the cells to measure out of those that the rest asks for; None for all. See `write_cells`.
    """

    names: Sequence[str] = ()
    files: Sequence[Path] = ()
    case_set: str = "quick"
    cases: Sequence[str] = ()
    variants: Sequence[str] = ()
    seed: int = 0
    max_rounds: int | None = None
    seconds: float | None = None
    processes: int | None = None
    gpus: Sequence[int] = (1,)
    on_gpus: bool = True
    no_limit: bool = False
    cells: Path | None = None

    @property
    def ranks_option(self) -> str:
        """The option that gives `gpus`."""
        return "--gpus" if self.on_gpus else "--ranks"

    def arguments(self) -> list[str]:
        """Return the request as arguments of `warpladder record`, valid in any folder."""
        arguments = [*self.names, *(str(file.resolve()) for file in self.files)]
        arguments += ["--set", self.case_set, "--seed", str(self.seed)]
        arguments += [f"--case={name}" for name in self.cases]
        arguments += [f"--variants={','.join(self.variants)}"] if self.variants else []
        arguments += [f"--max-rounds={self.max_rounds}"] if self.max_rounds else []
        arguments += [f"--seconds={self.seconds:g}"] if self.seconds else []
        arguments += [f"--processes={self.processes}"] if self.processes else []
        arguments += [f"--cells={self.cells.resolve()}"] if self.cells else []
        return arguments + (["--no-limit"] if self.no_limit else [])


def make_plan(request: Request, limits: Limits | None = None, loaded: Sequence[tuple[Workload, WorkloadRef]] = ()) -> Plan:
    """Plan the cells of a request.

    Args:
        limits: when to stop; None for `PROCESSES` processes and the limits of the case set, or of `full` if cases are named.
        loaded: workloads in place of those that the request names, each with how a child finds it.

    Raises:
        PlanError: the case set, a case or a variant does not exist, or there is nothing to measure.
        WorkloadError: a workload does not exist or cannot be loaded.
    """
    names, files, case_set, cases, variants = request.names, request.files, request.case_set, request.cases, request.variants
    if case_set not in CASE_SETS:
        raise PlanError(f"{case_set}: no such set of cases; choose {', '.join(CASE_SETS)}")
    declared = loaded or [
        (workload, WorkloadRef(workload.name, file and file.resolve()))
        for workload, file in registry.load_with_files(names, files)
        if names or files or not workload.draft
    ]
    workloads = [_with_cases(workload, cases) for workload, _ in declared]
    refs = {ref.name: ref for _, ref in declared}
    _check_variants(variants, workloads)
    cases = _canonical(cases, workloads)
    _check_counts(request, workloads)
    notes: list[str] = []
    only = _read_cells(request.cells) if request.cells else None
    chosen = {each.name: [v for v in each.variants if (v.name in variants if variants else not v.draft)] for each in workloads}
    jobs = tuple(
        Job(refs[workload.name], case.name, cells, request.seed, gpus)
        for workload in workloads
        for case in workload.cases
        if (case.name in cases if cases else case_set in case.sets)
        and (cells := tuple(cell for cell in cells_of(workload, case, chosen[workload.name]) if only is None or cell in only))
        for gpus in _counts(workload, case, request.gpus, notes)
    )
    _check_rows(workloads, jobs)
    if not jobs and notes:
        raise PlanError(f"{notes[0]}; ask for fewer with {request.ranks_option}, or for larger cases")
    if not jobs:
        raise PlanError(f"no case of {', '.join(w.name for w in workloads)} is in the set {case_set}; try --set full")
    if limits is None:
        # Of a further pass, which reads counters of some cells, no ceilings are kept.
        of_set, by_size = LIMITS["full" if cases else case_set], case_set == "full" and only is None
        limits = replace(of_set, processes=PROCESSES, ceilings_by_size=by_size)
    if request.seconds:
        limits = replace(limits, seconds=request.seconds)
    if request.max_rounds:
        limits = replace(limits, max_rounds=request.max_rounds, min_rounds=min(limits.min_rounds, request.max_rounds))
    limits = replace(limits, processes=min(request.processes or limits.processes, limits.most_processes))
    if request.no_limit:
        limits = replace(limits, budget_s=None)
    if limits.budget_s:
        limits = replace(limits, budget_s=limits.budget_s * len(request.gpus))
        jobs = _breadth_first(jobs, workloads)
    return Plan(tuple(workloads), jobs, limits, request.seed, tuple(notes))


def write_cells(file: Path, cells: Iterable[Cell]) -> None:
    """Write the cells that a request is to measure, for `Request.cells`."""
    file.write_text(json.dumps([list(astuple(cell)) for cell in cells]))


def _read_cells(file: Path) -> frozenset[Cell]:
    """Raises PlanError."""
    try:
        return frozenset(Cell(*names) for names in json.loads(file.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise PlanError(f"--cells {file}: holds no list of cells ({error})") from error


def _breadth_first(jobs: Sequence[Job], workloads: Sequence[Workload], *, smallest_first: bool = False) -> tuple[Job, ...]:
    """Order jobs: the largest case of each workload first, so that a short budget drops cases and not workloads. Workloads that compile
    quickly come first, and are measured while the others wait.

    Args:
        smallest_first: the smallest case first, as on a host, where the largest one may take the whole budget.
    """
    cases = {(workload.name, case.name): case for workload in workloads for case in workload.cases}
    turns: list[tuple[int, Job]] = []
    for workload in sorted(workloads, key=_compiles_long):
        own_jobs = [job for job in jobs if job.workload.name == workload.name]
        own_jobs.sort(key=lambda job: cases[job.workload.name, job.case].size_rank or 0, reverse=not smallest_first)
        turns += enumerate(own_jobs)
    return tuple(job for _, job in sorted(turns, key=lambda turn: turn[0]))


def _compiles_long(workload: Workload) -> tuple[int, int]:
    """How many of its variants need PyTorch's compiler, which takes half a minute, and how many are of libraries at all."""
    libraries = [variant for variant in workload.variants if isinstance(variant, LibraryVariant)]
    return sum({*COMPILER} <= {*variant.requires} for variant in libraries), len(libraries)


def sweep_of(axes: Sequence[str]) -> list[str]:
    """Return the cases of a sweep from the values of `--axis`. Raises PlanError."""
    try:
        return list(sweep(axes)) if axes else []
    except AxisError as error:
        raise PlanError(f"--axis {error}; write for instance --axis n=1000,2000,4000") from error


def cells_of(workload: Workload, case: Case, variants: Sequence[Variant]) -> tuple[Cell, ...]:
    """Return the cells of one case, in the order of the workload's variants and their configs."""
    return tuple(
        Cell(workload.name, variant.name, format_params(config), case.name)
        for variant in variants
        for config in variant.configs
    )


def counts_of(text: str, option: str = "--gpus") -> tuple[int, ...]:
    """Parse numbers of ranks with commas between, the value of an option. Returns them in ascending order without
    duplicates. Raises PlanError: one of them is not a positive number."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word)):
            of = "GPUs" if option == "--gpus" else "processes"
            raise PlanError(f"{option} {text}: {word or 'nothing'} is not a number of {of}; write for instance {option} 1,2,4")
    return tuple(sorted({int(word) for word in words}))


def _check_rows(workloads: Sequence[Workload], jobs: Sequence[Job]) -> None:
    """Raise WorkloadError for a case or a variant that a run cannot hold."""
    by_name = {workload.name: workload for workload in workloads}
    for name, case in dict.fromkeys((job.workload.name, job.case) for job in jobs):
        case_row(by_name[name], by_name[name].case(case))
    for name, variant in dict.fromkeys((cell.workload, cell.variant) for job in jobs for cell in job.cells):
        variant_row(by_name[name], by_name[name].variant(variant))


def _check_counts(request: Request, workloads: Sequence[Workload]) -> None:
    if max(request.gpus) > 1 and not any(workload.shares for workload in workloads):
        can = ", ".join(name for name in registry.names() if registry.load(name).shares)
        raise PlanError(
            f"{request.ranks_option} {max(request.gpus)}: {', '.join(w.name for w in workloads)} cannot be shared among "
            f"{'GPUs' if request.on_gpus else 'processes'}; record one that can: {can}"
        )


def _counts(workload: Workload, case: Case, rank_counts: Sequence[int], notes: list[str]) -> Iterator[int]:
    """Yield the numbers of ranks that can share a case. Adds to `notes` why other numbers cannot."""
    if not workload.shares:
        yield 1
        return
    case_row(workload, case)  # checks `buffers` of the case first
    inputs, outputs = workload.buffers(case)
    buffers = {**inputs, **outputs}
    for gpus in rank_counts:
        try:
            parts = workload.shares(case, gpus) if gpus > 1 else ()
        except NotShareable as reason:
            notes.append(f"{workload.name}/{case.name}: {reason}")
            continue
        if parts:
            where = f"{workload.name} {case.name} on {gpus} ranks"
            if len(parts) != gpus:
                raise WorkloadError(f"{where}: has {len(parts)} shares; give each rank one")
            check_covered(where, buffers, [rows_of(workload, part, buffers) for part in parts])
        yield gpus


def _check_variants(names: Sequence[str], workloads: Sequence[Workload]) -> None:
    declared = dict.fromkeys(variant.name for workload in workloads for variant in workload.variants)
    for name in names:
        if name not in declared:
            where = ", ".join(workload.name for workload in workloads)
            raise PlanError(f"{name}: no such variant in {where}, whose variants are {', '.join(declared)}")


def _canonical(texts: Sequence[str], workloads: Sequence[Workload]) -> list[str]:
    """Return the names of the requested cases over all workloads. Raises WorkloadError if no workload has one of them."""
    names = []
    for text in texts:
        matches = [case.name for case in (_case_of(workload, text) for workload in workloads) if case]
        if not matches:
            workloads[0].case(text)  # raises, and says why
            raise PlanError(f"{text}: no such case")
        names += matches
    return names


def _case_of(workload: Workload, text: str) -> Case | None:
    with suppress(WorkloadError):
        return workload.case(text)
    return None


def _with_cases(workload: Workload, texts: Sequence[str]) -> Workload:
    """Add the requested cases that the workload does not declare; rank all requested cases by size."""
    declared = {case.name for case in workload.cases}
    cases = {case.name: case for case in (_case_of(workload, text) for text in texts) if case}
    if set(cases) <= declared:
        return workload
    sizes = sorted({_size_of(case) for case in cases.values()})
    ranked = {name: replace(case, size_rank=sizes.index(_size_of(case))) for name, case in cases.items()}
    others = [case for case in workload.cases if case.name not in cases]
    return replace(workload, cases=(*others, *ranked.values()))


def _size_of(case: Case) -> int | float:
    """By what cases are ranked: their bytes, or the product of their parameters where the bytes are not known yet."""
    if case.min_bytes is not None:
        return case.min_bytes
    return math.prod(value for value in case.params.values() if isinstance(value, int | float))
