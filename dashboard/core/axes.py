"""The choices that a run offers: timings, and the size axis and the series of a workload."""

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd

from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData, once


@once
def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The ways in which the workload was timed: `device` (cold before hot), `operation`, `end_to_end`, then phases.

    A page shows the first one at first.
    """
    keys = data.grouped.keys
    of_workload = keys[keys["workload"] == workload][["scope", "cache"]].drop_duplicates()
    return in_order(Timing(scope, cache) for scope, cache in of_workload.itertuples(index=False))


def in_order(timings: Iterable[Timing]) -> tuple[Timing, ...]:
    """Timings in the order of `timings`."""
    order = ("device", "operation", "end_to_end")
    return tuple(
        sorted(
            timings,
            key=lambda timing: (order.index(timing.scope) if timing.scope in order else len(order), timing.scope, timing.cache),
        )
    )


def charted_cases(data: RunData, workload: str) -> pd.DataFrame:
    """The workload's cases on the size axis, by size_rank.

    Returns:
        The columns of `cases`, and:

        - `size`: text of the axes that change only with size_rank, such as `n=512`; of those that do not change where there is one
          size_rank;
        - `size_value`: the number of that axis, where it is one axis of numbers; else size_rank + 1, since a logarithmic axis
          has no 0;
        - `series`: text of the other axes, such as `perm=210`; empty where the workload has none.

        The frame is the caller's own copy.
    """
    return _charted_cases(data, workload).copy()


@once
def _charted_cases(data: RunData, workload: str) -> pd.DataFrame:
    cases = data.cases[(data.cases["workload"] == workload) & data.cases["size_rank"].notna()].copy()
    params: list[dict[str, Any]] = [json.loads(text) for text in cases["params"]]
    ranks = cases["size_rank"].tolist()
    axes = _in_case_order(cases["case"].tolist(), params)
    sized = [axis for axis in axes if _follows_rank(axis, params, ranks)]
    if not sized:
        shared = [axis for axis in axes if len({str(point.get(axis)) for point in params}) == 1]
        sized = shared if len(set(ranks)) == 1 and shared else axes
    cases["size"] = [_text(point, sized) for point in params]
    cases["series"] = [_text(point, [axis for axis in axes if axis not in sized]) for point in params]
    values = [point.get(sized[0]) if len(sized) == 1 else None for point in params]
    numeric = bool(values) and all(isinstance(value, int | float) and value > 0 for value in values)
    sizes = values if numeric else [rank + 1 for rank in ranks]
    cases["size_value"] = pd.Series(sizes, index=cases.index, dtype=float)
    return cases.sort_values("size_rank", kind="stable").reset_index(drop=True)


def timed_cases(data: RunData, workload: str) -> frozenset[str]:
    """The workload's cases that have samples. An interrupted run lacks samples of its last cases."""
    keys = data.grouped.keys
    return frozenset(keys.loc[keys["workload"] == workload, "case"])


def series(data: RunData, workload: str) -> tuple[str, ...]:
    """The workload's series, such as `("perm=012", "perm=021", …)`; `("",)` where size is its only axis."""
    return tuple(charted_cases(data, workload)["series"].unique())


def _in_case_order(names: list[str], params: list[dict[str, Any]]) -> list[str]:
    """Names of the axes in the order of the case names. The JSON of `params` is sorted by name."""
    axes = dict.fromkeys(axis for point in params for axis in point)
    written = [part.split("=", 1)[0] for name in names[:1] for part in name.split(",")]
    return sorted(axes, key=lambda axis: written.index(axis) if axis in written else len(written))


def _follows_rank(axis: str, params: list[dict[str, Any]], ranks: list[int]) -> bool:
    """Whether the axis has one value at each rank, and not the same at all ranks."""
    values: dict[int, set[str]] = {}
    for point, rank in zip(params, ranks, strict=True):
        values.setdefault(rank, set()).add(str(point.get(axis)))
    return all(len(of_rank) == 1 for of_rank in values.values()) and len(set.union(*values.values())) > 1


def _text(params: dict[str, Any], axes: list[str]) -> str:
    return ",".join(f"{axis}={params[axis]}" for axis in axes if axis in params)


def scaled_workloads(data: RunData) -> tuple[str, ...]:
    """The workloads that several ranks measured together, in the order of the run."""
    scaled = set(data.together["workload"].unique())
    return tuple(name for name in data.workloads if name in scaled)
