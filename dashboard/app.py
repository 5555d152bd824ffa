"""The dashboard: `python -m dashboard app`, with `--data-dir FOLDER` for runs kept elsewhere."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Streamlit puts this file's folder on the path, not the project's.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import streamlit as st

from dashboard import runs, server, state
from dashboard.text import plain
from data import store
from data.naming import Naming, NamingError

_HERE = Path(__file__).resolve().parent
_PAGES = {
    "Compare": [("overview", "Overview"), ("sizes", "Sizes"), ("published", "Published"), ("picker", "Pick variants")],
    "Explain": [
        ("ladder", "Ladder"),
        ("roofline", "Roofline"),
        ("details", "Details"),
        ("timeline", "Timeline"),
        ("calls", "API & kernels"),
        ("transfers", "Transfers"),
        ("gpus", "GPUs"),
        ("counters", "Counters"),
    ],
    "Trust": [("trust", "Runs & checks")],
}


def main() -> None:
    """Draw the frame that all pages share, then the page."""
    st.set_page_config("Warpladder", str(_HERE / "static" / "icon.png"), layout="wide", initial_sidebar_state=220)
    st.logo(str(_HERE / "static" / "logo.svg"))
    page = st.navigation(
        {
            group: [
                st.Page(_HERE / "app_pages" / f"{name}.py", title=title, url_path=name, default=name == "overview")
                for name, title in pages
            ]
            for group, pages in _PAGES.items()
        },
        expanded=True,  # else the last pages hide behind a button
    )
    state.begin()
    with st.sidebar:
        _choose_run()
    page.run()


def _choose_run() -> None:
    """The run of all pages, and one quiet line on those that cannot be opened."""
    try:
        found = runs.listing(runs.data_dirs())
    except (argparse.ArgumentError, store.StoreError) as error:
        st.error(plain(f"{error}; start the dashboard with: python -m dashboard app --data-dir FOLDER"))
        st.stop()
    if found.runs:
        name = state.choose("run", "Run", list(found.runs), text=lambda run_id: _title(run_id, found.runs), fitted=False)
        runs.choose(found.runs[name], _picked(name))
        _facts(found.runs[name].info)
    else:
        runs.choose(None)
    if found.bad:
        names = ", ".join(run.path.name for run in found.bad)
        st.caption(plain(f"Cannot be opened: {names}. Runs & checks says why."))


def _picked(name: str) -> Naming | None:
    """Which ranges of the run the URL, or this session, takes as variants."""
    if not (text := state.text_of(state.PICK, name)):
        return None
    try:
        return Naming.parse(text)
    except NamingError as error:
        state.note(f"The link picks variants by a pattern that cannot be used. {error}")
        return None


def _title(run_id: str, every: Mapping[str, store.Run]) -> str:
    """A run's label, with its time where another run has the same label."""
    run = every[run_id]
    label = run.info["label"] or run_id
    shared = sum((other.info["label"] or name) == label for name, other in every.items()) > 1
    return f"{label} · {run.info['started_at']:%Y-%m-%d %H:%M}" if shared else str(label)


def _facts(info: Mapping[str, Any]) -> None:
    commit = str(info["git_commit"])[:8]
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
