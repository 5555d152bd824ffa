"""Links to pages and to their sections, and what a page says of a link to what is not there."""

from collections.abc import Callable
from typing import Final, NoReturn

import streamlit as st
from streamlit.navigation.page import Page

#: The query parameter of a page's section.
SECTION: Final = "section"
#: The page that opens.
HOME: Final = "home"


class Ended(Exception):
    """The page has said all that it has to say, before its last line.

    Attributes:
        say: draws what stands below everything that the page has so far.
    """

    def __init__(self, say: Callable[[], object]) -> None:
        super().__init__()
        self.say = say


def end(say: Callable[[], object] = lambda: None) -> NoReturn:
    """End a section early; what every page ends with is still shown.

    Args:
        say: draws the reason. It is called below the page's choices, also where the page ends in the line of its choices.
    """
    raise Ended(say)


def link(where: str, label: str, **choices: str) -> None:
    """A link to a page with these query parameters.

    Args:
        where: the folder of the section below `views`, such as `time.operators`.
    """
    page, query = _address(where, choices)
    st.page_link(page, label=label, query_params=query)


def go(where: str, **choices: str) -> NoReturn:
    """Show another page in place of this one; the arguments are documented at `link`."""
    page, query = _address(where, choices)
    st.switch_page(page, query_params=query)


def _address(where: str, choices: dict[str, str]) -> tuple[Page, dict[str, str]]:
    name, _, section = where.partition(".")
    page = st.Page(lambda: None, title=name, url_path=name, default=name == HOME)
    return page, {**({SECTION: section} if section else {}), **choices}
