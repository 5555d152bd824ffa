"""The ideas that made rungs faster, from their pages in docs/kernels/: the ideas of a rung are a line of titles that open the pages.

A page is the one place that has an idea: its heading is the title, its first paragraph names the limit, and its links name the rungs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import streamlit as st

from warpladder.dashboard.ui.text import plain
from warpladder.installation import IMPORT_ROOT

#: The pages, in the package: a link to docs/kernels in a checkout.
PAGES: Final = IMPORT_ROOT / "warpladder" / "ideas"
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_RUNG: Final = re.compile(r"\.\./\.\./(workloads/(\w+)/kernels/(\w+)\.cu)")


@dataclass(frozen=True)
class Idea:
    """An idea that made at least one rung faster.

    Attributes:
        page: `docs/kernels/<name>.md`.
        title: a few words; the heading of the page.
        limit: what holds a kernel back without the idea.
        text: the rest of the page, in Markdown.
    """

    page: Path
    title: str
    limit: str
    text: str

    @property
    def name(self) -> str:
        return self.page.stem

    @property
    def rungs(self) -> tuple[tuple[str, str, str], ...]:
        """The kernel file, the workload and the variant of each rung that has the idea."""
        return tuple(dict.fromkeys(_RUNG.findall(self.text)))


@cache
def read(page: Path) -> Idea:
    """The idea of a page."""
    title, limit, text = page.read_text(encoding="utf-8").split("\n\n", 2)
    return Idea(
        page, title.removeprefix("# "), limit.removeprefix("What limits the kernel without it: ").removesuffix("."), text
    )


def ideas_of(source_path: str) -> tuple[Idea, ...]:
    """The ideas of the rung with this kernel file, relative to the project; none for any other source, such as a user's own."""
    every = map(read, sorted(PAGES.glob("*.md")))
    return tuple(idea for idea in every if any(source_path == kernel for kernel, *_ in idea.rungs))


def line(ideas: Sequence[Idea]) -> None:
    """Show the titles of a rung's ideas, as buttons that open their pages; nothing where it has none."""
    if not ideas:
        return
    # The style sheet of the pages makes the buttons as small as a line of text.
    with st.container(key="ideas", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(":small[**Ideas**]", width="content")
        for idea in ideas:
            help_text = plain(f"Where the limit was: {idea.limit}.")
            if st.button(plain(idea.title), key=f"idea {idea.name}", type="tertiary", help=help_text):
                st.dialog(plain(idea.title), width="large")(lambda idea: st.markdown(text_of(idea)))(idea)


def text_of(idea: Idea) -> str:
    """The text of a page below its title and limit. Links to rungs lead to the page Ladder; other files are named only.

    Code has one colour: a dialog lies outside of the element that tells the style sheet whether the theme is dark.
    """
    return _LINK.sub(_in_the_dashboard, idea.text.replace("```cpp", "```text"))


def _in_the_dashboard(link: re.Match[str]) -> str:
    text, target = link.groups()
    rung = _RUNG.fullmatch(target)
    return f"[{text}](ladder?workload={rung[2]}&variant={rung[3]})" if rung else text
