"""Ranges that a pattern picks as variants, and the shares of a trace's device time that are attributed to ranges."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces, of_calls
from warpladder.data import naming, schema, store
from warpladder.data.arrays import NONE, Int64s
from warpladder.data.names import Source
from warpladder.data.naming import CellName, LooseWork, Naming, NamingError

TABLES: Final = ("kernels", "memory_ops")


@dataclass(frozen=True)
class Shares:
    """Device time of all kernels and memory operations of a trace, in nanoseconds.

    Attributes:
        own_ns: launched inside a range of the launching thread.
        by_time_ns: launched by a thread without a range, and attributed to a range of another thread that was open at that
            time.
        none_ns: attributed to no range.
    """

    own_ns: int
    by_time_ns: int
    none_ns: int

    @property
    def percent(self) -> tuple[float, float, float]:
        """The three shares in percent with one decimal, which add up to 100; zeros where nothing ran."""
        total = self.own_ns + self.by_time_ns + self.none_ns
        if not total:
            return 0.0, 0.0, 0.0
        own, by_time = (round(100 * part / total, 1) for part in (self.own_ns, self.by_time_ns))
        return own, by_time, max(0.0, round(100 - own - by_time, 1))


def shares(data: RunData) -> Shares:
    """The shares of a run's device time; zeros where it has no device work."""
    sums = np.zeros(3, dtype=np.int64)
    for table in TABLES:
        if table in data.traces.tables:
            durations = data.traces.durations(table)
            own, by_time = (data.traces.numbers(table, name) != NONE for name in ("range_id", "time_range_id"))
            for place, chosen in enumerate((own, ~own & by_time, ~own & ~by_time)):
                sums[place] += durations[chosen].sum()
    return Shares(*sums.tolist())


def sentence(shares: Shares, ranges: str = "NVTX ranges") -> str:
    """The shares in words; empty where all work was launched inside ranges of its own thread, or where there is no work.

    Args:
        ranges: what the ranges of the profile are called.
    """
    if shares.by_time_ns + shares.none_ns == 0:
        return ""
    own, by_time, none = shares.percent
    return (
        f"Of the device time, {own:g} % was launched inside {ranges} of the launching thread, {by_time:g} % is attributed "
        f"by time to a range of another thread, and {none:g} % to no range."
    )


def loose_work(traces: Traces) -> LooseWork:
    """Device work of a trace that is attributed to no range and whose launch is known."""
    parts: list[tuple[Int64s, ...]] = [(np.empty(0, dtype=np.int64),) * 3]
    for table in TABLES:
        if table in traces.tables:
            rows = traces.ranges_of_work(table) == NONE
            process = traces.numbers(table, "process")[rows]
            if table == "kernels":
                launched = traces.numbers(table, "launch_start_ns")[rows]
            else:
                _, launched = of_calls(traces, process, traces.numbers(table, "correlation")[rows], "start_ns")
            has_launch = launched != NONE
            parts.append((process[has_launch], launched[has_launch], traces.durations(table)[rows][has_launch]))
    return LooseWork(*(np.concatenate(column) for column in zip(*parts, strict=True)))


MOST_TEXTS: Final = 500_000
MOST_TEXT_CHARACTERS: Final = 50_000_000
#: The most variants that a page compares.
MOST_VARIANTS: Final = 200
MOST_CELLS: Final = 5_000


class _PickedTraces(Traces):
    """A trace whose ranges name other cells than they do on disk."""

    def __init__(self, traces: Traces, columns: "Mapping[tuple[str, str], pd.Categorical[Any]]") -> None:
        vars(self).update(vars(traces))
        self._columns = {**traces._columns, **columns}


