"""Choices that live in the URL, so that a link or a reload shows the same page.

Each choice is a widget and a query parameter of the same name. What a session chose on one page is kept for the others.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import streamlit as st

from warpladder.dashboard.ui.text import plain, short

Style = Literal["select", "segmented"]

#: The query parameter that says which ranges of the run are its variants.
PICK: Final = "pick"
_MEMORY: Final = "url choices"
_NOTES: Final = "url notes"
_TOUCHED: Final = "url keys of this page"
_PICKED: Final = "url picked by hand"
_TEXTS: Final = "url texts"
_KEPT: Final = "url choices by what they belong to"


class _Last(NamedTuple):
    """What was shown last for a key: the values, what the URL was given of them (nothing of a default of several), and whose they are."""

    values: tuple[str, ...]
    written: tuple[str, ...]
    owner: str


def begin() -> None:
    """Forget the notes and keys of the page drawn before. Called once a rerun, before any choice."""
    st.session_state[_NOTES] = []
    st.session_state[_TOUCHED] = set()
    memory: dict[str, _Last] = st.session_state.setdefault(_MEMORY, {})
    # A rerun for a widget may carry a URL that the browser had before it heard of the last change: then the widgets are right.
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
        options: what the URL may hold; not empty.
        default: what is taken where the URL and the session hold none of them; the first option when None.
        text: what the widget shows for an option, as plain text.
        style: a drop-down list, or buttons side by side.
        fitted: the list is as wide as its longest option; else as wide as what it stands in.
        labelled: the label is shown; else only a screen reader says it.
        owner: what the choice belongs to, such as a run: another owner begins with its own last choice, or the default.
    """
    fallback = (default if default is not None and default in options else options[0],)
    wanted = _wanted(key, label, options, fallback, owner)
    widget = _widget_key(key)
    # Set even when it is equal: on a page switch Streamlit keeps the value under the key, and not for the new page's widget.
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
    """Some of the options, in their order, by buttons bound to the repeated query parameter `key`; the default when none is left.

    The default is no choice: the URL does not name it, and where the options change it is that of the new ones.

    Args:
        owner: as of `choose`.
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
    """A text of the query parameter `key` that belongs to `owner`, such as a run; empty for none. It comes back with its owner."""
    st.session_state[_TOUCHED].add(key)
    texts: dict[tuple[str, str], str] = st.session_state.setdefault(_TEXTS, {})
    written: str | None = st.session_state.get(f"{_TEXTS} {key}")
    in_url = st.query_params.get(key, "")
    # As with the choices: a URL that is not the one last written was changed from outside, unless a widget brought an old one.
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
    """Change the text of `text_of`, before it is read next; an empty one drops it."""
    st.session_state.setdefault(_TEXTS, {})[key, owner] = value
    # Whatever the browser's URL says at this moment is older than this.
    st.session_state[f"{_TEXTS} {key}"] = st.query_params.get(key, "")


def note(line: str) -> None:
    """Add a line on what the page could not follow."""
    st.session_state[_NOTES].append(line)


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
    last: _Last | None = st.session_state[_MEMORY].get("run")
    return {**({"run": last.values[0]} if last else {}), **choices}


def _wanted(key: str, label: str, options: Sequence[str], fallback: tuple[str, ...], owner: str) -> tuple[str, ...]:
    """What to show: the URL when it was changed from outside, else the widget, else what the session chose for this owner before."""
    st.session_state[_TOUCHED].add(key)
    last: _Last | None = st.session_state[_MEMORY].get(key)
    in_url = tuple(st.query_params.get_all(key))
    if in_url and (last is None or (in_url != last.written and not st.session_state[_PICKED])):
        known = tuple(value for value in in_url if value in options)
        unknown = [value for value in in_url if value not in options]
        if unknown:
            st.session_state[_NOTES].append(
                f"The link asks for {label.lower()} {short(', '.join(dict.fromkeys(unknown)))}, which is not here; showing {', '.join(known or fallback)}."
            )
        return known or fallback
    shown = _shown(key)
    by_hand = last is not None and last.owner == owner and shown not in (None, last.values)
    kept: dict[tuple[str, str], tuple[str, ...]] = st.session_state.setdefault(_KEPT, {})
    values = (shown if by_hand else None) or kept.get((key, owner), ())
    return tuple(value for value in values if value in options) or fallback


def _shown(key: str) -> tuple[str, ...] | None:
    """What the widget holds; None where the page shown before had none."""
    value: str | list[str] | None = st.session_state.get(_widget_key(key))
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _keep(key: str, shown: _Last) -> None:
    """Remember what is shown, for its owner too, and write it into the URL."""
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
    """Pixels that the longest label takes in a drop-down list, within reason."""
    return min(max(7 * max(map(len, labels)) + 52, 80), 420)


def _label(text: Callable[[str], str]) -> Callable[[str], str]:
    """Buttons read their labels as Markdown, drop-down lists do not."""
    return lambda option: plain(text(option))
