"""Compares two versions of a file in one run of `record --against`: A is the other version, whose variants are named `NAME@VERSION`, and B
the file's own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.changes import LOST, Change, Comparison, LostCell, Options, Side, compare, why_lost
from warpladder.dashboard.compare.differences import Fact, other_tolerance
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import has_versions
from warpladder.data.names import TOLERANCE

_OPTIONS: Final = Options()
_CELL: Final = ["workload", "variant", "config", "case"]
#: The case, and what its version asks in it. The work of a case is that of the inputs that were made, for both versions.
_ASKED: Final = ["workload", "case", "reference_sha256", "inputs_sha256"]
#: The statuses of a cell of A that leave nothing to judge: it is mended in B, or cannot run here.
_SETTLED: Final = ("ok", "skipped", "wrong_result")


@dataclass(frozen=True)
class Declared:
    """What the other version declares.

    Attributes:
        version: its name after the `@` of its variants.
        title, own_title: of the version and of the file's own, for a reader.
        command: what records both again.
        code: workload and variant of the run -> a digest of the code that it runs, and of what it declares.
        cells: workload, variant, config and case of each cell that was asked for.
        cases: its rows of table `cases`, of which `reference_sha256` and `inputs_sha256` are read.
        tolerances: workload -> variant of both versions -> its tolerance in that version and in the file's own.
    """

    version: str
    title: str
    own_title: str
    command: str
    code: Mapping[tuple[str, str], str]
    cells: Sequence[tuple[str, str, str, str]]
    cases: pd.DataFrame
    tolerances: Mapping[str, Mapping[str, tuple[float, float]]]


def compare_versions(data: RunData, other: Declared, options: Options) -> tuple[Comparison, RunData, RunData]:
    """Compare the file's own version with the other one. Returns the comparison, and each version as a run.

    Raises:
        NotComparable: no cell of both has times.
    """
    data = replace(data, variants=_with_code(data.variants, other.code))
    own, before = own_version(data), other_version(data)
    info = {**data.info, "command": other.command}
    own = replace(own, info={**info, "label": other.own_title})
    cases = data.cases.drop(columns=_ASKED[2:]).merge(other.cases[_ASKED], on=_ASKED[:2], how="left")
    before = replace(before, info={**info, "label": other.title}, cases=cases)
    found = compare_in_rounds(own, before, options)
    # One file's tolerance judged both: what was found to differ in it follows from rounding.
    facts = (*(fact for fact in found.facts if fact.asked != TOLERANCE), *_tolerances(own, other))
    unknown = list(_failed(before, own))
    changes = (*found.changes, *(change for change, _ in unknown))
    lost = (*found.lost, *_never_measured(own, other, found.lost), *(why for _, why in unknown))
    return replace(found, facts=facts, lost=lost, changes=changes), before, own


def _with_code(variants: pd.DataFrame, code: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """The variants by the digest of their code: a hash of the source would tell two comments apart, and not two launches of a kernel."""
    digests = [code[key] for key in zip(variants["workload"], variants["variant"], strict=True)]
    return variants.assign(source_sha256=pd.Series(digests, variants.index, dtype=variants["source_sha256"].dtype))


def is_unchanged(comparison: Comparison, before: RunData, own: RunData) -> bool:
    """Whether both versions have the same variants, with all that they call, and demand the same of them."""
    columns = ["workload", "variant", "source_sha256"]
    sources = [set(each.variants[columns].fillna("").itertuples(index=False, name=None)) for each in (before, own)]
    return sources[0] == sources[1] and not comparison.lost and not any(fact.asked for fact in comparison.facts)


def own_version(data: RunData) -> RunData:
    """A run without the variants of another version, which `record --against` and `--watch` put beside the file's own."""
    if not has_versions(data.info):
        return data
    return _version(data, lambda name: "" if "@" in name else name)


def other_version(data: RunData) -> RunData:
    """The variants of the other version in such a run, under the names that they have there. The name of the version is the label."""
    versions = {version for _, at, version in (name.partition("@") for name in data.variants["variant"]) if at}
    own = _version(data, lambda name: name.partition("@")[0] if "@" in name else "")
    return replace(own, info={**data.info, "label": ", ".join(sorted(versions))})


def compare_in_rounds(own: RunData, other: RunData, options: Options = _OPTIONS) -> Comparison:
    """Compare two versions that one run measured: B is the file's own, and A the other one.

    Raises:
        NotComparable: no cell of both has times.
    """
    return compare(Side(other), Side(own), replace(options, in_rounds=True))


