"""Widgets that the pages share: charts with downloads, tables, controls of a case, and messages for empty pages."""

import json
import math
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, ParamSpec

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder.dashboard.core import cells, run_index
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.trace import attribution as of_ranges
from warpladder.dashboard.ui import document, images, pages, runs, state, tables
from warpladder.dashboard.ui.component import component
from warpladder.dashboard.ui.glossary import meanings
from warpladder.dashboard.ui.template import Chart, Theme
from warpladder.dashboard.ui.text import apart, plain, short
from warpladder.dashboard.ui.view import Section, View
from warpladder.data import store
from warpladder.data.advice import advice_of

#: The command to show where nothing was recorded yet.
HOW_TO_RECORD: Final = "warpladder record"
#: The commands to show where a run has no variants, and no ranges that could be some.
HOW_TO_RECORD_OWN: Final = "warpladder new my_kernel\nwarpladder record my_kernel.py"
#: The command to show where a run has no trace.
HOW_TO_IMPORT: Final = "warpladder import REPORT"
#: The option that takes ranges as variants.
VARIANTS_OF_RANGES: Final = r"--variant-from 'nvtx:(?P<variant>\w+) n=(?P<case>\d+)'"
#: The command to show where a run is no job.
HOW_TO_IMPORT_A_JOB: Final = "warpladder import --job FOLDER"
_FORMATS: Final = {
    **dict.fromkeys(("ratio", "low", "high"), "%.4f"),
    **dict.fromkeys(("rel_l2_error", "max_rel_error", "tolerance"), "%.1e"),
}
_HERE: Final = Path(__file__).resolve().parent
_PAGE: Final = "title of the page"
_SECTION: Final = "section of the page"
#: Where the workload and the case stand, at the top of the page.
BAR: Final = "place of the bar"
_LINKED: Final = 5  # of runs that a page leads to
#: Characters of a kernel's name in a table.
_KERNEL_CHARACTERS: Final = 26
#: The part of the figures of a column that may have fewer than two digits.
_CUT_SHORT: Final = 0.1
#: A longer table is scrolled.
_MOST_ROWS: Final = 12
_TABLE_PX: Final = 450
_Arguments = ParamSpec("_Arguments")
#: Below the charts there are buttons that save them.
_CONFIG: Final = document.config("toImage", responsive=False)


def theme() -> Theme:
    """The browser's theme, for charts."""
    return "dark" if st.context.theme.type == "dark" else "light"


def heading(view: View, sections: Sequence[Section]) -> Section:
    """The view's title, its sections and the question of the chosen one on one line. The title is the document's too.

    Args:
        sections: those that apply to the run; not empty.
    """
    if st.session_state.get(_PAGE) != view.title:
        st.session_state[_PAGE] = view.title
        _entitle()
    by_name = {section.name: section for section in sections}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"# {plain(view.title)}", width="content")
        name = sections[0].name
        if len(sections) > 1:
            titles = {each.name: each.title for each in sections}
            name = state.choose(pages.SECTION, "Section", titles, style="segmented", labelled=False, owner=view.name)
        st.caption(plain(by_name[name].question), width="content")
    st.session_state[_SECTION] = by_name[name]
    return by_name[name]


def badge(text: str, color: Literal["red", "orange", "green", "gray", "blue"], help: str | None = None) -> None:
    """A few highlighted words. `st.badge` would escape brackets that are escaped already."""
    st.markdown(f":{color}-badge[{plain(text)}]", width="content", help=help)


def run_of_page() -> store.Run:
    """The run to show. Without a run, show how to record one and end the page."""
    run = runs.chosen()
    if run is None:
        st.info("No run yet. Measure this machine first, then reload this page:")
        st.code(HOW_TO_RECORD, language="bash")
        st.caption(
            "Host variants run on any machine; with an NVIDIA GPU every kernel variant runs. It takes about half a minute."
        )
        pages.end()
    try:
        runs.load(run)
    except store.StoreError as error:
        st.error(plain(str(error)))
        st.caption("Choose another run above; nothing of this one was changed.")
        pages.end()
    return run


def nothing(why: str, what_to_do: str, code: str = "") -> NoReturn:
    """Say why there is nothing to show and what to do about it, with links to shipped runs that have it. Ends the page.

    Args:
        code: a command that gives it.
    """

    def say() -> None:
        st.info(f"{plain(why)} {plain(what_to_do)}")
        if code:
            st.code(code, language="bash")
        offer_runs(shipped=True)

    pages.end(say)


