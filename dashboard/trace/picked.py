"""Variants out of a trace: what its ranges are called, and the run in which some of them are the samples of variants."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Int64s, Traces
from warpladder.dashboard.trace import attribution
from warpladder.data import naming, schema, store
from warpladder.data.naming import CellName, Naming, NamingError

#: How long a pattern may take on a page; `import --variant-from` gives it a minute.
SECONDS: Final = 5.0
MOST_TEXTS: Final = 500_000
MOST_TEXT_CHARACTERS: Final = 50_000_000
#: A page with more of them could not be read.
MOST_VARIANTS: Final = 200
MOST_CELLS: Final = 5_000
_SOURCE: Final = "variant-from"


class _Picked(Traces):
    """A trace whose ranges name other cells than they do on disk."""

    def __init__(self, traces: Traces, columns: "Mapping[tuple[str, str], pd.Categorical[Any]]") -> None:
        vars(self).update(vars(traces))
        self._columns = {**traces._columns, **columns}


def texts(data: RunData) -> pd.DataFrame:
    """Distinct texts of the ranges that were closed, those with the most device time first.

    Returns:
        `text`, `n`, `host_ns` (sum of the ranges' own durations), `gpu_ns` (sum of the times in which their work ran on the device) and
        `by_time_ns` (how much of it is not of work launched inside them on their own thread, but attributed to them by time).
    """
    traces = data.traces
    text = traces.texts("ranges", "text")
    start, end, own = (traces.numbers("ranges", name) for name in ("start_ns", "end_ns", "gpu_busy_ns"))
    busy = traces.device_time_of_ranges("gpu_busy_ns")
    closed = end >= 0
    code = text.codes[closed]

    def summed(values: Int64s) -> Int64s:
        # Exact: a float64 holds the nanoseconds of a hundred days.
        return np.bincount(code, weights=values[closed], minlength=len(text.categories)).astype(np.int64)

    frame = pd.DataFrame(
        {
            "text": np.asarray(text.categories, dtype=object),
            "n": np.bincount(code, minlength=len(text.categories)),
            "host_ns": summed(end - start),
            "gpu_ns": summed(np.maximum(busy, 0)),
            "by_time_ns": summed(np.maximum(busy, 0) - np.maximum(own, 0)),
        }
    )
    most = ["gpu_ns", "host_ns", "text"]
    return frame[frame["n"] > 0].sort_values(most, ascending=[False, False, True], ignore_index=True)


def pick(data: RunData, chosen: Naming) -> RunData:
    """The run as if its report had been imported with that naming: the ranges that it finds are the samples.

    Raises:
        NamingError: it finds none, takes too long, or gives more than a page can compare.
    """
    traces = data.traces
    if "ranges" not in traces.tables:
        raise NamingError(f"this run has no NVTX ranges, so that nvtx:{chosen.expression} finds none; choose another run")
    text = traces.texts("ranges", "text")
    cells, of_text = naming.distinct(_names(data, [str(each) for each in text.categories], chosen))
    cell = of_text[text.codes]
    start, end, process = (traces.numbers("ranges", name) for name in ("start_ns", "end_ns", "process"))
    busy, gpu_end = (traces.device_time_of_ranges(name) for name in ("gpu_busy_ns", "gpu_end_ns"))
    at = np.flatnonzero((cell >= 0) & (end >= 0))
    used, number = np.unique(cell[at], return_inverse=True)
    found = [cells[each] for each in used.tolist()]
    _refuse_too_many(found, chosen)
    loose_ns = attribution.loose_work(traces).within(process[at], start[at], end[at])
    shares = naming.unranked(number, busy[at], loose_ns)
    ranked = ~np.isin(number, list(shares))
    made = naming.samples(*(column[ranked] for column in (number, start[at], (end - start)[at], busy[at])))
    notes = [
        (naming.TAKEN, "info", int((cell >= 0).sum())),
        (naming.ENDED_EARLY, "warning", int((gpu_end[at] > end[at]).sum())),
    ]
    return replace(
        data,
        variants=store.frame("variants", naming.variant_rows(found)),
        cases=store.frame("cases", naming.case_rows(found)),
        results=store.frame("results", naming.result_rows(found, shares)),
        samples=_samples(found, made, _gpus(traces)),
        diagnostics=_diagnostics(data, chosen, notes),
        traces=_Picked(traces, _columns(traces, cells, cell)),
    )


def default_workload(data: RunData) -> str:
    """The workload where a pattern tells none: the report's name without its ending; of a recording, the run's label."""
    return Path(data.info["source"]).stem or str(data.info["label"] or data.info["run_id"])


def _names(data: RunData, distinct_texts: list[str], chosen: Naming) -> list[CellName | None]:
    if len(distinct_texts) > MOST_TEXTS or sum(map(len, distinct_texts)) > MOST_TEXT_CHARACTERS:
        raise NamingError(
            f"this trace has {len(distinct_texts):,} distinct texts, too many to look through on a page; "
            f"import its report with {chosen.option}"
        )
    names = chosen.name(distinct_texts, default_workload(data), SECONDS)
    if not any(names):
        raise NamingError(f"nvtx:{chosen.expression} finds no range; choose texts from the table, or write another pattern")
    return names


def _refuse_too_many(cells: list[CellName], chosen: Naming) -> None:
    variants = len({(cell.workload, cell.variant) for cell in cells})
    for count, what, most in ((variants, "variants", MOST_VARIANTS), (len(cells), "cells", MOST_CELLS)):
        if count > most:
            raise NamingError(
                f"nvtx:{chosen.expression} gives {count:,} {what}, and a page compares up to {most:,}; let the group "
                "variant take less of the text, and the group case the rest"
            )
    if not cells:
        raise NamingError(f"nvtx:{chosen.expression} finds only ranges that were never closed, and these have no duration")


def _gpus(traces: Traces) -> int:
    """GPUs that the trace's program used; at least 1."""
    tables = [table for table in ("kernels", "memory_ops") if table in traces.tables]
    devices = set().union(*(np.unique(traces.numbers(table, "device")).tolist() for table in tables))
    return max(1, len(devices))


def _samples(cells: list[CellName], made: dict[str, Int64s], gpus: int) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for column in CellName._fields:
        values, place = np.unique(np.array([getattr(each, column) for each in cells], dtype=object), return_inverse=True)
        columns[column] = pd.Categorical.from_codes(place[made["cell"]], categories=pd.Index(values, dtype="str"))
    columns["scope"] = pd.Categorical.from_codes(made["scope"], categories=pd.Index(naming.SCOPES, dtype="str"))
    numbers = {"round": made["round"], "duration_ns": made["duration_ns"], "gpus": gpus, **naming.SAME}
    count = len(made["cell"])
    types = store.frame("samples", []).dtypes.drop(list(columns))
    types["cache"] = "category"
    # Reindexed, since a million nulls are made of a type faster than they are turned into it.
    unknown = {name: pd.Series(dtype=types.pop(name)).reindex(range(count)) for name in naming.UNKNOWN}
    frame = pd.DataFrame({**columns, **numbers}, index=range(count)).astype(types.to_dict())
    return frame.assign(**unknown)[list(schema.SAMPLES.arrow.names)]


def _diagnostics(data: RunData, chosen: Naming, notes: list[tuple[str, str, int]]) -> pd.DataFrame:
    """What was found about the trace, without what was found about the variants that it had before, and what was picked."""
    kept = data.diagnostics[data.diagnostics["variant"].isna() & (data.diagnostics["source"] != _SOURCE)]
    texts = [("info", f"Variants were picked on a page or by --variant-from, by nvtx:{chosen.expression}")]
    texts += [(severity, note.format(f"{count:,}")) for note, severity, count in notes if count]
    nowhere = dict.fromkeys(CellName._fields)
    rows = [{"severity": severity, "source": _SOURCE, "text": text, **nowhere} for severity, text in texts]
    return pd.concat([kept, store.frame("diagnostics", rows)], ignore_index=True)


def _columns(traces: Traces, cells: list[CellName], cell: Int64s) -> "dict[tuple[str, str], pd.Categorical[Any]]":
    """The columns of `ranges` that name a cell, with those that were picked."""
    matched = np.flatnonzero(cell >= 0)
    found = {}
    for column in CellName._fields:
        before = traces.texts("ranges", column)
        names = {str(name): number for number, name in enumerate(before.categories)}
        numbers = np.array([names.setdefault(getattr(each, column), len(names)) for each in cells], dtype=np.int64)
        codes = before.codes.astype(np.int64)
        codes[matched] = numbers[cell[matched]]
        found["ranges", column] = pd.Categorical.from_codes(codes, categories=pd.Index(list(names), dtype="str"))
    return found
