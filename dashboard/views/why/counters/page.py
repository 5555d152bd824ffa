"""Counters: what limits each variant, from hardware counters."""

from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import counted, counters, run_index
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.why.counters import chart, query
from warpladder.data import store

_TOPICS: Final = {
    "roofs": "Speed of light",
    "occupancy": "Achieved occupancy",
    "memory": "Memory",
    "stalls": "Warp stalls",
    "rules": "Rules",
    "metrics": "All metrics",
}
_CONFIG_PX: Final = 130
_MEMORY: Final = {
    "variant": "Variant",
    "config": st.column_config.TextColumn("Config", width=_CONFIG_PX),
    "dram_read_mb": widgets.number("DRAM read, MB", style="%.1f"),
    "dram_write_mb": widgets.number("written, MB", style="%.1f"),
    "l1_hit_percent": widgets.number("L1 hits, %", style="%.1f"),
    "l2_hit_percent": widgets.number("L2 hits, %", style="%.1f"),
    "load_sectors_per_request": widgets.number(
        "Sectors a load",
        "Sectors of 32 bytes for one load of a warp. Ideal: 4 for 4 bytes a thread, 16 for 16 bytes. Worst: 32, one a thread.",
        "%.2f",
    ),
    "store_sectors_per_request": widgets.number("Sectors a store", style="%.2f"),
    "load_conflicts": widgets.number(
        "Conflicts, loads", "Extra passes of loads from shared memory, caused by bank conflicts.", "compact"
    ),
    "store_conflicts": widgets.number("Conflicts, stores", style="compact"),
    "flop_per_byte": widgets.number("FLOP a DRAM byte", "Executed operations, not those of the case.", "%.2f"),
    "gflop_per_s": widgets.number("GFLOP/s", "Over the kernels' time under the profiler.", "%.0f"),
}
_READINGS: Final = {
    "variant": "Variant",
    "config": st.column_config.TextColumn("Config", width=_CONFIG_PX),
    "kernel": st.column_config.TextColumn("Kernel", width="small"),
    "launch_index": st.column_config.NumberColumn("Launch", width=60),
    "metric": st.column_config.TextColumn("Metric", width="medium"),
    "value": widgets.number("Value", style="%.6g"),
    "unit": "Unit",
    "meaning": "Meaning",
}


_FINDINGS: Final = {
    "variant": None,
    "config": None,
    "launch_index": st.column_config.NumberColumn("Launch", width="small"),
    "section": "Section",
    "severity": "Severity",
    "title": "Title",
    "text": st.column_config.TextColumn("Finding", width="large"),
    "speedup_percent": widgets.number("Speedup, %", "As Nsight Compute estimates it.", "%.1f"),
}


def draw(run: store.Run) -> None:
    known = runs.ask(run, counters.counted_workloads)
    if not known:
        _no_counters(run)
    with widgets.controls():
        workload = widgets.choose_workload(run, among=known)
        case = widgets.choose_case(run, workload, among=runs.ask(run, counters.counted_cases, workload))
        topic = state.choose("counters", "Show", _TOPICS, style="segmented")
    timed, source = _times(run, workload, case)
    every = counted.best(runs.load(run), workload, case, timed)
    frame = query.most_time(every)
    look, how = runs.look_of(run, widgets.theme()), query.how_counted(runs.load(run), len(frame), len(every))
    how += query.where_timed(frame, source)
    drawn = {"roofs": chart.speed_of_light, "occupancy": chart.occupancy, "memory": chart.traffic}
    if topic in drawn:
        widgets.show_chart(widgets.drawn(drawn[topic], frame, look, workload, case, how))
    if topic == "memory":
        megabytes = {f"dram_{way}_mb": frame[f"dram_{way}_bytes"] / 1e6 for way in ("read", "write")}
        frame = frame.assign(**megabytes)
        columns = [name for name in _MEMORY if name in ("variant", "config") or frame[name].notna().any()]
        widgets.table(frame[columns], column_config=_MEMORY, height="content")
    elif topic == "rules":
        _rules(run, workload, case, frame)
    elif topic == "stalls":
        stalls = query.stalls(frame)
        if stalls.empty:
            widgets.nothing("The states of warps were not counted.", "Profile with ncu --set full, or record with --counters.")
        widgets.show_chart(widgets.drawn(chart.stall_reasons, stalls, look, workload, case, how))
    elif topic == "metrics":
        _all_metrics(run, workload, case)


def _times(run: store.Run, workload: str, case: str) -> tuple[pd.DataFrame, str]:
    """Times by samples of the case, of this run or else of the first suitable run of its device, and the label of that run."""
    timed = runs.ask(run, counted.times, workload, case)
    if len(timed):
        return timed, ""
    context = runs.context()
    for each in run_index.suitable(context.every, str(run.info["device_name"]), workload):
        if runs.opens(each.run) and len(frame := runs.ask(each.run, counted.times, workload, case)):
            return frame, f"the run “{each.title}”"
    return timed, ""


def _rules(run: store.Run, workload: str, case: str, frame: pd.DataFrame) -> None:
    """What the rules of Nsight Compute find."""
    data = runs.load(run)
    findings = query.findings(data, workload, case, frame)
    if findings.empty:
        widgets.nothing(
            "The run has no findings of rules.", "Record with --counters, or import a report with sections (ncu --set full)."
        )
    name = state.choose("rules_of", "Findings about", list(dict.fromkeys(findings["variant"])))
    shown = findings[findings["variant"] == name]
    widgets.table(shown, column_config=_FINDINGS, height=widgets.height(shown, 10, 380))
    st.caption("Words and estimates are those of Nsight Compute.")


def _all_metrics(run: store.Run, workload: str, case: str) -> None:
    frame = runs.ask(run, query.every_metric, workload, case)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = state.choose("counters_of", "Variant", ["all", *dict.fromkeys(frame["variant"])])
        shown = frame if name == "all" else frame[frame["variant"] == name]
        widgets.save_csv("CSV", shown, "counters.csv", "download counters")
    widgets.table(shown, height=380, column_order=list(_READINGS), column_config=_READINGS)
    st.caption(plain(f"{len(shown)} readings under Nsight Compute's own names and units; {query.how_counted(runs.load(run))}"))


def _no_counters(run: store.Run) -> None:
    """Say why the run has no counters, and lead to runs that have some or to the command that records them."""
    for reason in runs.ask(run, query.denied):
        st.warning(plain(reason))
    st.info("This run has no hardware counters.")
    if not widgets.offer_runs():
        st.markdown("On a machine with Nsight Compute, record them, then choose that run above:")
        workload = next(iter(runs.load(run).workloads), "WORKLOAD")
        st.code(runs.how_to_record(run, workload, "--counters"), language="bash")
        st.caption("Or import a report: warpladder import report.ncu-rep")
    pages.end()
