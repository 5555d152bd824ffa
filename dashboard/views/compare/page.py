"""Compare: two runs, or two variants, cell by cell."""

from typing import Final

import streamlit as st

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.numbers import NOTHING
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.compare import VIEW, chart, query
from warpladder.data import store

_ALL: Final = "all"


def page() -> None:
    """Draw the page. B is the run of the sidebar, A another run that has one of its workloads and its GPU."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    others = _comparable(run)
    if not others:
        widgets.nothing("No other run has a workload of this one on the same device.", "Record it again after your change.")
    with widgets.controls():
        name = state.choose("with", "A, to compare with", list(others), text=lambda each: others[each].title, always=True)
        judged = state.choose("judge", "Judge", ["ratio", "shift"], text=_JUDGED.__getitem__)
    found = runs.ask(run, _compared, runs.as_recorded(others[name]), judged == "shift")
    if isinstance(found, str):
        widgets.nothing(found, "Choose another run.")
    workloads = list(dict.fromkeys(change.workload for change in found.changes))
    with widgets.controls():
        workload = state.choose("of", "Workload", [_ALL, *workloads]) if len(workloads) > 1 else _ALL
    if workload != _ALL:
        found = query.only(found, workload)
    for fact in found.facts:
        if fact.warning:
            widgets.badge(f"{fact.what}: {fact.a or NOTHING} → {fact.b or NOTHING}", "orange", help=plain(fact.warning))
    widgets.show_chart(chart.forest(found, runs.look_of(run, widgets.theme()), without_shift=judged == "shift"))
    _show_sources(run, others[name], found)
    with st.expander("Differences between the recordings"):
        widgets.table(chart.facts_of(found))
    widgets.end_page()


_JUDGED: Final = {"ratio": "ratios", "shift": "ratios without the common shift"}


def _comparable(run: store.Run) -> dict[str, store.Run]:
    """The other runs that have a workload of this one, and its GPU: those of its collector first, the newest first."""
    every = runs.listing(runs.data_dirs()).runs
    own = _about(run)
    named = {name: other for name, other in every.items() if other.path != run.path}
    alike = {name: other for name, other in named.items() if (about := _about(other))[0] == own[0] and about[1] & own[1]}
    return dict(sorted(alike.items(), key=lambda each: (_same_collector(run, each[1]), _started(each[1])), reverse=True))


def _same_collector(run: store.Run, other: store.Run) -> bool:
    return bool(run.info["collector"] == other.info["collector"])


def _started(run: store.Run) -> str:
    return str(run.info["started_at"])


def _about(run: store.Run) -> tuple[str, frozenset[str]]:
    """The GPU of a run, and its workloads with samples."""
    try:
        found = frozenset(run.table("cases", ["workload"])["workload"]) if "samples" in run.tables else frozenset()
    except store.StoreError:
        found = frozenset()
    return str(run.info["device_name"]), found


def _compared(data: RunData, other: runs.Named, without_shift: bool) -> query.Comparison | str:
    """The comparison, or why there is none."""
    options = query.Options(without_shift=without_shift)
    try:
        return query.compare(query.Side(runs.load(other)), query.Side(data), options)
    except query.NotComparable as error:
        return str(error)


def _show_sources(run: store.Run, other: store.Run, found: query.Comparison) -> None:
    """The sources that differ, as they were measured."""
    if not found.changed_sources:
        st.caption("The sources of all compared variants are equal.")
        return
    names = [f"{workload} {variant}" for workload, variant in found.changed_sources]
    name = state.choose("source", "Source that differs", names) if len(names) > 1 else names[0]
    workload, variant = found.changed_sources[names.index(name)]
    before = next(change.of_a[0] for change in found.changes if (change.workload, change.variant) == (workload, variant))
    difference = query.source_difference(runs.load(runs.as_recorded(other)), runs.load(run), workload, before, variant)
    st.caption(plain(f"{name}, as measured"))
    st.code(difference, language="diff")


page()
