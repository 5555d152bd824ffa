"""`warpladder record FILE --against REF`: records two versions of a file in the same rounds, and judges the second by the first."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from warpladder import recording
from warpladder.collectors.core.plan import PlanError, Request, VersionsRef, WorkloadRef, case_row, make_plan
from warpladder.commands import gate
from warpladder.commands.common import ExitCode
from warpladder.commands.gate import Asks
from warpladder.dashboard.compare.changes import Comparison, NotComparable, Options
from warpladder.dashboard.compare.versions import Declared, compare_versions, is_unchanged
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import summary
from warpladder.dashboard.text.formats import Comparison as Form
from warpladder.data import store
from warpladder.recording import Order, Planned
from warpladder.revisions import Pair
from warpladder.screen import say
from warpladder.workloads import registry
from warpladder.workloads.api import Workload, WorkloadError
from warpladder.workloads.declare.functions.code import PROCESS, Code, code_of

#: Rounds of a scope, and seconds for those beyond the fewest; see `Limits`.
_FEWEST_ROUNDS: Final = 15
_MOST_ROUNDS: Final = 200
_SECONDS: Final = 2.0


class Versions(NamedTuple):
    """Both versions of the files of an order, loaded.

    Attributes:
        others: the workloads of the other version by their names.
        merged: those of the user's own with the variants of the other one after their own, and how a child finds them.
        codes: of each file, the code of the user's own version and of the other one.
    """

    pairs: Sequence[Pair]
    others: Mapping[str, Workload]
    merged: Mapping[str, tuple[Workload, VersionsRef]]
    codes: Sequence[tuple[Code, Code]]

    @property
    def end(self) -> str:
        """The end of the names of the other version's variants."""
        return f"@{self.pairs[0].other.name}"


def load(pairs: Sequence[Pair]) -> Versions:
    """Load both versions of files. Raises Error: a version cannot be loaded, or they have no workload in common."""
    others: dict[str, Workload] = {}
    merged: dict[str, tuple[Workload, VersionsRef]] = {}
    codes: list[tuple[Code, Code]] = []
    end = f"@{pairs[0].other.name}"
    for pair in pairs:
        of_other = pair.other.workloads()
        code_of_other = code_of(of_other, pair.other.file)
        both = registry.load_versions(pair.own, pair.other)
        alone = [replace(each, variants=tuple(v for v in each.variants if not v.name.endswith(end))) for each in both]
        codes.append((code_of(alone, pair.own.file), code_of_other))
        others |= {each.name: each for each in of_other}
        merged |= {each.name: (each, VersionsRef(each.name, pair.own.file, own=pair.own, other=pair.other)) for each in both}
    if not any(variant.name.endswith(end) for workload, _ in merged.values() for variant in workload.variants):
        raise PlanError(
            f"--against {pairs[0].title}: has no benchmark of {', '.join(merged)}, but {', '.join(others)}; "
            "record without --against where all are new"
        )
    return Versions(pairs, others, merged, codes)


def plan(order: Order, versions: Versions, *, partial: bool = False) -> tuple[Planned, Declared]:
    """Plan both versions of the files of an order, in more rounds than `record` takes. Returns what the other one declares, too.

    Args:
        partial: whether only the variants of the order are compared, as far as there is time; else all cases are measured, since a gate that
            leaves some out fails.

    Raises:
        Error: an order that cannot be planned.
    """
    request, (pairs, others, merged, codes), end = order.request, versions, versions.end
    cells = [cell for workload in others.values() for cell in _asked(workload, request)] if not partial else []
    declared = Declared(
        end.removeprefix("@"),
        pairs[0].title,
        f"{pairs[0].own.file.name}, as it is here" if len(pairs) == 1 else "your files, as they are here",
        shlex.join(["warpladder", *order.arguments]),
        {key: digest for own, _ in codes for key, digest in own.items()}
        | {(workload, f"{variant}{end}"): digest for _, other in codes for (workload, variant), digest in other.items()},
        cells,
        pd.DataFrame([case_row(workload, case) for workload in others.values() for case in workload.cases]),
        {each: dict(_tolerances(others[each], merged[each][0])) for each in others if each in merged},
    )
    known = {variant.name for workload, _ in merged.values() for variant in workload.variants}
    named = [f"{each}{end}" for each in request.variants]
    request = replace(
        request,
        variants=[*request.variants, *(each for each in named if each in known)],
        seconds=request.seconds or _SECONDS,
        max_rounds=request.max_rounds or _MOST_ROUNDS,
        no_limit=request.no_limit or not partial,
    )
    planned = recording.plan(replace(order, request=request, declared=list(merged.values())))
    limits = planned.work.limits
    limits = replace(limits, min_rounds=min(max(limits.min_rounds, _FEWEST_ROUNDS), limits.max_rounds))
    return replace(planned, work=replace(planned.work, limits=limits)), declared


def _asked(workload: Workload, request: Request) -> list[tuple[str, str, str, str]]:
    """The cells of the other version that the request asks for, without specimens; none where it has no such case or variant."""
    roles = {variant.name: variant.role for variant in workload.variants}
    names = [name for name in request.variants if name in roles]
    if request.variants and not names:
        return []
    try:
        jobs = make_plan(replace(request, variants=names), loaded=[(workload, WorkloadRef(workload.name))]).jobs
    except (PlanError, WorkloadError):
        return []
    return [astuple(cell) for job in jobs for cell in job.cells if roles[cell.variant] != "specimen"]


def _tolerances(before: Workload, own: Workload) -> Iterator[tuple[str, tuple[float, float]]]:
    """Each variant that both versions have, and its tolerance in each; where cases have several, the first that differs."""
    variants = {variant.name: variant for variant in own.variants}
    for variant in before.variants:
        if (same := variants.get(variant.name)) is not None:
            precisions = (variant.precision, same.precision)
            all_of_both = [(name, name) for name in before.tolerance if name in own.tolerance]
            names = all_of_both if "mixed" in precisions else [precisions]
            pairs = [(before.tolerance[of_a], own.tolerance[of_b]) for of_a, of_b in names]
            yield variant.name, next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def judge(path: Path, declared: Declared, asks: Asks, form: Form) -> ExitCode | None:
    """Print what a run found, and the comparison of its two versions. Returns how the command ends; None where all is well."""
    if declared.code[PROCESS] != declared.code["", f"@{declared.version}"]:
        say(
            f"warning: your files set something else for the whole process than those of {declared.title}, and both versions ran with both"
        )
    comparison, before, own = compared(path, declared, Options(asks.scope, asks.match, asks.smallest), counts=True)
    if is_unchanged(comparison, before, own):
        say(f"no variant differs from {declared.title}, with all that it calls")
    code = gate.end(comparison, before, own, asks, form)
    if not code and summary.not_right(store.open_run(path), beside=f"@{declared.version}"):
        say(f"FAILED: a variant is not right, and {declared.title} has no right one to compare it with")
        return ExitCode.WRONG
    return code


def compared(path: Path, declared: Declared, options: Options, *, counts: bool) -> tuple[Comparison, RunData, RunData]:
    """Print what a run found, with the `counts` of `findings`. Returns the comparison of its two versions, and each as a run. Raises
    NotComparable."""
    run = store.open_run(path)
    try:
        comparison, before, own = compare_versions(run_data.load(run), declared, options)
    except NotComparable:
        _say_all(summary.findings(run, counts=counts))
        raise
    _say_all(summary.findings(run, told={(each.workload, each.variant) for each in comparison.lost}, counts=counts))
    return comparison, before, own


def _say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
