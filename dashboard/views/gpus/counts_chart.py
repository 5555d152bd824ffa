"""Which number of GPUs is best for how much work, as a map of tiles, beside what the report printed and advised."""

from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.reports.generator.guidance import Finding, images_of
from warpladder.dashboard.reports.generator.query import WORKLOAD
from warpladder.dashboard.ui.numbers import format_duration, format_ends, format_estimate, format_ratio, significant
from warpladder.dashboard.ui.template import Chart, Look, Theme, blank, samples, slug, text
from warpladder.dashboard.views.gpus.chart import ranks_words

_ROW_PX: Final = 40
_PLACES: Final = ("best", "tied", "slower")
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


def best_counts(frame: pd.DataFrame, finding: Finding | None, report: pd.DataFrame, look: Look) -> Chart:
    """Tiles of cases by number of ranks: the best of each case, those tied with it, and by how much the others are slower.

    Below stand the report's times of table 4, where the cases are of its network, with the number that it advises framed.

    Args:
        frame: `query.crossover` of one variant, not empty.
        finding: `reports.generator.guidance.finding` of the same.
        report: `reports.generator.guidance.table_4`.
    """
    first = frame.iloc[0]
    on_gpu = bool(first["kind"] != "host")
    images = {case: images_of(case) for case in frame["case"]} if first["workload"] == WORKLOAD else {}
    report = report[report["images"].isin([number for number in images.values() if number is not None])]
    columns = list(dict.fromkeys(frame["case"]))
    ours = [ranks_words(int(ranks), on_gpu=on_gpu) for ranks in sorted(set(frame["ranks"]))]
    theirs = [_node(per_node) for per_node in sorted(set(report["per_node"]))]
    rows = [*ours, *([_BETWEEN, *theirs] if theirs else [])]
    tiles = [_our_tile(row, columns, rows, on_gpu) for row in frame.to_dict("records")]
    at = {number: place for place, case in enumerate(columns) if (number := images.get(case)) is not None}
    tiles += [_their_tile(row, at, rows) for row in report.to_dict("records")]
    figure = blank(look.theme, _ROW_PX * len(rows) + 74 - (_ROW_PX // 2 if theirs else 0))
    _draw(figure, tiles, rows, columns, look)
    view = Timing(first["scope"], first["cache"]).label(on_gpu=on_gpu)
    note = (
        f"{look.device}; {view}; {samples(frame['n'])}.{_on_finding(finding)} Times are of the slowest rank. Tied: the 95 % interval of the ratio to the best holds 1, or "
        "lies within the noise of the baseline against itself; each number is a launch of its own, not paired by round."
        f"{_on_report(frame, report, images)}"
    )
    name = slug("gpus", first["workload"], first["variant"], first["scope"], first["cache"], "best")
    return Chart(name, _title(frame, look, on_gpu), figure, frame, note)


def _draw(figure: Any, tiles: list[dict[str, Any]], rows: list[str], columns: list[str], look: Look) -> None:
    number = np.full((len(rows), len(columns)), np.nan)
    hovers = np.full(number.shape, "", dtype=object)
    for tile in tiles:
        number[tile["y"], tile["x"]] = _PLACES.index(tile["place"])
        hovers[tile["y"], tile["x"]] = tile["hover"]
    colors = _COLORS[look.theme]
    scale = [[(place + end) / 3, color] for place, color in enumerate(colors) for end in (0, 1)]
    # Rows by number: the gap above the report's is half as high as a row.
    edges, heights = [0.0], [0.5 if row == _BETWEEN else 1.0 for row in rows]
    for height in heights:
        edges.append(edges[-1] + height)
    centres = [(top + bottom) / 2 for top, bottom in pairwise(edges)]
    figure.add_heatmap(
        z=number, x=list(range(len(columns))), y=edges, zmin=-0.5, zmax=2.5, colorscale=scale, showscale=False, xgap=4, ygap=4,
        hovertext=hovers, hoverinfo="text", hoverongaps=False,
    )  # fmt: skip
    figure.layout.annotations = [
        {
            "x": tile["x"], "y": centres[tile["y"]], "text": tile["label"], "showarrow": False,
            "font": {"size": 11, "color": _WORDS[look.theme][_PLACES.index(tile["place"])]},
        }
        for tile in tiles
    ]  # fmt: skip
    figure.layout.shapes = [
        {
            "type": "rect", "x0": tile["x"] - 0.47, "x1": tile["x"] + 0.47, "y0": edges[tile["y"]] + 0.05, "y1": edges[tile["y"] + 1] - 0.05,
            "line": {"color": look.tones.text, "width": 2.5},
        }
        for tile in tiles if tile["advised"]
    ]  # fmt: skip
    figure.update_xaxes(
        showgrid=False, zeroline=False, ticks="", tickmode="array", tickvals=list(range(len(columns))), ticktext=[text(c) for c in columns],
        range=[-0.5, len(columns) - 0.5],
    )  # fmt: skip
    figure.update_yaxes(
        showgrid=False, zeroline=False, ticks="", tickmode="array", tickvals=centres, ticktext=[text(row) for row in rows],
        range=[edges[-1], 0], tickfont={"color": look.tones.text},
    )  # fmt: skip


def _our_tile(row: dict[Any, Any], columns: list[str], rows: list[str], on_gpu: bool) -> dict[str, Any]:
    who = ranks_words(int(row["ranks"]), on_gpu=on_gpu)
    place = row["place"] if row["place"] != "slower" else _over(row["over_best"])
    ends = format_ends(Estimate.median_ns(row), format_duration)
    lines = [
        f"<b>{text(row['variant'])}</b> {text(row['config'])} on {who}".replace("  ", " "),
        f"{text(row['case'])}: <b>{text(format_duration(row['median_ns']))}</b> ({text(ends)})",
    ]
    if row["place"] != "best":
        ratio = format_ends(Estimate.of(row, "over_best"), format_ratio)
        lines.append(f"{format_ratio(row['over_best'])} the time of the best ({ratio}), {row['place']}")
    if pd.notna(row["speedup"]) and row["ranks"] > 1:
        lines.append(f"speedup over one {format_estimate(Estimate.of(row, 'speedup'), format_ratio)}")
    lines.append(f"n = {row['n']} · {text(row['interval_kind'])}")
    return {
        "x": columns.index(row["case"]), "y": rows.index(who), "place": row["place"], "hover": "<br>".join(lines), "advised": False,
        "label": f"<b>{text(format_duration(row['median_ns']))}</b><br>{place}",
    }  # fmt: skip


def _their_tile(row: dict[Any, Any], at: dict[int, int], rows: list[str]) -> dict[str, Any]:
    written = text(format_duration(1e9 * row["seconds"]))
    place = "best" if row["best"] else format_ratio(row["over_best"])
    advice = "<br>advised by the report" if row["advised"] else ""
    return {
        "x": at[row["images"]], "y": rows.index(_node(row["per_node"])), "place": "best" if row["best"] else "slower",
        "advised": row["advised"], "label": f"<b>{written}</b><br>{place}",
        "hover": f"<b>report, table 4</b>, {_node(row['per_node']).partition(': ')[2]}<br>{row['images']:,} images: <b>{written}</b>, {place}{advice}",
    }  # fmt: skip


def _node(per_node: int) -> str:
    return f"report: {ranks_words(per_node, on_gpu=True)} × 2 nodes"


def _title(frame: pd.DataFrame, look: Look, on_gpu: bool) -> str:
    """Which number is best over which stretch of cases, ties with it named."""
    first = frame.iloc[0]
    best = []
    for case, rows in frame.groupby("case", sort=False):
        counts = [str(ranks) for ranks in sorted(rows.loc[rows["place"] != "slower", "ranks"])]
        best.append((" or ".join(counts), str(case)))
    stretches = [(counts, [case for _, case in group][-1]) for counts, group in groupby(best, key=lambda pair: pair[0])]
    who = f"{first['workload']}, {look.named(first['workload'], first['variant'])}"
    counts, last = stretches[0]
    unit = ranks_words(1, on_gpu=on_gpu)[2:] if counts == "1" else ranks_words(2, on_gpu=on_gpu)[2:]
    are = f"{who}: {counts} {unit} {'is' if counts == '1' else 'are'} best"
    if len(stretches) == 1:
        return (
            f"{who}: {counts.replace('or', 'and')} {unit} are tied at every size" if "or" in counts else f"{are} at every size"
        )
    if len(stretches) > _MOST_STRETCHES or frame["series"].nunique() > 1:
        won = frame[frame["place"] == "best"]["ranks"].value_counts().sort_index()
        told = ", ".join(
            f"{ranks_words(int(ranks), on_gpu=on_gpu)} in {count}" for ranks, count in zip(won.index.tolist(), won, strict=True)
        )
        return f"{who}: fastest of {len(best)} cases are {told}"
    between = "".join(f", {counts} up to {case}" for counts, case in stretches[1:-1])
    return f"{are} up to {last}{between}, {stretches[-1][0]} above"


def _over(ratio: float) -> str:
    """`1.42×`, or what three digits of a ratio do not tell: `+0.3 %`."""
    written = format_ratio(ratio)
    return f"+{significant(100 * (ratio - 1), 1)} %" if written == "1.00×" else written


def _on_finding(finding: Finding | None) -> str:
    if finding is None:
        return ""
    said = {
        "holds": "fewer are faster where there is little to do, as the report found",
        "refuted": "that fewer are faster where there is little to do, as the report found, is refuted here",
        "open": "whether fewer are faster where there is little to do, as the report found, is open",
    }[finding.verdict]
    many = ranks_words(finding.ranks, on_gpu=True)
    return f" At {finding.case}, {many} are {format_estimate(finding.speedup, format_ratio)} as fast as one: {said}."


def _on_report(frame: pd.DataFrame, report: pd.DataFrame, images: dict[str, int | None]) -> str:
    """What the report's rows are, and in how many columns its advice is best or tied here."""
    if report.empty:
        return ""
    advised = {row["images"]: row["per_node"] for row in report[report["advised"]].to_dict("records")}
    known = frame[[images[case] in advised for case in frame["case"]]]
    here = known[[row["ranks"] == advised[images[row["case"]]] for row in known.to_dict("records")]]
    right = int((here["place"] != "slower").sum())
    return (
        " Report: table 4, two nodes of GPUs that it does not name, without spread; framed: what its section 4 advises a node. "
        f"Taken as the whole number of GPUs, that is best or tied here in {right} of {len(here)} sizes."
    )
