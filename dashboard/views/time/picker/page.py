"""Pick variants: choose the NVTX ranges of a trace that the pages compare as variants."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.trace import picked
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.time.picker import query
from warpladder.data import store
from warpladder.data.naming import MOST_CHARACTERS, Naming, NamingError
from warpladder.data.words import counted

_PATTERN: Final = "pattern"
_SUGGESTION: Final = "suggestion"
_CHOSEN: Final = "chosen texts"
_EACH_TEXT: Final = "Each text is a variant"
_BEGINNINGS: Final = "Each is the beginning of a variant's texts"
_MOST_TEXTS: Final = 1_000
_TABLE_HEIGHT: Final = 250
#: A longer table is scrolled.
_MOST_ROWS: Final = 6
_TIME: Final = "%.4g"
_MOST_LEFT_OUT: Final = 3
_BY_TIME_HELP: Final = (
    "Share of the GPU time from work that a thread without a range launched while this range was open on another thread, "
    "as in PyTorch's backward pass."
)


def draw(run: store.Run) -> None:
    if "ranges" not in run.tables:
        widgets.no_trace(run, "no NVTX ranges to pick from", "--trace=cuda,nvtx")
    suggestions = runs.ask(runs.as_recorded(run), query.suggestions)
    _begin(run, suggestions)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if len(suggestions):
            labels = [_suggestion_text(row) for row in suggestions.to_dict("records")]
            st.selectbox(
                "Suggestion",
                suggestions.index,
                format_func=labels.__getitem__,
                key=_SUGGESTION,
                on_change=_suggest,
                args=(suggestions,),
            )
        typed = st.text_input("Pattern", key=_PATTERN, max_chars=MOST_CHARACTERS, help=_HELP)
        naming = _usable(run, typed)
        st.button(
            "Compare these",
            type="primary",
            disabled=not isinstance(naming, Naming) or naming == runs.picked(run),
            on_click=_compare,
            args=(naming,),
        )
    left, right = st.columns(2, gap="medium")
    with left:
        _texts(run)
    with right:
        _preview(run, naming)
    widgets.attribution(run)


def _begin(run: store.Run, suggestions: pd.DataFrame) -> None:
    """Start from the pattern in use, or else from the first suggestion."""
    owner = str(run.path)
    if st.session_state.get("pattern of") == owner and _PATTERN in st.session_state:
        # Set again, because Streamlit forgets a widget while another page is shown.
        st.session_state[_PATTERN] = st.session_state[_PATTERN]
        return
    now = runs.picked(run)
    st.session_state[_PATTERN] = now.expression if now else suggestions["expression"].iloc[0] if len(suggestions) else ""
    st.session_state["pattern of"] = owner


def _suggestion_text(row: Mapping[Hashable, Any]) -> str:
    cases = f" × {row['cases']} cases" if row["cases"] != 1 else ""
    return f"{row['variants']} variants{cases}, {row['percent']:.0f} % of the time: {row['names']}"


def _suggest(suggestions: pd.DataFrame) -> None:
    st.session_state[_PATTERN] = suggestions.loc[st.session_state[_SUGGESTION], "expression"]


def _compare(naming: Naming) -> None:
    state.set_text(state.RUN, "", runs.chosen_name())
    state.set_text(state.PICK, runs.chosen_name(), f"nvtx:{naming.expression}")


def _usable(run: store.Run, typed: str) -> Naming | NamingError | None:
    """The naming that the user typed, or the reason that the run cannot use it; None where nothing was typed."""
    if not typed.strip():
        return None
    try:
        naming = Naming.parse(f"nvtx:{query.written(typed)}")
        runs.load(runs.NamedRun(run, naming))
    except NamingError as error:
        return error
    return naming


def _texts(run: store.Run) -> None:
    """Show the distinct texts to choose from."""
    every = runs.ask(runs.as_recorded(run), picked.texts)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        part = st.text_input("Texts that contain", key="texts that contain")
        st.selectbox("Chosen rows", [_EACH_TEXT, _BEGINNINGS], key="how texts are chosen", on_change=_choose_texts)
    matching = every[every["text"].str.contains(part, case=False, regex=False)] if part else every
    shown = matching.head(_MOST_TEXTS).reset_index(drop=True)
    st.session_state[f"{_CHOSEN} from"] = list(shown["text"])
    widgets.table(
        shown.assign(
            host_ns=shown["host_ns"] / 1e6,
            gpu_ns=shown["gpu_ns"] / 1e6,
            by_time=100 * shown["by_time_ns"] / shown["gpu_ns"].where(shown["gpu_ns"] > 0),
        ),
        column_order=["text", "n", "host_ns", "gpu_ns", *(["by_time"] if every["by_time_ns"].any() else [])],
        height=widgets.height(shown, _MOST_ROWS, _TABLE_HEIGHT),
        key=_CHOSEN,
        on_select=_choose_texts,
        selection_mode="multi-row",
        column_config={
            "text": st.column_config.TextColumn("Text", width="medium"),
            "n": st.column_config.NumberColumn("Ranges", format="localized"),
            "host_ns": st.column_config.NumberColumn("Host, ms", format=_TIME),
            "gpu_ns": st.column_config.NumberColumn("GPU, ms", format=_TIME),
            "by_time": st.column_config.NumberColumn("By time, %", format="%.0f", help=_BY_TIME_HELP),
        },
    )
    more = f", the first {_MOST_TEXTS:,} shown" if len(matching) > _MOST_TEXTS else ""
    st.caption(f"{len(matching):,} of {len(every):,} texts{more}. Choose rows (Shift+Space) to make a pattern of them.")


def _choose_texts() -> None:
    """Make a pattern of the chosen rows."""
    texts = st.session_state.get(f"{_CHOSEN} from", [])
    rows = [row for row in st.session_state[_CHOSEN]["selection"]["rows"] if row < len(texts)]
    if rows:
        beginnings = st.session_state["how texts are chosen"] == _BEGINNINGS
        st.session_state[_PATTERN] = query.of_texts([texts[row] for row in rows], beginnings=beginnings)


def _preview(run: store.Run, naming: Naming | NamingError | None) -> None:
    """Show the variants and cases that the pattern finds."""
    if naming is None:
        st.info("Write a pattern, or choose texts from the table.")
        return
    if isinstance(naming, NamingError):
        st.error(plain(str(naming).removeprefix("--variant-from ")))
        return
    frame = runs.ask(runs.NamedRun(run, naming), query.preview)
    variants = len(frame[["workload", "variant"]].drop_duplicates())
    cases = len(frame[["workload", "case"]].drop_duplicates())
    compared = "compared on all pages" if naming == runs.picked(run) else "not compared yet"
    found = (counted(variants, "variant"), counted(cases, "case"), counted(int(frame["n"].sum()), "sample"))
    st.markdown("**{}** × **{}**, **{}** · {}".format(*found, compared))
    widgets.table(
        frame.assign(device_ns=frame["device_ns"] / 1e3, operation_ns=frame["operation_ns"] / 1e3),
        height=widgets.height(frame, _MOST_ROWS, _TABLE_HEIGHT + 24),
        column_order=[
            name for name in ("workload", "case", "variant", "config") if frame[name].nunique() > 1 or name == "variant"
        ]
        + ["n", "device_ns", "operation_ns"],
        column_config={
            "device_ns": st.column_config.NumberColumn("Median GPU, µs", format=_TIME),
            "operation_ns": st.column_config.NumberColumn("Median host, µs", format=_TIME),
        },
    )
    left_out = runs.ask(runs.NamedRun(run, naming), query.not_ranked)
    for row in left_out.head(_MOST_LEFT_OUT).to_dict("records"):
        st.warning(plain(f"{row['variant']}, {row['case']}: {row['detail']}"))
    st.caption("The same by the command line:")
    st.code(query.command(naming, str(run.info["source"])), language="bash", wrap_lines=True)


_HELP: Final = (
    "A regular expression whose groups name the parts of a text: `(?P<variant>…)`, and optionally `(?P<case>…)`, "
    "`(?P<config>…)` and "
    "`(?P<workload>…)`. Or a text with placeholders: `tile {variant} n={case}`."
)
