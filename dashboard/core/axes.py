"""What a reader can choose from in a run: the size axis and the series of a workload, and how cells were measured."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData

#: The host variant that speedups are counted from where none was sampled twice.
FALLBACK_HOST_BASELINE: Final = "numba_serial"


@dataclass(frozen=True)
class Timing:
    """How a cell is timed: a scope and a state of the caches."""

    scope: str
    cache: str

    def label(self, *, on_gpu: bool) -> str:
        """What a page shows: `device time, cold L2`, or `operation time, caches warm` on a processor."""
        caches = f"{self.cache} L2" if on_gpu else f"caches {'warm' if self.cache == 'hot' else self.cache}"
        return f"{self.scope.replace('_', ' ')} time, {caches}"


@dataclass(frozen=True)
class Baseline:
    """The variant, with its config, that speedups are counted from."""

    variant: str
    config: str


def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The ways in which the workload was timed, the one to show first in front.

    In front stands `device` with a cold L2 where there is a GPU, then `device` hot, `operation`, `end_to_end`, phases.
    """
    keys = data.grouped.keys
    found = keys.loc[keys["workload"] == workload, ["scope", "cache"]].drop_duplicates().itertuples(index=False)
    order = ("device", "operation", "end_to_end")
    return tuple(
        sorted(
            (Timing(scope, cache) for scope, cache in found),
            key=lambda view: (order.index(view.scope) if view.scope in order else len(order), view.scope, view.cache),
        )
    )


def charted_cases(data: RunData, workload: str) -> pd.DataFrame:
    """The workload's cases on the size axis, by size_rank.

    Returns:
        The columns of `cases` and, besides, `size` (text of the axes that change only with size_rank, e.g. `n=512`), `size_value`
        (the number of it where the axis is one number, else size_rank + 1: a logarithmic axis has no 0) and `series` (text of the other axes, e.g. `perm=210`;
        empty where the workload has none).
    """
    cases = data.cases[(data.cases["workload"] == workload) & data.cases["size_rank"].notna()].copy()
    params: list[dict[str, Any]] = [json.loads(text) for text in cases["params"]]
    ranks = cases["size_rank"].tolist()
    axes = _in_case_order(cases["case"].tolist(), params)
    sized = [axis for axis in axes if _follows_rank(axis, params, ranks)]
    if not sized:
        sized, axes = axes, []
    cases["size"] = [_text(point, sized) for point in params]
    cases["series"] = [_text(point, [axis for axis in axes if axis not in sized]) for point in params]
    values = [point.get(sized[0]) if len(sized) == 1 else None for point in params]
    numeric = bool(values) and all(isinstance(value, int | float) and value > 0 for value in values)
    cases["size_value"] = pd.Series(values if numeric else [rank + 1 for rank in ranks], index=cases.index, dtype=float)
    return cases.sort_values("size_rank", kind="stable").reset_index(drop=True)


def timed_cases(data: RunData, workload: str) -> frozenset[str]:
    """The workload's cases that have samples: an interrupted run has none of its last ones."""
    keys = data.grouped.keys
    return frozenset(keys.loc[keys["workload"] == workload, "case"])


def series(data: RunData, workload: str) -> tuple[str, ...]:
    """The workload's series, e.g. `("perm=012", "perm=021", …)`; `("",)` where size is its only axis."""
    return tuple(charted_cases(data, workload)["series"].unique())


def baseline(
    data: RunData, workload: str, view: Timing, *, on_host: bool = False, cases: Iterable[str] | None = None
) -> Baseline | None:
    """What speedups are counted from in that view: the variant that was sampled twice (A/A).

    Where a GPU variant and a host variant both were, it is the one of the GPU. Where none was, it is the lowest rung with
    samples in the view, then `numba_serial`, then the first variant; None where the view has no sample.

    Args:
        on_host: of the host's variants alone, as a machine without a GPU would choose it.
        cases: of these alone; the variant of most cases may have none of them.
    """
    groups = data.grouped.keys
    chosen = (groups["workload"] == workload) & (groups["scope"] == view.scope) & (groups["cache"] == view.cache)
    if on_host:
        chosen &= groups["gpus"] == 0
    if cases is not None:
        chosen &= groups["case"].isin(list(cases))
    copies = groups.loc[chosen, ["variant", "config", "case", "gpus", "twin"]]
    if copies.empty:
        return None
    # A case whose baseline failed has another variant's twin, so the one that is a twin in the most cases is meant.
    found = copies.groupby(["variant", "config", "gpus"], as_index=False, sort=False)["twin"].sum()
    variants = data.variants[data.variants["workload"] == workload].reset_index(names="place")
    found = found.merge(variants[["variant", "role", "rung", "place"]], on="variant", how="left")
    order = found.assign(
        single=found["twin"] == 0,
        off_gpu=found["gpus"] == 0,
        twins=-found["twin"],
        rung=found["rung"].astype(float).where(found["role"] == "rung"),
        not_named=found["variant"] != FALLBACK_HOST_BASELINE,
    )
    keys = ["single", "off_gpu", "twins", "rung", "not_named", "place"]
    first = order.sort_values(keys, na_position="last", kind="stable").iloc[0]
    return Baseline(str(first["variant"]), str(first["config"]))


def _in_case_order(names: list[str], params: list[dict[str, Any]]) -> list[str]:
    """Names of the axes as case names have them; the JSON of `params` is sorted by name."""
    axes = dict.fromkeys(axis for point in params for axis in point)
    written = [part.split("=", 1)[0] for name in names[:1] for part in name.split(",")]
    return sorted(axes, key=lambda axis: written.index(axis) if axis in written else len(written))


def _follows_rank(axis: str, params: list[dict[str, Any]], ranks: list[int]) -> bool:
    """The axis has one value at each rank, and changes over them."""
    values: dict[int, set[str]] = {}
    for point, rank in zip(params, ranks, strict=True):
        values.setdefault(rank, set()).add(str(point.get(axis)))
    return all(len(found) == 1 for found in values.values()) and len(set.union(*values.values())) > 1


def _text(params: dict[str, Any], axes: list[str]) -> str:
    return ",".join(f"{axis}={params[axis]}" for axis in axes if axis in params)


def scaled_workloads(data: RunData) -> tuple[str, ...]:
    """The workloads that several ranks measured together, in the order of the run."""
    found = set(data.together["workload"].unique())
    return tuple(name for name in data.workloads if name in found)
