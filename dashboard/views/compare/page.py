"""Compare: two runs, or two variants, cell by cell."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import changes
from warpladder.dashboard.compare.changes import Change, Comparison
from warpladder.dashboard.core.cell import name_of
from warpladder.dashboard.core.counters import Counter
from warpladder.dashboard.core.numbers import NOTHING, format_counter, format_duration, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, label_from, label_of
from warpladder.dashboard.core.why import between
from warpladder.dashboard.ui import recordings, runs, source, state, widgets
from warpladder.dashboard.ui.component import component
from warpladder.dashboard.ui.template import tones
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.compare import chart, query
from warpladder.data import store

_ALL: Final = "all"
#: The first timing that both runs have of a workload.
_FIRST: Final = "first"
#: The other version of the file in the run itself.
_VERSION: Final = "version"
#: Every variant with the one of its name.
_EACH: Final = "each"
_JUDGED: Final = {"relative": "over the unchanged", "absolute": "times as they are"}
_JUDGED_HELP: Final = (
    "What a machine does to all variants of a case cancels where each counts over the variants with equal sources."
)
_BELOW: Final = {"source": "Sources", "counters": "Counters", "cells": "All cells", "recordings": "Recordings"}
_PATTERN: Final = "compare variants like"
_LONGEST: Final = 100  # characters of a pattern
_MOST_LOST: Final = 12  # reasons that are listed
_CELLS: Final = "compared cells"
_TABLE_HEIGHT: Final = 420
_SOURCES: Final = """
<div class="sources" tabindex="0">
  <table><colgroup><col class="line"><col><col class="line"><col></colgroup><tbody></tbody></table>
