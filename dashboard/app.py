"""The dashboard: `warpladder app`, with `--data-dir FOLDER` for runs kept elsewhere."""

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from warpladder.dashboard import server
from warpladder.dashboard.ui import pinned, runs, state
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import page_of
from warpladder.dashboard.views import GROUPS, VIEWS
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError

_HERE = Path(__file__).resolve().parent
_SHOWN = "run shown last"
_MOST_BAD = 5  # names of bad runs in the sidebar


def main() -> None:
    """Draw the menu and the sidebar, then the page."""
    st.set_page_config("Warpladder", str(_HERE / "static" / "icon.png"), layout="wide", initial_sidebar_state=220)
    st.logo(str(_HERE / "static" / "logo.svg"))
    page = st.navigation(
        {
            group: [
                st.Page(_HERE / page_of(view.name), title=view.title, url_path=view.name, default=view is VIEWS[0])
                for view in views
            ]
            for group, views in GROUPS.items()
        },
        expanded=True,  # else the last pages hide behind a button
    )
    state.begin()
    with st.sidebar:
        _choose_run()
        pinned.sidebar()
    try:
        page.run()
    except store.StoreError as error:  # the run was changed while it was shown
        st.error(plain(str(error)))
        st.caption("Choose another run in the sidebar; nothing of this one was changed.")


def _choose_run() -> None:
    """Choose the run of all pages, and list the runs that cannot be opened."""
    try:
        folders = runs.data_dirs()
    except (argparse.ArgumentError, store.StoreError) as error:
        st.error(plain(f"{error}; start the dashboard with: warpladder app --data-dir FOLDER"))
        st.stop()
    found = runs.listing(folders)
    asked = {st.query_params.get("run"), st.session_state.get(_SHOWN)}
    default = None
    if not asked & (found.runs.keys() | found.refused.keys()):
        with st.spinner("Checking the run …"):
            default = next((name for name, run in found.runs.items() if runs.opens(run)), None)
        found = runs.listing(folders)  # without those that turned out to be bad
    # A bad run stays among the options while it is shown.
    options = {**found.runs, **{name: run for name, run in found.refused.items() if name in asked}}
    if options:
        titles = _titles(options)
        name = state.choose("run", "Run", list(options), default=default, text=titles.__getitem__, fitted=False)
        st.session_state[_SHOWN] = name
        runs.choose(options[name], _picked(name))
        _facts(options[name].info)
        with st.spinner("Checking the run …"):
            opens = runs.opens(options[name])
        if not opens:
            found = runs.listing(folders)
    else:
        runs.choose(None)
    if found.bad:
        names = [run.name for run in found.bad]
        more = f" and {len(names) - _MOST_BAD} more" if len(names) > _MOST_BAD else ""
        st.caption(plain(f"Cannot be opened: {', '.join(names[:_MOST_BAD])}{more}. Runs & checks says why."))


def _picked(name: str) -> Naming | None:
    """The naming by which the URL or this session picks variants of the run."""
    if not (text := state.text_of(state.PICK, name)):
        return None
    try:
        return Naming.parse(text)
    except NamingError as error:
        state.note(f"The link picks variants by a pattern that cannot be used. {error}")
        return None


def _titles(every: Mapping[str, store.Run]) -> dict[str, str]:
    """The label of each run, with its time where another run has the same label."""
    labels = {name: str(run.info["label"] or name) for name, run in every.items()}
    count = Counter(labels.values())
    times = {name: f"{run.info['started_at']:%Y-%m-%d %H:%M}" for name, run in every.items()}
    return {name: f"{label} · {times[name]}" if count[label] > 1 else label for name, label in labels.items()}


def _facts(info: Mapping[str, Any]) -> None:
    # The commit of an import belongs to the importer, and not to the profiled program.
    commit = str(info["git_commit"])[:8] if info["kind"] == "recording" else ""
    dirty = " with uncommitted changes" if info["git_dirty"] else ""
    lines = [
        str(info["device_name"] or info["cpu_name"]),
        f"{info['started_at']:%Y-%m-%d %H:%M} UTC",
        f"{info['collector']} {info['collector_version']}",
        f"commit {commit}{dirty}" if commit else "",
    ]
    st.caption("  \n".join(plain(line) for line in lines if line))


if __name__ == "__main__":
    # Streamlit runs this file for each session.
    main()
else:
    # `streamlit run dashboard/app.py` finds this by its name, and imports it.
    server.refuse_other_addresses()
    app = st.App(__file__, middleware=server.middleware(), routes=server.ROUTES)
