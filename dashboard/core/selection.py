"""Some workloads and variants of a run, as the export takes them. What is left keeps its figures."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.errors import Error

_GLOB: Final = frozenset("*?[]")
_MOST_CLOSE: Final = 5
_MOST_NAMES: Final = 12


def select(data: RunData, workloads: Sequence[str] = (), variants: Sequence[str] = ()) -> RunData:
    """The run with some workloads and variants alone; all of them where none is named.

    Speedups stay those over the run's baseline, also where the baseline is left out. The tables of the trace stay whole.

    Args:
        workloads: names or globs such as `mlp_*`.
        variants: names or globs such as `v0*`; each finds a variant of the chosen workloads.

    Raises:
        Error: a name or a pattern finds nothing.
    """
    if not workloads and not variants:
        return data
    taken = _found(workloads, data.workloads, "--workload", "workload") or set(data.workloads)
    of_taken = data.variants[data.variants["workload"].isin(taken)]
    shown = _found(variants, list(of_taken["variant"].unique()), "--variants", "variant") or set(of_taken["variant"])
    is_shown = of_taken["variant"].isin(shown)
    left = set(of_taken.loc[is_shown, "workload"])
    names = zip(data.variants["workload"], data.variants["variant"], strict=True)
    hidden = frozenset((workload, variant) for workload, variant in names if workload not in left or variant not in shown)

    def chosen(frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of the chosen variants, and those about no variant."""
        workload, variant = (frame[name].astype(object) for name in ("workload", "variant"))
        wanted = (workload.isin(left) | _is_nothing(workload)) & (variant.isin(shown) | _is_nothing(variant))
        return frame[wanted].reset_index(drop=True)

    return replace(
        data,
        variants=data.variants[data.variants["workload"].isin(left)].reset_index(drop=True),
        cases=data.cases[data.cases["workload"].isin(left)].reset_index(drop=True),
        results=chosen(data.results),
        diagnostics=chosen(data.diagnostics),
        counters=chosen(data.counters),
        together=chosen(data.together),
        samples=_beside(data.samples, chosen(data.samples)),
        hidden=data.hidden | hidden,
        selected_from=data.selected_from or data,
    )


def _is_nothing(names: "pd.Series[str]") -> "pd.Series[bool]":
    return names.isna() | (names == "")


def _beside(samples: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The samples of all variants, among them the baseline, in the cases and timings in which a chosen one has samples."""
    where = ["workload", "case", "scope", "cache"]
    texts = samples[where].astype(object)
    known = pd.MultiIndex.from_frame(chosen[where].astype(object).drop_duplicates())
    return samples[pd.MultiIndex.from_frame(texts).isin(known)].reset_index(drop=True)


def _found(patterns: Sequence[str], names: Sequence[str], option: str, what: str) -> set[str]:
    """The names that names and globs find, where each finds one."""
    found: set[str] = set()
    for pattern in patterns:
        matches = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not matches:
            raise Error(f"{option} {pattern}: no {what} of this run; {_known(pattern, names)}")
        found.update(matches)
    return found


def _known(pattern: str, names: Sequence[str]) -> str:
    plain = "".join(letter for letter in pattern if letter not in _GLOB)
    within = [name for name in names if plain and plain.lower() in name.lower()]
    close = list(dict.fromkeys([*difflib.get_close_matches(plain, names), *within]))
    if close:
        return f"did you mean {', '.join(close[:_MOST_CLOSE])}?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}"
