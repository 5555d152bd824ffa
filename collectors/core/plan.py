"""What a run will measure, and how long it may take: the same plan for every collector."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, get_args

from warpladder.collectors.core.declared import case_row, variant_row
from warpladder.collectors.core.jobs import Job, WorkloadRef
from warpladder.collectors.core.rounds import Limits
from warpladder.collectors.core.shares import check_covered, rows_of
from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CaseSet, NotShareable, Variant, Workload, WorkloadError, format_params
from warpladder.workloads.axes import AxisError, sweep

CASE_SETS: Final[tuple[CaseSet, ...]] = get_args(CaseSet)


class PlanError(Exception):
    """A request that no plan can be made of. Its message says what, and what to do, in one line."""


LIMITS: Final[dict[CaseSet, Limits]] = {
    "quick": Limits(max_rounds=50, seconds=0.4, cell_timeout_s=60.0, budget_s=60.0),
    "report": Limits(seconds=2.0),
    "full": Limits(),
}


#: `budget_s` of `quick` where host variants alone are measured.
HOST_BUDGET_S: Final = 30.0


@dataclass(frozen=True)
class Plan:
    """Every job of a run.

    Attributes:
        notes: what of the request is not planned, and why.
    """

    workloads: tuple[Workload, ...]
    jobs: tuple[Job, ...]
    limits: Limits
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def most_gpus(self) -> int:
        """The most ranks that share a case."""
        return max(job.gpus for job in self.jobs)

    def on_host(self) -> "Plan":
        """The same where there is no GPU: less is measured, and less time taken."""
        if self.limits.budget_s is None:
            return self
        return replace(self, limits=replace(self.limits, budget_s=min(self.limits.budget_s, HOST_BUDGET_S)))


@dataclass(frozen=True)
class Request:
    """What the user asked to be recorded.

    Attributes:
        names: workloads of the project; all when neither names nor files are given.
        files: Python files of the user's that declare a workload.
        case_set: `quick`, `report` or `full`; ignored where cases are named.
        cases: cases to take, instead of a set: names of those declared, or values of the workload's axes.
        variants: names of the variants to take; all when empty.
        seed: of the inputs and of the order of the rounds.
        max_rounds: most rounds of one scope and cache; None for what the case set says.
        gpus: numbers of ranks, each of which measures the workloads that can be shared; the others are one process's.
    """

    names: Sequence[str] = ()
    files: Sequence[Path] = ()
    case_set: str = "quick"
    cases: Sequence[str] = ()
    variants: Sequence[str] = ()
    seed: int = 0
    max_rounds: int | None = None
    gpus: Sequence[int] = (1,)

    def arguments(self) -> list[str]:
        """The same request as arguments of `warpladder record`, from any folder."""
        arguments = [*self.names, "--cases", self.case_set, "--seed", str(self.seed)]
        arguments += [f"--workload={file.resolve()}" for file in self.files]
        arguments += [f"--case={name}" for name in self.cases]
        arguments += [f"--variants={','.join(self.variants)}"] if self.variants else []
        return arguments + ([f"--max-rounds={self.max_rounds}"] if self.max_rounds else [])


def make_plan(request: Request, limits: Limits | None = None) -> Plan:
    """Plan the cells of a request.

    Args:
        request: what to record.
        limits: when to stop; when None those of the case set, and of `full` where cases are named.

    Raises:
        PlanError: no such case set, case or variant, or nothing to measure.
        WorkloadError: no such workload, or one that does not load.
    """
    names, files, case_set, cases, variants = request.names, request.files, request.case_set, request.cases, request.variants
    if case_set not in CASE_SETS:
        raise PlanError(f"{case_set}: no such set of cases; choose {', '.join(CASE_SETS)}")
    workloads = [_with_cases(workload, cases) for workload in registry.load_all(names, files)]
    of_files = workloads[len(workloads) - len(files) :]
    paths = {workload.name: file.resolve() for workload, file in zip(of_files, files, strict=True)}
    _check_variants(variants, workloads)
    cases = _canonical(cases, workloads)
    _check_counts(request.gpus, workloads)
    notes: list[str] = []
    jobs = tuple(
        Job(WorkloadRef(workload.name, paths.get(workload.name)), case.name, cells, request.seed, gpus)
        for workload in workloads
        for case in workload.cases
        if (case.name in cases if cases else case_set in case.sets)
        and (cells := cells_of(workload, case, [v for v in workload.variants if not variants or v.name in variants]))
        for gpus in _counts(workload, case, request.gpus, notes)
    )
    _check_rows(workloads, jobs)
    if not jobs and notes:
        raise PlanError(f"{notes[0]}; ask for fewer with --gpus, or for larger cases")
    if not jobs:
        raise PlanError(f"no case of {', '.join(w.name for w in workloads)} is in the set {case_set}; try --cases full")
    limits = limits or LIMITS["full" if cases else case_set]
    if request.max_rounds:
        limits = replace(limits, max_rounds=request.max_rounds, min_rounds=min(limits.min_rounds, request.max_rounds))
    if limits.budget_s:
        limits = replace(limits, budget_s=limits.budget_s * len(request.gpus))
        jobs = _breadth_first(jobs, workloads)
    return Plan(tuple(workloads), jobs, limits, request.seed, tuple(notes))


def _breadth_first(jobs: Sequence[Job], workloads: Sequence[Workload]) -> tuple[Job, ...]:
    """The largest case of each workload, then the next of each, so that what the time does not reach is a case and no workload."""
    cases = {(workload.name, case.name): case for workload in workloads for case in workload.cases}
    turns: list[tuple[int, Job]] = []
    for workload in workloads:
        mine = [job for job in jobs if job.workload.name == workload.name]
        mine.sort(key=lambda job: -(cases[job.workload.name, job.case].size_rank or 0))
        turns += enumerate(mine)
    return tuple(job for _, job in sorted(turns, key=lambda turn: turn[0]))


def sweep_of(given: Sequence[str]) -> list[str]:
    """The cases of a sweep, as the command line takes its axes. Raises PlanError."""
    try:
        return list(sweep(given)) if given else []
    except AxisError as error:
        raise PlanError(f"--axis {error}; write for instance --axis n=1000,2000,4000") from error


def cells_of(workload: Workload, case: Case, variants: Sequence[Variant]) -> tuple[Cell, ...]:
    """The cells of one case, in the order in which the workload declares its variants and their configs."""
    return tuple(
        Cell(workload.name, variant.name, format_params(config), case.name)
        for variant in variants
        for config in variant.configs
    )


def counts_of(text: str) -> tuple[int, ...]:
    """Numbers of ranks with commas between, as the command line takes them, each once, in order.

    Raises:
        PlanError: one of them is no positive number.
    """
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdigit() and int(word)):
            raise PlanError(f"--gpus {text}: {word or 'nothing'} is not a number of GPUs; write for instance --gpus 1,2,4")
    return tuple(sorted({int(word) for word in words}))


def _check_rows(workloads: Sequence[Workload], jobs: Sequence[Job]) -> None:
    """Raises WorkloadError for a case or a variant that no run can hold, before anything is measured."""
    by_name = {workload.name: workload for workload in workloads}
    for name, case in dict.fromkeys((job.workload.name, job.case) for job in jobs):
        case_row(by_name[name], by_name[name].case(case))
    for name, variant in dict.fromkeys((cell.workload, cell.variant) for job in jobs for cell in job.cells):
        variant_row(by_name[name], by_name[name].variant(variant))


def _check_counts(counts: Sequence[int], workloads: Sequence[Workload]) -> None:
    if max(counts) > 1 and not any(workload.shares for workload in workloads):
        can = ", ".join(name for name in registry.names() if registry.load(name).shares)
        raise PlanError(
            f"--gpus {max(counts)}: {', '.join(w.name for w in workloads)} cannot be shared among GPUs; record one that can: {can}"
        )


def _counts(workload: Workload, case: Case, asked: Sequence[int], notes: list[str]) -> Iterator[int]:
    """Those of the counts that a case can be shared among; why it cannot among others goes to `notes`."""
    if not workload.shares:
        yield 1
        return
    case_row(workload, case)  # whose buffers can be told, then
    whole = {name: buffer for buffers in workload.buffers(case) for name, buffer in buffers.items()}
    for gpus in asked:
        try:
            parts = workload.shares(case, gpus) if gpus > 1 else ()
        except NotShareable as reason:
            notes.append(f"{workload.name}/{case.name}: {reason}")
            continue
        if parts:
            where = f"{workload.name} {case.name} on {gpus} ranks"
            if len(parts) != gpus:
                raise WorkloadError(f"{where}: has {len(parts)} shares; give each rank one")
            check_covered(where, whole, [rows_of(workload, part, whole) for part in parts])
        yield gpus


def _check_variants(asked: Sequence[str], workloads: Sequence[Workload]) -> None:
    known = dict.fromkeys(variant.name for workload in workloads for variant in workload.variants)
    for name in asked:
        if name not in known:
            where = ", ".join(workload.name for workload in workloads)
            raise PlanError(f"{name}: no such variant in {where}, whose variants are {', '.join(known)}")


def _canonical(asked: Sequence[str], workloads: Sequence[Workload]) -> list[str]:
    """Names of the cases that were asked for, of whichever workload has them. Raises WorkloadError where none has one."""
    names = []
    for text in asked:
        found = [case.name for case in (_case_of(workload, text) for workload in workloads) if case]
        if not found:
            workloads[0].case(text)  # which says why
            raise PlanError(f"{text}: no such case")
        names += found
    return names


def _case_of(workload: Workload, text: str) -> Case | None:
    with suppress(WorkloadError):
        return workload.case(text)
    return None


def _with_cases(workload: Workload, asked: Sequence[str]) -> Workload:
    """The workload with those of the cases asked for that it does not declare, ranked by size among all that are asked for."""
    declared = {case.name for case in workload.cases}
    cases = {case.name: case for case in (_case_of(workload, text) for text in asked) if case}
    if set(cases) <= declared:
        return workload
    sizes = sorted({case.min_bytes for case in cases.values()})
    ranked = {name: replace(case, size_rank=sizes.index(case.min_bytes)) for name, case in cases.items()}
    others = [case for case in workload.cases if case.name not in cases]
    return replace(workload, cases=(*others, *ranked.values()))
