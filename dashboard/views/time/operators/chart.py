"""Bars of the operators that take the most time."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.operators import place_of
from warpladder.dashboard.ui.bars import add_bars, rows_of_bars, scale
from warpladder.dashboard.ui.template import Chart, Look, slug, text
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.time.operators import query
from warpladder.dashboard.views.time.operators.query import DETAILS, By, Totals, keys

_BAR_PX: Final = 26
_MOST_BARS: Final = 15
_NAME_CHARACTERS: Final = 44
_HEAD_CHARACTERS: Final = 28
_HOVER_CHARACTERS: Final = 160
_HOTTEST: Final = 10
#: A smaller share of device time that no operator launched is not named.
_LEAST_PERCENT: Final = 0.1
#: What rows are summed by, for the note.
BY: Final[Mapping[By, str]] = {
    "name": "name",
    "shape": "name and shapes of the inputs",
    "module": "name and modules",
    "range": "name and innermost range",
    "stack": "name and stack",
}
_CALL_COLOR: Final = "#56B4E9"


def leading(frame: pd.DataFrame, totals: Totals, look: Look, by: By) -> Chart:
    """Bars of `query.operators`, not empty: self device time, or self host time where operators launched nothing."""
    device = totals.timed == "self_device_ns"
    shown = frame[frame[totals.timed] > 0].head(_MOST_BARS)
    rows = shown.to_dict("records")
    figure = rows_of_bars(look, [text(_label(row, by)) for row in rows], _BAR_PX, 66)
    add_bars(
        figure,
        shown[totals.timed],
        [_hover(row, by) for row in rows],
        width=0.72,
        marker={"color": look.tones.good if device else _CALL_COLOR},
        text=[f" {text(format_percent(row['percent']))} in {row['calls']:,} {_calls(row['calls'])}" for row in rows],
        textposition="outside",
        cliponaxis=False,
        customdata=keys(frame)[: len(rows)],
    )
    longest = max(float(shown[totals.timed].max()), 1.0) if rows else 1.0
    what = "self device time" if device else "self host time"
    scale(figure, what, longest, 1.4)
    more = f" The first {len(rows)} of {len(frame)} are drawn." if len(rows) < len(frame) else ""
    of = "all device time of the trace" if device else "the self host time of all operators"
    note = look.note(f"{what} by {BY[by]}; beside each bar: share of {of}.{more}")
    data = frame.drop(columns="number")
    return Chart(slug("operators", by), title(frame, totals, by), figure, data, note)


def title(frame: pd.DataFrame, totals: Totals, by: By) -> str:
    """The share of the first operator and of the hottest ones, and of the work that no operator launched."""
    first = frame.iloc[0]
    device = totals.timed == "self_device_ns"
    what = "device time" if device else "host time of all operators"
    detail = "" if by == "name" else first[DETAILS[by][0]]
    of = (
        {"shape": " of one shape", "module": " in one module", "range": " in one range", "stack": " at one place"}[by]
        if detail
        else ""
    )
    parts = [f"{cut(first['operator'], _NAME_CHARACTERS)}{of} takes {format_percent(first['percent'])} of the {what}"]
    if len(frame) > _HOTTEST:
        hottest = frame["percent"].head(_HOTTEST).sum()
        parts.append(f"the {'ten hottest operators' if by == 'name' else 'ten hottest rows'} take {format_percent(hottest)}")
    without = 100 * (1 - totals.launched_ns / max(totals.device_ns, 1))
    if device and without >= _LEAST_PERCENT:
        parts.append(f"no operator launched {format_percent(without)}")
    if not device:
        parts.append("operators launched no device work")
    return "; ".join(parts)


def _label(row: dict[Any, Any], by: By) -> str:
    """The name of a row, and the detail that tells it from others of that name."""
    detail = "" if by == "name" else _detail(row, by)
    if not detail:
        return cut(row["operator"], _NAME_CHARACTERS)
    name = cut(row["operator"], _HEAD_CHARACTERS)
    return f"{name} · {cut(detail, _NAME_CHARACTERS - len(name) - 3)}"


def _detail(row: dict[Any, Any], by: By) -> str:
    detail = str(row[DETAILS[by][0]])
    return place_of(detail) if by == "stack" else detail.replace(", ", ",")


def _calls(count: int) -> str:
    return "call" if count == 1 else "calls"


def _hover(row: dict[Any, Any], by: By) -> str:
    details = [f"{name}: {text(cut(row[name], _HOVER_CHARACTERS))}" for name in DETAILS[by] if row[name]]
    times = [
        f"device: self {format_duration(row['self_device_ns'])}, total {format_duration(row['device_ns'])}",
        f"host: self {format_duration(row['self_host_ns'])}, total {format_duration(row['host_ns'])}",
    ]
    head = [f"<b>{text(cut(row['operator'], _HOVER_CHARACTERS))}</b>", *details]
    return "<br>".join([*head, f"{row['calls']:,} {_calls(row['calls'])}, {row['launches']:,} launches", *map(text, times)])


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The operators that take the most time, by name."""
    if data.traces.has_operators:
        yield leading(query.operators(data), query.totals(data), look, "name")