</div>
"""
_CELL_COLUMNS: Final = {
    "verdict": "Verdict",
    "case": "Case",
    "name": "Variant",
    "ratio": widgets.number("B over A", style="%.3f"),
    "ratio_low": widgets.number("from", style="%.3f"),
    "ratio_high": widgets.number("to", style="%.3f"),
    "noise": widgets.number("Noise, %", style="%.1f"),
    "a": "A",
    "b": "B",
    "shift": widgets.number("Unchanged, B over A", style="%.3f"),
    "workload": "Workload",
    "timing": "Timing",
    "source": "Source",
}


def draw(run: store.Run) -> None:
    """Draw the page. B is the run of the page. A is the other version of its file, another run that has one of its workloads and its GPU, or
    B itself."""
    if not runs.ask(run, query.timed_variants):
        _no_variants(run)
    others = _comparable(run)
    if not (others or runs.has_other_version(run)):
        st.caption("No other run has a workload of this one on the same device. Record it again after your change.")
    with widgets.controls():
        other, of_a, of_b = _choose_sides(run, others)
    with widgets.controls():
        # Within a run, the ratio of each round already is relative to what happens to all.
        between = runs.run_of(other).path != run.path
        judged = state.choose("judge", "Judge", _JUDGED, help=_JUDGED_HELP) if between else "relative"
        scopes = [scope for scope in runs.ask(run, _scopes) if scope in runs.ask(other, _scopes)]
        texts = {_FIRST: "first of each", **{scope: scope.replace("_", " ") for scope in scopes}, _ALL: "all"}
        scope = state.choose("of_scope", "Scope", texts)
        options = changes.Options(
            "" if scope == _FIRST else scope,
            "best" if of_a != of_b else "config",
            absolute=judged == "absolute",
            in_rounds=isinstance(other, runs.OtherVersion),
        )
        comparison = runs.ask_both(run, other, recordings.compared, of_a, of_b, options, recordings.names(run))
        if isinstance(comparison, str):
            widgets.nothing(comparison, "Choose another run, variant or scope.")
        shown = query.only(comparison, _choose_filter(comparison))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for fact in comparison.facts:
            if fact.warning:
                widgets.badge(f"{fact.what}: {fact.a or NOTHING} → {fact.b or NOTHING}", "orange", help=plain(fact.warning))
    _show_lost(shown, earlier=run.info["started_at"] < runs.run_of(other).info["started_at"])
    if not shown.changes:
        if shown.lost:
            widgets.end_page()
            return
        widgets.nothing(
            "No compared cell fits the filters.", "Choose others; a variant is written as v0* or as a part of its name."
        )
    address = state.text_of("at", "")
    cell = query.chosen(shown.changes, address)
    if address and cell is None:
        state.note("The link asks for a cell that is not among those shown; showing the slowest.")
    cell = cell or shown.changes[0]
    _answer(run, other, shown, cell)
    below = state.choose("below", "Show", _BELOW, style="segmented", labelled=False)
    if below == "source":
        _sources(other, run, cell, shown)
    elif below == "counters":
        _counters(other, run, cell)
    elif below == "cells":
        _every_cell(shown)
    else:
        _recordings(other, run, comparison)


def _no_variants(run: store.Run) -> NoReturn:
    """Say that the run has no variants; two profiles are compared by the command line. Ends the page."""
    data = runs.load(run)
    if not (data.traces or data.job):
        widgets.nothing_to_compare(run)
    widgets.nothing(
        "This run has no variants to compare.",
        "Two profiles, of before and after a change, are compared by the figures of an iteration and by kernel:",
        f"warpladder compare BEFORE {run.argument}",
    )


def _choose_sides(run: store.Run, others: dict[str, store.Run]) -> tuple[runs.AnyRun, str, str]:
    """Run A, and a variant of A and of B; empty for every variant with the one of its name."""
    every = {**others, **{name: each for name, each in runs.listing(runs.data_dirs()).runs.items() if each.path == run.path}}
    with_versions = runs.has_other_version(run)
    if not every:
        widgets.nothing("This run cannot be compared.", "Choose another run above.")
    titles = {_VERSION: f"{_label(runs.OtherVersion(run))}, in the same rounds"} if with_versions else {}
    titles |= {name: each.title if name in others else "this run: two of its variants" for name, each in every.items()}
    name = state.choose("with", "A", titles, always=True)
    if name == _VERSION:
        return runs.OtherVersion(run), "", ""
    other = every[name]
    of_b = query.timed_variants(runs.load(run))
    if runs.run_of(other).path == run.path:
        if len(of_b) < 2:
            widgets.nothing("This run has no two variants to compare.", "Record it again after your change.")
        of_first, of_second = runs.ask(run, query.pair)
        first = state.choose("a", "Variant of A", of_b, default=of_first, owner=name)
        return other, first, state.choose("b", "Variant of B", of_b, default=of_second, owner=name)
    of_a = runs.ask(other, query.timed_variants)
    words = {_EACH: "each with its own", **{each: each for each in of_a}}
    first = state.choose("a", "Variant of A", words, owner=name)
    if first == _EACH:
        return other, "", ""
    same = first if first in of_b else of_b[0]
    return other, first, state.choose("b", "Variant of B", of_b, default=same, owner=name)


def _label(run: runs.AnyRun) -> str:
    data = runs.load(run)
    return label_from(data.info, data.workloads)


def _scopes(data: RunData) -> list[str]:
    return list(dict.fromkeys(sorted([*data.grouped.keys["scope"], *data.together["scope"].astype(str)])))


def _choose_filter(comparison: Comparison) -> query.Filter:
    workloads = list(dict.fromkeys(change.workload for change in comparison.changes))
    caches = sorted({change.timing.cache for change in comparison.changes})
    workload = state.choose("of", "Workload", [_ALL, *workloads]) if len(workloads) > 1 else _ALL
    cache = state.choose("of_cache", "Caches", [_ALL, *caches], style="segmented") if len(caches) > 1 else _ALL
    # Set even if equal, because after a page switch the widget has no value.
    st.session_state[_PATTERN] = state.text_of("like", "")[:_LONGEST]
    st.text_input(
        "Variants like",
        key=_PATTERN,
        on_change=lambda: state.set_text("like", "", st.session_state[_PATTERN].strip()),
        max_chars=_LONGEST,
        placeholder="v0* cublas",
        help="Patterns as of file names, apart by spaces; or parts of names.",
        width=180,
    )
    return query.Filter(
        "" if workload == _ALL else workload, cache="" if cache == _ALL else cache, variant=st.session_state[_PATTERN]
    )


def _set_cell(text: object) -> None:
    state.set_text("at", "", str(text))


def _answer(run: store.Run, other: runs.AnyRun, comparison: Comparison, cell: Change) -> None:
    """The ratios, and beside them the samples of one cell."""
    # The style sheet of the pages puts them one below the other in a narrow window.
    left, right = st.container(key="side-by-side").columns([11, 9], gap="medium")
    look = runs.look_of(run, widgets.theme())
    with left:
        widgets.show_chart(widgets.drawn(chart.forest, comparison, look, cell), on_click=_set_cell)
    with right:
        samples = query.clouds(runs.load(other), runs.load(run), cell)
        widgets.show_chart(widgets.drawn(chart.clouds, samples, cell, look))


def _comparable(run: store.Run) -> dict[str, store.Run]:
    """The other runs that have a workload of this one, and its device.

    Those of its collector come first, then those that started before it, the newest first.
    """
    every = runs.context().every
    own = next((each for each in every if each.run.path == run.path), None)
    if own is None or not own.facts.timed:
        return {}
    comparable = [
        each
        for each in every
        if each is not own
        and each.facts.timed
        and each.facts.device == own.facts.device
        and not own.facts.workloads.keys().isdisjoint(each.facts.workloads)
    ]

    def order(each: ListedRun) -> tuple[bool, bool, datetime]:
        same = each.facts.collector == own.facts.collector
        return same, each.facts.started_at <= own.facts.started_at, each.facts.started_at

    return {each.name: each.run for each in sorted(comparable, key=order, reverse=True)}


def _show_lost(comparison: Comparison, *, earlier: bool) -> None:
    """The cells that B lacks. `earlier`: B was recorded before A, so that what it lacks was not lost."""
    lines = changes.loss_lines(comparison.lost)
    for fails, severity in ((True, st.error), (False, st.info)):
        items = [f"- {plain(line)}" for failed, line in lines if failed is fails]
        if items:
            more = [f"- {len(items) - _MOST_LOST} more reasons"] if len(items) > _MOST_LOST else []
            missing = "Wrong in B, or not in B, which was recorded before A:" if earlier else "Wrong or lost in B:"
            heading = missing if fails else "Not compared, since B lacks them:"
            (st.info if earlier else severity)("\n".join([f"**{heading}**", "", *items[:_MOST_LOST], *more]))


def _sources(other: runs.AnyRun, run: store.Run, cell: Change, comparison: Comparison) -> None:
    """The sources of a cell's variants as they were measured, side by side."""
    of_a, of_b = cell.of_a[0], cell.variant
    before = runs.load(other).source_text(cell.workload, of_a)
    after = runs.load(run).source_text(cell.workload, of_b)
    differ = ", ".join(f"{workload} {variant}" for workload, variant in comparison.changed_sources)
    st.caption(plain(f"Sources that differ: {differ}." if differ else "The sources of all compared variants are equal."))
    if not before and not after:
        st.caption(plain(f"No source was recorded of {of_b}."))
        return
    if before == after:
        st.caption(plain(f"The source of {of_b} is equal in both runs."))
        source.show("both", after, "cuda" if after.lstrip().startswith(("//", "/*", "#include")) else "python", 380)
        return
    headings = f"A: {of_a}, {_label(other)}", f"B: {of_b}, {label_of(run)}"
    rows = query.rows(before, after)
    tone = tones(widgets.theme())
    colors = {"gone": tone.bad, "come": tone.good, "muted": tone.muted, "grid": tone.grid}
    data = {"rows": [asdict(row) for row in rows], "headings": list(headings), "colors": colors}
    component(Path(__file__).parent, "sources", _SOURCES, ("sources.js", "sources.css"))(key="compared sources", data=data)


