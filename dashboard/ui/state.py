"""Choices that are kept in the URL, so that a link or a reload shows the same page.

Each choice is a widget and a query parameter of the same name. The choices of a session on one page hold for the others.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import streamlit as st

from warpladder.dashboard.ui.text import plain, short

Style = Literal["select", "segmented"]

#: The query parameters of a run and a device that were chosen by hand.
RUN: Final = "run"
DEVICE: Final = "device"
#: The query parameter with the pattern that picks ranges of the run as variants.
PICK: Final = "pick"
_MEMORY: Final = "url choices"
_NOTES: Final = "url notes"
_TOUCHED: Final = "url keys of this page"
_PICKED: Final = "url picked by hand"
_TEXTS: Final = "url texts"
_KEPT: Final = "url choices by what they belong to"


class _Last(NamedTuple):
    """The last choice of a key: its values, those written to the URL (none for a default of several), and their owner."""

    values: tuple[str, ...]
    written: tuple[str, ...]
    owner: str


def begin() -> None:
    """Forget the notes and keys of the page drawn before. Called once in each rerun, before any choice."""
    st.session_state[_NOTES] = []
    st.session_state[_TOUCHED] = set()
    memory: dict[str, _Last] = st.session_state.setdefault(_MEMORY, {})
    # A rerun for a widget may carry a URL from before the last change. Then the widgets are right.
    st.session_state[_PICKED] = any(_shown(key) not in (None, last.values) for key, last in memory.items())


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
    owner: str = "",
) -> str:
    """One of the options, by a widget bound to the query parameter `key`.

    Args:
        options: the values that the URL may have; not empty.
        default: the option where neither the URL nor the session has one; the first option when None.
        text: gives the plain text of an option in the widget.
        style: a drop-down list, or buttons side by side.
        fitted: the list is as wide as its longest option; else as wide as its container.
        labelled: the label is visible; else only a screen reader reads it.
        owner: the owner of the choice, such as a run. Another owner has its own last choice, or the default.
    """
    fallback = (default if default is not None and default in options else options[0],)
    wanted = _wanted(key, label, options, fallback, owner)
    widget = _widget_key(key)
    # Set even if equal, because after a page switch Streamlit does not give the value to the new page's widget.
    st.session_state[widget] = wanted[0]
    shown: Literal["visible", "collapsed"] = "visible" if labelled else "collapsed"
    if style == "segmented":
        picked = st.segmented_control(
            plain(label), options, format_func=_label(text), key=widget, required=True, help=help, label_visibility=shown
        )
    else:
        width: int | Literal["stretch"] = _select_width([text(option) for option in options]) if fitted else "stretch"
        picked = st.selectbox(
            plain(label),
            options,
            format_func=text,
            key=widget,
            help=help,
            filter_mode="contains",
            width=width,
            label_visibility=shown,
        )
    chosen = (picked or fallback[0],)
    _keep(key, _Last(chosen, chosen, owner))
    return chosen[0]


def choose_many(
    key: str, label: str, options: Sequence[str], *, default: Sequence[str], text: Callable[[str], str] = str, owner: str = ""
) -> list[str]:
    """Some of the options, in their order, by buttons bound to the repeated query parameter `key`; the default when none is
    left.

    The URL does not name the default. Where the options change, the default is that of the new options.

    Args:
        owner: see `choose`.
    """
    wanted = _wanted(key, label, options, tuple(default), owner)
    widget = _widget_key(key)
    st.session_state[widget] = list(wanted)
    picked = st.pills(
        plain(label), options, format_func=_label(text), key=widget, selection_mode="multi", label_visibility="collapsed"
    )
    chosen = tuple(option for option in options if option in picked) or tuple(default)
    _keep(key, _Last(chosen, () if set(chosen) == set(default) else chosen, owner))
    return list(chosen)


def text_of(key: str, owner: str) -> str:
    """The text of the query parameter `key` that belongs to `owner`, such as a run; empty for none."""
    st.session_state[_TOUCHED].add(key)
    texts: dict[tuple[str, str], str] = st.session_state.setdefault(_TEXTS, {})
    written: str | None = st.session_state.get(f"{_TEXTS} {key}")
    in_url = st.query_params.get(key, "")
    # A URL other than the last written one was changed from outside, unless a widget carried an old URL.
    if in_url and in_url != written and not (written is not None and st.session_state[_PICKED]):
        texts[key, owner] = in_url
    value = texts.get((key, owner), "")
    if value != in_url:
        if value:
            st.query_params[key] = value
        else:
            del st.query_params[key]
    st.session_state[f"{_TEXTS} {key}"] = value
    return value


def set_text(key: str, owner: str, value: str) -> None:
    """Set the text of `text_of` before it is read next. An empty text removes it."""
    st.session_state.setdefault(_TEXTS, {})[key, owner] = value
    # The browser's URL is older than this text.
    st.session_state[f"{_TEXTS} {key}"] = st.query_params.get(key, "")


def note(line: str) -> None:
    """Add a line about a value of the URL that the page could not use."""
    st.session_state[_NOTES].append(line)


def end() -> None:
    """Drop the query parameters that this page does not read."""
    for key in st.query_params.to_dict():
        if key not in st.session_state[_TOUCHED]:
            del st.query_params[key]


def notes() -> list[str]:
    """A line for each value of the URL that this page could not use."""
    return list(st.session_state[_NOTES])


def link(**choices: str) -> dict[str, str]:
    """Query parameters for a link to another page: the run where one was chosen by hand, and these choices."""
    run = st.session_state.get(_TEXTS, {}).get((RUN, ""), "")
    return {**({RUN: run} if run else {}), **choices}


def coming(key: str) -> str:
    """The value that `choose` takes next if it is among its options; empty for its default."""
    last: _Last | None = st.session_state[_MEMORY].get(key)
    in_url = st.query_params.get_all(key)
    if in_url and (last is None or (tuple(in_url) != last.written and not st.session_state[_PICKED])):
        return in_url[0]
    if last is None:
        return ""
    shown = _shown(key)
    values = shown if shown not in (None, last.values) else st.session_state.get(_KEPT, {}).get((key, last.owner), last.values)
    return values[0] if values else ""


def changed(key: str) -> bool:
    """Whether `coming` is another value than the last choice."""
    last: _Last | None = st.session_state[_MEMORY].get(key)
    return last is None or last.values[:1] != (coming(key),)


def forget(key: str) -> None:
    """Make `choose` take its default next, whatever was chosen before."""
    last: _Last | None = st.session_state[_MEMORY].pop(key, None)
    st.session_state.get(_KEPT, {}).pop((key, last.owner if last else ""), None)
    st.session_state.pop(_widget_key(key), None)
    if key in st.query_params:
        del st.query_params[key]


def _wanted(key: str, label: str, options: Sequence[str], fallback: tuple[str, ...], owner: str) -> tuple[str, ...]:
    """The values to show: from the URL if it was changed from outside, else from the widget, else the owner's last choice."""
    st.session_state[_TOUCHED].add(key)
    last: _Last | None = st.session_state[_MEMORY].get(key)
    in_url = tuple(st.query_params.get_all(key))
    if in_url and (last is None or (in_url != last.written and not st.session_state[_PICKED])):
        known = tuple(value for value in in_url if value in options)
        unknown = [value for value in in_url if value not in options]
        if unknown:
            missing, shown_now = short(", ".join(dict.fromkeys(unknown))), ", ".join(known or fallback)
            note(f"The link asks for {label.lower()} {missing}, which is not here; showing {shown_now}.")
        return known or fallback
    shown = _shown(key)
    by_hand = last is not None and last.owner == owner and shown not in (None, last.values)
    kept: dict[tuple[str, str], tuple[str, ...]] = st.session_state.setdefault(_KEPT, {})
    values = (shown if by_hand else None) or kept.get((key, owner), ())
    return tuple(value for value in values if value in options) or fallback


def _shown(key: str) -> tuple[str, ...] | None:
    """The values of the widget; None where the page before had no such widget."""
    value: str | list[str] | None = st.session_state.get(_widget_key(key))
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _keep(key: str, shown: _Last) -> None:
    """Keep the choice, also for its owner, and write it to the URL."""
    st.session_state[_MEMORY][key] = shown
    st.session_state.setdefault(_KEPT, {})[key, shown.owner] = shown.written
    values = shown.written
    if tuple(st.query_params.get_all(key)) == values:
        return
    if values:
        st.query_params[key] = values if len(values) > 1 else values[0]
    else:
        del st.query_params[key]


def _widget_key(key: str) -> str:
    return f"choose {key}"


def _select_width(labels: Sequence[str]) -> int:
    """Width of a drop-down list in pixels, by its longest label, from 80 to 420."""
    return min(max(7 * max(map(len, labels)) + 52, 80), 420)


def _label(text: Callable[[str], str]) -> Callable[[str], str]:
    """Buttons read their labels as Markdown, drop-down lists do not."""
    return lambda option: plain(text(option))
