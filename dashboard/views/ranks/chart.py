"""A figure over ranks and iterations, and the breakdown of the ranks' time."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import LEGEND, add_bars, rank_map, rows_of_bars, scale
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, hatch, palette, patterns, text
from warpladder.dashboard.views.ranks import query
from warpladder.dashboard.views.ranks.query import FIGURES, LEAST_SPREAD, PARTS, drawn, grid, parts

#: More ranks are drawn as outliers and a median.
MOST_BARS: Final = 64
_OUTLIERS: Final = 16
_ROW_PX: Final = 14
_LANE_PX: Final = 30
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
    numbered = bool(cells["iteration"].notna().any())
    color = palette(look.theme)[0 if figure == "busy" else 1]
    drawing = rank_map(table, look, color, format_percent if share else format_duration, "%" if share else "ns")
    of = "in percent of the span of the rank's device work" if share else "as time"
    counted = f"iterations: {table.shape[1]}" if numbered else "the profiles have no iterations"
    note = look.note(f"colour: {FIGURES[figure]} ({_MEANING[figure]}), {of} in the iteration. Ranks: {len(table)}; {counted}.")
    rows = cells[["rank", "iteration", "span_ns", f"{figure}_ns"]]
    rows = rows.assign(percent_of_span=100 * rows[f"{figure}_ns"].astype(float) / rows["span_ns"].where(rows["span_ns"] > 0))
    return Chart("ranks-over-iterations", title, drawing, rows, note)


def gantt(rows: pd.DataFrame, look: Look) -> Chart:
    """The micro-batches of a pipeline as bars over the time of an iteration.

    Args:
        rows: see `query.passes`; not empty.
    """
    lanes = list(dict.fromkeys(zip(rows["stage"], rows["rank"], strict=True)))[:MOST_BARS]
    place = {rank: number for number, (_, rank) in enumerate(lanes)}
    names = [f"stage {stage}, rank {rank}" for stage, rank in lanes]
    figure = rows_of_bars(look, names, _LANE_PX, 100, title_text="")
    for kind, words, color in (("F", "forward", palette(look.theme)[0]), ("B", "backward", palette(look.theme)[1])):
        own = rows[(rows["pass"] == kind) & rows["rank"].isin(place)]
        lasts = (own["end_ns"] - own["start_ns"]).tolist()
        each = zip(own["rank"], own["number"], map(format_duration, lasts), strict=True)
        add_bars(
            figure,
            lasts,
            [f"rank {rank}, {words} {number}: {duration}" for rank, number, duration in each],
            base=own["start_ns"].tolist(),
            y=[place[rank] for rank in own["rank"]],
            width=0.8,
            name=words,
            text=[f"{kind}{number}" for number in own["number"]],
            textposition="inside",
            marker={"color": color},
        )
    scale(figure, "time in the last iteration", float(rows["end_ns"].max()))
    figure.update_layout(barmode="overlay", legend=ABOVE)
    note = look.note(
        "bars begin and end with messages; gaps are waiting and transfer. On the last stage, a third of a micro-batch is drawn as forward."
    )
    return Chart("ranks-pipeline", "Micro-batches of the pipeline", figure, rows, note)


def routes(rows: pd.DataFrame, look: Look) -> Chart:
    """Rows from rank to rank as a heatmap.

    Args:
        rows: see `query.routed`; not empty.
    """
    total = rows.sum()
    share = format_percent(100 * float(total.max()) / float(total.sum()))
    drawing = rank_map(rows, look, palette(look.theme)[1], lambda value: f"{value:,.0f}", "rows")
    drawing.update_xaxes(title_text="to the experts of rank")
    note = look.note("colour: rows that a rank (down) sends to the experts of a rank (across), over all dispatches.")
    long = rows.rename_axis("from").reset_index().melt("from", var_name="to", value_name="rows")
    return Chart("ranks-experts", f"The experts of rank {total.idxmax()} get {share} of all rows", drawing, long, note)


def breakdown(ranks: pd.DataFrame, look: Look) -> Chart:
    """The parts of each rank's span as stacked bars.

    Args:
        ranks: see `query.breakdown`; not empty.
    """
    rows = drawn(ranks, MOST_BARS) if len(ranks) <= MOST_BARS else drawn(ranks, _OUTLIERS + 1)
    every = [text(f"{row['who']} late" if row["late"] else row["who"]) for row in rows.to_dict("records")]
    names = [f"<b>{name}</b>" if late else name for name, late in zip(every, rows["late"], strict=True)]
    figure = rows_of_bars(look, names, _ROW_PX if len(rows) > 24 else 22, 100, title_text="rank")
    shades = palette(look.theme)
    colors = dict(zip(PARTS, [shades[0], shades[5], shades[1], shades[4], look.tones.muted, shades[3], shades[7]], strict=True))
    shown = parts(ranks)
    of_parts = [colors[name] for name in shown]
    for (part, words), color, pattern in zip(shown.items(), of_parts, patterns(of_parts), strict=True):
        add_bars(
            figure,
            rows[part].astype(float),
            [_hover(row, words, row[part]) for row in rows.to_dict("records")],
            name=words,
            width=0.8,
            marker={"color": color, "pattern": hatch(pattern, 0.15)},
        )
    scale(figure, "time of the profile", max(float(rows["span_ns"].max()), 1.0))
    figure.update_layout(barmode="stack", **LEGEND)
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
    if not first["differs_in"]:
        return "No rank differs much from the median rank"
    part = next(name for name, words in PARTS.items() if words == first["differs_in"])
    apart = float(first[part]) - float(ranks[part].median())
    word = "more" if apart > 0 else "less"
    return f"Rank {first['rank']} differs most: {format_duration(abs(apart))} {word} {first['differs_in']} than the median rank"


def _hover(row: dict[Any, Any], words: str, value: float) -> str:
    who = "median of the ranks" if row["who"] == "median" else f"rank {row['who']}"
    if pd.isna(value):
        return f"<b>{who}</b><br>{words}: not known"
    share = 100 * value / row["span_ns"] if row["span_ns"] else 0.0
    return f"<b>{who}</b><br>{words}: <b>{format_duration(value)}</b>, {text(format_percent(share))} of its span"


#: How the distance of a table's row is told.
DISTANCE: Final = (
    "How far the rank is from the median rank, in the part of its time in which it is farthest, in units of the ranks' spread: 1.4826 "
    f"times the median absolute deviation, and at least {100 * LEAST_SPREAD:.1f} % of the span."
)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """Exposed communication over ranks and iterations, or the first figure that is known, the breakdown of the ranks' time, the pipeline and the experts."""
    if data.job:
        cells = query.by_iteration(data)
        yield over_iterations(cells, query.known_figures(cells)[0], query.answer(data).sentence, look, share=True)
        yield breakdown(query.breakdown(data), look)
        if len(passes := query.passes(data)):
            yield gantt(passes, look)
        if len(rows := query.routed(data)):
            yield routes(rows, look)
