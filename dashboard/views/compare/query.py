"""What the page shows of a comparison, and of one of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

import pandas as pd

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.cell import ASIDE, ROLE_ORDER
from warpladder.dashboard.core.changes import Change, Comparison, durations
from warpladder.dashboard.core.lost import Lost
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Timing

#: The places of the roles in a list of variants: the competitors first.
_PLACES: Final = {role: place for place, role in enumerate(sorted(ROLE_ORDER, key=lambda role: role in ASIDE))}


@dataclass(frozen=True)
class Filter:
    """The cells to show; empty for any.

    Attributes:
        variant: patterns as of file names, such as `v0* cublas`, of which a variant must fit one. A pattern without `*` or `?` fits
            any part of the name.
    """

    workload: str = ""
    scope: str = ""
    cache: str = ""
    variant: str = ""

    def fits(self, change: Change | Lost) -> bool:
        wanted = ((self.workload, change.workload), (self.scope, change.timing.scope), (self.cache, change.timing.cache))
        if any(value and value != own for value, own in wanted):
            return False
        patterns = [each if {"*", "?"} & set(each) else f"*{each}*" for each in self.variant.lower().replace(",", " ").split()]
        variants = (change.variant, *change.of_a[:1]) if isinstance(change, Change) else (change.variant,)
        names = {name.lower() for name in variants}
        return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def only(found: Comparison, wanted: Filter) -> Comparison:
    """The part of a comparison that fits a filter. Verdicts and noise stay those of all cells."""
    changes = tuple(change for change in found.changes if wanted.fits(change))
    shown = {(change.workload, change.variant) for change in changes}
    sources = tuple(each for each in found.changed_sources if each in shown)
    return replace(found, changes=changes, changed_sources=sources, lost=tuple(filter(wanted.fits, found.lost)))


def written(change: Change) -> str:
    """The cell of a change in a URL."""
    return "|".join(change.key)


def chosen(changes: Sequence[Change], text: str) -> Change | None:
    """The change of a URL's text; None where there is none."""
    return next((change for change in changes if written(change) == text), None)


def clouds(a: RunData, b: RunData, change: Change) -> pd.DataFrame:
    """The samples of a cell on both sides: `side` (`A` or `B`), `variant`, `config`, `round`, `duration_ns`.

    Of samples that several ranks took together, the slowest rank of a round counts.
    """
    parts = []
    for side, data, cell in (("A", a, change.of_a), ("B", b, (change.variant, change.config))):
        found = durations(data, change, cell)
        named = {"side": side, "variant": cell[0], "config": cell[1]}
        parts.append(pd.DataFrame({**named, "round": found.index, "duration_ns": found.to_numpy()}))
    return pd.concat(parts, ignore_index=True)


def source(data: RunData, workload: str, variant: str) -> str:
    """The source of a variant as it was measured; empty where none was recorded."""
    found = data.variants[(data.variants["workload"] == workload) & (data.variants["variant"] == variant)]
    return next(iter(found["source_text"].fillna("")), "")


def timed_variants(data: RunData) -> list[str]:
    """The variants with samples: rungs, peers, host variants, ceilings, specimens; each in the order of the run."""
    timed = data.variants[data.variants["variant"].isin(data.grouped.keys["variant"])]
    place = timed["role"].astype(object).map(_PLACES)
    return list(dict.fromkeys(timed.assign(place=place).sort_values("place", kind="stable")["variant"]))


def pair(data: RunData) -> tuple[str, str]:
    """The two variants of a run to compare at first: the first one, and the last that has a case with it in a workload's first timing.

    Ceilings and specimens are no competitors, and are passed over where two others can be compared.

    Args:
        data: a run with at least two variants that have samples.
    """
    ordered = timed_variants(data)
    roles = data.variants.groupby("variant", observed=True)["role"].agg(set)
    rivals = [name for name in ordered if roles[name] - set(ASIDE)]
    first_timings = {workload: axes.timings(data, workload)[:1] for workload in data.workloads}
    cells: dict[str, set[tuple[str, str]]] = {name: set() for name in ordered}
    keys = data.grouped.keys[["variant", "workload", "case", "scope", "cache"]].drop_duplicates().astype(object)
    for variant, workload, case, scope, cache in keys.itertuples(index=False, name=None):
        if Timing(scope, cache) in first_timings[workload]:
            cells[variant].add((workload, case))
    for names in (rivals, ordered):
        for place, first in enumerate(names):
            for last in reversed(names[place + 1 :]):
                if cells[first] & cells[last]:
                    return first, last
    return ordered[0], ordered[-1]
