"""What the pages share: charts with their downloads, tables, the controls of a case, and what to say where there is nothing."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.trace import attribution as of_ranges
from warpladder.dashboard.ui import document, images, runs, spreadsheet, state
from warpladder.dashboard.ui.template import Chart, Theme
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import View, page_of
from warpladder.data import store
from warpladder.data.naming import NamingError

#: What the dashboard says where nothing was recorded yet.
HOW_TO_RECORD: Final = "make record"
#: What it says where a run has no trace.
HOW_TO_IMPORT: Final = "warpladder import REPORT"
_MIME: Final = {"html": "text/html", "svg": "image/svg+xml", "png": "image/png", "csv": "text/csv"}
_FORMATS: Final = {
    "ratio": "%.4f",
    "low": "%.4f",
    "high": "%.4f",
    "rel_l2_error": "%.2g",
    "max_rel_error": "%.2g",
    "tolerance": "%.2g",
}
_PATTERN_CHARACTERS: Final = 44
_LINKED: Final = 5  # of runs that a page leads to
_PLOTLY: Final = {"displaylogo": False, "modeBarButtonsToRemove": ["toImage", "select2d", "lasso2d", "autoScale2d"]}


def theme() -> Theme:
    """The browser's theme, for charts."""
    return "dark" if st.context.theme.type == "dark" else "light"


def heading(view: View) -> None:
    """The view's title and the question that it answers, on one line."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"## {plain(view.title)}", width="content")
        st.caption(plain(view.question), width="content")
        _picked()


def _picked() -> None:
    """That the variants are not the run's own but were picked, by which pattern, and the way back."""
    run = runs.chosen()
    naming = runs.picked(run) if run else None
    if naming is None:
        return
    expression = naming.expression
    shown = expression if len(expression) <= _PATTERN_CHARACTERS else f"{expression[: _PATTERN_CHARACTERS - 1]}…"
    badge(f"variants picked by {shown}", "blue", help=plain(expression))
    st.button("Undo", key="undo pick", type="tertiary", on_click=state.set_text, args=(state.PICK, state.link()["run"], ""))


def badge(text: str, color: Literal["red", "orange", "gray", "blue"], help: str | None = None) -> None:
    """A few words that stand out. `st.badge` would escape brackets that are escaped already."""
    st.markdown(f":{color}-badge[{plain(text)}]", width="content", help=help)


def run_of_page() -> store.Run:
    """The run to show. Where there is none, says what to type and ends the page."""
    run = runs.chosen()
    if run is None:
        st.info("No run yet. Measure this machine first, then reload this page:")
        st.code(HOW_TO_RECORD, language="bash")
        st.caption(
            "Host variants run on any machine; with an NVIDIA GPU every kernel variant runs. It takes about half a minute."
        )
        st.stop()
    try:
        runs.load(run)
    except store.StoreError as error:
        st.error(plain(str(error)))
        st.caption("Choose another run in the sidebar; nothing of this one was changed.")
        st.stop()
    except NamingError as error:
        st.error(plain(str(error)))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _picked()
        st.page_link(page_of("picker"), label="Pick other variants →", query_params=state.link())
        st.stop()
    return run


def nothing(why: str, what_to_do: str) -> NoReturn:
    """An empty state: why there is nothing, and what to do about it. Ends the page."""
    st.info(f"{plain(why)} {plain(what_to_do)}")
    end_page()
    st.stop()


def link_runs(page: str, others: Mapping[str, store.Run]) -> None:
    """Links to a page of the first few of other runs, by what the URL calls each."""
    for name, other in list(others.items())[:_LINKED]:
        label = str(other.info["label"] or other.run_id)
        st.page_link(page, label=f"{plain(label)} →", query_params={"run": name})


def nothing_to_compare(run: store.Run, why: str) -> NoReturn:
    """An empty state of a page on variants, with the way to get some. Ends the page."""
    if "ranges" not in run.tables:
        nothing(why, "Choose another run, or record this machine: make record.")
    st.info(f"{plain(why)} Its NVTX ranges can be:")
    st.page_link(page_of("picker"), label="Pick variants →", query_params=state.link())
    end_page()
    st.stop()


def no_trace(run: store.Run, lacks: str, option: str) -> NoReturn:
    """An empty state of a page on traces, with the command that fills it. Ends the page.

    Args:
        lacks: what the run has not, e.g. `no trace of copies`.
        option: of `nsys profile`, with which a report has it.
    """
    if run.info["kind"] == "import":
        source = str(run.info["source"])
        st.info(
            f"The report {plain(source)} has {plain(lacks)}. Profile the program again with {option}, then import that report:"
        )
        st.code(
            f"nsys profile {option} --output=report COMMAND\n{HOW_TO_IMPORT.replace('REPORT', 'report.nsys-rep')}",
            language="bash",
        )
        end_page()
        st.stop()
    st.info(f"This run has {plain(lacks)}. Import a report of Nsight Systems, then choose it in the sidebar:")
    st.code(HOW_TO_IMPORT, language="bash")
    end_page()
    st.stop()


def attribution(run: store.Run) -> None:
    """How much of a trace's device time belongs to ranges, and how that is known; of a recording only where some is attributed by time."""
    found = runs.ask_as(run, None, of_ranges.shares)
    if (found.by_time_ns or run.info["kind"] == "import" or runs.picked(run)) and (told := of_ranges.sentence(found)):
        st.caption(plain(told))


def end_page() -> None:
    """What the URL asked for and the page could not follow, and an URL that says no more than the page reads."""
    for note in state.notes():
        st.caption(plain(note))
    state.end()


