"""The ideas of a rung as a line of their titles, each of which opens its page of docs/kernels/."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import streamlit as st

from warpladder.dashboard.ui.text import plain
from warpladder.data.ideas import Idea
from warpladder.installation import IMPORT_ROOT

#: The pages, in the package: a link to docs/kernels in a checkout.
PAGES: Final = IMPORT_ROOT / "warpladder" / "ideas"
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_RUNG: Final = re.compile(r"\.\./\.\./workloads/(\w+)/kernels/(\w+)\.cu")


def line(ideas: Sequence[Idea]) -> None:
    """Show the titles of a rung's ideas, as buttons that open their pages; nothing where it has none."""
    if not ideas:
        return
    # The style sheet of the pages makes the buttons as small as a line of text.
    with st.container(key="ideas", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(":small[**Ideas**]", width="content")
        for idea in ideas:
            told = plain(f"Where the limit was: {idea.limit}.")
            if st.button(plain(idea.title), key=f"idea {idea.name}", type="tertiary", help=told):
                st.dialog(plain(idea.title), width="large")(_show)(idea)


def _show(idea: Idea) -> None:
    st.markdown(text_of(PAGES / f"{idea.name}.md"))


@cache
def text_of(page: Path) -> str:
    """The text of a page without its title. Links to rungs lead to the page Ladder; other files are named only.

    Code has one colour: a dialog lies outside of the element that tells the style sheet whether the theme is dark.
    """
    _, _, text = page.read_text(encoding="utf-8").partition("\n")
    return _LINK.sub(_in_the_dashboard, text.replace("```cpp", "```text"))


def _in_the_dashboard(link: re.Match[str]) -> str:
    text, target = link.groups()
    rung = _RUNG.fullmatch(target)
    return f"[{text}](ladder?workload={rung[1]}&variant={rung[2]})" if rung else text
