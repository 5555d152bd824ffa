"""The reports' figures beside ours. Each has its own axis, because the hardware differs."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.numbers import significant
from warpladder.dashboard.ui.bars import panels
from warpladder.dashboard.ui.template import SYMBOLS, Chart, Look, error_bars, free_symbol, samples, slug, text, ticks
from warpladder.dashboard.views.reports.published.conflicts import DEFINITION
from warpladder.dashboard.views.reports.published.query import ELSEWHERE, Source

#: A range of values with a larger ratio than this has a logarithmic axis.
_LOG_FROM: Final = 20.0
_HEIGHT: Final = 340


def beside_ours(frame: pd.DataFrame, source: Source, workload: str, look: Look) -> Chart:
    """Dots by case, with a colour for each variant. The left panel has the published figures, the right panel ours if any.

    Args:
        frame: `query.beside_ours` with at least one published figure.
        source: the table that the figures come from.
        workload: the workload whose variants give the colours.
    """
    frame = frame[frame["published"].notna()].reset_index(drop=True)
    shown = ["published", "ours"] if frame["ours"].notna().any() else ["published"]
    titles = {"published": f"As published: {', '.join(dict.fromkeys(frame['hardware']))}", "ours": f"Here: {look.device}"}
    figure = panels(look, [text(titles[name]) for name in shown], _HEIGHT, horizontal_spacing=0.09)
    levels, axis = _labels(frame)
    marks = _marks(frame, workload, look)
    for (variant, ours), rows in frame.groupby(["variant", "our_variant"], sort=False):
        for column, name in enumerate(shown, start=1):
            figure.add_scatter(
                x=[level[rows.index] for level in levels] if len(levels) > 1 else levels[0][rows.index],
                y=rows[name],
                mode="markers",
                row=1,
                col=column,
                name=text(str(variant)),
                legendgroup=variant,
                showlegend=column == 1,
                hoverinfo="text",
                hovertext=[_hover(row, name, look.variant_name(workload, str(ours))) for row in rows.to_dict("records")],
                marker={**marks[str(variant)], "size": 9},
                error_y=error_bars((Estimate.of(row, "ours") for row in rows.to_dict("records")), visible=name == "ours"),
            )
    unit = f"{source.quantity.replace('_', ' ')}, {'times' if frame['unit'].iloc[0] == 'x' else frame['unit'].iloc[0]}"
    for column, name in enumerate(shown, start=1):
        figure.update_xaxes(
            title_text=axis, type="multicategory" if len(levels) > 1 else "category", tickangle=0, row=1, col=column
        )
        if len(levels) == 1:
            figure.update_xaxes(categoryorder="array", categoryarray=list(dict.fromkeys(levels[0])), row=1, col=column)
        figure.update_yaxes(title_text=unit if column == 1 else "", **_scale(frame[name].dropna()), row=1, col=column)
    figure.update_layout(margin={"t": 34}, legend={"orientation": "h", "y": -0.3, "yanchor": "top", "x": 0})
    title = f"{source.label}, as published{' and here' if len(shown) > 1 else ''}"
    return Chart(slug("published", workload, source.slug), title, figure, frame, _note(frame, source))


def _marks(frame: pd.DataFrame, workload: str, look: Look) -> dict[str, dict[str, str]]:
    """Colour and symbol of each published variant: the style of our variant, or else a style from its own name.

    Where another variant has both already, the symbol is an open one.
    """
    marks: dict[str, dict[str, str]] = {}
    used: set[tuple[str, str]] = set()
    for variant, our_variant in frame[["variant", "our_variant"]].drop_duplicates().itertuples(index=False, name=None):
        style = look.style(workload, our_variant or variant)
        symbol = free_symbol(style.color, [style.symbol, *(f"{each}-open" for each in SYMBOLS)], used)
        used.add((style.color, symbol))
        marks[variant] = {"color": style.color, "symbol": symbol}
    return marks


def _scale(values: "pd.Series[float]") -> dict[str, Any]:
    """A logarithmic axis where the values need one, else a linear axis from 0."""
    if values.min() > 0 and values.max() / values.min() > _LOG_FROM:
        return {"type": "log", **ticks(float(values.min()), float(values.max()), significant, logarithmic=True)}
    return {"rangemode": "tozero"}


def _hover(row: Mapping[Any, Any], name: str, our_variant: str) -> str:
    if pd.isna(row[name]):
        return ""
    place = f"{text(row['case'])} {text(row['config'])}".strip()
    unit = "×" if row["unit"] == "x" else f" {text(row['unit'])}"
    if name == "published":
        return (
            f"<b>{text(row['variant'])}</b><br>{place}: <b>{significant(row['published'])}{unit}</b><br>{text(row['hardware'])}"
        )
    ours = Estimate.of(row, "ours")
    ends = f"{significant(ours.low)} to {significant(ours.high)}"
    how = f"{text(row['our_scope'])}, {text(row['our_cache'])} L2 · n = {row['n']}" if row["n"] else "computed"
    return (
        f"<b>{text(our_variant)}</b> {text(row['our_config'])}<br>{place}: <b>{significant(ours.value)}{unit}</b> "
        f"({ends})<br>{how}"
    )


def _labels(frame: pd.DataFrame) -> "tuple[list[pd.Series[str]], str]":
    """The labels of the rows, and the title of the axis. A label has the values of the axes that differ, and the title names these.

    Returns:
        One level of labels; two levels where two axes differ: the groups, and the labels within a group.
    """
    by_config = frame.duplicated(["variant", "case"]).any()
    labels = frame["case"] + "," + frame["config"] if by_config else frame["case"]
    points = [name.strip(",").split(",") for name in labels]
    shared = set.intersection(*(set(point) for point in points)) if len(points) > 1 else set()
    distinct = [[part for part in point if part not in shared] or point for point in points]
    names = {tuple(part.partition("=")[0] for part in point) for point in distinct}
    if len(names) == 1 and all("=" in part for point in distinct for part in point):
        axes = names.pop()
        values = [[text(part.partition("=")[2]) for part in point] for point in distinct]
        title = " within ".join(map(text, reversed(axes)))
        if len(axes) == 2:
            return [pd.Series(level, index=frame.index) for level in zip(*values, strict=True)], title
        return [pd.Series([" / ".join(value) for value in values], index=frame.index)], title
    return [pd.Series([text(", ".join(point)) for point in distinct], index=frame.index)], ""


def _note(frame: pd.DataFrame, source: Source) -> str:
    parts = []
    if source.quantity == "rate":
        parts.append(
            "Both panels count 25 operations a point, as the report does. Other pages count 50, so their GFLOP/s are twice these."
        )
    measured = frame[frame["n"] > 0]
    timings = measured[["our_scope", "our_cache"]].drop_duplicates()
    how = " and ".join(
        f"{scope.replace('_', ' ')} time, {cache} L2" for scope, cache in timings.itertuples(index=False, name=None)
    )
    if len(measured):
        parts.append(f"Here: {how}; medians with 95 % interval; {samples(measured['n'])}.")
    elif frame["ours"].notna().any():
        parts.append(f"Here: computed, not measured. {DEFINITION}")
    else:
        page = ELSEWHERE.get(source.quantity)
        parts.append(f"Our figures are on the page {page}." if page else "This run has no figure to compare with.")
    missing = frame.loc[frame["ours"].isna() & (frame["why"] != ""), "why"]
    if len(missing) and frame["ours"].notna().any():
        parts.append(f"{len(missing)} of {len(frame)} have no figure of ours: {', '.join(missing.unique())}.")
    parts.append("The report prints no spread.")
    return " ".join(parts)
