"""Trends: the variants of a case over runs in time, on one device and by one collector."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.compare import levels
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain, short
from warpladder.dashboard.views.compare.trends import chart, query
from warpladder.data import files, store
from warpladder.data.words import counted

_SERIES: Final = "series"
_MOST_STEPS: Final = 5
_TABLE_ROWS: Final = 6
_ROW_PX: Final = 35
#: How many of the newest runs of a device and collector are read; each takes some ten milliseconds.
_NEWEST: Final = 60

_Group = dict[str, store.Run]


def draw(run: store.Run) -> None:
    """Draw the page. It shows the runs on the device and by the collector of the run of the page at first."""
    groups = _groups()
    with widgets.controls():
        group, where = _choose_group(run, groups)
        workload = _choose_workload(run, group, where)
        recorded = _read(group, workload)
        case, timing = _choose_cell(recorded, workload, on_gpu=bool(next(iter(group.values())).info["device_name"]))
    trends = _trends(
        tuple(recorded), workload, case, timing, tuple((name, files.state_of(run.path)) for name, run in group.items())
    )
    if len(trends.runs) < 2:
        last = max(recorded, key=lambda each: each.started_at)
        how, again = "Record it again after your next change, on the same machine:", runs.how_to_record(run, workload)
        if last.info["kind"] != "recording":
            how, again = "Profile the program again after your next change, and import that report too.", ""
        widgets.nothing(f"Only one run {where} has {workload}, {case}.", how, again)
    if not trends.series:
        widgets.nothing(f"No variant of {workload}, {case}, is right in these runs.", "The page Trust says why, cell by cell.")
    st.markdown(f"**{plain(query.sentence(trends))}**")
    series = _choose_series(trends)
    _show_chart(run, trends, series)
    _show_steps(trends, series)


def _groups() -> dict[str, _Group]:
    """The runs with samples of each device and collector, by name. Of the copies of a run, the first one counts."""
    groups: dict[str, _Group] = {}
    copies = set()
    for name, run in runs.listing(runs.data_dirs()).runs.items():
        same = (run.run_id, run.info["started_at"])
        if "samples" in run.tables and same not in copies:
            groups.setdefault(_group_of(run), {})[name] = run
            copies.add(same)
    return groups


def _group_of(run: store.Run) -> str:
    return f"{run.info['device_name'] or run.info['cpu_name']} · {run.info['collector']}"


def _choose_group(run: store.Run, groups: dict[str, _Group]) -> tuple[_Group, str]:
    """The runs of one device and collector, and both in words."""
    if not groups:
        widgets.nothing("No run has samples.", "Record one: warpladder record.")
    count = {name: f"{name.removeprefix('NVIDIA ')} · {counted(len(group), 'run')}" for name, group in groups.items()}
    own = _group_of(run)
    name = state.choose("on", "Runs on", count, default=own, owner=own) if len(count) > 1 else next(iter(count))
    device, _, collector = name.rpartition(" · ")
    group, where = groups[name], f"on {device} by {collector}"
    newest = sorted(group, key=lambda each: group[each].info["started_at"], reverse=True)[:_NEWEST]
    if len(group) > _NEWEST:
        state.note(f"The newest {_NEWEST} of {len(group):,} runs {where} are shown.")
    return {each: group[each] for each in newest}, where


def _choose_workload(run: store.Run, group: _Group, where: str) -> str:
    """The workload: at first one of the run of the page that another run has too, or one that two runs have, or one of the run."""
    count = Counter(workload for each in group.values() for workload in sorted(_timed(each) or ()))
    if not count:
        widgets.nothing(f"No run {where} has samples.", "Record one: warpladder record.")
    several = [workload for workload, number in count.items() if number > 1]
    own = [
        workload for workload in count if workload in runs.load(run).workloads and runs.ask(run, cells.timed_cases, workload)
    ]
    several = [*(workload for workload in own if workload in several), *several, *own]
    style: state.Style = "segmented" if len(count) <= 3 else "select"
    return state.choose("workload", "Workload", list(count), default=next(iter(several), None), style=style)


def _timed(run: store.Run) -> frozenset[str] | None:
    """The workloads of a run that has samples; None where it cannot be read."""
    try:
        return run.timed
    except store.StoreError:
        return None


def _read(group: _Group, workload: str) -> list[query.RecordedRun]:
    """What the runs of the group measured of the workload. Runs that cannot be read are named below the page."""
    having = {name: run for name, run in group.items() if workload in (_timed(run) or ())}
    with st.spinner("Reading the runs …"):
        every = runs.glance(list(having.values()), levels.medians, workload)
    unread = [name for name, run in group.items() if _timed(run) is None]
    unread += [name for name, medians in zip(having, every, strict=True) if isinstance(medians, store.StoreError)]
    if unread:
        state.note(f"Runs that cannot be read are left out: {short(', '.join(unread))}. Trust says why.")
    return [
        query.RecordedRun(name, run.info, medians)
        for (name, run), medians in zip(having.items(), every, strict=True)
        if not isinstance(medians, store.StoreError)
    ]


def _choose_cell(recorded: Sequence[query.RecordedRun], workload: str, *, on_gpu: bool) -> tuple[str, Timing]:
    """Case and timing: at first those that most runs have. A case that was chosen before stays, also where one run has it."""
    cases = query.cases_of(recorded)
    count = {case: number for case, number in query.counts(recorded, lambda cell: cell.case).items() if case in cases}
    if not count:
        widgets.nothing(f"No case of {workload} was timed in these runs.", "The page Trust says why, cell by cell.")
    most = max(count.values())
    case = widgets.choose_case_of(
        {case: params for case, params in cases.items() if case in count},
        [case for case in count if count[case] == most],
    )
    timings = {
        timing: number
        for (name, timing), number in query.counts(recorded, lambda cell: (cell.case, cell.timing)).items()
        if name == case
    }
    twice = [timing for timing, number in timings.items() if number > 1] or list(timings)
    return case, widgets.choose_timing_of(cells.in_order(twice), on_gpu=on_gpu)


@st.cache_resource(show_spinner="Searching steps …", max_entries=64)
def _trends(
    _recorded: tuple[query.RecordedRun, ...], workload: str, case: str, timing: Timing, state_of_runs: Hashable
) -> query.Trends:
    return query.trends(_recorded, workload, case, timing)


def _choose_series(trends: query.Trends) -> query.Series:
    """The table of all variants, and the one that is chosen in it: at first the one with the latest step."""
    names = {series.name: series for series in trends.series}
    addressed = state.text_of(_SERIES, trends.workload)
    if addressed and addressed not in names:
        state.note(f"The link asks for {short(addressed)}, which no run has of {trends.case}.")
    frame = chart.frame_of(trends)
    widgets.table_to_choose(
        frame,
        "trends",
        lambda row: state.set_text(_SERIES, trends.workload, trends.series[row].name),
        height=_ROW_PX * (min(len(frame), _TABLE_ROWS) + 1) + 3,
        column_order=["variant", "last_us", "half_width", "since_first", "runs", "when", "step", "cause"],
        column_config=_columns(),
    )
    return names.get(addressed, trends.series[0])


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "variant": column.TextColumn("Variant", width=300),
        "last_us": column.NumberColumn("Last, µs", format="%.4g", width=70),
        "half_width": column.TextColumn("±", width=60, help="Half of the 95 % interval of the last median."),
        "since_first": column.NumberColumn("Since first", format="%+.1f %%", width=80, help="Last run over first run."),
        "runs": column.NumberColumn("Runs", width=50),
        "when": column.DatetimeColumn("Last step", format="YYYY-MM-DD", width=90),
        "step": column.NumberColumn("By", format="%+.1f %%", width=65, help="Above 0: slower."),
        "cause": column.TextColumn("What changed then", width=320),
    }


def _show_chart(run: store.Run, trends: query.Trends, series: query.Series) -> None:
    first = trends.runs[0].info
    device = str(first["device_name"] or first["cpu_name"])
    look = replace(runs.look_of(run, widgets.theme()), device=device, on_gpu=bool(first["device_name"]))
    widgets.show_chart(widgets.drawn(chart.trend, trends, series, look))


def _show_steps(trends: query.Trends, series: query.Series) -> None:
    for step in series.steps[: -_MOST_STEPS - 1 : -1]:
        old, new = (series.points[place].run for place in (step.place - 1, step.place))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            when = f"{trends.runs[new].started_at:%Y-%m-%d %H:%M}"
            st.caption(plain(f"{when}: {chart.step_words(step)}; {query.cause(series, step)}"), width="content")
            names = {"run": trends.runs[new].name, "with": trends.runs[old].name}
            pages.link("compare", "Compare the two runs →", **names, of=trends.workload)
    if len(series.steps) > _MOST_STEPS:
        st.caption(f"{len(series.steps) - _MOST_STEPS} earlier steps are in the chart.")
