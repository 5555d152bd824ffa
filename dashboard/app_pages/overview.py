"""Overview: which variant wins, by how much, and how far it is from what the device can do."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import runs, state, widgets
from dashboard.charts import overview as charts
from dashboard.charts.template import format_duration, format_percent, format_ratio
from dashboard.queries import overview as queries
from dashboard.text import plain
from data import store

_COLUMNS = (
    ("Workload", 2.2),
    ("Best variant", 3.1),
    ("Time", 1.6),
    ("Speedup", 1.7),
    ("Of the floor", 1.7),
    ("Over best peer", 1.9),
)


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading("Overview", "Which variant wins, by how much, and how far is it from what this device can do?")
    shown = [run, *_beside(run)]
    frames = []
    for each in shown:
        try:
            frames.append(runs.ask(each, queries.overview, runs.PROJECT))
        except store.StoreError as error:
            frames.append(pd.DataFrame())
            st.caption(plain(str(error)))
    for each, frame in zip(shown, frames, strict=True):
        _run_block(each, frame)
    columns = st.columns(len(shown), gap="medium")
    for column, each, frame in zip(columns, shown, frames, strict=True):
        if not frame.empty:
            with column:
                widgets.show_chart(charts.percent_of_floor(frame, runs.look_of(each, widgets.theme())), key=each.run_id)
    widgets.end_page()


def _beside(run: store.Run) -> list[store.Run]:
    """The run to show below: the newest shipped one beside one of this machine, and the other way round."""
    others = [
        other for other in runs.listing(runs.data_dirs()).runs.values() if runs.is_recorded(other) != runs.is_recorded(run)
    ]
    return others[:1]


def _run_block(run: store.Run, frame: pd.DataFrame) -> None:
    """One run: its name, then a row a workload."""
    where = "shipped run" if runs.is_recorded(run) else "this machine"
    st.markdown(f"#### {plain(run.info['device_name'] or run.info['cpu_name'])}")
    st.caption(
        plain(f"{where} · {run.info['label'] or run.run_id} · {run.info['started_at']:%Y-%m-%d} · {run.info['collector']}")
    )
    if frame.empty:
        st.info("Nothing was timed in this run. The page Runs & checks says why, cell by cell.")
        return
    with st.container(gap=None):
        for column, (name, _) in zip(st.columns([width for _, width in _COLUMNS]), _COLUMNS, strict=True):
            column.caption(name)
        for row in frame.to_dict("records"):
            _workload_row(row)


def _workload_row(row: Mapping[str, Any]) -> None:
    cells = st.columns([width for _, width in _COLUMNS], vertical_alignment="top")
    with cells[0]:
        st.page_link("app_pages/ladder.py", label=plain(row["workload"]), query_params=state.link(workload=row["workload"]))
        st.caption(plain(f"{row['case']}, {row['cases']} cases" if row["cases"] > 1 else row["case"]))
    with cells[1]:
        st.markdown(f"**{plain(row['best_title'])}**")
        st.caption(plain(f"{row['best']} {row['best_config']}".strip()))
        with st.container(horizontal=True, gap="small"):
            for text in row["badges"]:
                st.badge(plain(text), color="orange")
    _figure(cells[2], format_duration(row["best_ns"]), _interval(row, "best_ns", format_duration), f"n ≥ {row['n']}")
    _figure(cells[3], format_ratio(row["speedup"]), _interval(row, "speedup", format_ratio), f"over {row['baseline']}")
    _figure(
        cells[4],
        format_percent(row["percent_of_floor"]),
        _interval(row, "percent_of_floor", format_percent),
        str(row["floor_bound"]),
    )
    peer = f"over {row['peer_title']}" if pd.notna(row["peer"]) else "no peer in this run"
    _figure(cells[5], format_ratio(row["over_peer"]), _interval(row, "over_peer", format_ratio), peer)


def _figure(column: Any, value: str, interval: str, about: str) -> None:
    with column:
        st.markdown(f"**{plain(value)}**")
        st.caption("  \n".join(plain(line) for line in (interval, about) if line))


def _interval(row: Mapping[str, Any], name: str, text: Any) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{text(low)} to {text(high)}" if pd.notna(low) else ""


page()
