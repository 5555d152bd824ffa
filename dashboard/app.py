"""The dashboard: `warpladder app`, with `--data-dir FOLDER` for runs kept elsewhere."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.navigation.page import Page

from warpladder.dashboard import server
from warpladder.dashboard.core import run_index
from warpladder.dashboard.ui import runs, sidebar, state
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import View, page_of
from warpladder.dashboard.views import GROUPS, VIEWS
from warpladder.data import store

_HERE: Final = Path(__file__).resolve().parent
#: The mark of a page in the menu that has nothing to show of the device.
_EMPTY: Final = "∅"


def main() -> None:
    """Draw the menu and the sidebar, then the page."""
    # Each page names the document, see `widgets.heading`.
    st.set_page_config(page_icon=str(_HERE / "static" / "icon.png"), layout="wide", initial_sidebar_state=220)
    st.logo(str(_HERE / "static" / "logo.svg"))
    page = _menu()
    state.begin(page.url_path)
    with st.sidebar:
        view = _view(page.url_path)
        sidebar.draw(view.needs, of_one_run=view.of_one_run)
        if empty := _empty():
            _menu(empty)  # in place of the first one, which has to tell the page before its run is found
            st.caption(f"{_EMPTY} No run of this device has what the page needs. It leads to a run that has.")
        sidebar.sidebar()
    try:
        page.run()
    except store.StoreError as error:  # the run was changed while it was shown
        st.error(plain(str(error)))
        st.caption("Choose another run in the sidebar; nothing of this one was changed.")


def _menu(empty: Collection[View] = ()) -> Page:
    """Draw the menu, with a mark at the pages that are empty; the page to show."""
    return st.navigation(
        {
            group: [
                st.Page(
                    _HERE / page_of(view.name),
                    title=f"{view.title} {_EMPTY}" if view in empty else view.title,
                    url_path=view.name,
                    default=view is VIEWS[0],
                )
                for view in views
            ]
            for group, views in GROUPS.items()
        },
        expanded=True,  # else the last pages hide behind a button
    )


def _empty() -> list[View]:
    """The pages for which no run of the device of the page has what they need."""
    if runs.chosen() is None:
        return []
    context = runs.context()
    return [view for view in VIEWS if run_index.lacks(context.every, context.device, view.needs)]


def _view(url_path: str) -> View:
    """The view of a path; the first view has none of its own."""
    return next((view for view in VIEWS if view.name == url_path), VIEWS[0])


if __name__ == "__main__":
    # Streamlit runs this file for each session.
    main()
else:
    # `streamlit run dashboard/app.py` finds this by its name, and imports it.
    server.refuse_other_addresses()
    server.warm_up()
    app = st.App(__file__, middleware=server.middleware(), routes=server.ROUTES)
