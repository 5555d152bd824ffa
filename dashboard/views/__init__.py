"""One folder for each page, with one for each further section: `query.py` computes, `chart.py` draws, and `page.py` shows.

Importing this package, or a query in it, does not load Plotly: a summary is printed without it.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any, Final

from warpladder.dashboard.ui.view import View

#: Groups of the menu -> the pages of each -> the folders of their sections. The first page is the one that opens.
_GROUPS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "": {"Home": ("home",)},
    "Variants": {
        "Ladder": ("ladder", "ladder.roofline"),
        "Sizes": ("sizes", "sizes.ship"),
        "Devices": ("devices", "devices.gpus"),
        "Compare": ("compare", "compare.trends"),
        "Reports": ("reports.published", "reports.details"),
    },
    "Kernel": {"Why": ("why", "why.experiments", "why.counters", "why.occupancy"), "Machine code": ("machine_code",)},
    "Trace": {
        "Time": ("time.operators", "time.calls", "time.forecast", "time.picker"),
        "Timeline": ("timeline",),
        "Transfers": ("transfers",),
    },
    "Job": {
        "Ranks": ("ranks", "ranks.stragglers", "ranks.job_kernels"),
        "Collectives": ("collectives",),
        "Critical path": ("critical_path",),
    },
    "Checks": {"Trust": ("trust",)},
}
#: Pages of earlier versions that have no folder any more -> where their addresses lead. A section's own name leads to its page.
_GONE: Final[Mapping[str, str]] = {"overview": "home", "glossary": "home"}

#: Views by group of the menu, every view in the order of the menu, and the address of each former page with the page and section that
#: have its contents. They load the charts of all views when they are first used.
GROUPS: Mapping[str, tuple[View, ...]]
VIEWS: tuple[View, ...]
FORMER: Mapping[str, tuple[str, str]]


def __getattr__(name: str) -> Any:
    match name:
        case "GROUPS":
            return _groups()
        case "VIEWS":
            return tuple(chain.from_iterable(_groups().values()))
        case "FORMER":
            return _former()
    raise AttributeError(f"module {__name__} has no attribute {name}")


@cache
def _groups() -> Mapping[str, tuple[View, ...]]:
    return {group: tuple(_view(title, folders) for title, folders in pages.items()) for group, pages in _GROUPS.items()}


def _view(title: str, folders: tuple[str, ...]) -> View:
    sections = tuple(import_module(f"{__name__}.{folder}").SECTION for folder in folders)
    return View(folders[0].partition(".")[0], title, sections)


@cache
def _former() -> Mapping[str, tuple[str, str]]:
    views = tuple(chain.from_iterable(_groups().values()))
    pages = {view.name for view in views}
    sections = {section.name: (view.name, section.name) for view in views for section in view.sections}
    gone = {name: (page, "") for name, page in _GONE.items()}
    return gone | {name: where for name, where in sections.items() if name not in pages}
