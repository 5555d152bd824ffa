"""GPUs: the speedup of more GPUs, and the best number of GPUs for each case."""

from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.views.devices.gpus import chart, query
from warpladder.data import store
from warpladder.data.advice import RECORD_ON_SEVERAL_GPUS

_SHOWN: Final = {
    "best": "Best number",
    "speedup": "Speedup",
    "weak": "Weak scaling",
    "shares": "Copies & communication",
}


def draw(run: store.Run) -> None:
    workloads = runs.ask(run, cells.scaled_workloads)
    if not workloads:
        _of_one()
    with widgets.controls():
        workload = widgets.choose_workload(run, among=workloads)
        timing = _choose_timing(run, workload)
        shown = state.choose("show", "Show", _SHOWN)
        frame = runs.ask(run, query.scaling, workload, timing)
        if frame.empty:
            widgets.nothing(
                f"No case of {workload} was timed on several GPUs with a correct result.",
                "The page Trust says why, cell by cell.",
            )
        look = runs.look_of(run, widgets.theme())
        drawn = _chart(run, workload, timing, shown, frame, look)
    widgets.show_chart(drawn)


def _chart(run: store.Run, workload: str, timing: Timing, shown: str, frame: pd.DataFrame, look: Look) -> Chart:
    if shown == "best":
        variant = _choose_variant(frame, look)
        return chart.best_counts(runs.ask(run, query.crossover, workload, timing, variant), look)
    if shown == "shares":
        parts = runs.ask(run, query.shares, workload, timing)
        if parts.empty:
            widgets.nothing(
                f"No variant of {workload} has copies or communication as phases in {widgets.timing(run, timing)}.",
                "Choose another timing; copies that overlap their kernels have no time of their own.",
            )
        variant = _choose_variant(parts, look)
        return chart.shares(parts[parts["variant"] == variant], look)
    if shown == "weak":
        grown = runs.ask(run, query.weak, workload, timing)
        if grown.empty:
            widgets.nothing(
                f"No two cases of {workload} give each rank the same work on different numbers of ranks.",
                "Weak scaling needs such cases: for example batch=400 on 1 GPU and batch=800 on 2.",
            )
        each = [f"{number:.0f}" for number in sorted(set(grown["per_rank"]))]
        chosen = state.choose("per_rank", f"{grown['axis'].iloc[0]} a rank", each, default=f"{query.weak_to_show(grown):.0f}")
        return chart.weak(grown[grown["per_rank"] == float(chosen)], look)
    several = frame[frame["ranks"] > 1]
    case = widgets.choose_case(run, workload, among=list(dict.fromkeys(several["case"])))
    of_case = frame[(frame["case"] == case) & frame["variant"].isin(several.loc[several["case"] == case, "variant"])]
    return chart.strong(of_case, look)


def _choose_timing(run: store.Run, workload: str) -> Timing:
    timings = runs.ask(run, query.timings, workload)
    if not timings:
        widgets.nothing(
            f"Several GPUs have samples of the phases of {workload}, but none of the whole operation.", "Record again."
        )
    labels = {widgets.timing(run, timing): timing for timing in timings}
    return labels[state.choose("timing", "Timing", list(labels))]


def _choose_variant(frame: pd.DataFrame, look: Look) -> str:
    workload = str(frame["workload"].iloc[0])
    names = {name: look.variant_name(workload, name) for name in frame["variant"]}
    return state.choose("variant", "Variant", names, default=query.variant_to_show(frame))


def _of_one() -> None:
    """Lead to runs on several GPUs, or say how to record one. Ends the page."""
    st.info("Every sample of this run was taken by one process.")
    if widgets.offer_runs():
        st.caption("To measure on 1, 2 and 4 GPUs of this machine:")
    else:
        st.markdown("Measure on 1, 2 and 4 GPUs, then choose that run above:")
    st.code(RECORD_ON_SEVERAL_GPUS, language="bash")
    pages.end()
