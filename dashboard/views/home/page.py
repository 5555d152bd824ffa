"""Overview: which variant wins, by how much, and how far it is from what the device can do."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import overview as queries
from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.compare import word
from warpladder.dashboard.core.numbers import NOTHING
from warpladder.dashboard.core.overview import Line
from warpladder.dashboard.core.run_index import ListedRun, Need, label_of
from warpladder.dashboard.ui import pages, pinned, runs, state
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.home import table
from warpladder.data import store
from warpladder.installation import ROOT

_ROW_PX: Final = 28
_HEADER_PX: Final = 38
_MOST_ROWS: Final = 60  # more scroll in the table; fewer scroll with the page
_PLACE: Final = "overview table"
_OTHERS: Final = "overview runs"
_RUN_CHARACTERS: Final = 26


@dataclass(frozen=True)
class _ShownLine:
    """A line with its run."""

    line: Line
    run: store.Run
    name: str


def draw(run: store.Run) -> None:
    """Draw the page."""
    pinned.show_run(run)
    shown = [each for name, source, workloads in _sources(run) for each in _lines(name, source, workloads)]
    shown.sort(key=lambda each: each.line.summary.workload)
    if run.path not in {each.run.path for each in shown}:
        _without_variants(run)
    if shown:
        _table(shown)
        _links(shown)
    _other_runs(runs.context())


def _sources(run: store.Run) -> Iterator[tuple[str, store.Run, frozenset[str]]]:
    """The runs of the table, each with its workloads in the table.

    A run that was chosen by hand gives all its workloads. The other workloads come from the newest suitable run of each.
    """
    context = runs.context()
    own = frozenset(runs.load(run).workloads) if True else frozenset()
    if own:
        yield runs.chosen_name(), run, own
    by_name: dict[str, tuple[store.Run, set[str]]] = {}
    for workload in run_index.workloads(context.every, context.device):
        if workload not in own and (listed := _first_that_opens(context, workload)):
            by_name.setdefault(listed.name, (listed.run, set()))[1].add(workload)
    for name, (other, workloads) in by_name.items():
        yield name, other, frozenset(workloads)


def _first_that_opens(context: runs.Context, workload: str) -> ListedRun | None:
    candidates = run_index.suitable(context.every, context.device, workload)
    return next((each for each in candidates if runs.opens(each.run)), None)


def _lines(name: str, run: store.Run, workloads: frozenset[str]) -> list[_ShownLine]:
    lines = runs.ask(run, queries.lines, ROOT)
    return [_ShownLine(line, run, name) for line in lines if line.summary.workload in workloads]


def _table(shown: list[_ShownLine]) -> None:
    """The lines as a table that can be sorted. A click on a line leads to its ladder."""
    lines = [each.line for each in shown]
    frame = table.frame_of(lines, [_dated(each.run) for each in shown])
    chosen = st.dataframe(
        table.styled(frame, lines),
        hide_index=True,
        height=_ROW_PX * min(len(frame), _MOST_ROWS) + _HEADER_PX,
        row_height=_ROW_PX,
        placeholder=NOTHING,
        column_order=_columns(frame),
        column_config=_COLUMNS,
        key=_key(_PLACE),
        on_select="rerun",
        selection_mode="single-cell",
        alt="Best variant of each workload and precision",
    )
    cells = chosen["selection"]["cells"]
    if cells:
        _turn(_PLACE)
        _open(shown[cells[0][0]])
    st.caption(plain(_how(shown)), help=plain(run_index.RULE))
    tied = [each.line.summary for each in shown if each.line.summary.tied_with]
    if tied:
        ties = (f"{each.workload}, {word(each.precision)}: {each.best} with {each.tied_with}" for each in tied)
        st.caption(plain(f"{table.TIED.strip()} tied: {'; '.join(ties)}"))
    for each in shown:
        if words := each.line.summary.doubts:
            st.caption(plain(f"⚠ {each.line.summary.workload}, {word(each.line.summary.precision)}: {words}"))
    reasons = {(each.line.summary.workload, reason): None for each in shown for reason in each.line.badges}
    if reasons:
        with st.expander(f"Distrusted: {len(reasons)} reasons" if len(reasons) > 1 else "Distrusted: 1 reason"):
            for workload, reason in reasons:
                st.caption(plain(f"{workload}: {reason}"))


def _key(place: str) -> str:
    """The key of a table. It changes after each click, because the browser's back button would repeat the old click."""
    return f"{place} {st.session_state.get(place, 0)}"


