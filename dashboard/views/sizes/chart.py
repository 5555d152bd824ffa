"""Variants over the size axis, and the winner of every case."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare import winners
from warpladder.dashboard.compare.winners import EXPORTED
from warpladder.dashboard.compare.within_run import compared, precisions, word
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Cell, Estimate, Timing, records
from warpladder.dashboard.core.cells import is_trusted, passed_over, sentence
from warpladder.dashboard.core.numbers import (
    format_duration,
    format_ends,
    format_estimate,
    format_over,
    format_percent,
    format_rate,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import (
    ABOVE,
    BESIDE,
    Chart,
    Look,
    above_ceiling,
    add_points,
    apart_colors,
    blank,
    hover,
    luminance,
    measured,
    samples,
    slug,
    spaced,
    text,
    ticks,
)
from warpladder.dashboard.views.sizes import query
from warpladder.data.words import counted

Metric = Literal["median_ns", "gb_per_s", "gflop_per_s", "speedup", "percent_of_floor"]

#: What can be drawn over size.
METRICS: Final[tuple[Metric, ...]] = ("median_ns", "gb_per_s", "gflop_per_s", "speedup", "percent_of_floor")
#: Of the floors of several precisions.
_FLOOR_PX: Final = 40  # width of the mark of a floor at one size
_FLOOR_DASHES: Final = ("dot", "2px,7px", "8px,2px,2px,2px", "12px,4px")
_HEIGHT: Final = 440
_STRIP_ROW_PX: Final = 62
#: About how many characters the tiles of a row have room for.
_STRIP_CHARACTERS: Final = 90
#: Tiles of more sizes have no room for words.
_MOST_LABELLED: Final = 30
_MOST_DOUBTS: Final = 3  # that a note names


def charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The winner of every case, and time over size: of every series with percent of floor in the first timing, with all metrics for the last
    series.
    """
    best, undecided = winners.best_per_size(data, workload, timing), winners.undecided(data, workload, timing)
    if len(best):
        yield best_strip(best, look, workload, timing.label(on_gpu=data.on_gpu), undecided)
    first = timing == cells.timings(data, workload)[0]
    series = cells.series(data, workload) if len(best) or len(undecided) else ()
    for each in series if first else series[-1:]:
        frame = query.sizes(data, workload, timing, each)
        regions = query.regions(data, workload, each)
        some: tuple[Metric, ...] = ("median_ns", "percent_of_floor") if first else ("median_ns",)
        for metric in METRICS if first and each == series[-1] else some:
            if frame["size_rank"].nunique() > 1 and frame[metric].notna().any():
                yield over_size(frame, regions, look, metric)


@dataclass(frozen=True)
class _Axis:
    """How a metric is drawn, a column of `query.sizes`.

    Attributes:
        of: the figure of a point.
    """

    metric: Metric
    title: str
    write: Callable[[float], str]
    of: Callable[[Cell], Estimate]
    logarithmic: bool = True
    more_is_better: bool = True


_AXES: Final[dict[Metric, _Axis]] = {
    axis.metric: axis
    for axis in (
        _Axis("median_ns", "median time", format_duration, lambda point: point.median_ns, more_is_better=False),
        _Axis("gb_per_s", "bandwidth", format_rate, lambda point: point.gb_per_s),
        _Axis("gflop_per_s", "rate", lambda value: format_rate(value, "GFLOP/s"), lambda point: point.gflop_per_s),
        _Axis("speedup", "speedup", format_ratio, lambda point: point.speedup),
        _Axis("percent_of_floor", "% of floor", format_percent, lambda point: point.percent_of_floor, logarithmic=False),
    )
}