def texts(data: RunData) -> pd.DataFrame:
    """Distinct texts of the ranges that were closed, those with the most device time first.

    Returns:
        `text`, `n`, and

        - `host_ns`: sum of the ranges' durations;
        - `gpu_ns`: sum of the times in which their work ran on the device;
        - `by_time_ns`: the part of `gpu_ns` that is attributed to them by time, and not by their thread.
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
    """The run as if its report had been imported with that naming. The ranges that it matches are the samples.

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
    cell_names = [cells[each] for each in used.tolist()]
    _refuse_too_many(cell_names, chosen)
    loose_ns = loose_work(traces).within(process[at], start[at], end[at])
    shares = naming.unranked(number, busy[at], loose_ns)
    ranked = ~np.isin(number, list(shares))
    columns = naming.samples(*(column[ranked] for column in (number, start[at], (end - start)[at], busy[at])))
    notes = [
        (naming.RANGES_AS_SAMPLES, "info", int((cell >= 0).sum())),
        (naming.ENDED_EARLY, "warning", int((gpu_end[at] > end[at]).sum())),
    ]
    return replace(
        data,
        variants=store.frame("variants", naming.variant_rows(cell_names)),
        cases=store.frame("cases", naming.case_rows(cell_names)),
        results=store.frame("results", naming.result_rows(cell_names, shares)),
        samples=_samples(cell_names, columns, _gpus(traces)),
        diagnostics=_diagnostics(data, chosen, notes),
        traces=_PickedTraces(traces, _columns(traces, cells, cell)),
    )


def default_workload(data: RunData) -> str:
    """The workload where a pattern gives none: the report's name without its ending, or the label of a recording."""
    return Path(data.info["source"]).stem or str(data.info["label"] or data.info["run_id"])


def _names(data: RunData, distinct_texts: list[str], chosen: Naming) -> list[CellName | None]:
    if len(distinct_texts) > MOST_TEXTS or sum(map(len, distinct_texts)) > MOST_TEXT_CHARACTERS:
        raise NamingError(
            f"this trace has {len(distinct_texts):,} distinct texts, too many to look through on a page; "
            f"import its report with {chosen.option}"
        )
    names = chosen.name(distinct_texts, default_workload(data))
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


def _samples(cells: list[CellName], numbers_of: dict[str, Int64s], gpus: int) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for column in CellName._fields:
        values, place = np.unique(np.array([getattr(each, column) for each in cells], dtype=object), return_inverse=True)
        columns[column] = pd.Categorical.from_codes(place[numbers_of["cell"]], categories=pd.Index(values, dtype="str"))
    columns["scope"] = pd.Categorical.from_codes(numbers_of["scope"], categories=pd.Index(naming.SCOPES, dtype="str"))
    numbers = {"round": numbers_of["round"], "duration_ns": numbers_of["duration_ns"], "gpus": gpus, **naming.SAME}
    count = len(numbers_of["cell"])
    types = store.frame("samples", []).dtypes.drop(list(columns))
    types["cache"] = "category"
    # Reindexing makes typed nulls faster than a conversion of a million nulls.
    unknown = {name: pd.Series(dtype=types.pop(name)).reindex(range(count)) for name in naming.UNKNOWN}
    frame = pd.DataFrame({**columns, **numbers}, index=range(count)).astype(types.to_dict())
    return frame.assign(**unknown)[list(schema.SAMPLES.arrow.names)]


def _diagnostics(data: RunData, chosen: Naming, notes: list[tuple[str, str, int]]) -> pd.DataFrame:
    """The diagnostics of the trace without those about its former variants, and the notes about the picked ones."""
    others = data.diagnostics[data.diagnostics["variant"].isna() & (data.diagnostics["source"] != Source.VARIANT_FROM)]
    texts = [("info", f"Variants were picked on a page or by --variant-from, by nvtx:{chosen.expression}")]
    texts += [(severity, note.format(f"{count:,}")) for note, severity, count in notes if count]
    nowhere = dict.fromkeys(CellName._fields)
    rows = [{"severity": severity, "source": Source.VARIANT_FROM, "text": text, **nowhere} for severity, text in texts]
    return pd.concat([others, store.frame("diagnostics", rows)], ignore_index=True)


def _columns(traces: Traces, cells: list[CellName], cell: Int64s) -> "dict[tuple[str, str], pd.Categorical[Any]]":
    """The columns of `ranges` that name a cell, with the names of the picked cells."""
    matched = np.flatnonzero(cell >= 0)
    columns = {}
    for column in CellName._fields:
        before = traces.texts("ranges", column)
        names = {str(name): number for number, name in enumerate(before.categories)}
        numbers = np.array([names.setdefault(getattr(each, column), len(names)) for each in cells], dtype=np.int64)
        codes = before.codes.astype(np.int64)
        codes[matched] = numbers[cell[matched]]
        columns["ranges", column] = pd.Categorical.from_codes(codes, categories=pd.Index(list(names), dtype="str"))
    return columns
