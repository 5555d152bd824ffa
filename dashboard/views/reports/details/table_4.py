"""How many GPUs for how many images: table 4 of the generator's report and the advice of its section 4, tested on a run of several GPUs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.within_run import verdict
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.cells import is_trusted
from warpladder.dashboard.core.numbers import format_duration, format_estimate, format_ratio, ranks_words
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import Chart, Look, samples, slug, text
from warpladder.dashboard.views.devices.gpus import query
from warpladder.dashboard.views.devices.gpus.chart import Tile, draw_tiles
from warpladder.dashboard.views.reports.details.generator import WORKLOAD, images_in
from warpladder.data import figures

#: Pairs of a number of images and the GPUs for each of two nodes that section 4 of the report advises from that number on.
_ADVISED: Final = ((1001, 4), (200, 2), (0, 1))
_MEANING: Final = {
    "holds": "for few images fewer GPUs are faster here, as in the report on other hardware",
    "differs": "for few images fewer GPUs are not faster here, unlike in the report on other hardware",
    "open": "whether for few images fewer GPUs are faster here, as in the report on other hardware, is not known",
}


def published() -> pd.DataFrame:
    """The report's table 4, in its order.

    The columns are `variant` (as printed, such as `1 GPU a node`), `images`, `seconds`, `hardware` and `note`.
    """
    rows = figures.read(WORKLOAD)
    rows = rows[(rows["table"] == "4") & (rows["quantity"] == "time")].rename(columns={"value": "seconds"})
    rows["images"] = rows["case"].map(images_in)
    return rows[["variant", "images", "seconds", "hardware", "note"]].reset_index(drop=True)


def advised(images: int) -> int:
    """GPUs for each node that the report advises: 1 below 200 images, 2 from 200 to 1,000, 4 above."""
    return next(gpus for least, gpus in _ADVISED if images >= least)


def table_4() -> pd.DataFrame:
    """The report's times by number of images and by GPUs in each of its two nodes.

    The report prints no spread, so ties cannot be detected.

    Returns:
        One row for each printed number: `images`, `per_node`, `seconds`, `over_best` (time over the least time for as many
        images), `best` and `advised`.
    """
    frame = published()
    frame["per_node"] = frame["variant"].str.extract(r"(\d+)", expand=False).astype(int)
    frame["over_best"] = frame["seconds"] / frame.groupby("images")["seconds"].transform("min")
    frame["best"] = frame["over_best"] == 1.0
    frame["advised"] = frame["per_node"] == frame["images"].map(advised)
    return frame[["images", "per_node", "seconds", "over_best", "best", "advised"]]


def images_of(case: str) -> int | None:
    """The number of images of a case of the report's network; None for any other case."""
    name, _, number = case.partition("=")
    return int(number) if name == "images" and number.isdecimal() else None


@dataclass(frozen=True)
class Finding:
    """Whether fewer GPUs are faster for few images: `holds`, `differs` where some larger number is faster, or `open` where a verdict is `tied` or `unknown`."""

    case: str
    ranks: int
    speedup: Estimate
    verdict: str


def finding(frame: pd.DataFrame) -> Finding | None:
    """The report's finding that few images are faster on fewer GPUs, tested at the run's smallest case.

    Args:
        frame: `query.scaling` of one variant.

    Returns:
        The finding for the number of ranks that is slowest against one rank, or for the fastest number where some number is
        faster than one rank. None for other networks, for host variants, for device times (they exclude the waiting of
        ranks), and where one rank has no samples.
    """
    frame = frame[(frame["scope"] != "device") & (frame["kind"] != "host") & frame["case"].map(images_of).notna()]
    scaled = frame[(frame["ranks"] > 1) & frame["speedup"].notna()]
    if scaled.empty:
        return None
    smallest = scaled[scaled["size_rank"] == scaled["size_rank"].min()]
    one = frame[(frame["ranks"] == 1) & (frame["case"] == smallest["case"].iloc[0])]
    believed = is_trusted(one).all() and is_trusted(smallest).all()
    fewest = int(one["n"].min()) if believed else 0
    verdicts = [verdict(Estimate.of(row, "speedup"), min(row["n"], fewest)) for _, row in smallest.iterrows()]
    words = "differs" if "faster" in verdicts else "holds" if set(verdicts) == {"slower"} else "open"
    row = smallest.loc[smallest["speedup"].idxmax() if words == "differs" else smallest["speedup"].idxmin()]
    return Finding(str(row["case"]), int(row["ranks"]), Estimate.of(row, "speedup"), words)


