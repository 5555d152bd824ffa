"""Overview: which variant wins, by how much, and how far it is from what the device can do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from warpladder import ROOT
from warpladder.dashboard.core.axes import scaled_workloads
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import named, word
from warpladder.dashboard.ui import pinned, runs, state, widgets
from warpladder.dashboard.ui.numbers import (
    ITSELF,
    format_duration,
    format_ends,
    format_error,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import page_of
from warpladder.dashboard.views.overview import VIEW
from warpladder.dashboard.views.overview import chart as charts
from warpladder.dashboard.views.overview import query as queries
from warpladder.data import store

_COLUMNS = (
    ("Workload", 2.0),
    ("Best variant", 2.9),
    ("Time", 1.5),
    ("Speedup", 2.2),
    ("Of the floor", 1.6),
    ("Over best peer", 2.0),
)


def page() -> None:
    """Draw the page."""
    run = widgets.run_of_page()
    widgets.heading(VIEW)
    pinned.show_run(run)
    shown, frames = [], []
    for each, workloads in _to_show(run):
        frame = runs.ask(each, queries.overview, ROOT)
        shown.append(each)
        frames.append(frame if frame.empty or workloads is None else frame[frame["workload"].isin(workloads)])
    for each, frame in zip(shown, frames, strict=True):
        _run_block(each, frame)
    # One below the other: beside each other there is no room for the names.
    for each, frame in zip(shown, frames, strict=True):
        if _floors_known(frame):
            widgets.show_chart(charts.percent_of_floor(frame, runs.look_of(each, widgets.theme())), key=each.run_id)
    widgets.end_page()


def _to_show(run: store.Run) -> list[tuple[store.Run, Collection[str] | None]]:
    """The runs to show, with the workloads that are shown of each, or None for all.

    These are the run with what others of its device have timed besides; and the first run of the others, a shipped one beside
    one of this machine and the other way round, with the same of its device.
    """
    others = [other for other in runs.listing(runs.data_dirs()).runs.values() if other.path != run.path]
    alike = [other for other in others if runs.is_recorded(other) == runs.is_recorded(run)]
    unlike = [other for other in others if runs.is_recorded(other) != runs.is_recorded(run)]
    first = next(filter(runs.opens, unlike), None)
    return [*_of_device(run, alike), *(_of_device(first, unlike) if first else ())]


def _of_device(run: store.Run, others: Sequence[store.Run]) -> list[tuple[store.Run, Collection[str] | None]]:
    """A run, then those of the others on its device of which each has timed another workload; those of its collector first."""
    covered = _timed(run)
    found: list[tuple[store.Run, Collection[str] | None]] = [(run, None)]
    for other in sorted(others, key=lambda other: other.info["collector"] != run.info["collector"]):
        if _device(other) == _device(run) and (new := _timed(other) - covered) and runs.opens(other):
            found.append((other, new))
            covered = covered | new
    return found


def _device(run: store.Run) -> str:
    return str(run.info["device_name"] or run.info["cpu_name"])


def _timed(run: store.Run) -> frozenset[str]:
    """The workloads of a run that has samples."""
    try:
        return run.timed
    except store.StoreError:
        return frozenset()


def _run_block(run: store.Run, frame: pd.DataFrame) -> None:
    """One run: its name, then a row a workload and precision."""
    where = "shipped with the project" if runs.is_recorded(run) else "recorded or imported here"
    about = f"{run.info['label'] or run.run_id} · {run.info['started_at']:%Y-%m-%d} · {run.info['collector']} · {where}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"#### {plain(_device(run))}", width="content")
        st.caption(plain(about), width="content")
    if frame.empty:
        _without_variants(run)
        return
    with st.container(border=True, gap="xxsmall"):
        for column, (name, _) in zip(_columns(), _COLUMNS, strict=True):
            column.caption(name)
        for _, rows in frame.groupby("workload", sort=False):
            several = rows["precision"].nunique() > 1
            for place, row in enumerate(rows.to_dict("records")):
                _figures(row, several=several, first=place == 0)
            _links(run, rows)


def _without_variants(run: store.Run) -> None:
    """What there is to see of a run that compares nothing: a trace, or the reasons of its verdicts."""
    if {"kernels", "api_calls", "ranges"} & set(run.tables):
        pages = {"calls": "API & kernels →", "transfers": "Transfers →"}
        if "ranges" in run.tables:
            st.info("A trace of a program; none of its NVTX ranges names a variant yet. Pick those to compare:")
            pages = {"picker": "Pick variants →", **pages}
        else:
            st.info("A trace of a program without NVTX ranges, which could name variants to compare.")
    elif "counters" in run.tables:
        st.info("Hardware counters of single executions, which say what limits each variant; none was timed.")
        pages = {"counters": "Counters →"}
    else:
        st.info("Nothing was timed in this run; the checks say why, cell by cell.")
        pages = {"trust": "Checks →"}
    with st.container(horizontal=True, gap="small"):
        for page_name, label in pages.items():
            st.page_link(page_of(page_name), label=label, query_params=state.link(run=_name(run)))


def _columns() -> list[DeltaGenerator]:
    return st.columns([width for _, width in _COLUMNS], gap="small")


def _figures(row: Mapping[Any, Any], *, several: bool, first: bool) -> None:
    """The row of one workload and precision.

    Args:
        several: the workload has several precisions, so that each name says its own.
        first: the row is the first of its workload, which names it.
    """
    cases = f"{row['case']}, {row['cases']} cases" if row["cases"] > 1 else str(row["case"])
    error = f"error {format_error(row['error'])}" if pd.notna(row["error"]) else ""
    workload = (row["workload"], cases, f"{word(row['precision'])}, {error}" if error else word(row["precision"]))
    # The row stands under its precision; what is of another one says so.
    baseline, peer = (
        f"over {named(row[who], row[f'{who}_precision']) if row[f'{who}_precision'] != row['precision'] else row[who]}"
        if pd.notna(row[who]) else f"no {who} here"
        for who in ("baseline", "peer")
    )  # fmt: skip
    for column, (value, *about) in zip(
        _columns(),
        (
            workload if first else (f"… {word(row['precision'])}" if several else "…", cases, error),
            (row["best_title"], f"{named(row['best'], row['precision'] if several else '')} {row['best_config']}".strip()),
            (format_duration(row["best_ns"]), _interval(row, "best_ns", format_duration), f"n ≥ {row['n']}"),
            ("baseline", ITSELF, named(row["best"], row["precision"] if several else ""))
            if (row["best"], row["best_config"]) == (row["baseline"], row["baseline_config"])
            else (format_ratio(row["speedup"]), _interval(row, "speedup", format_ratio), baseline),
            (
                format_percent(row["percent_of_floor"]),
                _interval(row, "percent_of_floor", format_percent),
                _bound(row),
            ),
            (
                format_ratio(row["over_peer"]),
                _interval(row, "over_peer", format_ratio),
                peer,
            ),
        ),
        strict=True,
    ):
        small = "  \n".join(f":small[:gray[{plain(line)}]]" for line in about if line)
        column.markdown(f"**{plain(str(value))}**  \n{small}")


def _links(run: store.Run, rows: pd.DataFrame) -> None:
    """Where to read on about a workload, and what its figures are distrusted for."""
    badges = rows["badges"].iloc[0]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        link = state.link(run=_name(run), workload=str(rows["workload"].iloc[0]))
        st.page_link(page_of("ladder"), label="Ladder →", query_params=link)
        st.page_link(page_of("sizes"), label="Sizes →", query_params=link)
        if rows["precision"].nunique() > 1:
            st.page_link(page_of("ladder"), label="Error and time →", query_params={**link, "show": "error"})
        if link["workload"] in runs.ask(run, scaled_workloads):
            st.page_link(page_of("gpus"), label="GPUs →", query_params=link)
        if badges:
            st.page_link(page_of("trust"), label="Checks →", query_params=state.link(run=_name(run), topic="verdicts"))
        for text in badges:
            widgets.badge(text, "orange")


def _floors_known(frame: pd.DataFrame) -> bool:
    """The work of a foreign program is not known, and so no floor of it."""
    return not frame.empty and bool(frame["percent_of_floor"].notna().any())


def _bound(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["percent_of_floor"]):
        return "its work is not known"
    return "above the ceiling" if row["percent_of_floor"] > 100 else f"{row['floor_bound']} floor"


def _name(run: store.Run) -> str:
    """What the URL calls a run."""
    every = runs.listing(runs.data_dirs()).runs
    return next((name for name, other in every.items() if other.path == run.path), run.run_id)


def _interval(row: Mapping[Any, Any], name: str, text: Callable[[float], str]) -> str:
    estimate = Estimate.of(row, name)
    return format_ends(estimate, text) if pd.notna(estimate.low) else ""


page()
