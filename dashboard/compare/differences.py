"""The differences between two recordings apart from their times: the machine, its software, and the demands on the variants."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import intervals
from warpladder.dashboard.core.cell import Cell, name_of
from warpladder.dashboard.core.numbers import NOTHING
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import schema
from warpladder.data.names import REFERENCE, TOLERANCE, Asked, Ceiling
from warpladder.data.words import first_of

#: Clocks and ceilings that differ by more than this are worth a warning.
_WORTH_A_WARNING: Final = 0.02
_MOST_NAMED: Final = 3
_TRUSTED: Final = "none"
#: Columns of table `run` -> their words, and why a difference makes a comparison unfair; empty where it does not.
_OF_RUN: Final[Mapping[str, tuple[str, str]]] = {
    "device_name": ("GPU", "different GPUs"),
    "device_count": ("number of GPUs", ""),
    "cpu_name": ("processor", ""),
    "cpu_threads": ("threads of the processor", "functions on several threads take other times"),
    "collector": ("collector", "device times of CUDA events and of a trace are not judged against each other"),
    "collector_version": ("version of the collector", ""),
    "driver_version": ("driver", "the driver compiles and launches"),
    "cuda_version": ("CUDA", "the compiler's version changes machine code"),
    "python_version": ("Python", ""),
    "os": ("system", ""),
    "git_commit": ("commit", ""),
    "git_dirty": ("changes beyond the commit", ""),
}
#: Those of `_OF_RUN` that runs of older versions lack.
_LATER: Final = frozenset(each.name for each in schema.RUN.columns if each.later)


@dataclass(frozen=True)
class Fact:
    """A difference between two recordings.

    Attributes:
        warning: why the recordings are not comparable; empty where they are.
        asked: what was asked of the variants, where that differs; a gate fails on it.
    """

    what: str
    a: str
    b: str
    warning: str = ""
    asked: Asked | None = None

    @property
    def text(self) -> str:
        """`driver: 570.86 → 575.51 (the driver compiles and launches)`; the value once where both have the same."""
        values = self.a if self.a == self.b else f"{self.a or NOTHING} → {self.b or NOTHING}"
        return f"{self.what}: {values}" + (f" ({self.warning})" if self.warning else "")


def facts(a: RunData, b: RunData) -> Iterator[Fact]:
    """The differences between two recordings: what was asked, then table `run`, packages, ceilings and clocks."""
    yield from of_problems(a, b)
    yield from of_runs(a.info, b.info)
    yield from of_ceilings(a.ceilings, b.ceilings)
    yield from of_clocks(*(data.samples["sm_clock_mhz"].median() for data in (a, b)))


def of_problems(a: RunData, b: RunData) -> Iterator[Fact]:
    """The workloads whose tolerance, reference or inputs differ, in the cells and cases that both runs have."""
    columns = ["workload", "variant", "config", "case"]
    right = [data.results[data.results["status"] == "ok"].dropna(subset=["tolerance"]) for data in (a, b)]
    both = right[0].merge(right[1], on=columns, suffixes=("_a", "_b"))
    both = both.merge(b.variants[["workload", "variant", "precision"]], on=["workload", "variant"])
    # A cell that rounds more than the tolerance has a wider one of its own; the least in a case is the declared one.
    least = both.groupby(["workload", "case", "precision"], observed=True, sort=False)[["tolerance_a", "tolerance_b"]].min()
    other = least[least["tolerance_a"] != least["tolerance_b"]].reset_index().drop_duplicates("workload")
    for workload, of_a, of_b in other[["workload", "tolerance_a", "tolerance_b"]].itertuples(index=False, name=None):
        yield other_tolerance(workload, of_a, of_b)
    cases = a.cases.merge(b.cases, on=["workload", "case"], suffixes=("_a", "_b"))
    for column, asked, words in (
        ("reference_sha256", REFERENCE, "results are compared with other values"),
        ("inputs_sha256", None, "the variants work on other values"),
    ):
        sources = cases[["workload", f"{column}_a", f"{column}_b"]].dropna().drop_duplicates("workload")
        for workload, of_a, of_b in sources.itertuples(index=False, name=None):
            if of_a != of_b:
                what = f"{column.removesuffix('_sha256')} of {workload}"
                yield Fact(what, f"source {of_a[:8]}", f"source {of_b[:8]}", words, asked)
    yield from _of_work(cases)


#: Columns of table `cases` that tell how much work a case is -> their words.
_OF_CASE: Final = {"min_bytes": "bytes", "flops": "operations", "passes": "passes"}


def _of_work(cases: pd.DataFrame) -> Iterator[Fact]:
    """The cases of the same name whose work differs, the first of each workload.

    Args:
        cases: of both runs, side by side.
    """
    for column, words in _OF_CASE.items():
        other = cases[cases[f"{column}_a"] != cases[f"{column}_b"]].drop_duplicates("workload")
        for workload, case, of_a, of_b in other[["workload", "case", f"{column}_a", f"{column}_b"]].itertuples(
            index=False, name=None
        ):
            before, after = (f"{value:,}" for value in (of_a, of_b))
            yield Fact(f"{words} of {workload} {case}", before, after, "the case has other work under the same name")


def of_precisions(cells: Iterable[tuple[str, str, str]], a: RunData, b: RunData) -> Iterator[Fact]:
    """The variants whose precision differs.

    Args:
        cells: workload, variant of A and variant of B of the cells that are compared.
    """
    of_a, of_b = (data.variants.set_index(["workload", "variant"])["precision"].to_dict() for data in (a, b))
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for workload, before, after in cells:
        pair = str(of_a.get((workload, before), "")), str(of_b.get((workload, after), ""))
        if pair[0] != pair[1] and all(pair):
            found.setdefault((workload, *pair), {})[after] = None
    for (workload, of_before, of_after), names in found.items():
        what = f"precision of {workload} {first_of(names, _MOST_NAMED)}"
        yield Fact(what, of_before, of_after, "the results have other digits")


def of_doubts(pairs: Iterable[tuple[Cell, Cell]]) -> Iterator[Fact]:
    """The cells of A and B of which a side is distrusted. Those that are so for the same reasons have a verdict all the same."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for of_a, of_b in pairs:
        if of_a.flags or of_b.flags:
            before, after = (", ".join(sorted(each.flags)) or _TRUSTED for each in (of_a, of_b))
            names = dict.fromkeys(name_of(each.variant, each.config) for each in (of_a, of_b))
            found.setdefault((of_b.workload, before, after), []).append(f"{of_b.case} {' → '.join(names)}")
    for (workload, before, after), cells in found.items():
        words = "no verdict: look at Trust" if before != after else "judged all the same"
        yield Fact(f"distrust of {workload} {first_of(dict.fromkeys(cells), _MOST_NAMED)}", before, after, words)