def end_empty() -> NoReturn:
    """End a page after the reason that it is empty, with links to shipped runs that have what the section needs."""
    pages.end(partial(offer_runs, shipped=True))


def offer_runs(need: Need | None = None, *, shipped: bool = False) -> bool:
    """Offer other runs that have what the section needs, and return whether there are any. Runs of the device and workload come first.

    Args:
        need: what the runs have; when None, what the section needs.
        shipped: offer shipped runs alone.
    """
    section: Section = st.session_state[_SECTION]
    need = need or section.needs
    having = runs.context().having(need, state.coming("workload"))
    others = [each for each in having if each.name != runs.chosen_name() and (each.shipped or not shipped)]
    if others:
        having_it = "" if need is Need.NOTHING else f" with {plain(need)}"
        st.caption(f"{'Shipped runs' if shipped else 'Runs'}{having_it}:")
    for other in others[:_LINKED]:
        pages.link(section.where, f"{plain(other.title)} →", run=other.name)
    return bool(others)


def nothing_to_compare(run: store.Run) -> NoReturn:
    """Say that there are no variants to compare, and how to get some. Ends the page."""
    why = "This run has no variants to compare."
    if "ranges" in run.tables and run.info["kind"] == "import":
        ranges = advice_of(run.info["collector"]).ranges_are
        how = f"{HOW_TO_IMPORT.replace('REPORT', shlex.quote(str(run.info['source'])))} {VARIANTS_OF_RANGES}"
        nothing(why, f"Import its report again with a pattern that takes its {ranges} as variants, such as:", how)
    nothing(why, "Write kernels of your own as variants, and record them:", HOW_TO_RECORD_OWN)


def _no_times(run: store.Run, workload: str) -> NoReturn:
    """Say why a workload has no times, and how to get some. Ends the page."""
    why = f"No variant of {workload} was timed in this run."
    if run.info["kind"] == "recording":
        nothing(why, "The page Trust says why, cell by cell.")
    known = runs.recorded_as(run, workload)
    how = f"warpladder record {known}" if known else HOW_TO_RECORD_OWN
    nothing(f"{why} A report of counters has the times of single executions under the profiler.", "Record its variants:", how)


def no_trace(run: store.Run, lacks: str, option: str, need: Need | None = None) -> NoReturn:
    """Say what the trace of a run lacks, with the runs that have it and the command that records it. Ends the page.

    Args:
        lacks: the missing part, such as `no trace of copies`.
        option: the option of `nsys profile` that adds it to a report.
        need: see `offer_runs`.
    """
    advice, trace = advice_of(run.info["collector"]), plain(str(run.info["source"]))
    code, language = HOW_TO_IMPORT, "bash"
    if run.left_out:
        why, code = plain(f"This run has {lacks} that can be read. {' '.join(run.left_out.values())}."), ""
    elif advice.code and run.info["kind"] in ("import", "job"):
        wanted = advice.ranges if "ranges" in lacks else advice.device
        why, code = f"The trace {trace} has {plain(lacks)}. To have it, {wanted}, then import that trace:", advice.code
        language = "python"
    elif run.info["kind"] == "import":
        why = f"The report {trace} has {plain(lacks)}. Profile the program again with {option}, then import that report:"
        code = f"nsys profile {option} --output=report COMMAND\n{HOW_TO_IMPORT.replace('REPORT', 'report.nsys-rep')}"
    else:
        why = f"This run has {plain(lacks)}. Import a report of Nsight Systems, then choose it above:"
    st.info(why)
    if code:
        st.code(code, language=language)
    offer_runs(need)
    pages.end()


def no_job(run: store.Run) -> NoReturn:
    """Say that a run is no job, with the runs that are one and the command that imports one. Ends the page."""
    if run.left_out:
        st.info(plain(f"The tables of this job cannot be read. {' '.join(run.left_out.values())}."))
    else:
        st.info("This run is of one process. Import the profiles of a job, one file a rank, then choose the job above:")
        st.code(HOW_TO_IMPORT_A_JOB, language="bash")
    offer_runs()
    pages.end()


def no_operators(run: store.Run) -> NoReturn:
    """Say that a run has no operators, with the runs that have some and the command that imports one. Ends the page."""
    if run.left_out:
        st.info(plain(f"This run has no operators that can be read. {' '.join(run.left_out.values())}."))
    else:
        st.info("This run has no operators of PyTorch. Import a trace of PyTorch's profiler, then choose it above:")
        st.code("warpladder import trace.json.gz", language="bash")
    offer_runs()
    pages.end()


