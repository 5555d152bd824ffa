"""Collectives: time waited and transferred, and bandwidth, by group, kind and size."""

from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.ranks.collectives import chart, query
from warpladder.data import store

_GROUPS: Final = {"together": "of equal size together", "each": "each"}
_MS: Final = 1e6
_MICROSECONDS: Final = 1e3
_MEGABYTES: Final = 1e6
_UNITS: Final = {"ms": _MS, "us": _MICROSECONDS, "mb": _MEGABYTES}


_COLUMNS: Final = {
    "group": "Group",
    "collective": "Kind",
    "ranks": widgets.number("Ranks", "Ranks of the group, n.", "%d"),
    "bytes_mb": widgets.number("Size, MB", "Of the whole array; the median where sizes are joined by powers of two."),
    "count": widgets.number("Collectives", "Collectives of the job that were matched over their ranks.", "%d"),
    "kernels": widgets.number("Kernels", "Executions on all ranks.", "%d"),
    "wait_ms": widgets.number("Waited, ms", "Sum over ranks."),
    "transfer_ms": widgets.number("Transferred, ms", "Sum over ranks."),
    "wait_median_us": widgets.number("Wait, µs", "Median over executions."),
    "transfer_median_us": widgets.number("Transfer, µs", "Median over executions."),
    "algorithm_gb_per_s": widgets.number("Algorithm, GB/s", "Size over the time of the transfer, the median."),
    "bus_gb_per_s": widgets.number("Bus, GB/s", "Algorithm bandwidth times the factor of NCCL's tests for the kind and n."),
    "percent_of_best": widgets.number("Of best, %", "Bus bandwidth over the best median of the same group and kind.", "%.3g"),
    "least_transfer_us": widgets.number("Fastest rank, µs", "The least median transfer of a rank."),
    "most_transfer_us": widgets.number("Slowest rank, µs", "The largest median transfer of a rank."),
    "least_wait_rank": widgets.number("Waited for", "The rank with the least sum of waits: the others wait for it.", "%d"),
    "least_wait_ms": widgets.number("Its wait, ms", "Sum of the waits of that rank."),
    "most_wait_ms": widgets.number("Longest wait, ms", "The largest sum of waits of a rank."),
    "kernel_ms": widgets.number("In kernels, ms", "Time of the kernels, which holds the wait; sum over ranks."),
}


def draw(run: store.Run) -> None:
    if not runs.load(run).job:
        widgets.no_job(run)
    together = False
    if runs.ask(run, query.many_groups):
        with widgets.controls():
            together = (
                state.choose("groups", "Groups", list(_GROUPS), text=_GROUPS.__getitem__, style="segmented") == "together"
            )
    frame = runs.ask(run, query.collectives, together=together)
    if frame.empty:
        widgets.nothing("No rank of this job has a communication kernel.", "Choose another run above.")
    look = runs.look_of(run, widgets.theme())
    widgets.show_chart(widgets.drawn(chart.times, query.by_kind(frame), look))
    why_not = _why_not(frame, runs.ask(run, query.reasons))
    if frame.loc[frame["bus_gb_per_s"].notna(), "bytes"].nunique() > 1:
        widgets.show_chart(widgets.drawn(chart.bandwidth, frame, look))
    for line in why_not:
        st.caption(plain(line))
    shown = _in_units(frame)
    columns = [name for name in _COLUMNS if shown[name].notna().any()]
    widgets.table(shown, column_order=columns, column_config=_COLUMNS, height=widgets.height(shown, 14, 530))


def _why_not(frame: pd.DataFrame, reasons: tuple[str, ...]) -> list[str]:
    """Why columns are empty, and what the import found wrong with the collectives."""
    lines = [f"{line[:1].upper()}{line[1:]}." if line[-1:] != "." else line for line in reasons]
    if frame["wait_median_ns"].isna().all():
        lines.append("No collective was matched over its ranks, so waits and transfers are not known, nor a bandwidth.")
    elif frame["bytes"].isna().all():
        lines.append("The trace has no elements of its collectives, so sizes and bandwidths are not known.")
    elif (frame["bus_gb_per_s"].isna() & frame["transfer_median_ns"].notna() & frame["bytes"].notna()).any():
        lines.append(
            "A bandwidth is left out where the median transfer is not longer than the uncertainty of the ranks' clocks, and for kinds "
            "without a definition."
        )
    return lines


def _in_units(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its times and sizes in the units of `_COLUMNS`."""
    for name in _COLUMNS:
        stem, _, unit = name.rpartition("_")
        if unit in _UNITS:
            source = "bytes" if unit == "mb" else f"{stem}_ns"
            frame = frame.assign(**{name: frame[source] / _UNITS[unit]})
    return frame
