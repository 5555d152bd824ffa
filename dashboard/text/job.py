"""A job as text: how much of its time is exposed communication, who is late and why, which kernel differs, and its ranks."""

import json
from collections.abc import Iterable
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Form
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text, plain_lines, plain_table
from warpladder.dashboard.views.job_kernels import query as kernels
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.stragglers import query as stragglers

_MOST_ROWS: Final = 16


def render(data: RunData, form: Form, *, every: bool = False) -> str:
    """A job as text that ends with a line feed: what it comes to, and a row for each rank, outliers first.

    Args:
        form: CSV has the rows alone, JSON the sentences and the rows, in ns.
        every: no rank is left out of the table.
    """
    rows = ranks.breakdown(data)
    if form == "csv":
        return csv(rows)
    if form == "json":
        content = {
            "run_id": str(data.info["run_id"]),
            "sentences": _sentences(data),
            "ranks": json.loads(rows.to_json(orient="records")),
        }
        return json.dumps(content, indent=1) + "\n"
    times = {"span_ns": "span", **ranks.parts(rows), "wait_ns": "wait for others"}
    headings = ("rank", "host", *times.values(), "differs in", "late")
    lines = [_row(row, times) for row in (rows if every or form == "markdown" else rows[:_MOST_ROWS]).to_dict("records")]
    if form == "markdown":
        return plain_lines(
            [*(f"- {markdown_text(sentence)}" for sentence in _sentences(data)), "", *markdown_table(headings, lines)]
        )
    left_out = len(rows) - len(lines)
    more = [f"{left_out} more ranks are nearer to the median: summary --all"] if left_out else []
    return plain_lines([*_sentences(data), *plain_table(headings, lines), *more])


def _sentences(data: RunData) -> list[str]:
    """What the pages Ranks, Stragglers and Kernels have as titles."""
    answer = ranks.answer(data)
    cause = stragglers.cause_of(stragglers.ranking(data))
    executed = kernels.kernels(data, None)
    lines = [answer.sentence, f"cause: {cause}" if cause else "", kernels.title_of(executed) if len(executed) else ""]
    lines.append(answer.outside)
    return [line for line in (*lines, *(f"{answer.lateness}: {reason}" for reason in answer.reasons)) if line]


def _row(row: dict[Any, Any], names: Iterable[str]) -> tuple[str, ...]:
    times = (format_duration(row[name]) if pd.notna(row[name]) else NOTHING for name in names)
    late = stragglers.CAUSES[row["cause"]] if row["late"] else ""
    return str(row["rank"]), row["host"] or NOTHING, *times, row["differs_in"], late