def attribution(run: store.Run) -> None:
    """Say how much device time is attributed to ranges, if there are any. For a recording, only where some of it is attributed by time."""
    shares = runs.ask(run, of_ranges.shares)
    shown = shares.by_time_ns or (run.info["kind"] == "import" and "ranges" in run.tables)
    if shown and (sentence := of_ranges.sentence(shares, advice_of(run.info["collector"]).ranges_are)):
        st.caption(plain(sentence))


def end_page() -> None:
    """Show the values of the URL that the page could not use, and drop the parameters that it does not read."""
    for note in state.notes():
        st.caption(plain(note))
    _entitle(*state.choice_words())
    state.end()


def _entitle(*choices: str) -> None:
    """Set the title of the document from its page and choices, for tabs, bookmarks and the history."""
    page: str = st.session_state[_PAGE]
    st.set_page_config(" · ".join([page, *([short(", ".join(choices))] if choices else []), "Warpladder"]))


def controls() -> DeltaGenerator:
    """A line for the page's choices."""
    return st.container(horizontal=True, vertical_alignment="top", gap="small")


def choose_workload(run: store.Run, among: Sequence[str] | None = None, default: str | None = None) -> str:
    """The workload to show.

    Workloads of other runs of the device can be chosen too; the page then shows their newest suitable run.

    Args:
        among: the workloads of the run that the page can show; all of the run when None.
        default: the workload to show at first; when None, the first workload for which the run is the newest suitable run.
    """
    every = runs.load(run).workloads
    own = [name for name in every if among is None or name in among]
    if not own:
        nothing_to_compare(run)
    context = runs.context()
    best = ((name, run_index.suitable(context.every, context.device, name, context.need)[:1]) for name in own)
    found_by = (name for name, first in best if [each.name for each in first] == [runs.chosen_name()])
    timed = (name for name in own if runs.ask(run, cells.timed_cases, name))
    first = default if default in own else next(found_by, next(timed, own[0]))
    of_device = run_index.workloads(context.every, context.device, context.need)
    names = [*own, *(name for name in of_device if name not in every)]
    names = names if len(names) == len(own) else sorted(names)
    with _bar():
        name = state.choose("workload", "Workload", names, default=first, labelled=False, strict=True, always=True)
    if name not in own:
        nothing(f"This run has no {name}.", "Choose another workload, or another run above.")
    return name


def choose_timing(run: store.Run, workload: str) -> Timing:
    """Scope and cache to show. Ends the page where the workload has no samples."""
    timings = runs.ask(run, cells.timings, workload)
    if not timings:
        _no_times(run, workload)
    return choose_timing_of(timings, on_gpu=runs.load(run).on_gpu)


def choose_timing_of(timings: Sequence[Timing], *, on_gpu: bool) -> Timing:
    """One of these timings; the sequence is not empty."""
    scopes = {timing.scope: timing.scope.replace("_", " ") for timing in timings}
    style: state.Style = "segmented" if len(scopes) <= 4 and sum(map(len, scopes)) <= 40 else "select"
    help = "Device: time on the GPU alone. Operation: from the launch to the end, as the host sees it. End to end: with the copies in and out."
    scope = state.choose("scope", "Scope", scopes, style=style, help=help)
    about = "Cold: L2 flushed before each sample. Hot: not flushed."
    return Timing(scope, choose_cache([timing.cache for timing in timings if timing.scope == scope], about, on_gpu=on_gpu))


def choose_cache(caches: Sequence[str], help: str | None = None, *, on_gpu: bool) -> str:
    """One of these states of the caches, which on a processor is `warm` where it is hot."""
    if on_gpu:
        return state.choose("cache", "L2", caches, style="segmented", help=help)
    return state.choose("cache", "Caches", {name: "warm" if name == "hot" else name for name in caches}, style="segmented")


def timing(run: store.Run, timing: Timing) -> str:
    """A timing in words, for the hardware of the run."""
    return timing.label(on_gpu=runs.load(run).on_gpu)


