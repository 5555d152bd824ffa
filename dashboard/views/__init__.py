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
    "": (View("Home", (Section("home", "Home", Need.NOTHING, topic="overview"),)),),
    "Variants": (
        View(
            "Ladder",
            (
                Section("ladder", "Ladder", topic="comparisons", of="timing"),
                Section("ladder.roofline", "Roofline", topic="roofline", of="workload"),
            ),
        ),
        View(
            "Sizes",
            (
                Section("sizes", "Sizes", Need.SIZES, topic="comparisons", of="timing"),
                Section("sizes.ship", "Which to ship", Need.SIZES, topic="comparisons", of="timing"),
            ),
        ),
        View(
            "Devices", (Section("devices", "Devices", Need.DEVICES), Section("devices.gpus", "GPUs", Need.GPUS, topic="gpus"))
        ),
        View("Compare", (Section("compare", "Compare", Need.PAIR), Section("compare.trends", "Trends", Need.HISTORY))),
        View(
            "Reports",
            (
                Section("reports.published", "Published", Need.PUBLISHED),
                Section("reports.details", "Details", Need.GPU_TIMES, topic="details"),
            ),
        ),
    ),
    "Kernel": (
        View(
            "Why",
            (
                Section("why", "Why faster", Need.KERNELS),
                Section("why.experiments", "Experiments", Need.INSIDE, topic="experiments"),
                Section("why.counters", "Counters", Need.COUNTERS, topic="counters"),
                Section("why.occupancy", "Occupancy", Need.CODE, topic="occupancy"),
            ),
        ),
        View("Machine code", (Section("machine_code", "Machine code", Need.CODE, topic="code"),)),
    ),
    "Trace": (
        View(
            "Time",
            (
                Section("time.operators", "Operators", Need.OPERATORS, topic="trace"),
                Section("time.calls", "API & kernels", Need.CALLS, topic="trace"),
                Section("time.forecast", "Forecast", Need.OPERATORS),
                Section("time.picker", "Pick variants", Need.RANGES),
            ),
        ),
        View("Timeline", (Section("timeline", "Timeline", Need.TRACE, topic="trace"),)),
        View("Transfers", (Section("transfers", "Transfers", Need.COPIES, topic="trace"),)),
    ),
    "Job": (
        View(
            "Ranks",
            (
                Section("ranks", "Ranks", Need.JOB, topic="job"),
                Section("ranks.stragglers", "Stragglers", Need.JOB, topic="job"),
                Section("ranks.job_kernels", "Kernels of ranks", Need.JOB, topic="job"),
            ),
        ),
        View("Collectives", (Section("collectives", "Collectives", Need.JOB, topic="job"),)),
        View("Critical path", (Section("critical_path", "Critical path", Need.JOB, topic="job"),)),
    ),
    "Checks": (View("Trust", (Section("trust", "Trust", Need.NOTHING, topic="comparisons", of="timing"),)),),
}
#: Every view in the order of the menu.
VIEWS: Final[tuple[View, ...]] = tuple(chain.from_iterable(GROUPS.values()))
#: Addresses that are no page -> the page and the section that they lead to: those of sections, and of pages of earlier versions.
FORMER: Final[Mapping[str, tuple[str, str]]] = {
    "overview": ("home", ""),
    "glossary": ("home", ""),
    **{
        each.name: (view.name, each.name)
        for view in VIEWS
        for each in view.sections
        if each.name not in {page.name for page in VIEWS}
    },
}
