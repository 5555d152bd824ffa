"""Choices that are kept in the URL, so that a link or a reload shows the same page.

Each choice is a widget and a query parameter of the same name. The choices of a session on one page hold for the others.

The URL names the run and the choices that differ from their defaults. So a URL with a run is complete: every other choice has its
default, in any browser. A URL without a run, such as a link of the menu, leaves the choices to the session.

Streamlit's own binding (`bind="query-params"`, tried in 1.67) does not replace this module. It never names a default, so that a link
would show another run tomorrow. It silently drops a value that is not among the options. It has one value for each key, whereas a
choice here belongs to a run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import streamlit as st

from warpladder.dashboard.ui.text import plain, short

Style = Literal["select", "segmented"]

#: The query parameter of the run, which every URL names, because tomorrow another run is the newest.
RUN: Final = "run"
_MEMORY: Final = "url choices"
_NOTES: Final = "url notes"
_TOUCHED: Final = "url keys of this page"
_TEXTS: Final = "url texts"
_CHOICES: Final = "url choices by what they belong to"
_WRITTEN: Final = "url as last written"
_PAGE: Final = "url page"
_ARRIVED: Final = "url from outside"
_CHOICE_WORDS: Final = "url choices in words"
_SHOWN_RUN: Final = "url run of this page"


class Gone(Exception):
    """A link asks for a run, a workload or a case that is not here. Nothing else is shown in its place."""


class _LastChoice(NamedTuple):
    """The last choice of a key: the values of its widget, and their owner."""

    values: tuple[str, ...]
    owner: str


@dataclass(frozen=True)
class _ArrivedUrl:
    """A URL from outside, such as of a link or of the button Back, until the page has read it.

    Attributes:
        complete: whether a key that the URL does not name has its default.
        read: the keys that were read; the session's choices apply to them afterwards.
    """

    choices: dict[str, tuple[str, ...]]
    complete: bool
    read: set[str] = field(default_factory=set)


def begin(page: str) -> None:
    """Forget the notes and keys of the page drawn before. Called once in each rerun, before any choice.

    Args:
        page: the path of the page that is drawn now.
    """
    st.session_state[_NOTES] = []
    st.session_state[_TOUCHED] = set()
    st.session_state[_CHOICE_WORDS] = {}
    memory: dict[str, _LastChoice] = st.session_state.setdefault(_MEMORY, {})
    # A rerun for a widget may carry a URL from before the last change. Then the widgets have the right values.
    picked = any(_shown(key) not in (None, last.values) for key, last in memory.items())
    query = _query()
    if not picked and (query, page) != (st.session_state.get(_WRITTEN), st.session_state.get(_PAGE)):
        st.session_state[_ARRIVED] = _ArrivedUrl(query, complete=RUN in query)
    st.session_state[_WRITTEN], st.session_state[_PAGE] = query, page


def choose(
    key: str,
    label: str,
    options: Sequence[str] | Mapping[str, str],
    *,
    default: str | None = None,
    text: Callable[[str], str] = str,
    style: Style = "select",
    help: str | None = None,
    fitted: bool = True,
    labelled: bool = True,
    owner: str = "",
    always: bool = False,
    strict: bool = False,
) -> str:
    """One of the options, from a widget bound to the query parameter `key`.

    Args:
        options: the values that the URL may have, or a mapping of them to their texts; not empty.
        default: the option where neither the URL nor the session has one; the first option when None.
        text: gives the plain text of an option in the widget.
        style: a drop-down list, or buttons side by side, which a single option does without.
        fitted: the list is as wide as its longest option; else as wide as its container.
        labelled: the label is visible; else only a screen reader reads it.
        owner: the owner of the choice, such as a run. Another owner has its own last choice, or the default.
        always: the URL names the default too. Use it for a default that may change, such as the newest run.
        strict: no other option takes the place of one that a link asks for.

    Raises:
        Gone: the link asks for what is not among the options, and the choice is strict.
    """
    if isinstance(options, Mapping):
        texts = options
        options, text = list(texts), lambda option: texts[option]
    fallback = (default if default is not None and default in options else options[0],)
    values = _values(key, label, options, fallback, owner, strict=strict)
    widget = _widget_key(key)
    as_markdown = lambda option: plain(text(option))  # noqa: E731  # buttons read their labels as Markdown, lists do not
    # Set even if equal, because after a page switch Streamlit does not give the value to the new page's widget.
    st.session_state[widget] = values[0]
    shown: Literal["visible", "collapsed"] = "visible" if labelled else "collapsed"
    picked: str | None
    if style == "segmented" and len(options) == 1:
        picked = options[0]
    elif style == "segmented":
        picked = st.segmented_control(
            plain(label), options, format_func=as_markdown, key=widget, required=True, help=help, label_visibility=shown
        )
    else:
        longest = max(len(text(option)) for option in options)
        width: int | Literal["stretch"] = min(max(7 * longest + 52, 80), 420) if fitted else "stretch"  # in pixels
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
    _keep(key, _LastChoice(chosen, owner), chosen, () if chosen == fallback and not always else chosen)
    st.session_state[_CHOICE_WORDS][key] = (text(chosen[0]), chosen != fallback and not always)
    return chosen[0]


def pick(key: str, option: str) -> None:
    """Choose an option of the widget of `choose` in place of the user, such as after a click on a chart. Called before a rerun.

    Args:
        option: one of the options that the widget shows.
    """
    st.session_state[_widget_key(key)] = option


def choose_many(
    key: str, label: str, options: Sequence[str], *, default: Sequence[str], text: Callable[[str], str] = str, owner: str = ""
) -> list[str]:
    """Some of the options, in their order, from buttons bound to the repeated query parameter `key`.

    Without a chosen option, the default applies. The URL does not name the default. Where the options change, the default
    follows from the new options.

    Args:
        owner: see `choose`.
    """
    values = _values(key, label, options, tuple(default), owner)
    widget = _widget_key(key)
    st.session_state[widget] = list(values)
    picked = st.pills(
        plain(label),
        options,
        format_func=lambda option: plain(text(option)),
        key=widget,
        selection_mode="multi",
        label_visibility="collapsed",
    )
    chosen = tuple(option for option in options if option in picked) or tuple(default)
    written = () if set(chosen) == set(default) else chosen
    _keep(key, _LastChoice(tuple(picked), owner), written, written)
    return list(chosen)


def text_of(key: str, owner: str, *, written: bool = True) -> str:
    """The text of the query parameter `key` that belongs to `owner`, such as a run; empty without a text.

    Args:
        written: whether the URL is changed to name it.
    """
    st.session_state[_TOUCHED].add(key)
    texts: dict[tuple[str, str], str] = st.session_state.setdefault(_TEXTS, {})
    values = _arrived_once(key)
    if values is not None:
        texts[key, owner] = values[-1] if values else ""
    value = texts.get((key, owner), "")
    if written:
        _write(key, (value,) if value else ())
    return value


def set_text(key: str, owner: str, value: str) -> None:
    """Set the text of `text_of` before it is read next. An empty text removes it."""
    st.session_state.setdefault(_TEXTS, {})[key, owner] = value


def name_run(name: str) -> None:
    """Write the run that the page shows into the URL, and keep it for links."""
    st.session_state[_SHOWN_RUN] = name
    _write(RUN, (name,))


def note(line: str) -> None:
    """Add a line about a value of the URL that the page could not use."""
    st.session_state[_NOTES].append(line)


def end() -> None:
    """Drop the query parameters that this page does not read."""
    for key in _query():
        if key not in st.session_state[_TOUCHED]:
            _write(key, ())
    if st.session_state.get(_ARRIVED) is not None:
        # A link to another run of the same page does not reach the address bar unless the query parameters are set.
        st.query_params.from_dict(_query())
        st.session_state[_ARRIVED] = None


def notes() -> list[str]:
    """A line for each value of the URL that this page could not use."""
    return list(st.session_state[_NOTES])


def choice_words() -> list[str]:
    """The choices of this page in words: the workload with its case, then each other choice that is not the default."""
    every: dict[str, tuple[str, bool]] = st.session_state[_CHOICE_WORDS]
    place = [every[key][0] for key in ("workload", "case") if key in every]
    place += [text for key, (text, _) in every.items() if key.startswith("case.")]
    others = [
        text
        for key, (text, differs) in every.items()
        if differs and key not in ("workload", "case") and not key.startswith("case.")
    ]
    return [" ".join(place), *others] if place else others


def link(**choices: str) -> dict[str, str]:
    """Query parameters for a link to another page: the run of this page, or another one, and these choices.

    The link is complete: every other choice of its page has its default.
    """
    run = choices.get(RUN) or st.session_state.get(_SHOWN_RUN, "")
    return {**({RUN: run} if run else {}), **choices}


def coming(key: str) -> str:
    """The value that `choose` returns next if it is among the options; empty for the default."""
    arriving = _arriving(key)
    if arriving is not None:
        return arriving[-1] if arriving else ""
    last: _LastChoice | None = st.session_state[_MEMORY].get(key)
    if last is None:
        return ""
    shown = _shown(key)
    values = (
        shown if shown not in (None, last.values) else st.session_state.get(_CHOICES, {}).get((key, last.owner), last.values)
    )
    return values[0] if values else ""


def is_linked(key: str) -> bool:
    """Whether a URL from outside has the value that `choose` returns next."""
    return bool(_arriving(key))


def changed(key: str) -> bool:
    """Whether `coming` differs from the last choice."""
    last: _LastChoice | None = st.session_state[_MEMORY].get(key)
    return last is None or last.values[:1] != (coming(key),)


def forget(key: str) -> None:
    """Make `choose` return its default next, whatever was chosen before."""
    last: _LastChoice | None = st.session_state[_MEMORY].pop(key, None)
    st.session_state.get(_CHOICES, {}).pop((key, last.owner if last else ""), None)
    st.session_state.pop(_widget_key(key), None)
    if (arrived := st.session_state.get(_ARRIVED)) is not None:
        arrived.read.add(key)
    _write(key, ())


def _arrived_once(key: str) -> tuple[str, ...] | None:
    """As `_arriving`, but only once: afterwards the session's choice applies."""
    values = _arriving(key)
    if values is not None:
        st.session_state[_ARRIVED].read.add(key)
    return values


