"""The cells of a comparison that the page shows, one cell in detail, and the difference of its sources."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Final

import pandas as pd

from warpladder.dashboard.compare.changes import Change, Comparison, LostCell, durations
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import ASIDE, ROLE_ORDER, Timing
from warpladder.dashboard.core.run_data import RunData

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
    cache: str = ""
    variant: str = ""

    def fits(self, change: Change | LostCell) -> bool:
        if self.workload not in ("", change.workload) or self.cache not in ("", change.timing.cache):
            return False
        patterns = [each if {"*", "?"} & set(each) else f"*{each}*" for each in self.variant.lower().replace(",", " ").split()]
        variants = (change.variant, *change.of_a[:1]) if isinstance(change, Change) else (change.variant,)
        names = {name.lower() for name in variants}
        return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def only(comparison: Comparison, choice: Filter) -> Comparison:
    """The part of a comparison that fits a filter. Verdicts and noise stay as computed from all cells."""
    changes = tuple(change for change in comparison.changes if choice.fits(change))
    shown = {(change.workload, change.variant) for change in changes}
    sources = tuple(each for each in comparison.changed_sources if each in shown)
    return replace(comparison, changes=changes, changed_sources=sources, lost=tuple(filter(choice.fits, comparison.lost)))


def written(change: Change) -> str:
    """The cell of a change in a URL."""
    return "|".join(change.key)


def chosen(changes: Sequence[Change], text: str) -> Change | None:
    """The change that a URL's text names, or None."""
    return next((change for change in changes if written(change) == text), None)


def clouds(a: RunData, b: RunData, change: Change) -> pd.DataFrame:
    """The samples of a cell on both sides: `side` (`A` or `B`), `variant`, `config`, `round`, `duration_ns`.

    Of samples that several ranks took together, the slowest rank of a round counts.
    """
    parts = []
    for side, data, cell in (("A", a, change.of_a), ("B", b, (change.variant, change.config))):
        samples = durations(data, change, cell)
        columns = {"side": side, "variant": cell[0], "config": cell[1]}
        parts.append(pd.DataFrame({**columns, "round": samples.index, "duration_ns": samples.to_numpy()}))
    return pd.concat(parts, ignore_index=True)


def timed_variants(data: RunData) -> list[str]:
    """The variants with samples: rungs, peers, host variants, ceilings, specimens; each in the order of the run."""
    timed = data.variants[data.variants["variant"].isin(data.grouped.keys["variant"])]
    place = timed["role"].astype(object).map(_PLACES)
    return list(dict.fromkeys(timed.assign(place=place).sort_values("place", kind="stable")["variant"]))


def pair(data: RunData) -> tuple[str, str]:
    """The two variants of a run to compare at first: the last rung, and the one before it that has a case with it in a workload's first timing.

    Peers are taken where there are no two rungs; ceilings and specimens, which are no competitors, where there are no two others.

    Args:
        data: a run with at least two variants that have samples.
    """
    ordered = timed_variants(data)
    roles = data.variants.groupby("variant", observed=True)["role"].agg(set)
    rivals = [name for name in ordered if roles[name] - set(ASIDE)]
    rungs = [name for name in rivals if roles[name] & {"rung", "host"}]
    first_timings = {workload: cells.timings(data, workload)[:1] for workload in data.workloads}
    timed: dict[str, set[tuple[str, str]]] = {name: set() for name in ordered}
    keys = data.grouped.keys[["variant", "workload", "case", "scope", "cache"]].drop_duplicates().astype(object)
    for variant, workload, case, scope, cache in keys.itertuples(index=False, name=None):
        if Timing(scope, cache) in first_timings[workload]:
            timed[variant].add((workload, case))
    for names in (rungs, rivals, ordered):
        for place, last in reversed([*enumerate(names)]):
            for first in reversed(names[:place]):
                if timed[first] & timed[last]:
                    return first, last
    return ordered[0], ordered[-1]


#: Equal lines that are shown before and after a difference.
_CONTEXT: Final = 3
#: Two lines that are less alike than this are marked as a whole.
_LIKENESS: Final = 0.5
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
#: Longer sources are compared by whole lines, without words.
_MOST_FOR_WORDS: Final = 4_000


@dataclass(frozen=True)
class Line:
    """A line of one source.

    Attributes:
        number: from 1.
        parts: its text in parts, each with whether it differs from the other side.
    """

    number: int
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Row:
    """A row of two sources side by side.

    Attributes:
        before, after: None where a side has no such line.
        changed: whether the two differ.
        skipped: number of equal lines that the row stands for, which then has no lines; else 0.
    """

    before: Line | None
    after: Line | None
    changed: bool
    skipped: int = 0


def rows(before: str, after: str) -> tuple[Row, ...]:
    """The rows of two sources, with three equal lines around each difference; all lines where nothing differs."""
    old, new = before.splitlines(), after.splitlines()
    result: list[Row] = []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    by_words = len(old) + len(new) <= _MOST_FOR_WORDS
    for place, (kind, a, a_end, b, b_end) in enumerate(blocks):
        if kind == "equal":
            same = [Row(_line(old, a + step), _line(new, b + step), changed=False) for step in range(a_end - a)]
            result += _around(same, first=place == 0, last=place == len(blocks) - 1)
        else:
            result += _different(old, new, range(a, a_end), range(b, b_end), by_words=by_words)
    return tuple(result)


def _around(same: list[Row], *, first: bool, last: bool) -> list[Row]:
    """Equal lines next to a difference, with a row in place of those between."""
    if first and last:
        return same
    head, tail = (0 if first else _CONTEXT), (0 if last else _CONTEXT)
    left_out = len(same) - head - tail
    if left_out <= 1:
        return same
    return [*same[:head], Row(None, None, changed=False, skipped=left_out), *same[len(same) - tail :]]


def _different(old: Sequence[str], new: Sequence[str], a: range, b: range, *, by_words: bool) -> Iterator[Row]:
    for one, other in zip_longest(a, b):
        if one is None or other is None or not by_words:
            before, after = (None if each is None else _line(lines, each) for lines, each in ((old, one), (new, other)))
            yield Row(before, after, changed=True)
        else:
            parts = _words(old[one], new[other])
            yield Row(Line(one + 1, parts[0]), Line(other + 1, parts[1]), changed=True)


def _line(lines: Sequence[str], place: int) -> Line:
    return Line(place + 1, ((lines[place], False),))


def _words(old: str, new: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    """The parts of two lines; unmarked where they have too little in common."""
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    words_of = [[word for word in words if not word.isspace()] for words in (one, other)]
    if SequenceMatcher(None, words_of[0], words_of[1], autojunk=False).ratio() < _LIKENESS:
        return ((old, False),), ((new, False),)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    before = tuple(("".join(one[a:a_end]), kind != "equal") for kind, a, a_end, _, _ in blocks if a < a_end)
    after = tuple(("".join(other[b:b_end]), kind != "equal") for kind, _, _, b, b_end in blocks if b < b_end)
    return before, after