def advised_here(crossover: pd.DataFrame) -> pd.DataFrame:
    """The rows of `query.crossover` at the numbers of images of table 4, on as many GPUs as the report advises for a node."""
    images = crossover["case"].map(images_of)
    of_table = images.isin(table_4()["images"])
    return crossover[of_table & (crossover["ranks"] == images[of_table].map(advised))]


def chart(crossover: pd.DataFrame, tested: Finding | None, look: Look) -> Chart:
    """Tiles of table 4: its times by number of images and GPUs in a node, with a frame around the advised number.

    Args:
        crossover: `query.crossover` of one variant, with a case of table 4.
        tested: `finding` of the same variant.
    """
    table = table_4()
    columns = list(dict.fromkeys(table["images"]))
    rows = sorted(set(table["per_node"]))
    tiles = [_tile(row, columns, rows) for row in table.itertuples()]
    figure = draw_tiles(tiles, [_node(per_node) for per_node in rows], [f"images={images}" for images in columns], look)
    here = advised_here(crossover)
    right = int(here["place"].isin(["best", "tied"]).sum())
    best = table[table["best"]]
    title = (
        f"{WORKLOAD}: the advised number of GPUs is best in {int(best['advised'].sum())} of {len(columns)} sizes of the report, "
        f"and best or tied here in {right} of {len(here)}"
    )
    first = here.iloc[0]
    timing = Timing(first["scope"], first["cache"]).label(on_gpu=first["kind"] != "host")
    note = (
        "The report's table 4, without spread, on two nodes of GPUs that it does not name; a frame marks the number of GPUs in "
        f"a node that its section 4 advises. Here it is the number of all GPUs: {look.device}; {timing}; "
        f"{look.variant_name(WORKLOAD, str(first['variant']))}; {samples(here['n'])}.{_on_finding(tested)}"
    )
    return Chart(slug("generator", "gpus", first["variant"], first["scope"], first["cache"]), title, figure, table, note)


def _tile(row: Any, columns: list[int], rows: list[int]) -> Tile:
    written = text(format_duration(1e9 * row.seconds))
    place = "best" if row.best else format_ratio(row.over_best)
    advice = "<br>advised by the report" if row.advised else ""
    hover = f"<b>report, table 4</b>, {_node(row.per_node)}<br>{row.images:,} images: <b>{written}</b>, {place}{advice}"
    where = columns.index(row.images), rows.index(row.per_node)
    return Tile(*where, "best" if row.best else "slower", f"<b>{written}</b><br>{place}", hover, framed=row.advised)


def _node(per_node: int) -> str:
    return f"{ranks_words(per_node, on_gpu=True)} × 2 nodes"


def _on_finding(tested: Finding | None) -> str:
    if tested is None:
        return ""
    speedup = format_estimate(tested.speedup, format_ratio)
    many = ranks_words(tested.ranks, on_gpu=True)
    return f" At {tested.case}, {many} are {speedup} as fast as one: {_MEANING[tested.verdict]}."


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    for timing in query.timings(data, WORKLOAD)[:1]:
        frame = query.scaling(data, WORKLOAD, timing)
        if frame.empty:
            return
        variant = query.variant_to_show(frame)
        crossover = query.crossover(data, WORKLOAD, timing, variant)
        if len(advised_here(crossover)):
            yield chart(crossover, finding(frame[frame["variant"] == variant]), look)
