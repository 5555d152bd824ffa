"""The choice of a second device and of its run, whose times a page shows beside those of the run of the page."""

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import side_by_side
from warpladder.dashboard.compare.side_by_side import Beside, SideBySide
from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_index import ListedRun, label_of
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.data import store

_NONE: Final = "none"
_HELP: Final = "Another device, whose times are shown beside those of the run above."


def others(run: store.Run, workload: str) -> dict[str, tuple[ListedRun, ...]]:
    """The other devices with their runs of a workload. Of a GPU's run, the other GPUs come first."""
    every, own = runs.context().every, run_index.device_of(run)
    found = {
        device: run_index.suitable(every, device, workload) for device in run_index.devices_of(every, workload) if device != own
    }
    on_gpu = bool(run.info["device_name"])
    return dict(sorted(found.items(), key=lambda each: bool(each[1][0].run.info["device_name"]) != on_gpu))


def names(run: store.Run, listed: Mapping[str, Sequence[ListedRun]]) -> dict[str, str]:
    """What other devices are called. Beside a run of a host they are their processors, whose variants alone both runs can have.

    Args:
        listed: of `others`.
    """
    if run.info["device_name"]:
        return {device: device for device in listed}
    processors = {device: str(of_device[0].run.info["cpu_name"]) for device, of_device in listed.items()}
    return {device: name if name == device else f"{name}, beside {device}" for device, name in processors.items()}


def choose_run(listed: Sequence[ListedRun], label: str, workload: str) -> ListedRun:
    """One of the runs of a device that have a workload; at first the newest suitable one."""
    by_name = {each.name: each for each in listed}
    if len(by_name) == 1:
        return listed[0]
    titles = {name: dated(each.run) for name, each in by_name.items()}
    return by_name[state.choose("with", label, titles, owner=f"{workload} {listed[0].facts.device}", always=True)]


def dated(run: store.Run, how: str = "%Y-%m-%d") -> str:
    """The label of a run with its date, which a label that is made has already."""
    return f"{label_of(run)} · {run.info['started_at']:{how}}" if run.info["label"] else label_of(run)


def choose_beside(run: store.Run, workload: str) -> ListedRun | None:
    """The run of a second device; None where none is chosen or there is none, or where it cannot be read."""
    listed = others(run, workload)
    if not listed:
        return None
    own = run_index.device_of(run)
    long = names(run, listed)
    short = {device: side_by_side.short_names(own, name)[1] for device, name in long.items()}
    shown = {_NONE: "–", **(short if len(set(short.values())) == len(short) else long)}
    device = state.choose("beside", "Beside", shown, help=_HELP)
    if device == _NONE:
        return None
    other = choose_run(listed[device], f"Run of {shown[device]}", workload)
    try:
        runs.load(runs.as_recorded(other.run))
    except store.StoreError as error:
        state.note(f"The run of {device} cannot be read: {error}")
        return None
    return other


def beside(run: store.Run, other: ListedRun, frame: pd.DataFrame) -> Beside:
    """The rows of a second device, for a chart of a run."""
    devices = run_index.device_of(run), other.facts.device
    return Beside(frame, side_by_side.short_names(*devices), devices, dated(other.run))


def compared(run: store.Run, other: ListedRun, workload: str, timing: Timing) -> SideBySide:
    """The common part of the run and that of the second device in a timing."""
    return runs.ask_both(run, runs.as_recorded(other.run), side_by_side.side_by_side, workload, timing)


def lacks(other: ListedRun, workload: str, timing: Timing, where: str) -> None:
    """Show that the run of a second device has no time of the shown variants, with the command that records it there.

    Args:
        where: the series of cases; may be empty.
    """
    timed, at = widgets.timing(other.run, timing), f" at {where}" if where else ""
    lacking = f"The run {dated(other.run)} has none of these variants{at} in {timed}."
    st.caption(plain(f"{lacking} Record it on {other.facts.device}: {runs.how_to_record(other.run, workload)}"))
