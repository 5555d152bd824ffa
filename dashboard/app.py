"""The dashboard: `warpladder app`, with `--data-dir FOLDER` for runs kept elsewhere."""

from pathlib import Path

import streamlit as st

from warpladder.dashboard import server
from warpladder.dashboard.ui import pinned, sidebar, state
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import View, page_of
from warpladder.dashboard.views import GROUPS, VIEWS
from warpladder.data import store

_HERE = Path(__file__).resolve().parent


def main() -> None:
    """Draw the menu and the sidebar, then the page."""
    # Each page names the document, see `widgets.heading`.
    st.set_page_config(page_icon=str(_HERE / "static" / "icon.png"), layout="wide", initial_sidebar_state=220)
    st.logo(str(_HERE / "static" / "logo.svg"))
    page = st.navigation(
        {
            group: [
                st.Page(_HERE / page_of(view.name), title=view.title, url_path=view.name, default=view is VIEWS[0])
                for view in views
            ]
            for group, views in GROUPS.items()
        },
        expanded=True,  # else the last pages hide behind a button
    )
    state.begin(page.url_path)
    with st.sidebar:
        view = _view(page.url_path)
        sidebar.draw(view.needs, of_one_run=view.of_one_run)
        pinned.sidebar()
    try:
        page.run()
    except store.StoreError as error:  # the run was changed while it was shown
        st.error(plain(str(error)))
        st.caption("Choose another run in the sidebar; nothing of this one was changed.")


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
