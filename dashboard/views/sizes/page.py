"""Sizes: which variant wins at which size."""

from typing import Final, cast

import streamlit as st

from warpladder.dashboard.compare import winners
from warpladder.dashboard.core import cells
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.sizes import chart, query
from warpladder.data import store

#: Of more variants, those that are first somewhere or tied with it, and the baseline, are drawn unless others are chosen.
_MOST_LINES: Final = 8
_METRICS: Final[dict[str, str]] = {
    "median_ns": "Time",
    "gb_per_s": "GB/s",
    "gflop_per_s": "GFLOP/s",
    "speedup": "Speedup",
    "percent_of_floor": "% of floor",
}


def draw(run: store.Run) -> None:
    with widgets.controls():
        workload = widgets.choose_workload(run)
        timing = widgets.choose_timing(run, workload)
        all_series = list(runs.ask(run, cells.series, workload))
        timed = runs.ask(run, query.timed_series, workload, timing) or all_series
        series = state.choose("series", "Series", all_series, default=timed[-1]) if len(all_series) > 1 else all_series[0]
        frame = runs.ask(run, query.sizes, workload, timing, series)
        if frame.empty:
            widgets.nothing(
                f"No variant of {workload} was timed in {widgets.timing(run, timing)}.", "Choose another scope or cache."
            )
        if has_course := frame["size_rank"].nunique() > 1:
            metrics = [name for name in _METRICS if frame[name].notna().any()]
            metric = state.choose("metric", "Metric", metrics, text=_METRICS.__getitem__)
    look = runs.look_of(run, widgets.theme())
    best = runs.ask(run, winners.best_per_size, workload, timing)
    undecided = runs.ask(run, winners.undecided, workload, timing)
    if len(best):
        widgets.show_chart(widgets.drawn(chart.best_strip, best, look, workload, widgets.timing(run, timing), undecided))
    elif len(undecided):
        last = undecided.iloc[-1]
        st.caption(plain(f"{last['case']}: {last['passed']}"))
    if not has_course:
        return
    chart_place = st.container()
    variants = list(dict.fromkeys(frame["variant"]))
    on_gpu = list(dict.fromkeys(frame.loc[frame["kind"] != "host", "variant"])) or variants
    first = {*best["variant"], *best.loc[best["tied"], "runner_up"], *frame["baseline"].dropna()}
    shown = state.choose_many(
        "variants",
        "Variants",
        variants,
        default=on_gpu if len(on_gpu) <= _MOST_LINES else [name for name in on_gpu if name in first] or on_gpu,
        text=lambda name: look.variant_name(workload, name),
        owner=f"{run.path} {workload}",
    )
    regions = runs.ask(run, query.regions, workload, series)
    with chart_place:
        widgets.show_chart(widgets.drawn(chart.over_size, frame, regions, look, cast("chart.Metric", metric), shown))