def compare_versions_of_variant(a: Side, b: Side, options: Options) -> tuple[Comparison, RunData, RunData] | None:
    """Compare two versions of one variant in one run, `NAME@VERSION` and `NAME`, in either order, as `compare_in_rounds` judges them.

    Returns:
        The comparison, and both versions as runs; None for other sides, and where no version has times.

    Raises:
        NotComparable: they have no cell in common.
    """
    names = [side.variant.partition("@")[0] for side in (a, b)]
    in_one_run = a.data.info["run_id"] == b.data.info["run_id"] and has_versions(a.data.info)
    if not in_one_run or not names[0] or names[0] != names[1] or ("@" in a.variant) == ("@" in b.variant):
        return None
    own, other = own_version(a.data), other_version(a.data)
    before, after = (own, other) if "@" in b.variant else (other, own)
    found = _of_variant(compare(Side(before), Side(after), replace(options, in_rounds=True)), names[0])
    return (found, before, after) if found.changes or found.lost else None


def _of_variant(found: Comparison, variant: str) -> Comparison:
    """The cells of one variant in a comparison, with the verdicts that they have among all."""
    return replace(
        found,
        changed_sources=tuple(each for each in found.changed_sources if each[1] == variant),
        changes=tuple(each for each in found.changes if each.variant == variant),
        lost=tuple(each for each in found.lost if each.variant == variant),
        new=tuple(each for each in found.new if each[2] == variant or each[2].startswith((f"{variant}[", f"{variant} on "))),
    )


def _version(data: RunData, name_of: Callable[[str], str]) -> RunData:
    """A version of the file as a run of its own.

    Args:
        name_of: gives the name of a variant in it; empty for a variant of the other version.
    """

    def of_version(frame: pd.DataFrame) -> pd.DataFrame:
        dtype: Any = frame["variant"].dtype.name
        new_names = frame["variant"].astype(object).map(name_of, na_action="ignore")
        return frame.assign(variant=new_names.astype(dtype))[new_names != ""].reset_index(drop=True)

    names = ("variants", "results", "samples", "together", "diagnostics", "counters", "energy")
    tables: dict[str, Any] = {name: of_version(getattr(data, name)) for name in names}
    return replace(data, **tables)


def _tolerances(own: RunData, other: Declared) -> Iterator[Fact]:
    """The tolerances that differ: of a workload, or of the variants whose precision or inputs have another one."""
    for workload, declared in other.tolerances.items():
        recorded = own.variants.loc[own.variants["workload"] == workload, "variant"]
        of_variants = {name: declared[name] for name in recorded if name in declared}
        for pair in dict.fromkeys(pair for pair in of_variants.values() if pair[0] != pair[1]):
            names = [name for name, each in of_variants.items() if each == pair]
            yield other_tolerance(" ".join([workload, *(names if len(names) < len(of_variants) else ())]), *pair)


def _never_measured(own: RunData, other: Declared, lost: Sequence[LostCell]) -> Iterator[LostCell]:
    """The cells of A that were asked for, and that B has no result of, but for those that were found to be lost."""
    known = {(each.workload, each.variant, each.config, each.case) for each in lost}
    known |= set(own.results[_CELL].itertuples(index=False, name=None))
    for cell in other.cells:
        if cell not in known:
            workload, variant, config, case = cell
            why = why_lost(own, workload, variant, case)
            yield LostCell(workload, case, Timing("", ""), variant, config, 0, Estimate.unknown(), LOST, why, fails=True)


def _failed(before: RunData, own: RunData) -> Iterator[tuple[Change, LostCell]]:
    """The cells that failed in A where they are right in B, so that nothing can judge them, each with why."""
    right = set(own.results.loc[own.results["status"] == "ok", _CELL].itertuples(index=False, name=None))
    failed = before.results[~before.results["status"].isin(_SETTLED)]
    for *cell, status, detail in failed[[*_CELL, "status", "detail"]].itertuples(index=False, name=None):
        if tuple(cell) in right:
            workload, variant, config, case = cell
            where = (workload, case, Timing("", ""), variant, config, 0)
            lost = LostCell(*where, Estimate.unknown(), f"{status} in A", detail, fails=False)
            yield Change(*where, of_a=(variant, config)), lost
