"""The bar at the top of every page: the run, the workload and the case; and the table in which a run is chosen."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.run_index import ListedRun, Need, label_of
from warpladder.dashboard.ui import pages, rows, runs, state, widgets
from warpladder.dashboard.ui.rows import Column
from warpladder.dashboard.ui.text import cut, plain, short
from warpladder.data import store
from warpladder.data.words import first_of

_CHOSEN_LAST: Final = "run chosen last"
_TABLE: Final = "table of runs"
_MOST_CHARACTERS: Final = 40
_MOST_BAD: Final = 5  # names of bad runs below a page
_MOST_EXPLAINED: Final = 20
_MOST_ROWS: Final = 14
#: The query parameter of the ranks of a job: numbers with commas between them.
_RANKS: Final = "ranks"
_RANKS_SHOWN: Final = "ranks shown"
_MOST_RANKS: Final = 8
_FIRST_RANKS: Final = 3


def draw(need: Need) -> None:
    """Find the run of the page, and show it with a button that opens the table of runs.

    Args:
        need: what the page needs of a run; a run that the URL does not name is chosen accordingly.
    """
    try:
        folders = runs.data_dirs()
    except (argparse.ArgumentError, store.StoreError) as error:
        st.error(plain(f"{error}; start the dashboard with: warpladder app --data-dir FOLDER"))
        st.stop()
    with st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small"):
        name = _find(runs.listing(folders), need)
        if name is None:
            runs.choose(None)
        else:
            listing = runs.listing(folders)  # made again where the check found the run too large, bad or gone
            _refuse_gone(listing, name)
            _draw_run(listing, name, need)
        st.session_state[widgets.BAR] = st.container(horizontal=True, vertical_alignment="center", gap="small", width="content")


def bad(*, in_full: bool) -> None:
    """Name the runs that cannot be opened; in full with the reason and remedy of each."""
    every = runs.listing(runs.data_dirs()).bad
    names = [run.name for run in every]
    if in_full:
        for each in every[:_MOST_EXPLAINED]:
            st.error(f"**{plain(each.name)}** cannot be opened. {plain(each.reason)}")
        if (left_out := len(every) - _MOST_EXPLAINED) > 0:
            st.error(f"{left_out} more runs cannot be opened. Move these elsewhere to see why.")
    elif names:
        st.caption(plain(f"Cannot be opened: {first_of(names, _MOST_BAD)}. The page Trust says why."))


def _draw_run(listing: runs.Listing, name: str, need: Need) -> None:
    run = listing.runs.get(name) or listing.refused[name]
    listed = listing.index.get(name)
    device = run_index.device_of(run)
    state.set_text(state.RUN, "", name)
    state.name_run(name)
    if st.button(f"{plain(cut(label_of(run), _MOST_CHARACTERS))} ▾", key="choose run", help="Choose another run."):
        st.dialog("Runs", width="large")(table)()
    ended = _ended(listing, name)
    kind = listed.kind if listed and not ended else ""
    facts = (device, f"{run.info['started_at']:%Y-%m-%d %H:%M} UTC", kind, *ended)
    st.caption(" · ".join(plain(fact) for fact in facts if fact), width="content", help=plain(_details(run)))
    if run.info["kind"] == "job" and need in run_index.OF_TRACES:
        run = _of_ranks(run, name)
    runs.choose(run, name)
    runs.set_context(runs.Context(device, need, listing.every))
    for reason in run.left_out.values():
        state.note(f"Left out: {reason}")


def _of_ranks(run: store.Run, name: str) -> store.Run:
    """The job with the traces of the ranks that are chosen: at first the late ones, the one that waits the least, and those that wait the most.

    Raises:
        StoreError: the tables of a rank cannot be read.
    """
    found = run.table("ranks", ["rank", "status", "late", "wait_ns"]).query("status == 'ok'")
    found = found.assign(least=found["wait_ns"] == found["wait_ns"].min())
    found = found.sort_values(["late", "least", "wait_ns", "rank"], ascending=[False, False, False, True], kind="stable")
    every = sorted(found["rank"].tolist())
    asked = state.text_of(_RANKS, name)
    numbers = [int(part) for part in asked.split(",") if part.isascii() and part.isdigit() and len(part) < 10]
    chosen = [number for number in dict.fromkeys(numbers) if number in every][:_MOST_RANKS]
    if asked and not chosen:
        state.note(f"ranks: {plain(asked[:40])} are no ranks of this job; the first ones are shown")
    chosen = chosen or sorted(found["rank"].head(_FIRST_RANKS))
    st.session_state[_RANKS_SHOWN] = chosen
    st.multiselect(
        "Ranks",
        every,
        key=_RANKS_SHOWN,
        on_change=lambda: state.set_text(_RANKS, name, ",".join(map(str, st.session_state[_RANKS_SHOWN]))),
        max_selections=_MOST_RANKS,
        help=f"At most {_MOST_RANKS}; times are on the clock of the job.",
    )
    return store.ranks_of(run, chosen)


def _ended(listing: runs.Listing, name: str) -> tuple[str, ...]:
    """How a recording ended; nothing of other runs, and of one that cannot be read."""
    run = listing.runs.get(name)
    if run is None or run.info["kind"] != "recording" or not runs.opens(run):
        return ()
    return (runs.load(run).ending,)


def _details(run: store.Run) -> str:
    """The collector, and the commit of a recording. The commit of an import belongs to the importer, and not to the profiled program."""
    commit = str(run.info["git_commit"] or "")[:8] if run.info["kind"] == "recording" else ""
    dirty = " with uncommitted changes" if commit and run.info["git_dirty"] else ""
    return f"{run.info['collector']} {run.info['collector_version']}{f'; commit {commit}{dirty}' if commit else ''}"


def _find(listing: runs.Listing, need: Need) -> str | None:
    """The name of the run to show; None without a run.

    Raises:
        Gone: the link names a run that is not here, or that cannot even be listed.
    """
    if name := state.text_of(state.RUN, "", written=False):
        _refuse_gone(listing, name)
        name = _of_chosen_workload(listing, name, need)
        st.session_state[_CHOSEN_LAST] = name
        _opens(listing, name)  # what a check finds too large is left out of the listing from then on
        return name
    for each in _in_order(listing.every, need):
        if _opens(listing, each.name):
            return each.name
    return next(iter(listing.refused), None)


def _refuse_gone(listing: runs.Listing, name: str) -> None:
    """Raise Gone where a run is not here, or cannot even be listed."""
    if name in listing.runs or name in listing.refused:
        return
    runs.choose(None)
    reasons = (f"which cannot be opened. {each.reason}" for each in listing.bad if each.name == name)
    why = next(reasons, "which is not here: it was deleted, or lies in another --data-dir.")
    raise state.Gone(f"The link asks for run {short(name)}, {why}")


def _of_chosen_workload(listing: runs.Listing, name: str, need: Need) -> str:
    """The run, or the first suitable one of a workload that was chosen by hand and that the run lacks."""
    listed, workload = listing.index.get(name), state.coming("workload")
    before = st.session_state.get(_CHOSEN_LAST, name)
    if listed is None or not workload or workload in listed.facts.workloads or state.is_linked("workload"):
        return name
    if before != name and not state.changed("workload"):
        state.forget("workload")  # the run was chosen after the workload
        return name
    others = run_index.suitable(listing.every, listed.facts.device, workload, need)
    others = others or run_index.suitable(listing.every, listed.facts.device, workload)
    return others[0].name if others else name


def _in_order(every: run_index.Runs, need: Need) -> Iterable[ListedRun]:
    """The runs to show where none is named, the first one first: the user's own, then those that ship."""
    workload = state.coming("workload")
    for device in run_index.devices(every):
        yield from run_index.suitable(every, device, workload, need)
    if need is Need.NOTHING:
        yield from run_index.newest_first(each for each in every if not each.shipped)
    for device in run_index.devices(every):
        if name := run_index.first_workload(every, device, need):
            yield from run_index.suitable(every, device, name, need)
        yield from (each for each in run_index.having(every, need, device) if each.facts.device == device)
    if need is not Need.NOTHING:
        yield from _in_order(every, Need.NOTHING if need is Need.TIMES else Need.TIMES)