def controls() -> DeltaGenerator:
    """A line for the page's choices."""
    return st.container(horizontal=True, vertical_alignment="top", gap="small")


def choose_workload(run: store.Run, among: Sequence[str] | None = None, default: str | None = None) -> str:
    """The workload to show.

    Args:
        among: those that the page has something of; every one of the run when None.
        default: the one to show where nothing was chosen; the first when None.
    """
    names = [name for name in runs.load(run).workloads if among is None or name in among]
    if not names:
        nothing_to_compare(run, "This run has no variants to compare.")
    return state.choose("workload", "Workload", names, default=default, style="segmented" if len(names) <= 5 else "select")


def choose_timing(run: store.Run, workload: str) -> Timing:
    """Scope and cache to show; a run without samples of the workload ends the page."""
    views = runs.ask(run, axes.timings, workload)
    if not views:
        nothing(f"No variant of {workload} was timed in this run.", "The page Runs & checks says why, cell by cell.")
    scopes = list(dict.fromkeys(view.scope for view in views))
    scope = state.choose(
        "scope", "Scope", scopes, text=lambda name: name.replace("_", " "), style=_style(scopes), help=_SCOPE_HELP
    )
    caches = [view.cache for view in views if view.scope == scope]
    if runs.load(run).on_gpu:
        cache = state.choose(
            "cache", "L2", caches, style="segmented", help="Cold: L2 flushed before each sample. Hot: not flushed."
        )
    else:
        cache = state.choose("cache", "Caches", caches, style="segmented", text=lambda name: "warm" if name == "hot" else name)
    return Timing(scope, cache)


def timing(run: store.Run, view: Timing) -> str:
    """How the cells of a view were timed, in words."""
    return view.label(on_gpu=runs.load(run).on_gpu)


def choose_case(run: store.Run, workload: str, among: Sequence[str] | None = None) -> str:
    """The case to show, by one control an axis; the largest that was timed first, and of several the one that the ladder gains most from.

    Args:
        among: those that the page has something of; every charted one when None.
    """
    cases = runs.ask(run, axes.charted_cases, workload)
    if among is not None:
        cases = cases[cases["case"].isin(among)]
    if cases.empty:
        nothing(f"No case of {workload} is charted in this run.", "Record again: make record.")
    params = [json.loads(text) for text in cases["params"]]
    names = [str(name) for name in cases["case"]]
    timed = runs.ask(run, axes.timed_cases, workload)
    keys = _axis_order(names[0], params[0])
    if any(set(point) != set(keys) for point in params):
        return state.choose("case", "Case", names, default=max(names, key=lambda name: (name in timed, names.index(name))))
    left: list[tuple[str, dict[str, Any]]] = list(zip(names, params, strict=True))
    for axis in keys:
        values = list(dict.fromkeys(str(point[axis]) for _, point in left))
        if len(values) > 1:
            of_timed = [str(point[axis]) for name, point in left if name in timed] or values
            largest = max(of_timed, key=values.index)
            picked = state.choose(f"case.{axis}", axis, values, default=largest, style=_style(values))
            left = [(name, point) for name, point in left if str(point[axis]) == picked]
    return left[0][0]


def show_chart(chart: Chart, *, key: str = "") -> None:
    """A chart under its title, with how it was measured, its downloads and its data.

    Args:
        key: tells two charts of one name on a page apart.
    """
    st.markdown(f"#### {plain(chart.title)}")
    st.plotly_chart(chart.figure, theme=None, config=_PLOTLY, key=f"chart {chart.name} {key}", alt=chart.title)
    st.caption(plain(chart.note))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.popover("Data", type="tertiary"):
            table(chart.data)
        downloads(chart.name, lambda: chart, key)


def table(frame: pd.DataFrame, **options: Any) -> None:
    """A frame as a table without its index, tuples as text; options are those of `st.dataframe`."""
    shown = frame.copy()
    for name in shown.columns[shown.map(lambda value: isinstance(value, tuple)).any()]:
        shown[name] = shown[name].map(lambda value: ", ".join(map(str, value)) if isinstance(value, tuple) else value)
    formats = {name: st.column_config.NumberColumn(format=style) for name, style in _FORMATS.items() if name in shown}
    st.dataframe(
        shown, hide_index=True, placeholder="–", **{**options, "column_config": formats | options.get("column_config", {})}
    )


def downloads(name: str, chart: Callable[[], Chart], key: str) -> None:
    """Buttons that save a chart; it is asked for when one is pressed."""
    missing = images.why_not()
    writers: dict[str, Callable[[], str | bytes]] = {
        "html": lambda: document.chart_page(chart()),
        "svg": lambda: images.image(chart(), "svg"),
        "png": lambda: images.image(chart(), "png"),
        "csv": lambda: spreadsheet.csv(chart().data),
    }
    for kind, write in writers.items():
        needs_browser = kind in ("svg", "png")
        st.download_button(
            kind.upper(),
            write,
            f"{name}.{kind}",
            _MIME[kind],
            key=f"download {name} {key} {kind}",
            type="tertiary",
            on_click="ignore",
            disabled=needs_browser and missing is not None,
            help=missing if needs_browser else None,
        )


def _axis_order(case: str, params: dict[str, Any]) -> list[str]:
    """Axes in the order of the case's name, which the JSON of the params does not keep."""
    return sorted(params, key=lambda axis: f",{case}".find(f",{axis}="))


def _style(options: Sequence[str]) -> state.Style:
    return "segmented" if len(options) <= 4 and sum(map(len, options)) <= 40 else "select"


_SCOPE_HELP: Final = "Device: time on the GPU alone. Operation: from the launch to the end, as the host sees it. End to end: with the copies in and out."
