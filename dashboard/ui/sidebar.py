"""The sidebar: the device and the run of the page. The run is found by the workload and by what the page needs.

A run that a user chose, or that a link names, is fixed until it is unfixed or lacks the chosen workload.
"""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any, Final

import streamlit as st

from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.run_index import Listed, Need
from warpladder.dashboard.ui import runs, state
from warpladder.dashboard.ui.text import plain, short
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError

_LAST_FIXED: Final = "run fixed last"
_RUN_WIDGET: Final = "choose run"
_DEVICE_WIDGET: Final = "choose device"
_LIST_PX: Final = 640  # width of the list of runs
_MOST_BAD: Final = 5  # names of bad runs in the sidebar


def draw(need: Need, *, of_one_run: bool) -> None:
    """Choose the run of the page, and list the runs that cannot be opened.

    Args:
        need: what the page needs of the run.
        of_one_run: the page shows one run, which its URL names. Otherwise the URL names only a run that was chosen.
    """
    try:
        folders = runs.data_dirs()
    except (argparse.ArgumentError, store.StoreError) as error:
        st.error(plain(f"{error}; start the dashboard with: warpladder app --data-dir FOLDER"))
        st.stop()
    found = runs.listing(folders)
    name, found = _find(found, folders, need)
    if name is None:
        runs.choose(None)
    else:
        _draw_run(found, name, need, of_one_run=of_one_run)
        if not _opens(found, name):
            found = runs.listing(folders)
    _draw_bad(found)


def _draw_run(found: runs.Listing, name: str, need: Need, *, of_one_run: bool) -> None:
    run = found.runs.get(name) or found.refused[name]
    device = run_index.device_of(run)
    devices = run_index.devices(found.every)
    if len(devices) > 1 or device not in devices:
        st.session_state[_DEVICE_WIDGET] = device
        options = list(dict.fromkeys([*devices, device]))
        st.selectbox("Device", options, key=_DEVICE_WIDGET, on_change=_choose_device, filter_mode="contains")
    # A bad run stays among the options while it is shown.
    titles = run_index.titles(found.every)
    if name not in found.runs:
        titles = {**titles, name: str(run.info["label"] or name)}
    st.session_state[_RUN_WIDGET] = name
    st.caption("Run")
    with st.popover(plain(titles[name].split(" · ")[0]), width="stretch", help=plain(titles[name])):
        st.selectbox(
            "Run",
            list(titles),
            format_func=titles.__getitem__,
            key=_RUN_WIDGET,
            on_change=_choose_run,
            filter_mode="contains",
            width=_LIST_PX,
            help="Type a part of a label, date, device or workload.",
        )
    fixed = state.text_of(state.RUN, "", written=False) == name
    state.name_run(name, written=fixed or of_one_run)
    runs.choose(run, _picked(name), name, fixed=fixed)
    runs.set_context(runs.Context(device, need, found.every))
    _facts(run.info, found.index.get(name))
    for reason in run.left_out.values():
        st.caption(plain(f"Left out: {reason}"))
    _draw_newest(found, name, device, need)


def _draw_newest(found: runs.Listing, name: str, device: str, need: Need) -> None:
    """Say that the run was found, or lead back from a run chosen by hand to the one that is found."""
    listed = found.index.get(name)
    own = tuple(listed.facts.workloads) if listed else ()
    workload = state.coming("workload")
    workload = workload if workload in own else next(iter(own), "")
    newest = run_index.suitable(found.every, device, workload, need)
    if not newest:
        return
    if newest[0].name == name:
        st.caption(plain(f"Newest suitable run of {workload}"), help=plain(run_index.RULE))
    elif runs.is_fixed():
        st.button(
            plain(f"Newest run of {workload}"),
            type="tertiary",
            on_click=_unfix,
            args=(device,),
            help=plain(f"{run_index.RULE} It is {newest[0].title}."),
        )


def _draw_bad(found: runs.Listing) -> None:
    if found.bad:
        names = [run.name for run in found.bad]
        more = f" and {len(names) - _MOST_BAD} more" if len(names) > _MOST_BAD else ""
        st.caption(plain(f"Cannot be opened: {', '.join(names[:_MOST_BAD])}{more}. Runs & checks says why."))


def _opens(found: runs.Listing, name: str) -> bool:
    with st.spinner("Checking the run …"):
        return runs.opens(found.runs.get(name) or found.refused[name])


