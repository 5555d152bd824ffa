"""Parts of a page that scripts of ours draw in the browser. They write each text as text, so that no name and no source is markup."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st


@st.cache_resource(show_spinner=False)
def component(folder: Path, name: str, html: str, files: Sequence[str], **options: Any) -> Any:
    """A component of Streamlit, called with its key and data.

    Args:
        files: the scripts in the order in which they are joined, since the browser cannot fetch a second one, and style sheets.
    """
    scripts, styles = (
        "\n".join((folder / file).read_text(encoding="utf-8") for file in files if file.endswith(ending))
        for ending in (".js", ".css")
    )
    return st.components.v2.component(f"warpladder_{name}", html=html, js=scripts, css=styles or None, **options)
