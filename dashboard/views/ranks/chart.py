"""A figure over ranks and iterations, and the breakdown of the ranks' time."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, hatch, name_rows, palette, patterns, text, ticks
from warpladder.dashboard.views.ranks.query import FIGURES, LEAST_SPREAD, PARTS, drawn, grid

#: More ranks are drawn as outliers and a median.
MOST_BARS: Final = 64
_OUTLIERS: Final = 16
_ROW_PX: Final = 14
_NAMES: Final = 32  # of ranks or iterations beside an axis
_MOST_WRITTEN: Final = 20_000  # cells whose figures are sent as texts
_MEANING: Final = {
    "exposed": "communication while no compute runs",
    "communication": "any communication kernel runs",
    "busy": "any device work runs",
    "idle": "no device work runs",
    "host_wait": "idle, and the next work was not launched yet",
    "kernel_wait": "idle for less than 30 µs, and the next work was launched",
    "other_idle": "idle for another reason",
    "wait": "in communication, until the last rank arrives",
}


def over_iterations(cells: pd.DataFrame, figure: str, title: str, look: Look, *, share: bool) -> Chart:
    """One figure of each rank and iteration as a heatmap.

    Args:
        cells: see `query.by_iteration`; not empty.
        figure: one of `query.FIGURES`, known for some rank.
        share: in percent of the span of the iteration; else as time.
    """
    table = grid(cells, figure, share=share)
    ranks, numbered = len(table), bool(cells["iteration"].notna().any())
    drawing = blank(look.theme, min(max(18 * ranks, 170), 420) + 60)
    columns = [str(name) for name in table.columns] if numbered else ["profile"]
    names = [str(name) for name in table.index]
    values = table.to_numpy(dtype=float)
    most = max(float(table.max().max()), 1e-9)
    write = format_percent if share else format_duration
    written = values.size <= _MOST_WRITTEN
    drawing.add_heatmap(
        z=values,
        x=columns,
        y=names,
        zmin=0,
        zmax=most,
        xgap=1 if len(columns) <= _NAMES else 0,
        ygap=1 if ranks <= 2 * _NAMES else 0,
        hoverongaps=False,
        text=[[text(write(value)) for value in row] for row in values] if written else None,
        hovertemplate=_hover_of_cell("%{text}" if written else f"%{{z:.3g}} {'%' if share else 'ns'}", numbered=numbered),
        colorscale=[[0, look.tones.grid], [1, palette(look.theme)[0 if figure == "busy" else 1]]],
        colorbar={
            "thickness": 12,
            "outlinewidth": 0,
            "tickfont": {"color": look.tones.muted, "size": 12},
            **ticks(0, most, write, logarithmic=False, most=5),
        },
    )
    drawing.update_xaxes(type="category", title_text="iteration" if numbered else "", showgrid=False, **_thinned(columns))
    drawing.update_yaxes(type="category", title_text="rank", showgrid=False, autorange="reversed", ticks="", **_thinned(names))
    of = "in percent of the span of the rank's device work" if share else "as time"
    counted = f"{ranks} ranks, {len(columns)} iterations" if numbered else f"{ranks} ranks, whose profiles have no iterations"
    note = look.note(f"colour: {FIGURES[figure]} ({_MEANING[figure]}), {of} in the iteration. {counted}.")
    rows = cells[["rank", "iteration", "span_ns", f"{figure}_ns"]]
    rows = rows.assign(percent_of_span=100 * rows[f"{figure}_ns"].astype(float) / rows["span_ns"].where(rows["span_ns"] > 0))
    return Chart("ranks-over-iterations", title, drawing, rows, note)


def _hover_of_cell(value: str, *, numbered: bool) -> str:
    return f"<b>{value}</b><br>rank %{{y}}{', iteration %{x}' if numbered else ''}<extra></extra>"


def breakdown(ranks: pd.DataFrame, look: Look) -> Chart:
    """The parts of each rank's span as stacked bars.

    Args:
        ranks: see `query.breakdown`; not empty.
    """
    rows = drawn(ranks, MOST_BARS) if len(ranks) <= MOST_BARS else drawn(ranks, _OUTLIERS + 1)
    height = _ROW_PX if len(rows) > 24 else 22
    figure = blank(look.theme, height * max(len(rows), 3) + 100)
    shades = palette(look.theme)
    colors = [shades[0], shades[1], shades[4], look.tones.muted, shades[3], look.tones.grid]
    for (part, words), color, pattern in zip(PARTS.items(), colors, patterns(colors), strict=True):
        figure.add_bar(
            x=rows[part].astype(float),
            y=list(range(len(rows))),
            orientation="h",
            name=words,
            width=0.8,
            hoverinfo="text",
            hovertext=[_hover(row, words, row[part]) for row in rows.to_dict("records")],
            marker={"color": color, "pattern": hatch(pattern, 0.15)},
        )
    every = [text(f"{row['who']} late" if row["late"] else row["who"]) for row in rows.to_dict("records")]
    names = [f"<b>{name}</b>" if late else name for name, late in zip(every, rows["late"], strict=True)]
    name_rows(figure, names, look, range=[len(rows) - 0.4, -0.6], title_text="rank")
    longest = max(float(rows["span_ns"].max()), 1.0)
    figure.update_xaxes(
        range=[0, longest], title_text="time of the profile", **ticks(0, longest, format_duration, logarithmic=False)
    )
    figure.update_layout(barmode="stack", margin={"t": 34}, legend={**ABOVE, "traceorder": "normal"})
    part = "" if len(rows) == len(ranks) else f" The {len(rows) - 1} ranks farthest from the median of {len(ranks)} are drawn."
    note = look.note(
        "sums over the whole profile. Copies alone: copies and sets while neither compute nor communication runs. Host wait: idle, and the "
        f"next work was not launched yet. Kernel wait: idle for less than 30 µs, and the next work was launched.{part}"
    )
    return Chart("ranks-breakdown", _title(ranks), figure, ranks, note)


def _title(ranks: pd.DataFrame) -> str:
    """Which rank is farthest from the median, and in what."""
    first = ranks.iloc[0]
    if pd.isna(first["distance"]):
        return "Parts of the time of each rank"
    part = next(name for name, words in PARTS.items() if words == first["differs_in"])
    apart = float(first[part]) - float(ranks[part].median())
    word = "more" if apart > 0 else "less"
    return f"Rank {first['rank']} differs most: {format_duration(abs(apart))} {word} {first['differs_in']} than the median rank"


def _hover(row: dict[Any, Any], words: str, value: float) -> str:
    who = "median of the ranks" if row["who"] == "median" else f"rank {row['who']}"
    share = 100 * value / row["span_ns"] if row["span_ns"] else 0.0
    return f"<b>{who}</b><br>{words}: <b>{format_duration(value)}</b>, {text(format_percent(share))} of its span"


def _thinned(names: list[str]) -> dict[str, Any]:
    """Every n-th name beside a categorical axis, so that they have room."""
    step = -(-len(names) // _NAMES)
    return {"tickmode": "array", "tickvals": names[::step], "ticktext": [text(name) for name in names[::step]]}


#: How the distance of a table's row is told.
DISTANCE: Final = (
    "How far the rank is from the median rank, in the part of its time in which it is farthest, in units of the ranks' spread: 1.4826 "
    f"times the median absolute deviation, and at least {100 * LEAST_SPREAD:.1f} % of the span."
)
