"""The dashboard: `warpladder app`, with `--data-dir FOLDER` for runs kept elsewhere."""

from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.navigation.page import Page

from warpladder.dashboard import server
from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui import bar, pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.ui.view import Section, View
from warpladder.dashboard.views import GROUPS, VIEWS
from warpladder.data import store

_HERE: Final = Path(__file__).resolve().parent
_SHOWN: Final = "pages in the menu"


def main() -> None:
    """Draw the menu and the bar, then a section of the page."""
    # Each page names the document, see `widgets.heading`.
    st.set_page_config(page_icon=str(_HERE / "static" / "icon.png"), layout="wide", initial_sidebar_state=180)
    st.logo(str(_HERE / "static" / "logo.svg"))
    page = _menu(st.session_state.get(_SHOWN, ()))
    state.begin(page.url_path)
    view = next((view for view in VIEWS if view.name == page.url_path), VIEWS[0])
    named = state.coming(pages.SECTION)
    asked = next((each for each in view.sections if each.name == named), None)
    try:
        bar.draw((asked or view.sections[0]).needs)
        has = _met()
        st.session_state[_SHOWN] = shown = [each.name for each in VIEWS if each.applying(has)]
        _menu(shown)  # in place of the first one, which has to tell the page before its run is found
        _draw(view, has)
    except state.Gone as gone:
        st.warning(plain(str(gone)))
        if runs.chosen() is None:
            bar.table()
        else:
            pages.link(asked.where if asked else view.name, "Open the page without it →", run=runs.chosen_name())
    except store.StoreError as error:  # the run was changed while it was shown
        st.error(plain(str(error)))
        st.caption("Choose another run above; nothing of this one was changed.")


def _draw(view: View, has: Callable[[Need], bool]) -> None:
    """A section of the page, and what every page ends with."""
    section = widgets.heading(view, _sections(view, has))
    if runs.chosen():  # the bar finds a run for the first section, where the address names none
        runs.set_context(replace(runs.context(), need=section.needs))
    try:
        section.part("page").draw(widgets.run_of_page())
    except pages.Ended as ended:
        ended.say()
    bar.bad(in_full=view.name == "trust")
    widgets.end_page()


def _sections(view: View, has: Callable[[Need], bool]) -> tuple[Section, ...]:
    """The sections that apply to the run, and the one that the URL names, which tells what the run lacks."""
    asked = state.coming(pages.SECTION) if pages.SECTION in st.query_params else ""
    applying = view.applying(has) or view.sections[:1]
    return tuple(section for section in view.sections if section in applying or section.name == asked)


def _menu(shown: Container[str]) -> Page:
    """Draw the menu, with the pages that are shown or with all of them where none is; the page to show."""
    return st.navigation(
        {
            group: [
                st.Page(
                    lambda: None,
                    title=view.title,
                    url_path=view.name,
                    default=view.name == pages.HOME,
                    visibility="visible" if not shown or view.name in shown else "hidden",
                )
                for view in views
            ]
            for group, views in GROUPS.items()
        },
        expanded=True,  # else the last pages hide behind a button
    )


def _met() -> Callable[[Need], bool]:
    """Whether the run of the page has what a section needs, beside the other runs."""
    run, listing = runs.chosen(), runs.listing(runs.data_dirs())
    listed = None if run is None else listing.index.get(runs.chosen_name())
    if run is None or listed is None:
        return lambda need: True
    return lambda need: listed.fits(need) and run_index.fits_beside(listing.every, listed, need)


if __name__ == "__main__":
    # Streamlit runs this file for each session.
    main()
else:
    # `streamlit run dashboard/app.py` finds this by its name, and imports it.
    server.refuse_other_addresses()
    server.warm_up()
    app = st.App(__file__, middleware=server.middleware(), routes=server.ROUTES)
