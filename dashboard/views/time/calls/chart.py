"""Bars of the kernels and calls that take the most time in a trace."""

from collections.abc import Iterator, Mapping
from typing import Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace import samples
from warpladder.dashboard.trace.describe import short_names
from warpladder.dashboard.trace.samples import Extent
from warpladder.dashboard.ui.bars import add_bars, scale
from warpladder.dashboard.ui.template import Chart, Look, blank, name_rows, slug, text
from warpladder.dashboard.ui.text import apart, cut
from warpladder.dashboard.views.time.calls import query

_BAR_PX: Final = 26
_NAME_CHARACTERS: Final = 34
_MOST_BARS: Final = 12
#: Words for the parts of a trace that can be summed.
EXTENTS: Final[Mapping[Extent, str]] = {
    "samples": "in the variants' samples, without verification, warm-up, the flush of L2 and the hold of the stream",
    "all": "in the trace",
}
_OF_EXTENT: Final[Mapping[Extent, str]] = {"samples": " in samples", "all": ""}


def leading(frame: pd.DataFrame, every: int, look: Look, what: str, extent: Extent = "all") -> Chart:
    """Bars of `query.leading`, not empty.

    Args:
        every: the number of names in the whole summary.
        what: `kernels` or `API calls`.
        extent: the part of the trace that is summed.
    """
    shown = frame.head(_MOST_BARS)
    count = "Instances" if "Instances" in frame else "Num Calls"
    color = look.tones.good if what == "kernels" else "#56B4E9"
    figure = blank(look.theme, _BAR_PX * max(len(shown), 3) + 66)
    rows = shown.to_dict("records")
    add_bars(
        figure,
        shown["Time (%)"],
        [
            f"<b>{text(cut(row['Name'], 160))}</b><br>{text(format_duration(row['Total Time (ns)']))} in {row[count]}, median "
            f"{text(format_duration(row['Med (ns)']))}<br>{text(format_percent(row['cumulative_percent']))} with those above"
            for row in rows
        ],
        marker={"color": color},
        width=0.72,
        text=[
            f" {text(format_duration(row['Total Time (ns)']))} = {row[count]} × {text(format_duration(row['Avg (ns)']))}"
            for row in rows
        ],
        textposition="outside",
        cliponaxis=False,
    )
    short = short_names(list(shown["Name"]))
    names = apart([short[name] for name in shown["Name"]], list(shown["Name"]), _NAME_CHARACTERS)
    name_rows(figure, [text(name) for name in names], look, autorange="reversed")
    longest = max(float(shown["Time (%)"].max()), 0.1)
    scale(figure, f"share of the time of all {what}{_OF_EXTENT[extent]}", longest, 2.3, format_percent, most=3)
    share = format_percent(frame["cumulative_percent"].iloc[-1])
    if every == 1:
        title = f"The only {what.removesuffix('s')}: {names[0]}"
    elif len(frame) == 1:
        title = f"1 of {every} {what} makes up {share}: {names[0]}"
    else:
        title = f"{len(frame)} of {every} {what} make up {share}: {names[0]} {format_percent(frame.iloc[0]['Time (%)'])}"
    more = f" The first {len(shown)} are drawn." if len(shown) < len(frame) else ""
    note = look.note(f"durations {EXTENTS[extent]}, summed by name; beside each bar: total = number × mean.{more}")
    return Chart(slug("trace", what), title, figure, frame, note)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The kernels and the API calls that take the most time."""
    extent = samples.extents(data)[0]
    available = query.available(data, extent)
    for name, what in (("cuda_gpu_kern_sum", "kernels"), ("cuda_api_sum", "API calls")):
        if name in available:
            frame = query.summary(data, name, extent)
            yield leading(query.leading(frame), len(frame), look, what, extent)
