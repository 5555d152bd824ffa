"""What more GPUs give, over their number."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.ui.numbers import format_duration, format_estimate, format_percent, format_ratio
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, slug, stack_shares, text
from warpladder.dashboard.ui.ticks import ticks
from warpladder.dashboard.views.gpus.query import PARTS

_HEIGHT: Final = 400
#: Times further apart than this cannot be told on one linear axis.
_LINEAR_RANGE: Final = 20.0
_SHARE_ROW_PX: Final = 16
_APART: Final = (
    "A rank is one process with one GPU, or none on the host; the time of a round is that of its slowest rank. Each number of ranks is a launch "
    "of its own, so that ratios are not paired by round."
)
_PART_LOOKS: Final = dict(zip(PARTS.values(), (("#56B4E9", "\\"), ("#E69F00", "/"), ("#CC79A7", "x")), strict=True))


@dataclass(frozen=True)
class _Panel:
    """One panel of lines over the number of ranks."""

    column: str
    title: str
    write: Callable[[float], str]
    ideal: Callable[[int], float] | None
    #: What a hover says that the figure is.
    label: str
    #: Marks beside each other, for intervals that would lie over each other.
    dodged: bool = False


_SPEEDUP: Final = _Panel("speedup", "speedup over one rank", format_ratio, float, "speedup over one")
_EFFICIENCY: Final = _Panel("efficiency", "efficiency", format_percent, lambda ranks: 100.0, "efficiency")
_TIME: Final = _Panel("median_ns", "median time", format_duration, None, "median")
_WEAK: Final = _Panel("weak_efficiency", "weak-scaling efficiency", format_percent, lambda ranks: 100.0, "efficiency")
_SKEW: Final = _Panel("skew", "largest less smallest, of the largest", format_percent, None, "skew", dodged=True)


def ranks_words(ranks: int, *, on_gpu: bool) -> str:
    """`1 GPU`, `4 GPUs`, or on the host `2 processes`."""
    one, more = ("GPU", "GPUs") if on_gpu else ("process", "processes")
    return f"{ranks} {one if ranks == 1 else more}"


def strong(frame: pd.DataFrame, look: Look) -> Chart:
    """Speedup and efficiency of one case over the number of ranks, a line a variant, the ideal as a line.

    Args:
        frame: `query.scaling` of one case, not empty.
    """
    first = frame.iloc[0]
    figure = _panels(frame, look, _SPEEDUP, _EFFICIENCY)
    known = frame[frame["speedup"].notna() & (frame["ranks"] > 1)]
    title = f"{first['workload']}, {first['case']}: no time of one rank to compare with"
    if len(known):
        most = known[known["ranks"] == known["ranks"].max()]
        fastest = most.nsmallest(1, "median_ns").iloc[0]
        title = (
            f"{first['workload']}, {first['case']}: {_who(fastest)} take {look.named(first['workload'], fastest['variant'])} to "
            f"{_with_ends(fastest, 'speedup', format_ratio)}, {format_percent(fastest['efficiency'])} of ideal"
        )
        if len(most) > 1:
            top = most.nlargest(1, "speedup").iloc[0]
            if top["variant"] != fastest["variant"]:
                title += f"; {look.named(first['workload'], top['variant'])} gains most, {format_ratio(top['speedup'])}"
    name = slug("gpus", first["workload"], first["case"], first["scope"], first["cache"], "speedup")
    return Chart(name, title, figure, frame, _note(frame, look, "Each variant with its fastest config at each number.", _APART))


def weak(frame: pd.DataFrame, look: Look) -> Chart:
    """Time and efficiency where every rank has as much to do as one had alone, a line a variant.

    Args:
        frame: `query.weak` of one `per_rank`, not empty.
    """
    first = frame.iloc[0]
    each = f"{first['axis']} {first['per_rank']:,.0f} a rank"
    most = frame[frame["ranks"] == frame["ranks"].max()]
    top, least = (pick(1, "weak_efficiency").iloc[0] for pick in (most.nlargest, most.nsmallest))
    title = f"{first['workload']}, {each}: {look.named(first['workload'], top['variant'])} keeps {format_percent(top['weak_efficiency'])} on {_who(top)}"
    if top["variant"] != least["variant"]:
        title += f", {look.named(first['workload'], least['variant'])} {format_percent(least['weak_efficiency'])}"
    name = slug("gpus", first["workload"], "weak", f"{first['per_rank']:.0f}", first["scope"], first["cache"])
    note = _note(
        frame,
        look,
        f"Weak scaling: {each} at every number. Efficiency: time of one rank over that of these, in percent.",
        _APART,
    )
    return Chart(name, title, _panels(frame, look, _TIME, _WEAK), frame, note)


def skew(frame: pd.DataFrame, look: Look) -> Chart:
    """How far the ranks of a round are apart, in one case, a line a variant.

    Args:
        frame: `query.scaling` of one case, with a row of several ranks.
    """
    frame = frame[frame["skew"].notna()]
    first, worst = frame.iloc[0], frame.nlargest(1, "skew").iloc[0]
    title = (
        f"{first['workload']}, {first['case']}: the ranks of a round are up to {format_percent(worst['skew'])} apart in the median, "
        f"{look.named(first['workload'], worst['variant'])} on {_who(worst)}"
    )
    note = _note(
        frame, look, "Skew: in each round the largest time of a rank less the smallest, in percent of the largest; median over rounds.",
        "A rank is one process with one GPU, or none on the host.",
    )  # fmt: skip
    name = slug("gpus", first["workload"], first["case"], first["scope"], first["cache"], "skew")
    return Chart(name, title, _panels(frame, look, _SKEW), frame, note)


def shares(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked shares of copies and of communication in the whole, of one variant: a bar a case and number of ranks.

    Args:
        frame: `query.shares` of one variant, not empty.
    """
    first = frame.iloc[0]
    keys = frame.drop_duplicates(["case", "ranks"])
    labels = {
        (row["case"], row["ranks"]): f"{text(row['case'])}, {_who(row)}  {text(format_duration(row['median_ns']))}"
        for row in keys.to_dict("records")
    }
    figure = blank(look.theme, _SHARE_ROW_PX * len(labels) + 84)
    for part, (color, pattern) in _PART_LOOKS.items():
        rows = frame[frame["part"] == part].to_dict("records")
        if rows:
            figure.add_bar(
                x=[row["share"] for row in rows], y=[labels[row["case"], row["ranks"]] for row in rows], orientation="h", name=part,
                marker={"color": color, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 5, "solidity": 0.2}}, hoverinfo="text",
                hovertext=[_hover(row, (part, _with_ends(row, "share", format_percent)), *_beside_nccl(row)) for row in rows],
            )  # fmt: skip
    figure.update_layout(
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"t": 30, "r": 28},
        showlegend=True,
        bargap=0.25,
    )
    stack_shares(figure, labels.values(), look)
    scope = first["scope"].replace("_", " ")
    figure.update_xaxes(title={"text": f"share of the slowest rank's {scope} time", "standoff": 12})
    last = frame[frame["size_rank"] == frame["size_rank"].max()]
    last = last[last["case"] == last["case"].iloc[-1]]
    sums = last.groupby("ranks")["share"].sum()
    told = [
        f"{format_percent(share)} on {ranks_words(count, on_gpu=_on_gpu(first))}"
        for count, share in zip(sums.index.tolist(), sums, strict=True)
    ]
    parts = list(dict.fromkeys(last["part"]))
    what = parts[0] if len(parts) == 1 else "communication and copies" if "communication" in parts else "copies"
    name = look.named(first["workload"], first["variant"])
    title = f"{name}, {last['case'].iloc[0]}: {what} are {', '.join(told)}"
    title = title.replace("communication are", "communication is")
    note = (
        f"{look.device}; {_timing(first)}; of each round's slowest rank, medians over rounds; {samples(frame['n'])}. What is left of a bar "
        f"is kernels, launches and waiting. {_on_phases(frame)}"
    )
    return Chart(slug("gpus", first["workload"], first["variant"], first["scope"], "shares"), title, figure, frame, note)


