"""Roofline: the distance of each variant from the roof of memory or arithmetic, and the roof that limits it."""

from typing import Final, NoReturn

import streamlit as st

from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_index import label_of
from warpladder.dashboard.ui import counted_run, pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.ladder.roofline import chart, query
from warpladder.data import store

_INTENSITIES: Final = {"paper": "On paper", "counters": "By counters"}
_HELP: Final = (
    "On paper: the operations of the case over its least bytes. By counters: operations executed over bytes of device memory "
    "read and written, as Nsight Compute counted them in a run on the same device."
)


def draw(run: store.Run) -> None:
    with widgets.controls():
        computing = (name for name in runs.load(run).workloads if runs.ask(run, query.computes, name))
        workload = widgets.choose_workload(run, default=next(computing, None))
        if not runs.ask(run, query.computes, workload):
            _without_operations(workload)
        timing = _choose_timing(run, workload)
        # A run on the same device with counters of a variant of this run and the same source.
        found, intensity = counted_run.find(run, workload), "paper"
        counted = found.run if found and found.facts.device == run_index.device_of(run) else None
        if counted:
            intensity = state.choose("intensity", "Intensity", _INTENSITIES, help=_HELP)
        other = counted if intensity == "counters" else None
        executed = runs.ask(other, query.executed, workload) if other else None
        frame = runs.ask(run, query.points, workload, timing, executed)
        roofs = runs.ask(run, query.roofs)
        if frame.empty or frame["roof_gflop_per_s"].isna().all():
            widgets.nothing(
                f"No variant of {workload} has both a time in {widgets.timing(run, timing)} and a measured ceiling.",
                "Choose another run or L2, or record this machine: warpladder record.",
            )
        look, counted_in = runs.look_of(run, widgets.theme()), f"run {label_of(other)}" if other else ""
        case = widgets.choose_case(run, workload, among=list(dict.fromkeys(frame["case"])))
    widgets.show_chart(chart.roofline(frame[frame["case"] == case], roofs, look, counted_in))


def _choose_timing(run: store.Run, workload: str) -> Timing:
    timings = runs.ask(run, query.timings, workload)
    if not timings:
        widgets.nothing(f"No variant of {workload} has a time of its own on the device in this run.", "Choose another run.")
    caches = [timing.cache for timing in timings]
    return timings[caches.index(widgets.choose_cache(caches, on_gpu=runs.load(run).on_gpu))]


def _without_operations(workload: str) -> NoReturn:
    """Lead to the percent of floor of a workload that only moves data. Ends the page."""
    link = state.link(workload=workload)
    with st.container():  # else all would stand in the line of the controls
        st.info(
            plain(
                f"The cases of {workload} count no operations, so its variants have no place under a roof of arithmetic. "
                "The % of floor shows how near each variant is to the memory's ceiling:"
            )
        )
        pages.link("sizes", "% of floor over sizes →", **link, metric="percent_of_floor")
        pages.link("ladder", "% of floor rung by rung →", **link)
        widgets.end_empty()
