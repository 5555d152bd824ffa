"""Glossary: the words of the pages. Captions lead to them by their anchors."""

import streamlit as st

from warpladder.dashboard.ui import widgets
from warpladder.dashboard.ui.glossary import WORDS
from warpladder.dashboard.views.glossary import VIEW


def page() -> None:
    """Draw the page."""
    widgets.heading(VIEW)
    st.markdown("\n\n".join(f"## {word}\n{meaning}" for word, meaning in WORDS.items()))
    widgets.end_page()


page()