def _arriving(key: str) -> tuple[str, ...] | None:
    """The values of a key in a URL from outside; empty for its default, and None where the session's choice applies."""
    arrived: _ArrivedUrl | None = st.session_state.get(_ARRIVED)
    if arrived is None or key in arrived.read:
        return None
    values = tuple(value for value in arrived.choices.get(key, ()) if value)
    return values if values or arrived.complete else None


def _values(
    key: str, label: str, options: Sequence[str], fallback: tuple[str, ...], owner: str, *, strict: bool = False
) -> tuple[str, ...]:
    """The values to show: from a URL from outside, else from the widget, else the owner's last choice."""
    st.session_state[_TOUCHED].add(key)
    if (arrived := _arrived_once(key)) is not None:
        usable = tuple(dict.fromkeys(value for value in arrived if value in options))
        unknown = [value for value in arrived if value not in options]
        if unknown:
            missing, shown_now = short(", ".join(dict.fromkeys(unknown))), ", ".join(usable or fallback)
            if strict and not usable:
                st.session_state[_ARRIVED].read.discard(key)  # the next rerun has the same answer
                raise Gone(f"The link asks for {label.lower()} {missing}, which is not here.")
            note(f"The link asks for {label.lower()} {missing}, which is not here; showing {shown_now}.")
        return usable or fallback
    last: _LastChoice | None = st.session_state[_MEMORY].get(key)
    shown = _shown(key)
    by_hand = last is not None and last.owner == owner and shown not in (None, last.values)
    choices: dict[tuple[str, str], tuple[str, ...]] = st.session_state.setdefault(_CHOICES, {})
    values = (shown if by_hand else None) or choices.get((key, owner), ())
    return tuple(value for value in values if value in options) or fallback


def _shown(key: str) -> tuple[str, ...] | None:
    """The values of the widget; None where the page before had no such widget."""
    value: str | list[str] | None = st.session_state.get(_widget_key(key))
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)


def _keep(key: str, last: _LastChoice, owned: tuple[str, ...], written: tuple[str, ...]) -> None:
    """Store the values of the widget, the values of its owner on other pages, and the values in the URL."""
    st.session_state[_MEMORY][key] = last
    st.session_state.setdefault(_CHOICES, {})[key, last.owner] = owned
    _write(key, written)


def _write(key: str, values: tuple[str, ...]) -> None:
    """Write these values to the URL; no value stands for the default."""
    if tuple(st.query_params.get_all(key)) == values and (values or key not in st.query_params):
        return
    if values:
        st.query_params[key] = values if len(values) > 1 else values[0]
    else:
        del st.query_params[key]
    st.session_state[_WRITTEN] = _query()


def _query() -> dict[str, tuple[str, ...]]:
    return {key: tuple(st.query_params.get_all(key)) for key in st.query_params}


def _widget_key(key: str) -> str:
    return f"choose {key}"
