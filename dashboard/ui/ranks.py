"""The choice of the ranks of a job whose traces a page shows."""

from typing import Final

import streamlit as st

from warpladder.dashboard.ui import state
from warpladder.dashboard.ui.text import plain
from warpladder.data import store

#: The query parameter: numbers with commas between them.
PARAMETER: Final = "ranks"
#: The most ranks at once, and those that are shown first.
MOST: Final = 8
_FIRST: Final = 3
_WIDGET: Final = "ranks shown"


def choose(run: store.Run, name: str) -> store.Run:
    """The job with the traces of the ranks that are chosen above: at first the late ones and those that wait the most.

    Raises:
        StoreError: the tables of a rank cannot be read.
    """
    found = run.table("ranks", ["rank", "status", "late", "wait_ns"])
    found = found[found["status"] == "ok"].sort_values(
        ["late", "wait_ns", "rank"], ascending=[False, False, True], kind="stable"
    )
    first = found["rank"].head(_FIRST).tolist()
    every = sorted(found["rank"].tolist())
    asked = state.text_of(PARAMETER, name)
    numbers = (
        [int(part) for part in asked.split(",") if part.isascii() and part.isdigit() and len(part) < 10] if asked else first
    )
    chosen = [number for number in dict.fromkeys(numbers) if number in set(every)][:MOST]
    if asked and not chosen:
        state.note(f"ranks: {plain(asked[:40])} are no ranks of this job; the first ones are shown")
    chosen = chosen or first
    st.session_state[_WIDGET] = chosen

    def keep() -> None:
        state.set_text(PARAMETER, name, ",".join(map(str, st.session_state[_WIDGET])))

    st.multiselect(
        "Ranks",
        every,
        key=_WIDGET,
        on_change=keep,
        max_selections=MOST,
        help=f"At most {MOST}; times are on the clock of the job.",
    )
    return store.ranks_of(run, chosen)