def _beside_nccl(row: dict[Any, Any]) -> list[tuple[str, str]]:
    """What a hover says of communication: its time without the wait for other ranks, and NCCL's own."""
    if pd.isna(row["least_ns"]):
        return []
    least = [("without waiting for a rank", format_duration(row["least_ns"]))]
    if pd.isna(row["alone_ns"]):
        return least
    alone = f"{format_duration(row['alone_ns'])}, {format_ratio(row['least_ns'] / row['alone_ns'])}"
    return [*least, ("NCCL alone, and over it", alone)]


def _on_phases(frame: pd.DataFrame) -> str:
    known = frame[frame["part"] == "communication"]
    if known.empty:
        return "Phases that overlap may exceed 100 %; a variant whose copies overlap its kernels has none."
    how = ", launch by launch, also where other kernels hide it" if _on_gpu(known.iloc[0]) else ""
    said = f"Communication: its own time{how}, the wait for slower ranks included."
    last = known[(known["size_rank"] == known["size_rank"].max()) & known["alone_ns"].notna()]
    told = [f"{format_ratio(row['least_ns'] / row['alone_ns'])} on {_who(row)}" for row in last.to_dict("records")]
    return f"{said} Without that wait, over NCCL's own time for as many bytes: {', '.join(told)}." if told else said


