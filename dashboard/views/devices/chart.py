"""The variants of a case on two devices: two marks a row, in time, in percent of each device's floor, or as a ratio."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare.side_by_side import Contest, Pair, SideBySide, labels
from warpladder.dashboard.core.cell import Cell, Estimate
from warpladder.dashboard.core.numbers import format_duration, format_estimate, format_ratio
from warpladder.dashboard.ui.template import (
    ABOVE,
    Chart,
    Look,
    above_ceiling,
    blank,
    error_bars,
    heading_right,
    hover,
    name_rows,
    palette,
    samples,
    share_of_floor,
    slug,
    text,
    ticks,
    timing,
    word_right,
)
from warpladder.dashboard.views.devices import query
from warpladder.dashboard.views.devices.query import Rate

Show = Literal["time", "floor", "ratio"]

_ROW_PX: Final = 30
_LEAST_PX: Final = 190
#: Half the distance of the two marks of a row.
_APART: Final = 0.2
#: The devices differ in print by the form and the filling of their marks.
_SYMBOLS: Final = ("circle", "diamond-open")
#: Left edges of the columns of words, in pixels from the right end of the plot.
_COLUMNS: Final = {"a": 8, "b": 78, "ratio": 148, "wins": 224}
_COLUMNS_PX: Final = 286
_BAR_RANGE: Final = 20.0


@dataclass(frozen=True)
class Shown:
    """What a chart is of.

    Attributes:
        found: of one case.
        devices: the short names of A and B.
        about: devices and runs in full, for the note.
        rates: the ceilings of both.
    """

    found: SideBySide
    devices: tuple[str, str]
    about: str
    rates: tuple[Rate, ...]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return self.found.pairs

    @property
    def contests(self) -> tuple[Contest, ...]:
        return self.found.contests


def variants(shown: Shown, look: Look, show: Show) -> Chart:
    """The variants of a case on both devices, in the order of the ladder."""
    pairs = shown.pairs
    figure = blank(look.theme, max(_ROW_PX * len(pairs) + 100, _LEAST_PX))
    if show == "ratio":
        _ratios(figure, shown, look)
    else:
        _marks(figure, shown, look, show)
    name_rows(figure, [_name(pair, shown, look) for pair in pairs], look, range=[len(pairs) - 0.4, -0.7], zeroline=False)
    figure.update_layout(
        legend=ABOVE, margin={"r": _COLUMNS_PX, "t": 44}, annotations=[*figure.layout.annotations, *_words(shown, look)]
    )
    first = pairs[0].a
    by_variant = {pair.a.variant: pair for pair in pairs}
    titles: dict[Show, Callable[[], str]] = {
        "time": lambda: query.headline(shown.contests, by_variant, shown.devices),
        "floor": lambda: query.reached(shown.contests, by_variant, shown.devices),
        "ratio": lambda: query.against_rates(shown.contests, by_variant, shown.devices, shown.rates),
    }
    name = slug("devices", first.workload, first.case, first.scope, first.cache, show)
    title = f"{first.workload}, {first.case}: {titles[show]()}"
    return Chart(name, title, figure, query.frame_of(pairs), _note(shown, show))


def _marks(figure: go.Figure, shown: Shown, look: Look, show: Show) -> None:
    pairs = shown.pairs
    of: Callable[[Cell], Estimate] = lambda cell: cell.median_ns if show == "time" else cell.percent_of_floor  # noqa: E731
    for row, pair in enumerate(pairs):
        ends, line = [of(pair.a).value, of(pair.b).value], {"color": look.tones.grid, "width": 2}
        figure.add_scatter(x=ends, y=[row - _APART, row + _APART], mode="lines", line=line, hoverinfo="skip", showlegend=False)
    looks = zip(shown.devices, labels(shown.devices), _SYMBOLS, palette(look.theme), strict=False)
    for side, (device, label, symbol, color) in enumerate(looks):
        cells = [pair.b if side else pair.a for pair in pairs]
        figure.add_scatter(
            x=[of(cell).value for cell in cells],
            y=[row + (_APART if side else -_APART) for row in range(len(pairs))],
            mode="markers",
            cliponaxis=False,
            name=text(device if device == label else f"{label}: {device}"),
            marker={"color": color, "symbol": symbol, "size": 9, "line": {"width": 2, "color": color}},
            error_x=error_bars([of(cell) for cell in cells], color=color, width=0),
            hoverinfo="text",
            hovertext=[f"{text(device)}<br>{_hover(cell)}" for cell in cells],
        )
    figures = [of(cell) for pair in pairs for cell in (pair.a, pair.b) if of(cell).known]
    highest, least = max(each.high for each in figures), min(each.low for each in figures)
    if show == "floor":
        figure.add_vline(x=100, line={"color": look.tones.good, "width": 1.5, "dash": "dot"})
        axis: dict[str, Any] = {"tickvals": [0, 25, 50, 75, 100], "range": [0, 1.05 * max(highest, 100)], "ticksuffix": " %"}
        figure.update_xaxes(title_text="share of the floor of each device", **axis)
    else:
        logarithmic = highest > _BAR_RANGE * least
        figure.update_xaxes(
            title_text="median time, log scale" if logarithmic else "median time",
            type="log" if logarithmic else "linear",
            rangemode="normal" if logarithmic else "tozero",
            tickangle=0,
            # The narrowest window has room for two labels side by side where 1, 2 and 5 of a decade are labelled.
            **ticks(
                least if logarithmic else 0, highest, format_duration, logarithmic=logarithmic, most=3 if logarithmic else 5
            ),
        )


def _ratios(figure: go.Figure, shown: Shown, look: Look) -> None:
    """A mark a row, with a line for each ceiling of memory and arithmetic."""
    pairs = shown.pairs
    ratios = [pair.ratio for pair in pairs]
    rates = [rate for rate in shown.rates if rate.of_work]
    figure.add_scatter(
        x=[ratio.value for ratio in ratios],
        y=list(range(len(pairs))),
        mode="markers",
        showlegend=False,
        marker={"color": look.tones.text, "size": 9},
        error_x=error_bars(ratios, color=look.tones.text),
        hoverinfo="text",
        hovertext=[_hover_of_ratio(pair, shown) for pair in pairs],
    )
    for rate, color, dash in zip(rates, palette(look.theme), ("dash", "dot", "dashdot"), strict=False):
        figure.add_scatter(
            x=[rate.ratio, rate.ratio],
            y=[-0.7, len(pairs) - 0.4],
            mode="lines",
            name=f"{text(rate.what)} {format_ratio(rate.ratio)}",
            line={"color": color, "width": 1.5, "dash": dash},
            hoverinfo="skip",
        )
    known = [ratio for ratio in ratios if ratio.known]
    ends = [*(rate.ratio for rate in rates), *(ratio.low for ratio in known), *(ratio.high for ratio in known), 1.0]
    low, high = 0.97 * min(ends), 1.03 * max(ends)
    figure.update_xaxes(
        title_text=f"time on the {text(shown.devices[1])} over the {text(shown.devices[0])}",
        **({"type": "log"} if high > 10 * low else {"range": [low, high]}),
        **ticks(low, high, format_ratio, logarithmic=high > 10 * low),
    )


def _name(pair: Pair, shown: Shown, look: Look) -> str:
    name = text(look.variant_name(pair.a.workload, pair.a.variant))
    doubted = " ⚠" if (pair.a.case, pair.a.variant) in shown.found.doubted else ""
    return f"{f'<b>{name}</b>' if pair.wins else name}{'' if pair.same_source else ' ≠'}{doubted}"


def _words(shown: Shown, look: Look) -> list[dict[str, Any]]:
    """Columns right of the plot: both times, their ratio, and where the variant wins."""
    a, b = labels(shown.devices)
    heads = {"a": a, "b": b, "ratio": f"{b} / {a}", "wins": "wins on"}
    wins = {"both": "both", "A": a, "B": b, "": ""}
    items = [heading_right(head, _COLUMNS[column], look) for column, head in heads.items()]
    for row, pair in enumerate(shown.pairs):
        times = (format_duration(cell.median_ns.value) for cell in (pair.a, pair.b))
        figures = (*times, format_ratio(pair.ratio.value), wins[pair.wins])
        tones = (*(look.tones.text,) * 3, look.tones.good if pair.wins == "both" else look.tones.bad)
        items += [word_right(*each) for each in zip(figures, _COLUMNS.values(), (row,) * 4, tones, strict=True)]
    return items


def _hover(cell: Cell) -> str:
    figures = [("median", format_estimate(cell.median_ns, format_duration))]
    if cell.percent_of_floor.known:
        figures.append(share_of_floor(cell))
    return hover(cell, *figures)


def _hover_of_ratio(pair: Pair, shown: Shown) -> str:
    lines = [f"<b>{text(pair.a.variant)}</b>", f"{text(format_estimate(pair.ratio, format_ratio))} the time"]
    for device, cell in zip(shown.devices, (pair.a, pair.b), strict=True):
        config = f" [{cell.config}]" if cell.config else ""
        lines.append(f"{text(device)}: {text(format_estimate(cell.median_ns, format_duration))}{text(config)}, n = {cell.n}")
    lines += [f"the floors: {text(format_ratio(pair.of_floors))}"] if pair.of_floors > 0 else []
    return "<br>".join(lines)


def _note(shown: Shown, show: Show) -> str:
    pairs = shown.pairs
    first = pairs[0].a
    parts = [
        f"{shown.about}; {timing(first.scope, first.cache, first.gpus)}; medians with 95 % intervals; "
        f"{samples(cell.n for pair in pairs for cell in (pair.a, pair.b))}.",
        "Each variant with its fastest config on each device. Bold: no rival in its precision is faster beyond the noise of the case.",
        "Ratio: time on B over A, of two separate runs, so that clocks and software may differ too.",
    ]
    unlike = [pair for pair in pairs if pair.unlike_floors and pair.a.percent_of_floor.known and pair.b.percent_of_floor.known]
    if show == "floor" and unlike:
        names = "all variants" if len(unlike) == len(pairs) else ", ".join(pair.a.variant for pair in unlike)
        of_a, of_b = (
            f"{cell.floor_ceiling} on the {on}" for cell, on in zip((unlike[0].a, unlike[0].b), shown.devices, strict=True)
        )
        parts.append(f"The floors of {names} come from different ceilings, as from {of_a} and {of_b}.")
    if show == "floor":
        cells = [cell for pair in pairs for cell in (pair.a, pair.b)]
        frame = pd.DataFrame({"percent_of_floor": cell.percent_of_floor.value, "cache": cell.cache} for cell in cells)
        parts.append(above_ceiling(frame))
    if any(not pair.same_source for pair in pairs):
        parts.append("≠: the sources of the two runs differ.")
    if any((pair.a.case, pair.a.variant) in shown.found.doubted for pair in pairs):
        parts.append("⚠: distrusted on one device, so in no contest.")
    for device, alone in zip(shown.devices, shown.found.alone, strict=True):
        parts += [f"On the {device} alone: {', '.join(alone)}."] if alone else []
    return " ".join(filter(None, parts))
