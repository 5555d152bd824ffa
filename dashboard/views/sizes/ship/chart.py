"""How much slower than the fastest each variant is, over the sizes."""

import math
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Cell, Timing
from warpladder.dashboard.core.numbers import format_duration, format_ends, format_estimate, format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import (
    BESIDE,
    Chart,
    Look,
    add_points,
    blank,
    bold_name,
    samples,
    slug,
    spaced,
    text,
    ticks,
)
from warpladder.dashboard.views.sizes.ship import query
from warpladder.dashboard.views.sizes.ship.code import doubts, title
from warpladder.dashboard.views.sizes.ship.dispatch import axis_of
from warpladder.dashboard.views.sizes.ship.query import ALL, Contest, Shipment, loss_of, standings
from warpladder.data.words import first_of

#: The axis ends between these losses in percent, so that slow variants do not press the others together.
_LEAST, _MOST = 5.0, 100.0
_MOST_NAMES: Final = 6  # variants that a note names


def charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The losses in the first timing, for each precision with a choice."""
    if timing != cells.timings(data, workload)[0]:
        return
    for precision in query.precisions_of(data, workload, timing):
        contest = query.contest(data, workload, timing, precision)
        if len(contest.variants) > 1:
            yield losses(contest, query.recommended(query.shipments(contest)), look)


def losses(contest: Contest, shipped: Shipment, look: Look, series: str = ALL) -> Chart:
    """A line for each variant over the size, or dots over the cases where these vary in several axes.

    The axis ends a little above the largest loss of a shipped variant, at most at 100 %.

    Args:
        shipped: is drawn in bold.
        series: the series of the contest, for the chart's name.
    """
    own = [place for place in contest.ranking if place.variant in shipped.variants]
    top = min(max(1.15 * max(loss_of(place.ratio).value for place in own), _LEAST), _MOST)
    ordered = sorted(standings(contest), key=lambda each: each.variants[0] not in shipped.variants)
    names = [each.variants[0] for each in ordered]
    lines = {name: [place for place in contest.ranking if place.variant == name] for name in names}
    drawn = {name: line for name, line in lines.items() if min(loss_of(place.ratio).value for place in line) <= top}
    figure = blank(look.theme, 340)
    along = bool(axis_of(contest)) and len(contest.cases) > 1
    at = {case.case: case.size_value if along else float(number) for number, case in enumerate(contest.cases)}
    for variant, line in drawn.items():
        ordered_line = sorted(line, key=lambda place: at[place.case])
        _draw(figure, ordered_line, at, look, contest.workload, bold=variant in shipped.variants, along=along)
    _size_axis(figure, contest, at, along)
    figure.update_yaxes(title_text="slower than the fastest, %", **ticks(0.0, top, significant, logarithmic=False))
    figure.update_yaxes(range=[-0.03 * top, 1.04 * top])
    figure.update_layout(legend=BESIDE)
    outside = max(loss_of(place.ratio).value for line in drawn.values() for place in line) > 1.04 * top
    left_out = first_of([name for name in lines if name not in drawn], _MOST_NAMES)
    note = look.note(
        f"{contest.timing.label(on_gpu=look.on_gpu)}; ratios of medians paired by round, with 95 % intervals; "
        f"{samples(place.n for place in contest.ranking)}. Each variant with its fastest config at each case; bold: shipped."
        + (f" Always more than {significant(top, 2)} % slower, and not drawn: {left_out}." if left_out else "")
        + (f" Losses above {significant(top, 2)} % are outside of the chart." if outside else "")
        + (f" {'; '.join(doubts(contest))}." if contest.doubts else "")
    )
    shown, timing = "" if series == ALL else series, contest.timing
    name = slug("ship", contest.workload, shown, contest.precision, timing.scope, timing.cache)
    return Chart(name, title(contest, shipped), figure, frame_of(contest), note)


def frame_of(contest: Contest) -> pd.DataFrame:
    """The ranking of each case, a row for each variant and case. Times are in nanoseconds, losses in percent."""
    cases = {case.case: case for case in contest.cases}
    return pd.DataFrame([_row(contest, place, cases[place.case].size_value) for place in contest.ranking])


def _row(contest: Contest, place: Cell, size_value: float) -> dict[str, Any]:
    return {
        "workload": contest.workload,
        "precision": contest.precision,
        "case": place.case,
        "size_value": size_value,
        "group": place.group,
        "variant": place.variant,
        "config": place.config,
        "tied_with": "" if place.variant == place.leader else place.leader,
        **place.median_ns.columns("median_ns"),
        **loss_of(place.ratio).columns("slower_percent"),
        "n": place.n,
    }


def _draw(
    figure: go.Figure, line: list[Cell], at: dict[str, float], look: Look, workload: str, *, bold: bool, along: bool
) -> None:
    name = line[0].variant
    style = look.style(workload, name)
    shown = text(look.variant_name(workload, name))
    add_points(
        figure,
        style,
        f"<b>{shown}</b>" if bold else shown,
        [at[place.case] for place in line],
        [loss_of(place.ratio) for place in line],
        map(_hover, line),
        size=9 if bold else 7,
        width=(3 if bold else 1.2) * along,
        opacity=1 if bold else 0.7,
    )


def _size_axis(figure: go.Figure, contest: Contest, at: dict[str, float], along: bool) -> None:
    if not along:
        labels = [text(case.case) for case in contest.cases]
        figure.update_xaxes(tickmode="array", tickvals=list(at.values()), ticktext=labels, range=[-0.5, len(at) - 0.5])
        return
    shown = spaced(at.values())
    cases = [case for case in contest.cases if case.size_value in shown]
    step = (max(at.values()) / min(at.values())) ** 0.03
    ends = [math.log10(min(at.values()) / step), math.log10(max(at.values()) * step)]
    figure.update_xaxes(
        type="log",
        tickmode="array",
        tickvals=[case.size_value for case in cases],
        ticktext=[text(case.size) for case in cases],
        range=ends,
    )


def _hover(place: Cell) -> str:
    tied = f", tied with {place.leader}" if place.variant != place.leader else ""
    lines = [
        bold_name(place.variant, place.config),
        f"slower by <b>{text(format_percent(loss_of(place.ratio).value))}</b> ({text(format_ends(loss_of(place.ratio), format_percent))})",
        f"median {text(format_estimate(place.median_ns, format_duration))}",
        text(f"group {place.group}{tied}"),
        f"{text(place.case)} · n = {place.n}",
    ]
    return "<br>".join(lines)
