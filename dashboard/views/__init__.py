"""One folder for each page, with one for each further section: its question is the docstring of its folder, `query.py` computes, `chart.py`
draws, and `page.py` shows.

Importing this package, or a query in it, does not load Plotly: a summary is printed without it.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Final

from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui.view import Section, View

#: Groups of the menu -> the pages of each with their sections. The first page is the one that opens.
GROUPS: Final[Mapping[str, tuple[View, ...]]] = {
    "": (View("Home", (Section("home", "Home", Need.NOTHING),)),),
    "Variants": (
        View("Ladder", (Section("ladder", "Ladder", of="timing"), Section("ladder.roofline", "Roofline", of="workload"))),
        View(
            "Why",
            (
                Section("why", "Why faster", Need.KERNELS),
                Section("why.experiments", "Experiments", Need.INSIDE),
                Section("why.counters", "Counters", Need.COUNTERS),
                Section("why.machine_code", "Machine code", Need.CODE),
                Section("why.occupancy", "Occupancy", Need.CODE),
            ),
        ),
        View(
            "Sizes",
            (
                Section("sizes", "Sizes", Need.SIZES, of="timing"),
                Section("sizes.ship", "Which to ship", Need.SIZES, of="timing"),
            ),
        ),
        View("Devices", (Section("devices", "Devices", Need.DEVICES), Section("devices.gpus", "GPUs", Need.GPUS))),
        View("Compare", (Section("compare", "Compare", Need.PAIR), Section("compare.trends", "Trends", Need.HISTORY))),
        View(
            "Reports",
            (
                Section("reports.published", "Published", Need.PUBLISHED),
                Section("reports.details", "Details", Need.GPU_TIMES),
            ),
        ),
    ),
    "Trace": (
        View(
            "Time",
            (
                Section("time.operators", "Operators", Need.OPERATORS),
                Section("time.calls", "API & kernels", Need.CALLS),
                Section("time.transfers", "Transfers", Need.COPIES),
                Section("time.forecast", "Forecast", Need.OPERATORS),
            ),
        ),
        View("Timeline", (Section("timeline", "Timeline", Need.TRACE),)),
        View(
            "Ranks",
            (
                Section("ranks", "Ranks", Need.JOB),
                Section("ranks.job_kernels", "Kernels of ranks", Need.JOB),
                Section("ranks.collectives", "Collectives", Need.JOB),
                Section("ranks.critical_path", "Critical path", Need.JOB),
            ),
        ),
    ),
    "Checks": (View("Trust", (Section("trust", "Trust", Need.NOTHING, of="timing"),)),),
}
#: Every view in the order of the menu.
VIEWS: Final[tuple[View, ...]] = tuple(chain.from_iterable(GROUPS.values()))
_SECTIONS: Final = {section.where: section for view in VIEWS for section in view.sections}


def _sections(*where: str) -> tuple[Section, ...]:
    return tuple(map(_SECTIONS.__getitem__, where))


#: Topics of an export -> the sections with its charts. Both stay in this order wherever the menu has a section.
EXPORTED: Final[Mapping[str, tuple[Section, ...]]] = {
    "comparisons": _sections("ladder", "sizes", "sizes.ship", "trust"),
    "roofline": _sections("ladder.roofline"),
    "gpus": _sections("devices.gpus"),
    "details": _sections("reports.details"),
    "experiments": _sections("why.experiments"),
    "counters": _sections("why.counters"),
    "occupancy": _sections("why.occupancy"),
    "trace": _sections("time.operators", "time.calls", "time.transfers"),
    "job": _sections("ranks", "ranks.job_kernels", "ranks.collectives", "ranks.critical_path"),
}
#: Addresses that are no page -> the page and the section that they lead to: those of sections, and of pages of earlier versions.
FORMER: Final[Mapping[str, tuple[str, str]]] = {
    "overview": ("home", ""),
    "glossary": ("home", ""),
    "stragglers": ("ranks", ""),
    **{
        each.name: (view.name, each.name)
        for view in VIEWS
        for each in view.sections
        if each.name not in {page.name for page in VIEWS}
    },
}
