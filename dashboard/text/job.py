"""A job as text: how much of its time is exposed communication, who is late and why, which kernel differs, and its ranks."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.job_graph import answer as graph
from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Form
from warpladder.dashboard.text.parts import LINES, MUCH, Parts, Row, Steps, brief, row, table, wrapped
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text, plain_lines, plain_table
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.ranks.job_kernels import query as kernels
from warpladder.dashboard.views.ranks.stragglers import query as stragglers
from warpladder.data import job_tables

#: Columns of `ranks.query.breakdown` -> their words on a terminal.
_SHORT: Final = {"span_ns": "span", "compute_ns": "compute", "exposed_ns": "exposed", "idle_ns": "idle", "wait_ns": "waits"}
_MOST_ROWS, _FEWEST_ROWS, _MOST_KERNELS = 8, 1, 2


def render(data: RunData, form: Form, *, every: bool = False, lines: int = LINES) -> str:
    """A job as text that ends with a line feed: what it comes to, and a row for each rank, outliers first.

    Args:
        form: CSV has the rows alone, JSON the sentences, the parts and the rows, in ns.
        lines: of a table, each of 80 columns.
        every: the table leaves out no rank, and no part of a sentence.
    """
    rows, executed = ranks.breakdown(data), kernels.kernels(data, None)
    if form == "csv":
        return csv(rows)
    parts, steps = _parts(data), Steps.of(data.job.frame("iterations", *Steps.COLUMNS))
    hint = _next(data, parts)
    if form == "json":
        content = {
            "run_id": str(data.info["run_id"]),
            "sentences": _sentences(data, executed),
            "device_time": parts.facts(),
            "kernels": json.loads(
                executed[["kernel", "name", "kind", "count", "total_ns", "percent"]].to_json(orient="records")
            ),
            "steps": asdict(steps) if steps else None,
            "next": hint,
            "ranks": json.loads(rows.to_json(orient="records")),
        }
        return json.dumps(content, indent=1) + "\n"
    sentences, hint = _sentences(data, executed), f"next: {hint}"
    of_steps = [steps.sentence] if steps else []
    if form == "markdown":
        times = {"span_ns": "span", **ranks.parts(rows), "wait_ns": "wait for others"}
        of_ranks = [_row(each, times) for each in rows.to_dict("records")]
        headings = ("rank", "host", *times.values(), "differs in", "late")
        return plain_lines(
            [*(f"- {markdown_text(each)}" for each in (*sentences, *of_steps, hint)), "", *markdown_table(headings, of_ranks)]
        )
    if every:
        above = [*wrapped([*sentences, *of_steps]), *_of_all_ranks(parts, executed, len(rows)), *wrapped([hint])]
        return plain_lines([*above, *_ranks(rows, len(rows))])
    shown = len(sentences)
    for left_out in range(_MOST_KERNELS + shown):  # kernels first, then the last sentences
        most, shown = max(_MOST_KERNELS - left_out, 0), min(len(sentences), len(sentences) + _MOST_KERNELS - left_out)
        told = brief([*sentences[:shown], *of_steps])
        above = [*told, *_of_all_ranks(parts, executed, len(rows), most), *wrapped([hint])]
        if len(above) + min(_FEWEST_ROWS, len(rows)) + 2 <= lines:
            break
    return plain_lines([*above, *_ranks(rows, min(_MOST_ROWS, lines - len(above) - 2))])


def _parts(data: RunData) -> Parts:
    """The time of all ranks."""
    columns = [column.name for column in job_tables.BREAKDOWN]
    sums = data.job.frame("ranks", *columns).sum()
    return Parts.of({name: int(sums[name]) for name in columns})


def _of_all_ranks(parts: Parts, executed: pd.DataFrame, count: int, most: int = _MOST_KERNELS) -> list[str]:
    """Where the time of all ranks goes, and their longest kernels."""
    longest: list[Row] = [
        row(each["kernel"], each["total_ns"], executed["total_ns"].sum(), f"{each['count']:,}")
        for each in executed.head(most).to_dict("records")
    ]
    return [
        *table((f"all {format_duration(parts.span_ns)} of {_counted(count)}", "time", "share"), parts.rows()),
        *table(("kernels, copies and sets of all ranks", "time", "share", "runs"), longest),
    ]


def _counted(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _ranks(rows: pd.DataFrame, most: int) -> list[str]:
    """The late ranks and then the first ones as a narrow table, and how many are left out. That line is as long as one rank."""
    most = max(most, _FEWEST_ROWS)
    late_first = rows.assign(idle_ns=_idle).sort_values("late", ascending=False, kind="stable")
    shown = late_first.head(most + (len(rows) == most + 1))
    known = "exposed_ns" if rows["exposed_ns"].notna().any() else "graph_ns"
    words = {(known if name == "exposed_ns" else name): words for name, words in _SHORT.items()}
    words |= {} if known in _SHORT else {known: ranks.PARTS[known]}
    lines = [_short_row(each, words) for each in shown.to_dict("records")]
    left_out = len(rows) - len(lines)
    are = "more rank is" if left_out == 1 else "more ranks are"
    more = [f"{left_out} {are} nearer to the median: summary --all"] if left_out else []
    return [*plain_table(("rank", *words.values(), "differs in", "late"), lines), *more]


def _idle(rows: pd.DataFrame) -> "pd.Series[int]":
    return rows[["host_wait_ns", "kernel_wait_ns", "other_idle_ns"]].sum(axis=1)


def _short_row(each: dict[Any, Any], names: Iterable[str]) -> tuple[str, ...]:
    times = (format_duration(each[name]) if pd.notna(each[name]) else NOTHING for name in names)
    return str(each["rank"]), *times, each["differs_in"].removesuffix(" communication"), "late" if each["late"] else ""


def _sentences(data: RunData, executed: pd.DataFrame) -> list[str]:
    """What the pages Ranks, Stragglers and Kernels have as titles."""
    answer, more = ranks.answer(data), graph.answer(data.job)
    cause = more.cause or stragglers.cause_of(stragglers.ranking(data))
    if more.pipeline:
        whole = answer.sentence.removesuffix(answer.lateness)
        lines = [whole + more.pipeline]
    else:
        lines = [answer.sentence, f"cause: {cause}" if cause else ""]
    lines += [*more.further, kernels.title_of(executed) if len(executed) else ""]
    reasons = () if more.pipeline else answer.reasons
    return [line for line in (*lines, *(f"{answer.lateness}: {reason}" for reason in reasons), answer.outside) if line]


def _next(data: RunData, parts: Parts) -> str:
    """The page to look at first."""
    if data.job.frame("collectives", "sends_to")["sends_to"].notna().any():
        return f"warpladder forecast {data.info['run_id']}: what a step takes with equal stages, and with other changes"
    if data.job.frame("ranks", "late")["late"].any():
        return "warpladder app, page Stragglers: in which steps the others wait for the late rank"
    if parts.share("graph_ns") >= MUCH:
        return f"profile with nsys profile {ranks.BY_NODE}: what runs inside of the graphs is not in these profiles"
    if parts.share("exposed_ns") >= MUCH:
        return "warpladder app, page Collectives: which ones take the time, and how fast they are"
    if parts.share("host_wait_ns") >= MUCH:
        return "warpladder app, page Timeline: where the devices wait for the host"
    return "warpladder app, page Critical path: which kernel, if it were faster, would make a step shorter"


def _row(each: dict[Any, Any], names: Iterable[str]) -> tuple[str, ...]:
    times = (format_duration(each[name]) if pd.notna(each[name]) else NOTHING for name in names)
    late = stragglers.CAUSES[each["cause"]] if each["late"] else ""
    return str(each["rank"]), each["host"] or NOTHING, *times, each["differs_in"], late
