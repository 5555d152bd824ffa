"""A job as text: how much of its time is exposed communication, who is late and why, which kernel differs, and its ranks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.text.parts import HINTS, SCREEN, Parts, Steps, apart, row, shortened, summed, table, wrapped
from warpladder.dashboard.text.profile import KINDS, PROGRAMS
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.ranks.job_kernels import query as kernels
from warpladder.dashboard.views.ranks.stragglers import query as stragglers
from warpladder.data import job_tables

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
    parts, steps = _parts(data, executed), Steps.of(data.job.frame("iterations", *Steps.COLUMNS))
    hint, sentences = _next(data, parts), _sentences(data, executed)
    if form == "json":
        content = {
            "run_id": str(data.info["run_id"]),
            "sentences": sentences,
            "device_time": parts.facts(),
            "kernels": executed[["kernel", "name", "kind", "count", "total_ns", "percent"]],
            "steps": asdict(steps) if steps else None,
            "next": hint,
            "ranks": rows,
        }
        return json_text(content)
    first, devices = [_title(data, len(rows)), *([parts.headline] if parts.span_ns else [])], _devices(data)
    of = f" of {_counted(len(rows))}" if len(rows) > 1 else ""
    on = f" on {devices} devices" if devices > len(rows) else ""
    of_steps = [steps.sentence(parts.span_ns, of, on)] if steps else []
    if form == "markdown":
        times = {"span_ns": "span", **ranks.parts(rows), "wait_ns": "wait for others"}
        of_ranks = [_row(each, times) for each in rows.to_dict("records")]
        headings = ("rank", "host", *times.values(), "differs in", "late")
        points = (f"- {markdown_text(each)}" for each in (*first, *sentences, *of_steps, f"next: {hint}"))
        return plain_lines([*points, "", *markdown_table(headings, of_ranks)])

    def text(told: int, most_kernels: int, most_rows: int) -> list[str]:
        shown = (sentences if every else _above(data, sentences))[:told]
        between = wrapped(shown) if every else [line for each in shown for line in shortened(each, _MOST_LINES)]
        above = [*wrapped(first), *between, *wrapped(of_steps)]
        tables = [*table(("where the time goes", "time", "share"), parts.rows()), *_kernels(executed, parts, most_kernels)]
        return [*above, *tables, *_ranks(rows, devices, most_rows, shown), *wrapped([f"next: {hint}"])]

    if every:
        return plain_lines(text(len(sentences), _MOST_KERNELS, len(rows)))
    # Kernels are left out first, then ranks and the last sentences.
    told = len(sentences)
    choices = [(told, most, _FEWEST_ROWS) for most in range(_MOST_KERNELS, 0, -1)]
    choices += [(told, 1, 1), (told, 0, 1), *((each, 0, 1) for each in range(told - 1, 0, -1)), (1, 0, 0)]
    told, most, most_rows = next((each for each in choices if len(text(*each)) <= lines), choices[-1])
    free = lines - len(text(told, most, most_rows)) if most_rows else 0
    return plain_lines(text(told, most, min(most_rows + free, _MOST_ROWS)))


def _above(data: RunData, sentences: Sequence[str]) -> list[str]:
    """Sentences for a screen on which the warnings stand above: a reason that is one of them is not told again."""
    warned = data.diagnostics.loc[data.diagnostics["severity"] == "warning", "text"].tolist()
    return [
        f"{sentence.removesuffix(reason).rstrip(': ')}, as the warning above tells" if reason else sentence
        for sentence in sentences
        for reason in [next((each for each in warned if sentence.endswith(each)), "")]
    ]


def _title(data: RunData, count: int) -> str:
    """What was imported."""
    info = data.info
    program = PROGRAMS.get(str(info["collector"]), info["collector"])
    device = f", {info['device_name']}" if info["device_name"] else ""
    return f"{info['source']}: job of {_counted(count)}, {program}{device}"


def _parts(data: RunData, executed: pd.DataFrame) -> Parts:
    """The time of all ranks."""
    columns = [column.name for column in job_tables.BREAKDOWN]
    of_ranks = data.job.frame("ranks", "status", "launches", *columns)
    of_ranks = of_ranks[of_ranks["status"] == "ok"]
    devices, whole = _devices(data), "first to last device work"
    if devices > len(of_ranks):
        whole = f"{_counted(len(of_ranks))} with {devices} devices in all"
    elif len(of_ranks) > 1:
        whole = f"{whole} of {_counted(len(of_ranks))}"
    is_told = int(of_ranks["launches"].sum()) >= int(executed["count"].sum())
    return Parts.of({name: int(of_ranks[name].sum()) for name in columns}, whole, {} if is_told else None)


def _devices(data: RunData) -> int:
    """Devices of all ranks."""
    return len(data.job.frame("rank_devices", "rank"))


def _kernels(executed: pd.DataFrame, parts: Parts, most: int) -> list[str]:
    """The longest kernels, the longest one that communicates, and the rest, which add up to all."""
    if not most or executed.empty:
        return []
    whole = executed["total_ns"].sum()
    talks = executed.index[executed["kind"] == "communication"][:1]
    places = sorted({*executed.index[:most], *talks})
    places = places if len(places) < len(executed) - 1 else list(executed.index)
    shown, rest = executed.loc[places], executed.drop(index=places)
    copies = (shown["kind"] == "memory").tolist()
    names = apart(shown["kernel"].tolist(), shown["name"].tolist())
    names = [
        KINDS.get(kind, kind) if is_copy else name for name, kind, is_copy in zip(names, shown["name"], copies, strict=True)
    ]
    rows = [
        row(name, each["total_ns"], whole, f"{each['count']:,}")
        for name, each in zip(names, shown.to_dict("records"), strict=True)
    ]
    if len(rest):
        rows.append(row(f"{len(rest)} others", rest["total_ns"].sum(), whole, f"{rest['count'].sum():,}"))
    return table((f"all work: {summed(whole, parts.span_ns - parts.idle_ns)}", "time", "share", "runs"), rows)


def _counted(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _ranks(rows: pd.DataFrame, devices: int, most: int, told: Sequence[str]) -> list[str]:
    """The late ranks, those that sentences name, and further ones, and the mean of all; without rows where the job has one rank."""
    if len(rows) < _SEVERAL or not most:
        return []
    fits, named = len(rows) <= most + _BELOW, {int(rank) for rank in _RANK.findall(" ".join(told))}
    rows = rows.assign(idle_ns=_idle, named=rows["rank"].isin(named) & (not fits))
    rows = rows.sort_values(["late", "named"], ascending=False, kind="stable")
    shown = rows if fits else rows.head(most)
    least = _LEAST_SHOWN * rows["span_ns"]
    words = {name: each for name, each in _SHORT.items() if name in _ALWAYS or (rows[name].fillna(0) > least).any()}
    words["span_ns"] += f" of {devices // len(rows)} devices" if devices > len(rows) and not devices % len(rows) else ""
    late = ("late",) if rows["late"].any() else ()
    lines = [
        (str(each["rank"]), *(_time(each[name]) for name in words), *("late" for _ in late if each["late"]))
        for each in shown.to_dict("records")
    ]
    left_out = len(rows) - len(lines)
    if left_out:
        lines.append(("mean", *(_time(rows[name].astype(float).mean()) for name in words)))
    told_of = [line + ("",) * (1 + len(words) + len(late) - len(line)) for line in lines]
    more = [f"{left_out} more ranks: warpladder summary --all"] if left_out else []
    return [*plain_table(("rank", *words.values(), *late), told_of), *more]


def _time(value: float) -> str:
    return format_duration(value) if pd.notna(value) else NOTHING


def _idle(rows: pd.DataFrame) -> "pd.Series[int]":
    return rows[["host_wait_ns", "kernel_wait_ns", "other_idle_ns"]].sum(axis=1)


def _sentences(data: RunData, executed: pd.DataFrame) -> list[str]:
    """Who is late and why, and which kernel differs between ranks."""
    differs = len(executed) and kernels.most_different(executed) is not None
    return [*ranks.sentences(data), *([kernels.title_of(executed)] if differs else [])]


def _next(data: RunData, parts: Parts) -> str:
    """What to do first: about what all ranks wait for, else about the largest part."""
    if data.job.frame("collectives", "sends_to")["sends_to"].notna().any():
        return f"the stages wait for each other: see what equal stages or other changes bring: warpladder forecast {data.info['run_id']}"
    if data.job.frame("ranks", "late")["late"].any():
        return "a late rank holds up the others: see in which steps: warpladder app, page Ranks"
    if not parts.span_ns:
        return "no rank has device work: profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    critical = "see which kernel makes a step shorter if it is faster: warpladder app, page Critical path"
    collectives = "see which collectives take the time, and how fast they are: warpladder app, page Collectives"
    return {**HINTS, "compute_ns": critical, "copies_ns": critical, "exposed_ns": collectives}[parts.largest]


def _row(each: dict[Any, Any], names: Iterable[str]) -> tuple[str, ...]:
    times = (format_duration(each[name]) if pd.notna(each[name]) else NOTHING for name in names)
    late = stragglers.CAUSES[each["cause"]] if each["late"] else ""
    return str(each["rank"]), each["host"] or NOTHING, *times, each["differs_in"], late