def over_size(
    frame: pd.DataFrame,
    regions: pd.DataFrame,
    look: Look,
    metric: Metric = "median_ns",
    shown: Collection[str] | None = None,
) -> Chart:
    """A line for each variant over size, with intervals. Sizes that fit L2 or are launch-bound are shaded.

    The axes are logarithmic, except that percent of floor has a linear axis up to 100 %.

    Args:
        frame: `query.sizes`, not empty.
        regions: `query.regions` of the same workload and series.
        shown: the variants to draw, at least one; all when None. The title tells where a variant that is left out could be
            first.
    """
    axis = _AXES[metric]
    every = frame
    frame = frame if shown is None else frame[frame["variant"].isin(shown)]
    with_metric = frame[frame[metric].notna()]
    figure = blank(look.theme, _HEIGHT)
    _shade(figure, regions, look)
    points = records(with_metric)
    for variant in dict.fromkeys(point.variant for point in points):
        _draw_line(figure, [point for point in points if point.variant == variant], look, axis)
    _draw_floor(figure, with_metric, look, axis)
    _lay_axes(figure, pd.concat([regions, with_metric]), with_metric[metric], axis)
    reference = (
        f" over {with_metric['baseline'].iloc[0]}, its fastest config" if metric == "speedup" and len(with_metric) else ""
    )
    figure.update_yaxes(title_text=text(axis.title + reference))
    figure.update_layout(legend=BESIDE, margin={"t": 34})
    first = records(frame.head(1))[0]
    of = [first.workload, first.series, first.scope, first.cache, axis.title.replace("%", "percent")]
    total = every["variant"].nunique()
    note = measured(
        with_metric if len(with_metric) else frame,
        look.device,
        "Each variant with its fastest config at each size.",
        _explain(regions),
        f"{count} of {total} variants are shown." if (count := frame["variant"].nunique()) < total else "",
        above_ceiling(with_metric) if metric == "percent_of_floor" else "",
        _passed(with_metric),
        sentence("; ".join(dict.fromkeys(filter(None, frame["no_speedup"])))),
    )
    every = every[every[metric].notna()]
    title = _title(with_metric, every, look, axis) if len(with_metric) else axis.title
    return Chart(slug("sizes", *of), title, figure, frame, note)


def _lay_axes(figure: go.Figure, sizes: pd.DataFrame, values: "pd.Series[float]", axis: _Axis) -> None:
    """Set the ticks and ends of the axes for sizes and for values of a metric, which may be none."""
    sizes = sizes.drop_duplicates("size_value").sort_values("size_value")
    labelled = sizes[sizes["size_value"].isin(spaced(sizes["size_value"]))]
    figure.update_xaxes(
        type="log",
        tickmode="array",
        tickvals=labelled["size_value"],
        ticktext=[text(size) for size in labelled["size"]],
        range=[math.log10(end) for end in _edges(sizes["size_value"])],
    )
    if len(values):
        low, high = (values.min(), values.max()) if axis.logarithmic else (0.0, max(values.max(), 100.0))
        scale = ticks(low, high, axis.write, logarithmic=axis.logarithmic)
        figure.update_yaxes(type="log" if axis.logarithmic else "linear", **scale)
        if not axis.logarithmic:
            figure.update_yaxes(range=[0, high * 1.08])