def _counters(other: runs.AnyRun, run: store.Run, cell: Change) -> None:
    """The hardware counters of a cell in both runs."""
    a, b = runs.load(other), runs.load(run)
    explanation = between(a, b, cell.workload, cell.case, cell.of_a, (cell.variant, cell.config), (1.0, cell.ratio.value))
    if explanation is None:
        labels = ((_label(other), a), (label_of(run), b))
        lacking = " and ".join(label for label, data in labels if data.counters.empty)
        why = f"{lacking} has no hardware counters" if lacking else "The runs have no counters of this cell"
        st.info(plain(f"{why}. Record both with --counters, or import reports of ncu."))
        return
    st.markdown(plain(explanation.sentence(f"A ({name_of(*cell.of_a)})", f"B ({cell.name})")))
    rows = [
        (each.group, each.name, format_counter(each.a, each.unit), format_counter(each.b, each.unit), _change(each))
        for each in explanation.work
    ]
    frame = pd.DataFrame(rows, columns=["Group", "Counter", "A", "B", "Change"])
    widgets.table(frame, height=widgets.height(frame, 11, _TABLE_HEIGHT))
    st.caption("Counters of one execution each: they have no interval.")


def _source(change: Change) -> str:
    """Whether the source is equal; of imports, which record none, that is not known."""
    if not change.same_source:
        return "differs"
    is_same_cell = change.of_a == (change.variant, change.config)
    return "not recorded" if is_same_cell and not change.equal_code else "equal"


