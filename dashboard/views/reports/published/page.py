"""Published: the printed figures of the reports, beside ours."""

import pandas as pd
import streamlit as st

from warpladder.dashboard.core.numbers import format_half_width
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.reports.published import chart, query
from warpladder.data import figures, store

_COLUMNS = {
    "variant": "As published",
    "our_variant": "Here",
    "point": "Case",
    "published": st.column_config.NumberColumn("Published", format="%.6g", width=90),
    "published_at_50": st.column_config.NumberColumn("Published, 50 a point", format="%.4g"),
    "ours": st.column_config.NumberColumn("Here", format="%.4g", width=90),
    "ours_at_50": st.column_config.NumberColumn("Here, 50 a point", format="%.4g"),
    "spread": "95 %",
    "n": "n",
    "unit": "Unit",
    "why": "Why not here",
}


def draw(run: store.Run) -> None:
    with widgets.controls():
        reports, workloads = list(figures.reports()), set(runs.load(run).workloads)
        of_run = next((name for name in reports if workloads & set(_figures(name)["workload"])), None)
        report = state.choose("workload", "Report", reports, default=of_run)
        published = _figures(report)
        sources = {source.slug: source for source in query.sources(published)}
        slug = state.choose("table", "Table", list(sources), text=lambda name: sources[name].label)
        cache = state.choose(
            "cache", "L2 here", ["hot", "cold"], style="segmented", help="The reports do not flush L2 between repetitions: hot."
        )
    frame = runs.ask(run, query.beside_ours, published, sources[slug], cache)
    st.caption(plain(figures.CITATIONS.get(report, "")))
    look = runs.look_of(run, widgets.theme())
    if frame["published"].notna().any():
        widgets.show_chart(widgets.drawn(chart.beside_ours, frame, sources[slug], report, look))
    frame = frame.assign(
        our_variant=[look.variant_name(report, name) for name in frame["our_variant"]],
        point=[" ".join(filter(None, pair)) for pair in zip(frame["case"], frame["config"], strict=True)],
        spread=[
            format_half_width(*figures) if n else "" for *figures, n in frame[["ours", "ours_low", "ours_high", "n"]].to_numpy()
        ],
    )
    filled_cells = frame.notna() & (frame != "") & ((frame["n"] > 0).any() | (frame.columns != "n"))
    shown = frame.loc[:, filled_cells.any()]
    widgets.table(shown, column_order=[name for name in _COLUMNS if name in shown], column_config=_COLUMNS, height="content")
    for note in dict.fromkeys(frame["note"]):
        if note:
            st.caption(plain(f"{', '.join(dict.fromkeys(frame.loc[frame['note'] == note, 'variant']))}: {note}"))


@st.cache_data(show_spinner=False)
def _figures(report: str) -> pd.DataFrame:
    return figures.read(report)
