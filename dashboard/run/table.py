"""The table of a run as a frame that a notebook shows in words."""

import html
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.levels import reading
from warpladder.dashboard.compare.within_run import with_speedups
from warpladder.dashboard.core.cell import ROLE_ORDER, Estimate, Timing, name_on
from warpladder.dashboard.core.cells import cells, timings
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_ends,
    format_half_width,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData, RunError
from warpladder.data.schema import CACHES

#: The most rows that are shown.
_MOST_ROWS: Final = 60
_CELL: Final = "text-align:left;vertical-align:top;padding:3px 10px 3px 0"
_LAST: Final = f"{_CELL};min-width:15em"


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts. Its last column is broken into lines where it is long, the others are not."""
    half = _MOST_ROWS // 2
    left_out = [f"… {len(rows) - 2 * half} more", *[""] * (len(headings) - 1)]
    shown = rows if len(rows) <= _MOST_ROWS else [*rows[:half], left_out, *rows[-half:]]
    head = _row("th", headings)
    return (
        f'<table style="font-size:13px"><thead>{head}</thead><tbody>{"".join(_row("td", row) for row in shown)}</tbody></table>'
    )


def _row(tag: str, texts: Sequence[str]) -> str:
    *first, last = (html.escape(text) for text in texts)
    cells = [f'<{tag} style="{_CELL};white-space:nowrap">{text}</{tag}>' for text in first]
    return f'<tr>{"".join(cells)}<{tag} style="{_LAST}">{last}</{tag}></tr>'


#: For `scope`: every timing.
ALL: Final = "all"
_COLUMNS: Final = (
    *("workload", "case", "variant", "config", "gpus", "scope", "cache", "samples"),
    *(*Estimate.names("median_ns"), *Estimate.names("speedup"), "verdict", "baseline", "baseline_config"),
    *(*Estimate.names("percent_of_floor"), "floor_ns", "floor_bound", "floor_ceiling", "gb_per_s", "gflop_per_s"),
    *("role", "kind", "precision", "rel_l2_error", "status", "detail", "flags"),
)
_OF_TIMING: Final = ["workload", "scope", "cache"]
_FIGURES: Final = (
    *("gpus", "scope", "cache", "interval_kind", "floor_ns", "floor_bound", "floor_ceiling"),
    *(end for name in ("median_ns", "gb_per_s", "gflop_per_s", "percent_of_floor") for end in Estimate.names(name)),
)


class Table(pd.DataFrame):
    """A frame of figures that is shown in words, as long as it has the columns for them.

    A part of its rows is shown in words too. Where a column is missing it is shown as any other frame.
    """

    @property
    def _constructor(self) -> Callable[..., "Table"]:
        return Table

    def words(self) -> pd.DataFrame:
        """The rows in words; what is equal in all rows is left out. Raises KeyError: a column is missing."""
        rows = self.to_dict("records")
        columns = {"workload": [row["workload"] for row in rows]}
        columns["case"] = [row["case"] for row in rows]
        columns["variant"] = [
            name_on(row["variant"], row["config"], 0 if pd.isna(row["gpus"]) else row["gpus"], on_host=row["kind"] == "host")
            for row in rows
        ]
        columns["timing"] = [f"{row['scope']} {row['cache']}" if isinstance(row["scope"], str) else NOTHING for row in rows]
        columns["time"] = [_time(row) for row in rows]
        columns["over the baseline"] = [_over_baseline(row) for row in rows]
        columns["of the floor"] = [format_percent(row["percent_of_floor"]) for row in rows]
        columns["status"] = [_status(row) for row in rows]
        constant = [name for name in ("workload", "timing") if len({*columns[name]} - {NOTHING}) < 2]
        if self["percent_of_floor"].isna().all():
            constant.append("of the floor")
        return pd.DataFrame({name: texts for name, texts in columns.items() if name not in constant}, index=self.index)

    def __repr__(self) -> str:
        try:
            words = self.words()
        except (KeyError, TypeError):
            return str(super().__repr__())
        with pd.option_context("display.width", 200, "display.max_columns", None, "display.max_colwidth", 90):
            return repr(words)

    def _repr_html_(self) -> str:
        try:
            words = self.words()
        except (KeyError, TypeError):
            return str(pd.DataFrame(self).to_html(max_rows=pd.get_option("display.max_rows"), notebook=True, escape=True))
        return html_table(list(words.columns), words.to_numpy().tolist())


def table(data: RunData, workloads: Sequence[str], scope: str | None, cache: str | None) -> Table:
    """One row for each cell and timing, also for cells that failed, were skipped, or were not timed so.

    Args:
        workloads: those wanted.
        scope: one scope, or `all`; None for the first timing of each workload.
        cache: `cold` or `hot`; None for both.

    Raises:
        RunError: the workloads were not timed so, or there is no such state of the caches.
    """
    if cache not in (None, *CACHES):
        raise RunError(f"cache={cache!r}: is no state of the caches; give {' or '.join(map(repr, CACHES))}")
    data = reading(data).data
    every = cells(data)
    parts = []
    for workload in workloads:
        asked_for = _timings(data, workload, scope, cache)
        of_workload = every[every["workload"] == workload]
        keys = zip(of_workload["scope"], of_workload["cache"], strict=True)
        selected = of_workload[[key in asked_for for key in keys]]
        parts += [_with_speedups(data, selected), _not_timed(of_workload, selected)]
    if scope not in (None, ALL) and not any(len(part) for part in parts[::2]):
        raise RunError(
            f"scope={scope!r}{f', cache={cache!r}' if cache else ''}: nothing was timed so; {_timed_words(data, workloads)}"
        )
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True).rename(columns={"n": "samples"})
    frame["flags"] = [", ".join(flags) for flags in frame["flags"]]
    ordered = frame.iloc[_order(frame, data)].reset_index(drop=True)
    return Table(_with_axes(ordered.reindex(columns=[*_COLUMNS, "params"])))


def _timings(data: RunData, workload: str, scope: str | None, cache: str | None) -> set[tuple[str, str]]:
    found = timings(data, workload)
    if scope is None:
        found = tuple(each for each in found if cache in (None, each.cache))[:1]
    return {(each.scope, each.cache) for each in found if scope in (None, ALL, each.scope) and cache in (None, each.cache)}


def _timed_words(data: RunData, workloads: Sequence[str]) -> str:
    """`timed are device cold, device hot`."""
    timed = dict.fromkeys(f"{each.scope} {each.cache}" for name in workloads for each in timings(data, name))
    return f"timed are {', '.join(timed)}" if timed else "run.table() has the reasons"


def _with_speedups(data: RunData, selected: pd.DataFrame) -> pd.DataFrame:
    """The cells with their speedups, case by case as on the ladder, whose baseline is another one where the usual one failed."""
    parts = [
        with_speedups(data, str(workload), Timing(str(scope), str(cache)), rows, case_by_case=True)
        for (workload, scope, cache), rows in selected.groupby(_OF_TIMING, sort=False)
    ]
    return pd.concat(parts, ignore_index=True) if parts else selected


def _not_timed(every: pd.DataFrame, timed_cells: pd.DataFrame) -> pd.DataFrame:
    """One row without figures for each cell that has none in the timings that were asked for, with the reason in `detail`."""
    keys = set(timed_cells[STATUS_KEY].itertuples(index=False, name=None))
    missing = every[[key not in keys for key in every[STATUS_KEY].itertuples(index=False, name=None)]]
    rows = []
    for _, of_cell in missing.groupby(STATUS_KEY, sort=False):
        row = of_cell.iloc[0].to_dict()
        if row["n"]:
            timed = dict.fromkeys(f"{scope} {cache}" for scope, cache in zip(of_cell["scope"], of_cell["cache"], strict=True))
            row |= {**dict.fromkeys(_FIGURES), "n": 0, "detail": f"timed as {', '.join(timed)} alone"}
        rows.append(row)
    return pd.DataFrame(rows, columns=every.columns).astype({name: every[name].dtype for name in _FIGURES}) if rows else missing


def _order(frame: pd.DataFrame, data: RunData) -> list[int]:
    """The places of the rows by workload and size, then as on the ladder."""

    def places(*columns: Iterable[Any]) -> dict[Any, int]:
        return {key: place for place, key in enumerate(zip(*columns, strict=True))}

    workloads = data.workloads
    cases = places(data.cases["workload"], data.cases["case"])
    variants = places(data.variants["workload"], data.variants["variant"])
    timings_of = {
        name: {(each.scope, each.cache): place for place, each in enumerate(timings(data, name))} for name in workloads
    }

    def key(row: dict[Any, Any]) -> tuple[Any, ...]:
        name, rank = row["workload"], row["size_rank"]
        return (
            workloads.index(name),
            float("inf") if pd.isna(rank) else rank,
            cases[name, row["case"]],
            timings_of[name].get((row["scope"], row["cache"]), len(timings_of[name])),
            ROLE_ORDER.index(row["role"]) if row["role"] in ROLE_ORDER else len(ROLE_ORDER),
            variants[name, row["variant"]],
        )

    keys = [key(row) for row in frame.to_dict("records")]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _with_axes(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a column for each axis of its cases in place of `params`: `n`, or `axis_n` where the frame has an `n`."""
    params = [json.loads(text) for text in frame.pop("params")]
    names = dict.fromkeys(axis for point in params for axis in point)
    for place, axis in enumerate(names):
        values = pd.Series([point.get(axis) for point in params], index=frame.index, dtype=object)
        integral = all(isinstance(value, int) for value in values.dropna())
        typed = values.astype("Int64") if integral and values.isna().any() else values.infer_objects()
        frame.insert(2 + place, f"axis_{axis}" if axis in frame.columns else axis, typed)
    return frame


# -- in words ----------------------------------------------------------------------------------------------------------


def _time(row: dict[Any, Any]) -> str:
    time = Estimate.of(row, "median_ns")
    return f"{format_duration(time.value)} {format_half_width(time.value, time.low, time.high)}" if time.known else NOTHING


def _over_baseline(row: dict[Any, Any]) -> str:
    ratio = Estimate.of(row, "speedup")
    if isinstance(row["verdict"], str) and row["verdict"]:
        if (row["variant"], row["config"]) == (row["baseline"], row["baseline_config"]):
            return ITSELF
        if row["verdict"] == "unknown":
            return "unknown"
    if not ratio.known:
        return NOTHING
    tied = "tied, " if row["verdict"] == "tied" else ""
    return f"{tied}{format_ratio(ratio.value)} ({format_ends(ratio, format_ratio)})"


def _status(row: dict[Any, Any]) -> str:
    if row["status"] != "ok" or not row["samples"]:
        return ": ".join(filter(None, (row["status"], row["detail"])))
    return f"ok; distrusted: {row['flags']}" if row["flags"] else "ok"