def best_strip(winners: pd.DataFrame, look: Look, workload: str, measured: str, undecided: pd.DataFrame) -> Chart:
    """The winner of every case as a strip of coloured tiles, with one row for each series and precision.

    Args:
        winners: `winners.best_per_size`, not empty.
        measured: label of the timing, by `Timing.label`.
        undecided: `winners.undecided`; the note names them.
    """
    several = winners["compared_in"].nunique() > 1
    tiles = records(winners)
    labelled = [", ".join(filter(None, (each.series, word(each.compared_in) if several else ""))) for each in tiles]
    frame = winners[list(EXPORTED)].assign(row=labelled)
    order = frame.sort_values("series", kind="stable")["row"]
    sizes, rows = list(dict.fromkeys(frame["size"])), list(dict.fromkeys(order))
    names = list(dict.fromkeys(frame["variant"]))
    number = np.full((len(rows), len(sizes)), np.nan)
    labels = np.full((len(rows), len(sizes)), "", dtype=object)
    hovers = labels.copy()
    for winner, row in zip(tiles, labelled, strict=True):
        variant = winner.variant
        at = rows.index(row), sizes.index(winner.size)
        number[at] = names.index(variant)
        own = look.style(workload, variant).precision
        name = variant if own == winner.compared_in else look.variant_name(workload, variant)
        lines = [f"<b>{text(line)}</b>" for line in _lines(name, _STRIP_CHARACTERS // len(sizes))]
        room = _STRIP_CHARACTERS // len(sizes)
        labels[at] = "<br>".join([*lines, text(_margin(winner, 1.4 * room))])
        hovers[at] = _strip_hover(winner)
    colors = apart_colors([look.style(workload, name).color for name in names], look.tones.paper)
    # The one of black and white with more contrast (W3C).
    readable = ["#000000" if luminance(color) > 0.179 else "#ffffff" for color in colors]
    edges = np.linspace(0, 1, len(names) + 1)
    scale = [[float(edge), color] for color, *ends in zip(colors, edges[:-1], edges[1:], strict=True) for edge in ends]
    figure = blank(look.theme, _STRIP_ROW_PX * len(rows) + 60)
    colored = {"zmin": -0.5, "zmax": len(names) - 0.5, "colorscale": scale, "showscale": False, "xgap": 4, "ygap": 4}
    x, y = [text(size) for size in sizes], [text(row) or "winner" for row in rows]
    figure.add_heatmap(z=number, x=x, y=y, hovertext=hovers, hoverinfo="text", **colored)
    with_words = len(sizes) <= _MOST_LABELLED
    if with_words:
        figure.layout.annotations = [
            {
                "x": column,
                "y": row,
                "text": label,
                "showarrow": False,
                "font": {"size": 11, "color": readable[int(number[row, column])]},
            }
            for (row, column), label in np.ndenumerate(labels)
            if label
        ]
    else:
        _name_colors(figure, dict(zip(names, colors, strict=True)))
    figure.update_xaxes(showgrid=False, ticks="", side="bottom")
    figure.update_yaxes(showgrid=False, ticks="", autorange="reversed")
    apart_words = " Each precision is compared with the peers of that and of higher precisions." if several else ""
    tile = "names the fastest variant, and" if with_words else "has the colour of the fastest variant; its hover text has"
    note = (
        f"{look.device}; {measured}; {samples(frame['n'])}. Each tile {tile} how much slower the next one is, paired by round. Tied: the "
        "95 % interval of that ratio holds 1, or it is within the noise of the baseline against itself, or "
        "the difference within what the clock can tell."
        f"{apart_words}{_doubts(winners, undecided)}"
    )
    return Chart(slug("best", workload, measured), _strip_title(frame, look, workload), figure, frame, note)


def _name_colors(figure: go.Figure, colors: Mapping[str, str]) -> None:
    """Join narrow tiles, and name the colours of the variants in a legend."""
    figure.update_traces(xgap=0)
    for name, color in colors.items():
        figure.add_scatter(x=[None], y=[None], mode="markers", marker={"color": color, "symbol": "square"}, name=text(name))
    figure.update_layout(legend=ABOVE, margin={"t": 34}, height=figure.layout.height + 34)


def _strip_title(frame: pd.DataFrame, look: Look, workload: str) -> str:
    """The variant that wins the most cases in each precision, or where all are tied the one that is first in the most; where none wins two
    cases, how many do. How many are tied.
    """
    first, several = [], frame["compared_in"].nunique() > 1
    for precision, cases in frame.groupby("compared_in", sort=False):
        won = cases[cases["verdict"].isin(["faster", ""])]
        most = (won if len(won) else cases)["variant"].value_counts()
        ties = len(cases) - len(won)
        tied = f", {ties} tied" * (ties > 0) if len(won) else f", tied with the next one{' in each' * (ties > 1)}"
        of_precision = f" of {word(str(precision))}" if several else ""
        if len(most) > 1 and most.iloc[0] == 1:
            first.append(f"no variant in more than 1 of {counted(len(cases), 'case')}{of_precision}{tied}")
            continue
        in_precision = "" if len(won) else of_precision
        many = f"{most.iloc[0]} of {counted(len(cases), 'case')}"
        first.append(f"{look.variant_name(workload, str(most.index[0]))} in {many}{in_precision}{tied}")
    return f"{workload}: fastest is {'; '.join(first)}"


def _doubts(winners: pd.DataFrame, undecided: pd.DataFrame) -> str:
    """Sentences about the faster cells that may not be called best; each names its case."""
    cases = [(each.case, each.passed) for of in (winners, undecided) for each in records(of[["case", "passed"]])]
    words = dict.fromkeys(f"{case}: {passed}." for case, passed in cases if passed)
    more_doubts = len(words) - _MOST_DOUBTS
    more = f" So in {more_doubts} more." if more_doubts > 0 else ""
    return "".join(f" {each}" for each in list(words)[:_MOST_DOUBTS]) + more


def _draw_line(figure: go.Figure, line: list[Cell], look: Look, axis: _Axis) -> None:
    """Draw a variant over size."""
    first = line[0]
    name = text(look.variant_name(first.workload, first.variant))
    hovers = [_hover(point, axis) for point in line]
    style, width = look.style(first.workload, first.variant), 2.2 if first.role == "rung" else 1.6
    add_points(figure, style, name, [point.size_value for point in line], map(axis.of, line), hovers, width=width)


def _draw_floor(figure: go.Figure, frame: pd.DataFrame, look: Look, axis: _Axis) -> None:
    """Draw the floor of each precision of the rungs, or of the host where there are no rungs."""
    rungs = frame[frame["role"] == "rung"] if (frame["role"] == "rung").any() else frame[frame["role"] == "host"]
    with_floor = rungs[rungs["floor_ns"].notna()].drop_duplicates(["precision", "size"]).sort_values("size_value")
    if with_floor.empty or axis.metric == "speedup":
        return
    # Where memory limits a workload, all precisions have one floor.
    one = axis.metric == "percent_of_floor" or (with_floor.groupby("size")["floor_ns"].nunique() == 1).all()
    for place, precision in enumerate([""] if one else precisions(with_floor)):
        floor = with_floor[with_floor["precision"] == precision] if precision else with_floor.drop_duplicates("size")
        dash = _FLOOR_DASHES[place % len(_FLOOR_DASHES)]
        name = f"floor{f', {word(precision)}' if precision else ''}"
        _draw_one_floor(figure, floor, look, axis, name, {"dash": dash, "width": 1.5})


def _draw_one_floor(figure: go.Figure, floor: pd.DataFrame, look: Look, axis: _Axis, name: str, line: dict[str, Any]) -> None:
    amounts = {"gb_per_s": "min_bytes", "gflop_per_s": "flops"}
    y = floor["floor_ns"] / floor["floor_ns"] * 100 if axis.metric == "percent_of_floor" else floor["floor_ns"]
    y = floor[amounts[axis.metric]] / floor["floor_ns"] if axis.metric in amounts else y
    line = {"color": look.tones.good, **line}
    # A line of one size would not be seen.
    mark = {"symbol": "line-ew", "size": _FLOOR_PX, "line": line} if len(floor) == 1 else {}
    figure.add_scatter(
        x=floor["size_value"].tolist(),
        y=y.tolist(),
        mode="markers" if mark else "lines",
        name=text(name),
        hoverinfo="skip",
        line=line,
        marker=mark,
    )


def _shade(figure: go.Figure, regions: pd.DataFrame, look: Look) -> None:
    ordered = regions.sort_values("size_value")
    values = ordered["size_value"].tolist()
    if not values:
        return
    for place, (column, label) in enumerate((("fits_l2", "fits L2"), ("launch_bound", "launch-bound"))):
        inside = ordered.loc[ordered[column], "size_value"]
        if inside.empty:
            continue
        last = values.index(inside.iloc[-1])
        left, right = _edges(values)
        end = math.sqrt(values[last] * values[last + 1]) if last + 1 < len(values) else right
        box = {"xref": "x", "yref": "paper", "x0": left, "x1": end, "y0": 0, "y1": 1}
        figure.add_shape(type="rect", layer="below", line_width=0, fillcolor=look.tones.region[place], **box)
        at = {"xref": "x", "x": math.log10(left if place else end), "yref": "paper", "y": 1, "yanchor": "bottom"}
        font = {"size": 11, "color": look.tones.muted}
        figure.add_annotation(text=label, xanchor="left" if place else "right", showarrow=False, font=font, **at)


def _edges(values: Any) -> tuple[float, float]:
    """Ends of a logarithmic axis: half the first step past the first and last value, but at most a tenth of their span."""
    ordered = sorted(set(values))
    step = min(math.sqrt(ordered[1] / ordered[0]), (ordered[-1] / ordered[0]) ** 0.1) if len(ordered) > 1 else 2.0
    return ordered[0] / step, ordered[-1] * step


def _hover(point: Cell, axis: _Axis) -> str:
    figure = axis.of(point)
    above = ", above the measured ceiling" if axis.metric == "percent_of_floor" and figure.value > 100 else ""
    figures = [(axis.title, f"{format_estimate(figure, axis.write)}{above}")]
    if axis.metric != "median_ns":
        figures.append(("median", format_duration(point.median_ns.value)))
    if axis.metric == "speedup":
        figures.append(("against", f"{point.baseline} {point.baseline_config}".strip()))
    if axis.metric == "percent_of_floor":
        figures.append(("floor", f"{format_duration(point.floor_ns)}, {point.floor_bound}, by {point.floor_ceiling}"))
    return hover(point, *figures)


def _ranked(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that can be first: rungs and peers where there is a rung, else all but ceilings."""
    has_rung = (frame["role"] == "rung").any()
    return frame[frame["role"].isin(["rung", "peer"]) if has_rung else frame["role"] != "ceiling"]


def _title(with_metric: pd.DataFrame, every: pd.DataFrame, look: Look, axis: _Axis) -> str:
    """The first at the largest size, in each precision of the rungs, among the variants that are compared in it.

    Args:
        with_metric: the rows that are shown.
        every: the same, with those that are not shown.
    """
    where = ", ".join(filter(None, (with_metric["workload"].iloc[0], with_metric["series"].iloc[0])))
    ranked = _ranked(with_metric)
    if ranked.empty:
        return f"{where}: {axis.title}"
    largest = ranked[ranked["size_rank"] == ranked["size_rank"].max()].sort_values(
        axis.metric, ascending=not axis.more_is_better
    )
    at, places = f"at {largest['size'].iloc[0]}", []
    good = largest[is_trusted(largest)]
    if good.empty:
        return f"{where}: {at}, {passed_over(largest, good)}"
    for precision in precisions(good):
        (best,) = records(compared(good, precision).head(1))
        figure = f" with {axis.write(axis.of(best).value)}"
        if axis.metric == "percent_of_floor":
            figure += f" of the {best.floor_bound} floor"
        elif axis.metric == "speedup":
            over = format_over(best.speedup.value, best.variant, best.baseline, best.verdict)
            figure = f", {over}" if over else ""
        tied = f", tied with {look.variant_name(best.workload, best.tied_with)}," if best.tied_with else ""
        places.append(f"{_name(best, precision, look)}{tied}{figure}".replace(",,", ","))
    return f"{where}: {at}, first{_of_shown(with_metric, every)} {'are' if len(places) > 1 else 'is'} {'; '.join(places)}"


def _name(best: Cell, precision: str, look: Look) -> str:
    # A peer of a higher precision can be ahead of every rung.
    ahead = f" (before any in {word(precision)})" if best.precision != precision else ""
    return f"{look.variant_name(best.workload, best.variant)}{ahead}"


def _of_shown(with_metric: pd.DataFrame, every: pd.DataFrame) -> str:
    """` of the 3 shown` where variants that could be first are left out."""
    left_out = set(_ranked(every)["variant"]) - set(with_metric["variant"])
    return f" of the {with_metric['variant'].nunique()} shown" if left_out else ""


def _passed(with_metric: pd.DataFrame) -> str:
    """A sentence about the faster cell at the largest size that may not be called best; empty without such a cell."""
    ranked = _ranked(with_metric)
    largest = ranked[ranked["size_rank"] == ranked["size_rank"].max()]
    reasons = []
    for precision in precisions(largest):
        rows = compared(largest, precision)
        good = rows[is_trusted(rows)].sort_values("median_ns", kind="stable").head(1)
        reasons.append(passed_over(rows, good))
    words = "; ".join(dict.fromkeys(filter(None, reasons)))
    return sentence(words)


def _explain(regions: pd.DataFrame) -> str:
    """Sentences about the shaded sizes."""
    words = []
    if regions["fits_l2"].any():
        words.append("Fits L2: inputs and outputs together fit in the L2 cache, so a hot cell can be faster than the floor.")
    if regions["launch_bound"].any():
        words.append("Launch-bound: the floor is below the launch latency measured in the same run.")
    return " ".join(words)


def _margin(winner: Cell, room: float) -> str:
    """The margin in words. Those of a tie do not name the other one where this takes more than `room` characters; the hover text does."""
    if not winner.margin.known:
        return "alone"
    if winner.tied:
        one, short = ("not told from", "unknown") if winner.verdict == "unknown" else ("tied with", "tied")
        words = f"{one} {winner.runner_up}"
        return words if len(words) <= room else short
    # 0.31 % says more than 1.00×.
    margin = winner.margin.value
    return f"by {format_ratio(margin) if margin >= 1.1 else format_percent(100 * (margin - 1))}"


def _lines(name: str, room: int) -> list[str]:
    """A name in lines of about `room` characters, broken before underscores."""
    lines = [""]
    for part in re.split("(?=_)", name):
        if lines[-1] and len(lines[-1]) + len(part) > room:
            lines.append("")
        lines[-1] += part
    return lines


def _strip_hover(winner: Cell) -> str:
    lines = [f"<b>{text(winner.variant)}</b> {text(winner.config)}".rstrip(), text(winner.title)]
    lines.append(f"median {text(format_estimate(winner.median_ns, format_duration))}")
    if winner.margin.known:
        ends = format_ends(winner.margin, format_ratio)
        lines.append(f"next: {text(winner.runner_up)}, {text(format_ratio(winner.margin.value))} the time ({text(ends)})")
    return "<br>".join([*lines, f"{text(winner.case)} · n = {winner.n}"])
