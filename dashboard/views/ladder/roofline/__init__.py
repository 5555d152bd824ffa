"""How near is each variant to what memory or arithmetic allows?"""

from collections.abc import Iterator

from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.dashboard.ui.template import Chart, Look
from warpladder.dashboard.ui.view import OfWorkload, Section
from warpladder.dashboard.views.ladder.roofline import chart, query


def _charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    """The variants at the largest case, and the variant nearest to its roof over sizes.

    They are drawn with the operations and bytes of the case, and where the run has counters also with the counted ones.
    """

    for timing in query.timings(data, workload)[:1]:
        roofs = query.roofs(data)
        for counted, counted_in in ((None, ""), (query.executed(data, workload), "this run")):
            frame = query.points(data, workload, timing, counted)
            if frame["roof_gflop_per_s"].isna().all():
                continue
            largest = frame[frame["size_rank"] == frame["size_rank"].max()]
            yield chart.roofline(largest[largest["case"] == largest["case"].iloc[-1]], roofs, look, counted_in)
            trusted = largest[is_trusted(largest) & largest["percent_of_roof"].notna()]
            nearest = (trusted if len(trusted) else largest).sort_values("percent_of_roof", ascending=False).iloc[0]
            over = frame[(frame["variant"] == nearest["variant"]) & (frame["series"] == nearest["series"])]
            if len(over) > 1:
                yield chart.over_sizes(over, roofs, look, counted_in)


SECTION = Section(
    __name__,
    "Roofline",
    "How near is each variant to what memory or arithmetic allows?",
    (OfWorkload("roofline", _charts),),
)
