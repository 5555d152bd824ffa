"""A job as text: how much of its time is exposed communication, who is late and why, which kernel differs, and its ranks."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import MEMORY_OPERATIONS
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.text.parts import NAME_CHARACTERS, SCREEN, row, shortened, summed, table, time_rows, wrapped
from warpladder.dashboard.text.profile import steps_facts, title_of
from warpladder.dashboard.trace.parts import Parts
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text
from warpladder.dashboard.ui.text import apart, plain_lines, plain_table
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.ranks.job_kernels import query as kernels
from warpladder.dashboard.views.ranks.late import CAUSES
from warpladder.data.words import counted

#: Columns of `ranks.query.breakdown` -> their words on a terminal. Those before `wait_ns` add up to the first.
_SHORT: Final = {
    "span_ns": "time",
    "compute_ns": "compute",
    "graph_ns": "graphs",
    "exposed_ns": "exposed",
    "copies_ns": "copies",
    "idle_ns": "idle",
    "wait_ns": "waits for others",
}
#: Other times are shown from this part of the time of a rank on.
_LEAST_SHOWN: Final = 1e-3
#: Those that are always shown.
_ALWAYS: Final = ("span_ns", "compute_ns", "idle_ns")
_MOST_ROWS, _FEWEST_ROWS, _MOST_KERNELS = 8, 2, 4
_SEVERAL: Final = 2
#: Lines below the shown ranks where some are left out: their mean, and how many more there are.
_BELOW: Final = 2
_RANK: Final = re.compile(r"\brank (\d+)")
#: Lines of a sentence.
_MOST_LINES: Final = 3


def render(data: RunData, form: Form, *, every: bool = False, lines: int = SCREEN) -> str:
    """A job as text that ends with a line feed: what it comes to, and a row for each rank, outliers first.

    Args:
        form: CSV has the rows alone, JSON the sentences, the parts and the rows, in ns.
        lines: of a table, each of 80 columns.
        every: the table leaves out no rank, and no part of a sentence.
    """
    rows, executed = ranks.breakdown(data), kernels.kernels(data, None)
    if form == "csv":
        return csv(rows)
    told, devices = ranks.told(data), ranks.devices(data)
    if form == "json":
        content = {
            "run_id": str(data.info["run_id"]),
            "sentences": told.findings,
            "device_time": ranks.device_time(data).facts(),
            "kernels": executed[["kernel", "name", "kind", "count", "total_ns", "percent"]],
            "steps": steps_facts(ranks.steps(data)),
            "next": told.to_do,
            "ranks": rows,
        }
        return json_text(content)
    parts, title = ranks.mean_time(data), title_of(data, f"job of {counted(len(rows), 'rank')}, ")
    if form == "markdown":
        times = {"span_ns": "span", **ranks.parts(rows), "wait_ns": "wait for others"}
        of_ranks = [_row(each, times) for each in rows.to_dict("records")]
        headings = ("rank", "host", *times.values(), "differs in", "late")
        points = (f"- {markdown_text(each)}" for each in (title, *told.lines))
        return plain_lines([*points, "", *markdown_table(headings, of_ranks)])

    def text(most: int, most_kernels: int, most_rows: int, causes_too: bool) -> list[str]:
        shown = (told.findings if every else _above(data, told.findings))[:most]
        between = wrapped(shown) if every else [line for each in shown for line in shortened(each, _MOST_LINES)]
        above = [*wrapped([title, told.headline]), *between, *wrapped([told.steps])]
        times = table((parts.heading, "time", "share"), list(time_rows(parts, causes_too=causes_too)))
        tables = [*times, *_kernels(executed, parts, most_kernels), *_ranks(rows, devices, most_rows, shown)]
        return [*above, *tables, *wrapped([f"next: {told.to_do}"])]

    if every:
        return plain_lines(text(len(told.findings), _MOST_KERNELS, len(rows), True))
    # Kernels but one are left out first, then the causes of idle time, all kernels, ranks, and the last findings.
    whole = len(told.findings)
    choices = [(whole, most, _FEWEST_ROWS, True) for most in range(_MOST_KERNELS, 0, -1)]
    choices += [(whole, 1, _FEWEST_ROWS, False), *((whole, 0, most, False) for most in range(_FEWEST_ROWS, -1, -1))]
    choices += [(each, 0, 0, False) for each in range(whole - 1, 0, -1)]
    fits = (each for each in choices if len(text(*each)) <= lines)
    shown, most, most_rows, causes_too = next(fits, (1, 0, 0, False))
    free = lines - len(text(shown, most, most_rows, causes_too)) if most_rows else 0
    return plain_lines(text(shown, most, min(most_rows + free, _MOST_ROWS), causes_too))


def _above(data: RunData, sentences: Sequence[str]) -> list[str]:
    """Sentences for a screen on which the warnings stand above: a reason that is one of them is not told again."""
    warned = data.diagnostics.loc[data.diagnostics["severity"] == "warning", "text"].tolist()
    return [
        f"{sentence.removesuffix(reason).rstrip(': ')}, as the warning above tells" if reason else sentence
        for sentence in sentences
        for reason in [next((each for each in warned if sentence.endswith(each)), "")]
    ]


def _kernels(executed: pd.DataFrame, parts: Parts, most: int) -> list[str]:
    """The longest kernels, the longest one that communicates, and the rest, which add up to all."""
    if not most or executed.empty:
        return []
    executed = executed.assign(total_ns=executed["total_ns"] / parts.ranks, count=executed["count"] / parts.ranks)
    whole = executed["total_ns"].sum()
    talks = executed.index[executed["kind"] == "communication"][:1]
    places = sorted({*executed.index[:most], *talks})
    places = places if len(places) < len(executed) - 1 else list(executed.index)
    shown, rest = executed.loc[places], executed.drop(index=places)
    copies = (shown["kind"] == "memory").tolist()
    names = apart(shown["kernel"].tolist(), shown["name"].tolist(), NAME_CHARACTERS)
    names = [
        MEMORY_OPERATIONS.get(kind, kind) if is_copy else name
        for name, kind, is_copy in zip(names, shown["name"], copies, strict=True)
    ]
    rows = [
        row(name, each["total_ns"], whole, f"{each['count']:,.0f}")
        for name, each in zip(names, shown.to_dict("records"), strict=True)
    ]
    if len(rest):
        rows.append(row(f"{len(rest)} others", rest["total_ns"].sum(), whole, f"{rest['count'].sum():,.0f}"))
    which = "mean work" if parts.ranks > 1 else "all work"
    return table((f"{which}: {summed(whole, parts.busy_ns)}", "time", "share", "runs"), rows)


def _ranks(rows: pd.DataFrame, devices: int, most: int, told: Sequence[str]) -> list[str]:
    """The late ranks, those that sentences name, and further ones, and the mean of all; without rows where the job has one rank."""
    if len(rows) < _SEVERAL or not most:
        return []
    fits, named = len(rows) <= most + _BELOW, {int(rank) for rank in _RANK.findall(" ".join(told))}
    idle = rows[["host_wait_ns", "kernel_wait_ns", "other_idle_ns"]].sum(axis=1)
    rows = rows.assign(idle_ns=idle, named=rows["rank"].isin(named) & (not fits))
    rows = rows.sort_values(["late", "named"], ascending=False, kind="stable")
    shown = rows if fits else rows.head(most)
    least = _LEAST_SHOWN * rows["span_ns"]
    words = {name: each for name, each in _SHORT.items() if name in _ALWAYS or (rows[name].fillna(0) > least).any()}
    words["span_ns"] += f" of {devices // len(rows)} devices" if devices > len(rows) and not devices % len(rows) else ""
    late = ("late",) if rows["late"].any() else ()
    lines = [
        (str(each["rank"]), *(format_duration(each[name]) for name in words), *("late" for _ in late if each["late"]))
        for each in shown.to_dict("records")
    ]
    left_out = len(rows) - len(lines)
    if left_out:
        lines.append(("mean", *(format_duration(rows[name].astype(float).mean()) for name in words)))
    told_of = [line + ("",) * (1 + len(words) + len(late) - len(line)) for line in lines]
    more = [f"{left_out} more ranks: warpladder summary RUN --all"] if left_out else []
    return [*plain_table(("rank", *words.values(), *late), told_of), *more]


def _row(each: dict[Any, Any], names: Iterable[str]) -> tuple[str, ...]:
    times = (format_duration(each[name]) for name in names)
    late = CAUSES[each["cause"]] if each["late"] else ""
    return str(each["rank"]), each["host"] or NOTHING, *times, each["differs_in"], late
