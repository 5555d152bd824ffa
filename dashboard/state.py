"""Choices that live in the URL, so that a link or a reload shows the same page.

Each choice is a widget and a query parameter of the same name. What a session chose on one page is kept for the others.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import streamlit as st

from dashboard.text import plain

Style = Literal["select", "segmented"]

_MEMORY: Final = "url choices"
_NOTES: Final = "url notes"
_TOUCHED: Final = "url keys of this page"
# A rerun that began before the browser heard of a change carries the old URL; that is no wish of the user's.
_ECHO_SECONDS: Final = 1.0


@dataclass(frozen=True)
class _Written:
    """What this session last put into the URL for a key, what stood there before, and when it changed."""

    values: tuple[str, ...]
    before: tuple[str, ...]
    at: float


def begin() -> None:
    """Forget the notes and keys of the page drawn before. Called once a rerun, before any choice."""
    st.session_state[_NOTES] = []
    st.session_state[_TOUCHED] = set()
    st.session_state.setdefault(_MEMORY, {})


def choose(
    key: str,
    label: str,
    options: Sequence[str],
    *,
    default: str | None = None,
    text: Callable[[str], str] = str,
    style: Style = "select",
    help: str | None = None,
    fitted: bool = True,
    labelled: bool = True,
) -> str:
    """One of the options, by a widget bound to the query parameter `key`.

    Args:
        options: what the URL may hold; not empty.
        default: what is taken where the URL and the session hold none of them; the first option when None.
        text: what the widget shows for an option, as plain text.
        style: a drop-down list, or buttons side by side.
        fitted: the list is as wide as its longest option; else as wide as what it stands in.
        labelled: the label is shown; else only a screen reader says it.
    """
    fallback = (default if default is not None and default in options else options[0],)
    wanted = _wanted(key, label, options, fallback)
    widget = _widget_key(key)
    # Set even when it is equal: on a page switch Streamlit keeps the value under the key, and not for the new page's widget.
    st.session_state[widget] = wanted[0]
    shown: Literal["visible", "collapsed"] = "visible" if labelled else "collapsed"
    if style == "segmented":
        picked = st.segmented_control(
            label, options, format_func=_label(text), key=widget, required=True, help=help, label_visibility=shown
        )
    else:
        width: int | Literal["stretch"] = _select_width([text(option) for option in options]) if fitted else "stretch"
        picked = st.selectbox(
            label, options, format_func=text, key=widget, help=help, filter_mode="contains", width=width, label_visibility=shown
        )
    return _keep(key, (picked or fallback[0],))[0]


def choose_many(
    key: str, label: str, options: Sequence[str], *, default: Sequence[str], text: Callable[[str], str] = str
) -> list[str]:
    """Some of the options, in their order, by buttons bound to the repeated query parameter `key`; the default when none is left."""
    wanted = _wanted(key, label, options, tuple(default))
    widget = _widget_key(key)
    st.session_state[widget] = list(wanted)
    picked = st.pills(
        label, options, format_func=_label(text), key=widget, selection_mode="multi", label_visibility="collapsed"
    )
    chosen = tuple(option for option in options if option in picked) or tuple(default)
    return list(_keep(key, chosen))


def end() -> None:
    """Drop the query parameters that nothing on this page reads, so that a copied link says no more than it means."""
    for key in st.query_params.to_dict():
        if key not in st.session_state[_TOUCHED]:
            del st.query_params[key]


def notes() -> list[str]:
    """One line for each value of the URL that this page could not follow."""
    return list(st.session_state[_NOTES])


def link(**choices: str) -> dict[str, str]:
    """Query parameters for a link to another page of the same run: the run, and these choices."""
    remembered = st.session_state[_MEMORY].get("run")
    return {**({"run": remembered.values[0]} if remembered else {}), **choices}


def _wanted(key: str, label: str, options: Sequence[str], fallback: tuple[str, ...]) -> tuple[str, ...]:
    """What to show: the URL when it was changed from outside, else the widget, else what the session chose before."""
    st.session_state[_TOUCHED].add(key)
    written: _Written | None = st.session_state[_MEMORY].get(key)
    in_url = tuple(st.query_params.get_all(key))
    if in_url and _from_outside(in_url, written) and not _just_picked(key, written):
        known = tuple(value for value in in_url if value in options)
        unknown = [value for value in in_url if value not in options]
        if unknown:
            st.session_state[_NOTES].append(
                f"The link asks for {label.lower()} {', '.join(unknown)}, which is not here; showing {', '.join(known or fallback)}."
            )
        return known or fallback
    values = _shown(key) or (written.values if written else ())
    return tuple(value for value in values if value in options) or fallback


def _from_outside(in_url: tuple[str, ...], written: _Written | None) -> bool:
    if written is None:
        return True
    echo = in_url == written.before and time.monotonic() - written.at < _ECHO_SECONDS
    return in_url != written.values and not echo


def _just_picked(key: str, written: _Written | None) -> bool:
    """The widget holds something else than this session last wrote: the user has just picked it."""
    shown = _shown(key)
    return shown is not None and written is not None and shown != written.values


def _shown(key: str) -> tuple[str, ...] | None:
    """What the widget holds; None where the page shown before had none."""
    value: str | list[str] | None = st.session_state.get(_widget_key(key))
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _keep(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
    written: _Written | None = st.session_state[_MEMORY].get(key)
    if written is None or written.values != values:
        st.session_state[_MEMORY][key] = _Written(values, written.values if written else (), time.monotonic())
    if tuple(st.query_params.get_all(key)) != values:
        st.query_params[key] = values if len(values) > 1 else values[0]
    return values


def _widget_key(key: str) -> str:
    return f"choose {key}"


def _select_width(labels: Sequence[str]) -> int:
    """Pixels that the longest label takes in a drop-down list, within reason."""
    return min(max(8 * max(map(len, labels)) + 60, 90), 420)


def _label(text: Callable[[str], str]) -> Callable[[str], str]:
    """Buttons read their labels as Markdown, drop-down lists do not."""
    return lambda option: plain(text(option))
