"""The walk without a browser, by Streamlit's test driver: no exception, no page that is empty at its defaults."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import lead
from warpladder.dashboard.ui.pages import SECTION
from warpladder.dashboard.ui.view import View
from warpladder.dashboard.views import VIEWS

APP: Final = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"
#: The choices that a page has whatever the run is: topics, metrics, scales. Those of workloads, cases and variants come from the run.
OF_PAGE: Final = frozenset(
    [
        SECTION,
        "topic",
        "show",
        "summary",
        "summed",
        "below",
        "metric",
        "counters",
        "intensity",
        "judge",
        "of_scope",
        "color",
        "among",
        "ship",
        "accept",
        "code",
        "lanes",
        "machine",
        "isa",
        "figure",
        "as",
        "iteration",
        "kernel",
        "groups",
        "by",
        "recording",
        "beside",
    ]
)
#: Pages of text, which draw no chart.
_OF_TEXT: Final = ("trust", "home")
Option = tuple[str, str, int]


@dataclass
class Walk:
    """A walk over pages.

    Attributes:
        problems: a line for each exception and each empty page.
        tried: for each page the options that were chosen on it, of any run.
        seconds, opened: by page.
    """

    problems: list[str] = field(default_factory=list)
    tried: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    opened: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def open(self, view: View, **query: str) -> AppTest:
        """A page at its defaults, of the run that the query names or else of the run that the page finds."""
        app = AppTest.from_file(str(APP), default_timeout=120)
        if view is not VIEWS[0]:
            lead(app, view.name)
        app.query_params.update(query)
        self._run(app, view, str(query))
        return app

    def every_option(self, view: View, run: str) -> None:
        """Open a page of a run, and choose each option of each of its choices once, also of the choices that appear on the way."""
        app = self.open(view, run=run)
        tried: set[tuple[str, str]] = set()
        while option := next((each for each in _options(app) if each[:2] not in tried), None):
            tried.add(option[:2])
            if not self._choose(app, view, option, run):
                return

    def next_option(self, app: AppTest, view: View, run: str) -> None:
        """Choose an option of the page itself that was chosen of no run yet."""
        tried = self.tried[view.name]
        option = next((each for each in _options(app) if each[0] in OF_PAGE and each[:2] not in tried), None)
        if option:
            tried.add(option[:2])
            self._choose(app, view, option, run)

    def expect_content(self, app: AppTest, view: View, where: str) -> None:
        """Note a page that shows nothing and does not both say why and lead to a run that it shows, or to a command that records one."""
        leads = bool(app.main.get("page_link") or app.main.code)
        if not (shows(app, view) or app.exception or (app.main.info and leads)):
            self.problems.append(f"{view.name} {where}: empty, and leads nowhere")

    def _choose(self, app: AppTest, view: View, option: Option, run: str) -> bool:
        key, text, place = option
        widget = _widgets(app)[key]
        if hasattr(widget, "select_index"):
            widget.select_index(place)
        else:
            widget.set_value([text] if isinstance(widget.value, list) else text)
        return self._run(app, view, f"{run} {key}={text}")

    def _run(self, app: AppTest, view: View, where: str) -> bool:
        before = time.process_time()
        app.run()
        self.seconds[view.name] += time.process_time() - before
        self.opened[view.name] += 1
        for error in app.exception:
            self.problems.append(f"{view.name} {where}: {error.message}")
        return not app.exception


def shows(app: AppTest, view: View) -> bool:
    """Whether the page draws a chart, a table or a component, or is one of text."""
    return view.name in _OF_TEXT or bool(app.main.dataframe or app.main.get("bidi_component"))


def _widgets(app: AppTest) -> dict[str, Any]:
    return {
        widget.key.removeprefix("choose "): widget
        for widget in (*app.main.selectbox, *app.main.button_group)
        if widget.key and widget.key.startswith("choose ")
    }


def _options(app: AppTest) -> Iterator[Option]:
    """Key, text and place of each option that is not chosen: those of the section before the next section."""
    for key, widget in sorted(_widgets(app).items(), key=lambda each: each[0] == SECTION):
        for place, text in enumerate(widget.options):
            yield key, text, place
