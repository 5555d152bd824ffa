"""Stragglers: the rank that the others wait for, how long, how sure that is, and why."""

from typing import Final

import streamlit as st

from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.widgets import number
from warpladder.dashboard.views.ranks.stragglers import chart, query
from warpladder.data import store


def draw(run: store.Run) -> None:
    if not runs.load(run).job:
        widgets.no_job(run)
    found, ranks = runs.ask(run, lateness), runs.ask(run, query.ranking)
    title = query.title(found, ranks)
    if ranks.empty:
        st.info(plain(title))
    else:
        look = runs.look_of(run, widgets.theme())
        widgets.show_chart(widgets.drawn(chart.waits, ranks, title, look))
    if found.reasons:
        pages.link("ranks", "Where the time of each rank goes →", **state.link())
    if ranks.empty:
        pages.end()
    st.markdown("## Ranks and their clocks, the latest first")
    times = {name: ranks[name].astype(float) / 1e6 for name in ("lateness_ns", "wait_ns", "wait_uncertainty_ns")}
    clocks = {name: ranks[name] / 1e3 for name in ("offset_ns", "uncertainty_ns")}
    shown = ranks.assign(**times, **clocks, late=ranks["late"].map({True: "late", False: ""}))
    known = [name for name in _COLUMNS if name == "rank" or shown[name].fillna(0).any()]
    widgets.table(shown, column_order=known, column_config=_COLUMNS, height=widgets.height(ranks))


_COLUMNS: Final = {
    "rank": number("Rank", style="%d"),
    "late": st.column_config.TextColumn("Late", help="Others of its groups wait longer than it, beyond the uncertainty."),
    "cause": "Cause",
    "lateness_ns": number(
        "Waited for, ms",
        "How much longer others wait than it in the collectives that they share, in sum over the ranks, beyond the uncertainty.",
        "%.4g",
    ),
    "wait_ns": number("Wait, ms", style="%.4g"),
    "wait_uncertainty_ns": number("± ms", "One standard deviation of the wait.", "%.2g"),
    "last": st.column_config.NumberColumn("Last", help="How often the rank came last to a collective."),
    "collectives": st.column_config.NumberColumn("Collectives", help="That were matched with those of other ranks."),
    "last_percent": number("Last, %", "Of the collectives.", "%.3g"),
    "offset_ns": number("Offset, µs", "The rank's clock less the job's.", "%.4g"),
    "drift_ppm": number("Drift, ppm", "How much faster the rank's clock is.", "%.3g"),
    "uncertainty_ns": number(
        "Spread, µs", "How far its ends of collectives are from those of the other ranks, once the clocks are aligned.", "%.3g"
    ),
}
