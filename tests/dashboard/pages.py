"""The pages of the dashboard by their addresses, for Streamlit's test driver."""

import json
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from warpladder.dashboard.ui.pages import SECTION
from warpladder.dashboard.views import FORMER


def lead(app: AppTest, page: str) -> None:
    """Show a page, or the page with a section of that name, at the next run.

    Before the first run, the driver's own `switch_page` takes a file's name for the page's address.
    """
    page, section = FORMER.get(page, (page, ""))
    app._page_hash = calc_hash(page)
    if section:
        app.query_params[SECTION] = section


def run_of(app: AppTest) -> str:
    """The run that the page shows, as its address has it."""
    shown = app.query_params["run"]
    return str(shown[0] if isinstance(shown, list) else shown)


def choose_run(app: AppTest, name: str, **choices: str) -> None:
    """Open a run on the same page, as a link does."""
    app.query_params.clear()
    app.query_params.update({"run": name, **choices})
    app.run()


def plotted(app: AppTest) -> list[str]:
    """The figures of the charts that the page shows."""
    return [data["figure"] for data in _data(app, "warpladder_chart")]


def source(app: AppTest) -> str:
    """The one source that the page shows."""
    (data,) = _data(app, "warpladder_source")
    return "".join(part for _, part in data["tokens"])


def rows(app: AppTest, number: int = 0) -> pd.DataFrame:
    """A table whose rows lead somewhere, the first one or a later one, by its headings."""
    shown = _data(app, "warpladder_rows")[number]
    return pd.DataFrame(shown["rows"], columns=[each["label"] for each in shown["columns"]])


def _data(app: AppTest, component: str) -> list[Any]:
    """What a page sends to a component of ours, each time that it stands on the page."""
    every = app.main.get("bidi_component")
    return [json.loads(element.proto.json) for element in every if element.proto.component_name == component]