def _every_cell(comparison: Comparison) -> None:
    """Every compared cell, the slowest first. A click on a row chooses its cell."""
    rows = [
        {
            "verdict": each.verdict,
            "workload": each.workload,
            "case": each.case,
            "timing": f"{each.timing.scope} {each.timing.cache}",
            "name": each.name if each.of_a == (each.variant, each.config) else f"{name_of(*each.of_a)} → {each.name}",
            "a": format_duration(each.a_ns.value),
            "b": format_duration(each.b_ns.value),
            **each.ratio.columns("ratio"),
            "shift": each.shift,
            "noise": 100 * (each.noise - 1),
            "source": _source(each),
        }
        for each in comparison.changes
    ]
    st.session_state[f"{_CELLS} from"] = [query.written(each) for each in comparison.changes]
    widgets.table(
        pd.DataFrame(rows),
        height=_TABLE_HEIGHT,
        key=_CELLS,
        on_select=_click_a_cell,
        selection_mode="single-row",
        column_config=_CELL_COLUMNS,
        column_order=list(_CELL_COLUMNS),
    )
    new = f" {len(comparison.new)} more cells are in B alone." if comparison.new else ""
    st.caption(f"{len(rows)} cells. Choose a row (Shift+Space) to see its samples, sources and counters.{new}")


def _recordings(other: runs.AnyRun, run: store.Run, comparison: Comparison) -> None:
    """The differences between the recordings, and the commands that made them."""
    widgets.table(chart.facts_of(comparison))
    for side, label, each in (("A", _label(other), runs.run_of(other)), ("B", label_of(run), run)):
        st.caption(plain(f"{side}: {label}"))
        st.code(str(each.info["command"]), language="bash", wrap_lines=True)


def _click_a_cell() -> None:
    texts = st.session_state.get(f"{_CELLS} from", [])
    rows = [row for row in st.session_state[_CELLS]["selection"]["rows"] if row < len(texts)]
    if rows:
        _set_cell(texts[rows[0]])


def _change(counter: Counter) -> str:
    """The difference of a percentage in points, else the ratio."""
    if pd.isna(counter.a) or pd.isna(counter.b):
        return NOTHING
    if counter.a == counter.b:
        return "="
    if counter.unit == "%":
        return f"{counter.b - counter.a:+.1f} points"
    return format_ratio(counter.ratio)
