"""The best number of GPUs for each case as a map of tiles, beside the times and the advice that the report printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.records import records
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.core.trusted import doubt
from warpladder.dashboard.reports.generator import WORKLOAD, Finding, images_of
from warpladder.dashboard.ui.numbers import (
    format_duration,
    format_ends,
    format_estimate,
    format_ratio,
    ranks_words,
    significant,
)
from warpladder.dashboard.ui.template import Chart, Look, Theme, blank, samples, slug, text
from warpladder.dashboard.views.gpus.query import Compared

_ROW_PX: Final = 40
_PLACES: Final = ("best", "tied", "slower")
#: The place whose colours another one has.
_LOOKS: Final = {"unknown": "slower"}
#: Best and tied differ in lightness, and each tile says its place in words.
_COLORS: Final[dict[Theme, tuple[str, str, str]]] = {
    "light": ("#00734F", "#9ED8C2", "#EEF0F3"),
    "dark": ("#2FB98F", "#1F5B4A", "#262B33"),
}
_WORDS: Final[dict[Theme, tuple[str, str, str]]] = {
    "light": ("#ffffff", "#10231c", "#40474f"),
    "dark": ("#06120d", "#e6f5ef", "#c3c9d1"),
}
_MOST_STRETCHES: Final = 4
_BETWEEN: Final = " "


@dataclass(frozen=True)
class _Printed:
    """A row of `reports.generator.published.table_4`."""

    images: int
    per_node: int
    seconds: float
    over_best: float
    best: bool
    advised: bool


@dataclass(frozen=True)
class _Tile:
    """A tile at column `x` and row `y`. Its place is one of `_PLACES`; an advised one has a frame."""

    x: int
    y: int
    place: str
    label: str
    hover: str
    advised: bool = False


def best_counts(frame: pd.DataFrame, finding: Finding | None, report: pd.DataFrame, look: Look) -> Chart:
    """Tiles of cases by number of ranks: the best one, those tied with it, and how much slower the others are.

    Where the cases are of the report's network, the times of its table 4 are below, with a frame around the advised number.

    Args:
        frame: `query.crossover` of one variant, not empty.
        finding: `reports.generator.guidance.finding` of the same variant.
        report: `reports.generator.published.table_4`.
    """
    compared = records(Compared, frame)
    first = compared[0]
    on_gpu = first.kind != "host"
    images = {row.case: images_of(row.case) for row in compared} if first.workload == WORKLOAD else {}
    printed = [row for row in records(_Printed, report) if row.images in images.values()]
    columns = list(dict.fromkeys(frame["case"]))
    ours = [ranks_words(int(ranks), on_gpu=on_gpu) for ranks in sorted(set(frame["ranks"]))]
    theirs = [_node(per_node) for per_node in sorted({row.per_node for row in printed})]
    rows = [*ours, *([_BETWEEN, *theirs] if theirs else [])]
    tiles = [_our_tile(row, columns, rows, on_gpu) for row in compared]
    at = {number: place for place, case in enumerate(columns) if (number := images.get(case)) is not None}
    tiles += [_their_tile(row, at, rows) for row in printed]
    figure = blank(look.theme, _ROW_PX * len(rows) + 74 - (_ROW_PX // 2 if theirs else 0))
    _draw(figure, tiles, rows, columns, look)
    timing = Timing(first.scope, first.cache).label(on_gpu=on_gpu)
    note = (
        f"{look.device}; {timing}; {samples(frame['n'])}.{_on_finding(finding)} Times are those of the slowest rank. Tied: "
        "the 95 % interval of the ratio to the best holds 1, or lies within the noise of the baseline against itself. Each "
        "number of ranks is a launch with its own rounds, so the ratios are not "
        f"paired.{_on_report(compared, printed, images)}"
    )
    name = slug("gpus", first.workload, first.variant, first.scope, first.cache, "best")
    return Chart(name, _title(frame, look, on_gpu), figure, frame, note)


def _draw(figure: Any, tiles: list[_Tile], rows: list[str], columns: list[str], look: Look) -> None:
    number = np.full((len(rows), len(columns)), np.nan)
    hovers = np.full(number.shape, "", dtype=object)
    for tile in tiles:
        number[tile.y, tile.x] = _PLACES.index(_LOOKS.get(tile.place, tile.place))
        hovers[tile.y, tile.x] = tile.hover
    colors = _COLORS[look.theme]
    scale = [[(place + end) / 3, color] for place, color in enumerate(colors) for end in (0, 1)]
    # The gap above the report's rows is half as high as a row.
    edges, heights = [0.0], [0.5 if row == _BETWEEN else 1.0 for row in rows]
    for height in heights:
        edges.append(edges[-1] + height)
    centres = [(top + bottom) / 2 for top, bottom in pairwise(edges)]
    shared = {"zmin": -0.5, "zmax": 2.5, "colorscale": scale, "showscale": False, "xgap": 4, "ygap": 4, "hoverongaps": False}
    figure.add_heatmap(z=number, x=list(range(len(columns))), y=edges, hovertext=hovers, hoverinfo="text", **shared)
    words = _WORDS[look.theme]
    fonts = {place: {"size": 11, "color": color} for place, color in zip(_PLACES, words, strict=True)}
    figure.layout.annotations = [
        {
            "x": tile.x,
            "y": centres[tile.y],
            "text": tile.label,
            "showarrow": False,
            "font": fonts[_LOOKS.get(tile.place, tile.place)],
        }
        for tile in tiles
    ]
    line = {"color": look.tones.text, "width": 2.5}
    figure.layout.shapes = [{"type": "rect", **_box(tile, edges), "line": line} for tile in tiles if tile.advised]
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "tickmode": "array"}
    labels = {"tickvals": list(range(len(columns))), "ticktext": [text(name) for name in columns]}
    figure.update_xaxes(range=[-0.5, len(columns) - 0.5], **axis, **labels)
    labels = {"tickvals": centres, "ticktext": [text(row) for row in rows]}
    figure.update_yaxes(range=[edges[-1], 0], tickfont={"color": look.tones.text}, **axis, **labels)


def _box(tile: _Tile, edges: list[float]) -> dict[str, float]:
    top, bottom = edges[tile.y : tile.y + 2]
    return {"x0": tile.x - 0.47, "x1": tile.x + 0.47, "y0": top + 0.05, "y1": bottom - 0.05}


def _our_tile(row: Compared, columns: list[str], rows: list[str], on_gpu: bool) -> _Tile:
    who = ranks_words(row.ranks, on_gpu=on_gpu)
    median = text(format_duration(row.median_ns.value))
    lines = [
        f"<b>{text(row.variant)}</b> {text(row.config)} on {who}".replace("  ", " "),
        f"{text(row.case)}: <b>{median}</b> ({text(format_ends(row.median_ns, format_duration))})",
    ]
    if why := doubt(row.n, row.flags):
        lines.append(text(why))
    if row.place != "best" and row.over_best.known:
        ends = format_ends(row.over_best, format_ratio)
        lines.append(f"{format_ratio(row.over_best.value)} the time of the best ({ends}), {row.place}")
    if row.speedup.known and row.ranks > 1:
        lines.append(f"speedup over one {format_estimate(row.speedup, format_ratio)}")
    lines.append(f"n = {row.n} · {text(row.interval_kind)}")
    told = row.place if row.place != "slower" else _over(row.over_best.value)
    label = f"<b>{median}</b><br>{told}"
    return _Tile(columns.index(row.case), rows.index(who), row.place, label, "<br>".join(lines))


def _their_tile(row: _Printed, at: dict[int, int], rows: list[str]) -> _Tile:
    written = text(format_duration(1e9 * row.seconds))
    place = "best" if row.best else format_ratio(row.over_best)
    advice = "<br>advised by the report" if row.advised else ""
    where = _node(row.per_node).partition(": ")[2]
    hover = f"<b>report, table 4</b>, {where}<br>{row.images:,} images: <b>{written}</b>, {place}{advice}"
    label = f"<b>{written}</b><br>{place}"
    return _Tile(at[row.images], rows.index(_node(row.per_node)), "best" if row.best else "slower", label, hover, row.advised)


def _node(per_node: int) -> str:
    return f"report: {ranks_words(per_node, on_gpu=True)} × 2 nodes"


def _title(frame: pd.DataFrame, look: Look, on_gpu: bool) -> str:
    """The title: the best number of ranks for each group of consecutive cases, with the numbers that are tied with it. A case in
    which nothing may be called best is left out.
    """
    first = frame.iloc[0]
    named = f"{first['workload']}, {look.named(first['workload'], first['variant'])}"
    frame = frame[frame.groupby("case")["place"].transform(lambda places: (places == "best").any())]
    if frame.empty:
        return f"{named}: no number is best; each time is {doubt(int(first['n']), first['flags'])}"
    best = []
    for case, rows in frame.groupby("case", sort=False):
        counts = [str(ranks) for ranks in sorted(rows.loc[rows["place"].isin(["best", "tied"]), "ranks"])]
        best.append((" or ".join(counts), str(case)))
    stretches = [(counts, [case for _, case in group][-1]) for counts, group in groupby(best, key=lambda pair: pair[0])]
    who = named
    counts, last = stretches[0]
    unit = ranks_words(1, on_gpu=on_gpu)[2:] if counts == "1" else ranks_words(2, on_gpu=on_gpu)[2:]
    are = f"{who}: {counts} {unit} {'is' if counts == '1' else 'are'} best"
    if len(stretches) == 1:
        return (
            f"{who}: {counts.replace('or', 'and')} {unit} are tied at every size" if "or" in counts else f"{are} at every size"
        )
    if len(stretches) > _MOST_STRETCHES or frame["series"].nunique() > 1:
        alone = frame[frame["place"].isin(["best", "tied"])].groupby("case")["ranks"].transform("size") == 1
        won = frame.loc[alone.index[alone], "ranks"].value_counts().sort_index()
        told = ", ".join(
            f"{ranks_words(int(ranks), on_gpu=on_gpu)} in {count}" for ranks, count in zip(won.index.tolist(), won, strict=True)
        )
        tied = len(best) - int(won.sum())
        ties = f"{', ' if told else ''}several in {tied}" if tied else ""
        return f"{who}: fastest of {len(best)} cases are {told}{ties}"
    between = "".join(f", {counts} up to {case}" for counts, case in stretches[1:-1])
    return f"{are} up to {last}{between}, {stretches[-1][0]} above"


def _over(ratio: float) -> str:
    """`1.42×`, or `+0.3 %` where three digits of the ratio are 1.00."""
    written = format_ratio(ratio)
    return f"+{significant(100 * (ratio - 1), 1)} %" if written == "1.00×" else written


def _on_finding(finding: Finding | None) -> str:
    if finding is None:
        return ""
    said = {
        "holds": "for few images fewer GPUs are faster here, as in the report on other hardware",
        "differs": "for few images fewer GPUs are not faster here, unlike in the report on other hardware",
        "open": "whether for few images fewer GPUs are faster here, as in the report on other hardware, is not known",
    }[finding.verdict]
    many = ranks_words(finding.ranks, on_gpu=True)
    return f" At {finding.case}, {many} are {format_estimate(finding.speedup, format_ratio)} as fast as one: {said}."


def _on_report(compared: Sequence[Compared], printed: Sequence[_Printed], images: dict[str, int | None]) -> str:
    """Sentences about the report's rows, and about the columns in which its advice is best or tied here."""
    if not printed:
        return ""
    advised = {row.images: row.per_node for row in printed if row.advised}
    here = [row for row in compared if (number := images[row.case]) is not None and row.ranks == advised.get(number)]
    right = sum(row.place in ("best", "tied") for row in here)
    return (
        " Report: table 4, without spread, on two nodes of GPUs that it does not name; a frame marks the number of GPUs in a "
        f"node that its section 4 advises. As the number of all GPUs, that number is best or tied here in {right} of "
        f"{len(here)} sizes."
    )