def choose_case(run: store.Run, workload: str, among: Sequence[str] | None = None) -> str:
    """The case to show, with one control for each axis. At first it is the last of the largest cases that were timed.

    Args:
        among: the cases that the page can show; all charted ones when None.
    """
    cases = runs.ask(run, cells.charted_cases, workload)
    if among is not None:
        cases = cases[cases["case"].isin(among)]
    if cases.empty:
        nothing(f"No case of {workload} is charted in this run.", f"Record again: {HOW_TO_RECORD}.")
    return choose_case_of(dict(zip(cases["case"], cases["params"], strict=True)), runs.ask(run, cells.timed_cases, workload))


def choose_case_of(cases: Mapping[str, str], timed: Collection[str]) -> str:
    """One of these cases, chosen with one control for each axis.

    Args:
        cases: name -> the JSON of its parameters, in order.
        timed: the cases whose last one is the default.
    """
    names = list(cases)
    params = [json.loads(text) for text in cases.values()]
    # In the order of the case's name, which the JSON of the params does not keep.
    keys = sorted(params[0], key=lambda axis: f",{names[0]}".find(f",{axis}="))
    if any(set(point) != set(keys) for point in params):
        default = max(names, key=lambda name: (name in timed, names.index(name)))
        with _bar():
            return state.choose("case", "Case", names, default=default, labelled=False, strict=True, always=True)
    remaining: list[tuple[str, dict[str, Any]]] = list(zip(names, params, strict=True))
    for axis in keys:
        values = list(dict.fromkeys(str(point[axis]) for _, point in remaining))
        if len(values) > 1:
            of_timed = [str(point[axis]) for name, point in remaining if name in timed] or values
            largest = max(of_timed, key=values.index)
            with _bar():
                texts = {value: f"{axis}={value}" for value in values}
                picked = state.choose(f"case.{axis}", axis, texts, default=largest, labelled=False, strict=True, always=True)
            remaining = [(name, point) for name, point in remaining if str(point[axis]) == picked]
    return remaining[0][0]


def _bar() -> DeltaGenerator:
    """Where the workload and the case stand, at the top of the page."""
    place: DeltaGenerator = st.session_state[BAR]
    return place


def drawn(draw: Callable[_Arguments, Chart], /, *args: _Arguments.args, **options: _Arguments.kwargs) -> Chart:
    """The chart of a function, drawn once for equal arguments. It is shared between sessions: never change it."""
    return _drawn(partial(draw, *args, **options), f"{draw.__module__}.{draw.__qualname__}", args, options)