def _find(found: runs.Listing, folders: Any, need: Need) -> tuple[str | None, runs.Listing]:
    """The name of the run to show, None without a run; and the listing, from which runs that turned out to be bad are gone."""
    fixed = _fixed(found, need)
    if fixed:
        _opens(found, fixed)  # what a check finds too large is left out of the listing from then on
        return fixed, runs.listing(folders)
    every = found.every
    devices = run_index.devices(every)
    device = state.text_of(state.DEVICE, "")
    if device and device not in devices:
        state.note(f"The link asks for device {short(device)}, which no run is of.")
        state.set_text(state.DEVICE, "", "")
        device = state.text_of(state.DEVICE, "")
    if not device:
        workload = state.coming("workload")
        having = (name for name in devices if workload in run_index.workloads(every, name, need))
        device = next(having, next(iter(devices), ""))
    for each in _in_order(every, device, need):
        if _opens(found, each.name):
            now = runs.listing(folders)
            checked = now.index.get(each.name)
            if checked and each.facts.has(need) and not checked.facts.has(need):
                continue  # the table that the page needs is too large to be read
            return each.name, now if checked else found
    return None, runs.listing(folders)


def _in_order(every: run_index.Runs, device: str, need: Need) -> Iterable[Listed]:
    """The runs to show where none is fixed, the first one first."""
    workload = state.coming("workload")
    first = run_index.suitable(every, device, workload, need)
    yield from first
    if not first and (name := run_index.first_workload(every, device, need)):
        if workload in run_index.workloads(every, device, Need.NOTHING):
            state.note(f"No run of {workload} on {device} has {need}; showing one of {name}.")
        yield from run_index.suitable(every, device, name, need)
    yield from run_index.having([each for each in every if each.facts.device == device], need, device)
    if need is not Need.NOTHING:
        yield from _in_order(every, device, Need.NOTHING if need is Need.TIMES else Need.TIMES)
    yield from run_index.having(every, Need.NOTHING, device)


def _fixed(found: runs.Listing, need: Need) -> str:
    """The run that was chosen by hand or by a link; empty where it is gone, or lacks the workload that was chosen after it."""
    name = state.text_of(state.RUN, "", written=False)
    if not name:
        st.session_state[_LAST_FIXED] = ""
        return ""
    before = st.session_state.get(_LAST_FIXED, "")
    st.session_state[_LAST_FIXED] = name
    if name not in found.runs and name not in found.refused:
        state.note(f"The link asks for run {short(name)}, which is not here; showing the newest suitable one.")
        return _drop()
    listed, workload = found.index.get(name), state.coming("workload")
    if listed is None or not workload or workload in listed.facts.workloads:
        return name
    others = run_index.suitable(found.every, listed.facts.device, workload, need)
    if not others:
        return name
    if before != name and not state.changed("workload"):
        state.forget("workload")  # the run was chosen after the workload
        return name
    state.note(f"Run {listed.title} has no {workload}; showing the newest suitable run that has it.")
    state.set_text(state.DEVICE, "", listed.facts.device)
    return _drop()


def _drop() -> str:
    state.set_text(state.RUN, "", "")
    st.session_state[_LAST_FIXED] = ""
    return state.text_of(state.RUN, "", written=False)


def _choose_device() -> None:
    _unfix(st.session_state[_DEVICE_WIDGET])


def _unfix(device: str) -> None:
    """Show the newest suitable run of a device."""
    state.set_text(state.RUN, "", "")
    state.set_text(state.DEVICE, "", device)


def _choose_run() -> None:
    state.set_text(state.RUN, "", st.session_state[_RUN_WIDGET])
    state.set_text(state.DEVICE, "", "")


def _picked(name: str) -> Naming | None:
    """The naming by which the URL or this session picks variants of the run."""
    if not (text := state.text_of(state.PICK, name)):
        return None
    try:
        return Naming.parse(text)
    except NamingError as error:
        state.note(f"The link picks variants by a pattern that cannot be used. {error}")
        return None


def _facts(info: Mapping[str, Any], listed: Listed | None) -> None:
    # The commit of an import belongs to the importer, and not to the profiled program.
    commit = str(info["git_commit"])[:8] if info["kind"] == "recording" else ""
    dirty = " with uncommitted changes" if info["git_dirty"] else ""
    lines = [
        str(info["device_name"] or info["cpu_name"]),
        f"{info['started_at']:%Y-%m-%d %H:%M} UTC",
        f"{info['collector']} {info['collector_version']}",
        f"commit {commit}{dirty}" if commit else "",
        ", ".join(listed.facts.marks) if listed else "",
    ]
    st.caption("  \n".join(plain(line) for line in lines if line))