def _panels(frame: pd.DataFrame, look: Look, *panels: _Panel) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(panels), horizontal_spacing=0.09, figure=blank(look.theme, _HEIGHT))
    counts = sorted({int(ranks) for ranks in frame["ranks"]})
    span = float(counts[-1] - counts[0] or 1)
    margin = 0.08 * span if len(counts) > 1 else 0.5
    for place, panel in enumerate(panels, start=1):
        if panel.ideal:
            figure.add_scatter(
                x=counts, y=[panel.ideal(count) for count in counts], mode="lines", name="ideal", legendgroup="ideal", hoverinfo="skip",
                line={"color": look.tones.muted, "width": 1.5, "dash": "dot"},
                showlegend=place == len(panels), row=1, col=place,
            )  # fmt: skip
        known = frame[frame[panel.column].notna()]
        lines = [(str(variant), line) for variant, line in known.groupby("variant", sort=False)]
        # All lines of a number take at most six tenths of the way to the next.
        near = min((after - before for before, after in pairwise(counts)), default=1)
        step = min(0.03 * span, 0.6 * near / len(lines)) if panel.dodged and lines else 0.0
        margin = max(margin, step * len(lines) / 2)
        for number, (variant, line) in enumerate(lines):
            aside = step * (number - (len(lines) - 1) / 2)
            _draw_line(figure, line, variant, look, panel, place, aside)
        high, low = known[f"{_ends(panel)}high{_unit(panel)}"].max(), known[f"{_ends(panel)}low{_unit(panel)}"].min()
        logarithmic = high > _LINEAR_RANGE * low > 0 and panel.column == "median_ns"
        highest = max([high, *(panel.ideal(count) for count in counts)] if panel.ideal else [high])
        figure.update_yaxes(
            title_text=panel.title, type="log" if logarithmic else "linear",
            **ticks(low if logarithmic else 0, highest, panel.write, logarithmic=logarithmic), row=1, col=place,
        )  # fmt: skip
        if not logarithmic:
            figure.update_yaxes(range=[0, highest * 1.08], row=1, col=place)
    word = (
        "GPUs" if (frame["kind"] != "host").all() else "processes" if (frame["kind"] == "host").all() else "GPUs, or processes"
    )
    figure.update_xaxes(
        title_text=word, tickmode="array", tickvals=counts, ticktext=[str(count) for count in counts],
        range=[counts[0] - margin, counts[-1] + margin],
    )  # fmt: skip
    figure.update_layout(legend={"y": 1, "yanchor": "top", "x": 1.01, "xanchor": "left"}, margin={"t": 12})
    return figure


def _draw_line(
    figure: go.Figure, line: pd.DataFrame, variant: str, look: Look, panel: _Panel, place: int, aside: float
) -> None:
    workload = str(line["workload"].iloc[0])
    style = look.style(workload, variant)
    middle, low, high = line[panel.column], line[f"{_ends(panel)}low{_unit(panel)}"], line[f"{_ends(panel)}high{_unit(panel)}"]
    figure.add_scatter(
        x=line["ranks"] + aside, y=middle, mode="markers" if panel.dodged else "lines+markers", name=text(look.named(workload, variant)), legendgroup=variant,
        line={"color": style.color, "dash": style.dash, "width": 1.8}, marker={"symbol": style.symbol, "size": 8, "color": style.color},
        error_y={"type": "data", "symmetric": False, "array": high - middle, "arrayminus": middle - low, "thickness": 1, "width": 3},
        hoverinfo="text", hovertext=[_line_hover(row, panel) for row in line.to_dict("records")], showlegend=place == 1, row=1, col=place,
    )  # fmt: skip


def _ends(panel: _Panel) -> str:
    return "" if panel.column == "median_ns" else f"{panel.column}_"


def _unit(panel: _Panel) -> str:
    return "_ns" if panel.column == "median_ns" else ""


def _line_hover(row: dict[Any, Any], panel: _Panel) -> str:
    figures = [("median", _time(row))]
    if panel.column != "median_ns":
        figures.insert(0, (panel.label, _with_ends(row, panel.column, panel.write)))
    return _hover(row, *figures)


def _hover(row: dict[Any, Any], *figures: tuple[str, str]) -> str:
    config = f" [{row['config']}]" if row["config"] else ""
    lines = [f"<b>{text(row['variant'])}</b>{text(config)} on {_who(row)}", text(row["title"])]
    lines += [f"{text(label)}: <b>{text(value)}</b>" for label, value in figures]
    return "<br>".join([*lines, f"{text(row['case'])} · {text(_timing(row))} · n = {row['n']}"])


def _time(row: Any) -> str:
    return format_estimate(Estimate.median_ns(row), format_duration)


def _with_ends(row: Any, column: str, write: Callable[[float], str]) -> str:
    return format_estimate(Estimate.of(row, column), write)


def _on_gpu(row: Any) -> bool:
    return bool(row["kind"] != "host")


def _who(row: Any) -> str:
    return ranks_words(int(row["ranks"]), on_gpu=_on_gpu(row))


def _timing(row: Any) -> str:
    return Timing(row["scope"], row["cache"]).label(on_gpu=_on_gpu(row))


def _note(frame: pd.DataFrame, look: Look, *further: str) -> str:
    how = " and ".join(dict.fromkeys(map(_timing, frame[["scope", "cache", "kind"]].to_dict("records"))))
    kinds: Iterable[str] = dict.fromkeys(frame["interval_kind"])
    return " ".join([f"{look.device}; {how}; medians with {' and '.join(kinds)}; {samples(frame['n'])}.", *further])
