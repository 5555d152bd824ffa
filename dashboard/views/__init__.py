"""One folder for each question: `query.py` computes, `chart.py` draws, and `page.py` shows."""

from collections.abc import Mapping
from itertools import chain
from typing import Final

from warpladder.dashboard.ui.view import View
from warpladder.dashboard.views import (
    calls,
    collectives,
    compare,
    counters,
    critical_path,
    details,
    devices,
    forecast,
    glossary,
    gpus,
    job_kernels,
    ladder,
    machine_code,
    occupancy,
    operators,
    overview,
    picker,
    published,
    ranks,
    roofline,
    ship,
    sizes,
    stragglers,
    timeline,
    transfers,
    trends,
    trust,
)

#: Groups of the menu, and the views in the order of each; the first view is the one that opens.
GROUPS: Final[Mapping[str, tuple[View, ...]]] = {
    "Compare": (overview.VIEW, compare.VIEW, sizes.VIEW, devices.VIEW, ship.VIEW, trends.VIEW, published.VIEW, picker.VIEW),
    "Explain": (
        ladder.VIEW,
        roofline.VIEW,
        details.VIEW,
        timeline.VIEW,
        calls.VIEW,
        operators.VIEW,
        forecast.VIEW,
        transfers.VIEW,
        gpus.VIEW,
        counters.VIEW,
        machine_code.VIEW,
        occupancy.VIEW,
    ),
    "Job": (ranks.VIEW, stragglers.VIEW, collectives.VIEW, job_kernels.VIEW, critical_path.VIEW),
    "Trust": (trust.VIEW, glossary.VIEW),
}
#: Every view, in the order of the menu.
VIEWS: Final = tuple(chain.from_iterable(GROUPS.values()))