def _turn(place: str) -> None:
    st.session_state[place] = st.session_state.get(place, 0) + 1


def _open(each: _ShownLine) -> None:
    """Go to the ladder of a line, at the case of the line."""
    axes = {f"case.{axis}": value for axis, value in each.line.params.items()}
    summary = each.line.summary
    state.set_text(state.RUN, "", each.name)
    link = {state.RUN: each.name, "workload": summary.workload, "case": each.line.case, **axes}
    pages.go("ladder", **link, scope=summary.scope, cache=summary.cache)


def _columns(frame: pd.DataFrame) -> list[str]:
    """The columns that have a value in some row."""
    empty = {name for name in ("floor", "speedup", "peer") if frame[name].isna().all()}
    empty |= {name for name in ("checks",) if not frame[name].any()}
    empty |= {"sizes"} if not frame["sizes"].map(len).any() else set()
    empty |= {"precision"} if frame["precision"].nunique() == 1 else set()
    return [name for name in _COLUMNS if name not in empty]


def _how(shown: list[_ShownLine]) -> str:
    """How the figures were measured, and the case of each."""
    timings = dict.fromkeys(Timing(each.line.summary.scope, each.line.summary.cache) for each in shown)
    on_gpu = runs.load(shown[0].run).on_gpu
    scopes = " or ".join(timing.label(on_gpu=on_gpu) for timing in timings)
    least = min(each.line.summary.n for each in shown)
    workloads = ", ".join(dict.fromkeys(each.line.summary.workload for each in shown if each.line.cases_apart > 1))
    last = f" Of {workloads}, whose cases have different winners, the last one." if workloads else ""
    alone = ", ".join(dict.fromkeys(each.line.summary.workload for each in shown if each.line.summary.on))
    last += f" Of {alone}, the times on 1 GPU; the page GPUs has those of several." if alone else ""
    return (
        f"{scopes}; medians with 95 % intervals, n ≥ {least}; the largest size of each workload, the geometric mean over its "
        f"cases.{last} Each row is of the newest suitable run. Click a row for its ladder."
    )


def _links(shown: list[_ShownLine]) -> None:
    """Links to pages that the rows do not lead to: the error of each precision, several GPUs."""
    first = {each.line.summary.workload: each.name for each in reversed(shown)}
    precisions = Counter(each.line.summary.workload for each in shown)
    several = [name for name in sorted(first) if precisions[name] > 1]
    _line("Error and time", "ladder", {name: {state.RUN: first[name], "show": "error"} for name in several})
    context = runs.context()
    scaled = run_index.workloads(context.every, context.device, Need.GPUS)
    _line("Several GPUs", "gpus", {name: state.link() for name in scaled})


def _line(label: str, page_name: str, links: Mapping[str, Mapping[str, str]]) -> None:
    """A line of links to a page, one for each workload."""
    if links:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{label}:", width="content")
            for workload, link in links.items():
                pages.link(page_name, f"{plain(workload)} →", **link, workload=workload)


