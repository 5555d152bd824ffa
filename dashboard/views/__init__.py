"""One folder for each question: `query.py` computes, `chart.py` draws, and `page.py` shows.

Importing this package, or a query in it, does not load Plotly: a summary is printed without it.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any, Final

from warpladder.dashboard.ui.view import View

#: Groups of the menu, and the folders of the views in the order of each; the first view is the one that opens.
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Compare": ("overview", "compare", "sizes", "devices", "ship", "trends", "published", "picker"),
    "Explain": (
        *("ladder", "roofline", "details", "timeline", "calls", "operators", "forecast", "transfers", "gpus", "counters"),
        *("machine_code", "occupancy"),
    ),
    "Job": ("ranks", "stragglers", "collectives", "job_kernels", "critical_path"),
    "Trust": ("trust", "glossary"),
}

#: Views by group of the menu, and every view in the order of the menu. They load the charts of all views when they are first used.
GROUPS: Mapping[str, tuple[View, ...]]
VIEWS: tuple[View, ...]


def __getattr__(name: str) -> Any:
    match name:
        case "GROUPS":
            return _groups()
        case "VIEWS":
            return tuple(chain.from_iterable(_groups().values()))
    raise AttributeError(f"module {__name__} has no attribute {name}")


@cache
def _groups() -> Mapping[str, tuple[View, ...]]:
    return {group: tuple(import_module(f"{__name__}.{view}").VIEW for view in views) for group, views in _GROUPS.items()}