def other_tolerance(of: str, of_a: float, of_b: float) -> Fact:
    """The tolerance of a workload or of some of its variants, where it differs."""
    words = "a result may be wrong by another amount"
    return Fact(f"tolerance of {of}", f"{of_a:g}", f"{of_b:g}", words, TOLERANCE)


def of_runs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Fact]:
    """The differences between the rows of table `run` of two runs, then the differences between their packages."""
    for column, (what, warning) in _OF_RUN.items():
        before, after = value_text(a.get(column)), value_text(b.get(column))
        # What an older version did not record is no difference.
        if before != after and not (column in _LATER and "" in (before, after)):
            like = column == "collector" and not intervals.differ(a[column], b[column])
            yield Fact(what, before, after, "" if like else warning)
    of_a, of_b = (json.loads(value_text(info["packages"]) or "{}") for info in (a, b))
    for name in sorted(of_a.keys() | of_b.keys()):
        if of_a.get(name) != of_b.get(name):
            yield Fact(name, of_a.get(name, "not installed"), of_b.get(name, "not installed"))


def of_ceilings(a: pd.DataFrame, b: pd.DataFrame) -> Iterator[Fact]:
    """The ceilings that differ by more than 2 %, of two tables `ceilings`."""
    for name in (Ceiling.DEVICE_COPY, Ceiling.FP32_FMA, Ceiling.HOST_COPY):
        rows = [table[table["name"] == name].sort_values("device").head(1) for table in (a, b)]
        values = [(row["value"].iloc[0], row["unit"].iloc[0]) for row in rows if len(row)]
        if len(values) == 2 and abs(values[1][0] / values[0][0] - 1) > _WORTH_A_WARNING:
            before, after = (f"{value:.4g} {unit}" for value, unit in values)
            yield Fact(f"ceiling {name}", before, after, "the machine itself reached other limits")


def of_clocks(a_mhz: float, b_mhz: float) -> Iterator[Fact]:
    """The median SM clocks where they differ by more than 2 %; null where a run has none."""
    if not pd.isna(a_mhz) and not pd.isna(b_mhz) and abs(b_mhz / a_mhz - 1) > _WORTH_A_WARNING:
        yield Fact("SM clock by NVML, median", f"{a_mhz:.0f} MHz", f"{b_mhz:.0f} MHz", "the GPU ran at different clocks")


def value_text(value: Any) -> str:
    """A value of table `run` as text; empty for a null."""
    return "" if value is None or pd.isna(value) else str(value)