def _other_runs(context: runs.Context) -> None:
    """All runs of the device, the newest first, in a list that is collapsed at first. A click shows the run on the page that fits it."""
    listed = run_index.having(context.every, Need.NOTHING, context.device)
    of_device = run_index.newest_first(each for each in listed if each.facts.device == context.device)
    with st.expander(f"All runs of {plain(context.device)}: {len(of_device)}"):
        rows = [
            {
                "run": label_of(each.run),
                "of": "shipped" if each.shipped else "mine",
                "started": each.facts.started_at,
                "collector": each.facts.collector,
                "workloads": ", ".join(each.facts.workloads),
                "has": ", ".join(each.facts.marks),
            }
            for each in of_device
        ]
        columns: dict[str, Any] = {"started": st.column_config.DatetimeColumn("Started (UTC)", format="YYYY-MM-DD HH:mm")}
        columns |= {"run": "Run", "of": "Of", "collector": "Collector", "workloads": "Workloads", "has": "Has besides times"}
        chosen = st.dataframe(
            pd.DataFrame(rows),
            hide_index=True,
            height=_ROW_PX * 9,
            row_height=_ROW_PX,
            column_config=columns,
            key=_key(_OTHERS),
            on_select="rerun",
            selection_mode="single-cell",
            alt="Runs of the device",
        )
        if cells := chosen["selection"]["cells"]:
            _turn(_OTHERS)
            each = of_device[cells[0][0]]
            pages.go(_page_for(each), run=each.name)


def _page_for(each: ListedRun) -> str:
    """The page that shows most of a run."""
    for need, name in ((Need.JOB, "ranks"), (Need.TIMES, "ladder"), (Need.COUNTERS, "counters"), (Need.TRACE, "timeline")):
        if each.facts.has(need) and (need in (Need.JOB, Need.TRACE) or each.facts.workloads):
            return name
    return "trust"


def _without_variants(run: store.Run) -> None:
    """Links for a run that compares nothing: to its trace, or to the reasons of its statuses."""
    if "ranks" in run.tables:
        st.info("A job of many ranks, each with a profile of its own.")
        leads = {"ranks": "Ranks →", "stragglers": "Stragglers →"}
    elif {"kernels", "api_calls", "ranges"} & set(run.tables):
        leads = {"calls": "API & kernels →", "transfers": "Transfers →"}
        if "operations" in run.tables:
            leads = {"operators": "Operators →", **leads}
        if "ranges" in run.tables:
            st.info("A trace of a program; none of its NVTX ranges names a variant yet. Pick those to compare:")
            leads = {"picker": "Pick variants →", **leads}
        else:
            st.info("A trace of a program without NVTX ranges, which could name variants to compare.")
    elif "counters" in run.tables:
        st.info("Hardware counters of single executions, which say what limits each variant; none was timed.")
        leads = {"counters": "Counters →"}
    else:
        st.info("Nothing was timed in this run; the checks say why, cell by cell.")
        leads = {"trust": "Checks →"}
    with st.container(horizontal=True, gap="small"):
        for page_name, label in leads.items():
            pages.link(page_name, label, **state.link(run=runs.chosen_name()))


def _dated(run: store.Run) -> str:
    """The label of a run, or else its date, because the row has its workload."""
    label = label_of(run) if run.info["label"] else f"{run.info['started_at']:%Y-%m-%d %H:%M}"
    return label if len(label) <= _RUN_CHARACTERS else f"{label[: _RUN_CHARACTERS - 1]}…"


_COLUMNS: Final = {
    "workload": st.column_config.TextColumn("Workload", width=116),
    "precision": st.column_config.TextColumn("Prec.", width=54, help="The precision of the products."),
    "sizes": st.column_config.BarChartColumn(
        "By size", width=56, y_min=0, y_max=100, help="% of floor of the fastest rung at each size, the smallest first."
    ),
    "floor": st.column_config.NumberColumn("Of floor", width=62, help="At the largest size."),
    "best": st.column_config.TextColumn("Best rung", width=202),
    "time": st.column_config.NumberColumn("Time", width=102, help="Median, and half of its 95 % interval."),
    "speedup": st.column_config.NumberColumn("Speedup", width=62, help="Over the baseline of the workload."),
    # A name that is too long is cut at its end, and never the figure before it.
    "peer": st.column_config.NumberColumn(
        "Over best peer", width=146, alignment="left", help="The peer's time over that of the best rung."
    ),
    "checks": st.column_config.TextColumn("⚠", width=36, help="Reasons to distrust the figures of the workload: see below."),
    "run": st.column_config.TextColumn("Run", width=160),
}