def _opens(listing: runs.Listing, name: str) -> bool:
    with st.spinner("Checking the run …"):
        return runs.opens(listing.runs.get(name) or listing.refused[name])


def table() -> None:
    """All runs with a filter. A click on one opens it."""
    listing = runs.listing(runs.data_dirs())
    words = st.text_input("Filter", key="runs that contain", placeholder="a device, a label, trace").lower().split()
    notes = store.notes(runs.data_dirs())
    every = run_index.newest_first(listing.index.values())
    shown = [each for each in every if _has_all(words, each, notes)] if words else every
    opened = rows.show(
        _TABLE,
        pd.DataFrame([_row(each, notes) for each in shown], columns=list(_COLUMNS)),
        {name: each for name, each in _COLUMNS.items() if name != "note" or any(notes.values())},
        title="Runs",
        most=_MOST_ROWS,
    )
    st.caption(f"{len(shown):,} of {len(every):,} runs, the newest first. To name, note or delete one: warpladder runs --help")
    if opened is not None:
        pages.go(pages.HOME, **state.link(run=shown[opened].name))


def _has_all(words: Sequence[str], each: ListedRun, notes: Mapping[Path, str]) -> bool:
    text = f"{each.title} {each.kind} {notes.get(each.run.path, '')} {each.name}".lower()
    return all(word in text for word in words)


def _row(each: ListedRun, notes: Mapping[Path, str]) -> dict[str, Any]:
    return {
        "run": label_of(each.run),
        "kind": each.kind,
        "device": each.facts.device.removeprefix("NVIDIA "),
        "started": f"{each.facts.started_at:%Y-%m-%d %H:%M}",
        "workloads": ", ".join(each.facts.workloads),
        "has": ", ".join(each.facts.marks),
        "of": "shipped" if each.shipped else "mine",
        "note": notes.get(each.run.path, ""),
    }


_COLUMNS: Final = {
    "run": Column("Run", 200),
    "kind": Column("Kind", 80),
    "device": Column("Device", 110),
    "started": Column("Started (UTC)", 136, kind="figure"),
    "workloads": Column("Workloads", 130),
    "has": Column("Has besides times", 110),
    "of": Column("Of", 66),
    "note": Column("Note", 120),
}