@st.cache_resource(show_spinner=False, max_entries=128)
def _drawn(_draw: Callable[[], Chart], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Chart:
    return _draw()


def show_chart(chart: Chart, *, titled: bool = True, on_click: Callable[[Any], None] | None = None) -> None:
    """A chart under its title, with how it was measured, its downloads and its data.

    Args:
        titled: not where a sentence above the chart has what its title tells.
        on_click: called with the `customdata` of a point that was clicked, before the next rerun.
    """
    if titled:
        st.markdown(f"## {plain(chart.title)}")
    name = f"chart {chart.name}"
    clicked = {"on_clicked_change": lambda: on_click(st.session_state[name]["clicked"])} if on_click else {}
    height = int(chart.figure.layout.height)
    data = {"figure": chart.json, "height": height, "title": chart.title, "config": _CONFIG}
    # `st.plotly_chart` would draw each chart three times; `chart.js` draws it once.
    component(_HERE, "chart", '<div class="warpladder-chart"></div>', ("chart.js",), isolate_styles=False)(
        key=name, data=data, height=height, **clicked
    )
    st.caption(plain(chart.note))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if words := meanings(chart.note):
            with st.popover("Words", type="tertiary"):
                st.markdown(words)
        with st.popover("Data", type="tertiary"):
            table(chart.data)
        downloads(chart.name, lambda: chart)


def table(frame: pd.DataFrame, **options: Any) -> Any:
    """A frame as a table without its index, with tuples as text. The options are passed to `st.dataframe`, whose value is returned.

    Names in a column `kernel` are cut so that those of different kernels differ; figures of a column have equally many decimals.
    """
    shown = frame.copy()
    # One value at a time, because `map` of a column of categories returns such a column, which has no `any`.
    for name, dtype in shown.dtypes.items():
        if dtype.name in ("object", "category") and any(isinstance(value, tuple) for value in shown[name]):
            shown[name] = [", ".join(map(str, value)) if isinstance(value, tuple) else value for value in shown[name]]
        elif dtype.name == "bool":  # not a box, which looks as if it could be ticked
            shown[name] = shown[name].map({True: "yes", False: "no"})
    if full := next((name for name in ("full_name", "name") if name in shown and "kernel" in shown), None):
        shown["kernel"] = apart(list(shown["kernel"]), list(shown[full]), _KERNEL_CHARACTERS)
    formats = {name: st.column_config.NumberColumn(format=style) for name, style in _FORMATS.items() if name in shown}
    formats |= options.get("column_config", {})
    options["column_config"] = {name: _aligned(each, shown[name]) if name in shown else each for name, each in formats.items()}
    return st.dataframe(shown, hide_index=True, placeholder="–", **options)


def _aligned(column: Any, values: "pd.Series[Any]") -> Any:
    """The configuration of a column, with decimals in place of significant digits (`%.4g`) where they leave nine in ten figures two digits
    or more."""
    style = (column.get("type_config") or {}).get("format") if isinstance(column, dict) else None
    digits = re.fullmatch(r"%\.(\d)g", style or "")
    if digits is None:
        return column
    most, sizes = int(digits[1]), values.dropna().astype(float).abs()
    sizes = sizes[sizes > 0]
    whole = bool((sizes % 1 == 0).all())
    fewest = 0 if whole else max(most - 1 - math.floor(math.log10(sizes.max())), 0)
    for decimals in range(fewest, max(most, fewest + 1)):
        if whole or (sizes < 10.0 ** (1 - decimals)).mean() <= _CUT_SHORT:
            return {**column, "type_config": {**column["type_config"], "format": f"%.{decimals}f"}}
    return column


def table_of_times(frame: pd.DataFrame, columns: Mapping[str, Any]) -> None:
    """A table with the columns that have values. Its times, in columns `NAME_ns`, are shown in ms.

    Args:
        columns: the configuration of each column, in their order.
    """
    times = [name for name in frame.columns if name.endswith("_ns")]
    shown = frame.assign(**{name: frame[name].astype(float) / 1e6 for name in times})
    order = [name for name in columns if name in shown and (shown[name].notna() & (shown[name].astype(str) != "")).any()]
    table(shown, column_order=order, column_config=columns, height=height(frame))


def height(frame: pd.DataFrame, most: int = _MOST_ROWS, scrolled_px: int = _TABLE_PX) -> int | Literal["content"]:
    """The height of a table, which is scrolled where it has more than `most` rows."""
    return "content" if len(frame) <= most else scrolled_px


def number(label: str, help: str | None = None, style: str = "%.4g") -> Any:
    return st.column_config.NumberColumn(label, format=style, help=help)


def table_to_choose(frame: pd.DataFrame, name: str, choose: Callable[[int], None], **options: Any) -> None:
    """A table whose rows can be chosen.

    Args:
        name: tells the tables of a page apart.
        choose: called with the place of a row, before the next rerun.
    """
    # Another key after each choice: rows may move, and the mark of a row would stay where it was.
    key = f"{name} {st.session_state.setdefault(f'choices of {name}', 0)}"

    def chosen() -> None:
        rows = st.session_state[key].selection.rows
        if rows and rows[0] < len(frame):
            choose(rows[0])
        st.session_state[f"choices of {name}"] += 1

    table(frame, key=key, on_select=chosen, selection_mode="single-row", **options)


def save_csv(label: str, table: pd.DataFrame | Callable[[], pd.DataFrame], file: str, key: str) -> None:
    """A button that saves a table, which may be made when the button is pressed."""
    write = lambda: tables.csv(table() if callable(table) else table)  # noqa: E731
    st.download_button(label, write, file, "text/csv", key=key, type="tertiary", on_click="ignore")


def downloads(name: str, chart: Callable[[], Chart]) -> None:
    """Buttons that save a chart. The chart is made when a button is pressed."""
    missing = images.why_not()
    writers: dict[str, tuple[str, Callable[[], str | bytes]]] = {
        "html": ("text/html", lambda: document.chart_page(chart())),
        "svg": ("image/svg+xml", lambda: images.image(chart(), "svg")),
        "png": ("image/png", lambda: images.image(chart(), "png")),
        "csv": ("text/csv", lambda: tables.csv(chart().data)),
    }
    for kind, (mime, write) in writers.items():
        needs_browser = kind in ("svg", "png")
        st.download_button(
            kind.upper(),
            write,
            f"{name}.{kind}",
            mime,
            key=f"download {name} {kind}",
            type="tertiary",
            on_click="ignore",
            disabled=needs_browser and missing is not None,
            help=missing if needs_browser else None,
        )
