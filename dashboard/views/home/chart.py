"""Percent of the floor by workload and precision."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare import overview
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.cells import sentence
from warpladder.dashboard.core.numbers import (
    format_duration,
    format_ends,
    format_error,
    format_over,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.parts import CLASSES, Parts
from warpladder.dashboard.ui.bars import add_bars
from warpladder.dashboard.ui.template import (
    Chart,
    Look,
    above_ceiling,
    blank,
    error_bars,
    hatch,
    lightness,
    palette,
    samples,
    stack_shares,
    text,
    words_beside,
)

_BAR_PX: Final = 24
#: A part with a smaller share, in percent, has no room for its figure.
_LEAST_WRITTEN: Final = 4
_WORKLOAD_GAP: Final = 0.9
#: Of a page: the plot without the names of the workloads, a letter of a label, and the percentage before it.
_PLOT_PX: Final = 790
_LETTER_PX: Final = 6.4
_PERCENT_PX: Final = 68
_ROLES: Final = (("best", "best"), ("peer", "best peer"), ("baseline", "baseline"))


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """Every winner's percent of floor."""
    summary = overview.overview(data)
    if summary["percent_of_floor"].notna().any():
        yield percent_of_floor(summary, look)


def where_time_goes(found: Parts, look: Look) -> Chart:
    """The parts of the devices' time as one bar."""
    figure = blank(look.theme, 110)
    compute, exposed, copies, graphs = palette(look.theme)[:4]
    colors = (compute, graphs, exposed, copies, look.tones.grid)
    shown = pd.DataFrame({"part": [found.words(name) for name in CLASSES], "time_ns": [found.times[name] for name in CLASSES]})
    shown = shown.assign(percent=100 * shown["time_ns"] / found.span_ns)
    for row, color in zip(shown.to_dict("records"), colors, strict=True):
        if row["time_ns"]:
            inside = format_percent(row["percent"]) if row["percent"] > _LEAST_WRITTEN else ""
            hover = f"{row['part']}: {format_duration(row['time_ns'])}, {format_percent(row['percent'])}<extra></extra>"
            figure.add_bar(
                x=[row["percent"]],
                y=[""],
                orientation="h",
                name=row["part"],
                marker_color=color,
                text=inside,
                hovertemplate=hover,
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": "#14171c" if lightness(color) > 55 else "#ffffff"},
            )
    stack_shares(figure, [""], look)
    # The labels at both ends of the axis have room.
    figure.update_layout(legend={"orientation": "h", "y": 1.3, "traceorder": "normal"}, margin={"t": 24, "l": 20, "r": 28})
    note = look.note(f"{found.whole}.")
    title = f"{found.headline[0].upper()}{found.headline[1:]}"
    return Chart("where-time-goes", title, figure, shown, note)


def percent_of_floor(frame: pd.DataFrame, look: Look) -> Chart:
    """Best rung and best peer of each workload and precision, and the baseline, as a share of what the device measurably can
    do.

    Args:
        frame: `query.overview` with a row that has a percent of floor.
    """
    captions = " ".join(
        sentence(f"{row['workload']}, {row['case']}, {word(row['precision'])}: {row['doubts']}")
        for row in frame.to_dict("records")
        if row["doubts"]
    )
    every, frame = frame, frame[frame["best"].notna()]
    bars = _bars(frame, look)
    depth = max(bar["y"] for bar in bars) + 1
    figure = blank(look.theme, int(_BAR_PX * depth) + 70)
    highest = max([100.0, *(bar["percent"] for bar in bars if pd.notna(bar["percent"]))])
    for bar in bars:
        style = look.style(bar["workload"], bar["variant"])
        looks = {"marker": {"color": style.color, "pattern": hatch(style.pattern, 0.25)}, "width": 0.72}
        ends = error_bars([Estimate(bar["percent"], bar["low"], bar["high"])], color=look.tones.text, thickness=1.2)
        add_bars(figure, [bar["percent"]], [bar["hover"]], y=[bar["y"]], error_x=ends, **looks)
        label = f"<b>{text(format_percent(bar['percent']))}</b>  {text(bar['label'])}"
        figure.add_annotation(words_beside(label, highest, bar["y"], 8))
    figure.add_vline(x=100, line={"color": look.tones.good, "width": 1.5, "dash": "dot"})
    # So much longer than the bars that the words at their ends have room on a page.
    words_px = _PERCENT_PX + _LETTER_PX * max(len(bar["label"]) for bar in bars)
    figure.update_xaxes(
        range=[0, highest / (1 - min(words_px / _PLOT_PX, 0.6))],
        tickvals=[0, 25, 50, 75, 100],
        ticksuffix=" %",
        title_text="share of the measured floor, %",
    )
    first = [bar for bar in bars if bar["first"]]
    figure.update_yaxes(
        range=[depth - 0.3, -0.8],
        tickvals=[bar["y"] + (1 if bar["count"] > 2 else 0.5) for bar in first],
        ticktext=[f"<b>{text(bar['workload'])}</b><br>{text(bar['case'])}" for bar in first],
        showgrid=False,
        ticks="",
        tickfont={"color": look.tones.text, "size": 12},
    )
    figure.update_layout(showlegend=False)
    best = frame.sort_values("percent_of_floor", ascending=False).iloc[0]
    title = (
        f"{look.variant_name(best['workload'], best['best'])} reaches {format_percent(best['percent_of_floor'])} of the floor of "
        f"{best['workload']}, {best['case']}"
    )
    timings = " and ".join(
        dict.fromkeys(Timing(row["scope"], row["cache"]).label(on_gpu=look.on_gpu) for row in frame.to_dict("records"))
    )
    differing = (
        " Each precision has its floor, against which the peers that it replaces stand too."
        if frame["precision"].nunique() > 1
        else ""
    )
    several = " Geometric mean over the cases of that size." if (frame["cases"] > 1).any() else ""
    note = (
        f"{look.device}; {timings}; medians with 95 % intervals; {samples(frame['n'])}; the largest size of each workload."
        f"{several}{differing} 100 %: the time that the ceilings measured in the same run allow. {above_ceiling(frame)}"
    ).rstrip()
    return Chart("overview", title, figure, every, f"{note} {captions}".rstrip())


def _bars(frame: pd.DataFrame, look: Look) -> list[dict[str, Any]]:
    bars: list[dict[str, Any]] = []
    y = 0.0
    for row in frame.to_dict("records"):
        # The baseline stands once, in its own precision.
        foreign = row["baseline"] == row["best"] or row["baseline_precision"] != row["precision"]
        shown = [(role, label) for role, label in _ROLES if pd.notna(row[role]) and not (role == "baseline" and foreign)]
        for place, (role, label) in enumerate(shown):
            column = "percent_of_floor" if role == "best" else f"{role}_percent_of_floor"
            percent = float(row[column])
            config = row[f"{role}_config"]
            bars.append(
                {
                    "workload": row["workload"],
                    "case": _case(row, look),
                    "variant": row[role],
                    "y": y,
                    "first": place == 0,
                    "count": len(shown),
                    "percent": percent,
                    "low": row["percent_of_floor_low"] if role == "best" else percent,
                    "high": row["percent_of_floor_high"] if role == "best" else percent,
                    "hover": _hover(row, role, label, percent, look),
                    "label": f"{label}: {look.variant_name(row['workload'], row[role])}" + (f" [{config}]" if config else ""),
                }
            )
            y += 1
        y += _WORKLOAD_GAP
    return bars


def _case(row: dict[Any, Any], look: Look) -> str:
    case = f"{row['case']}, {row['cases']} cases" if row["cases"] > 1 else str(row["case"])
    case += f", {row['on']}" if row["on"] else ""
    return f"{case}, {word(row['precision'])}" if look.style(row["workload"], row["best"]).precision else case


def _hover(row: dict[Any, Any], role: str, label: str, percent: float, look: Look) -> str:
    lines = [
        f"<b>{text(row[role])}</b> {text(row[role + '_config'])}".rstrip(),
        f"{label} of {text(row['workload'])}, {text(_case(row, look))}",
    ]
    error = {"best": "error", "peer": "peer_error"}.get(role, "")
    if error and pd.notna(row[error]):
        lines.append(f"relative error {text(format_error(row[error]))} against float64")
    above = ", above the measured ceiling" if percent > 100 else ""
    floor = f"{row['floor_bound']} floor, by {row['floor_ceiling']}"
    lines.append(f"{text(format_percent(percent))} of the {text(floor)}{above}")
    if role == "best":
        lines.append(f"median {_with_ends(row, 'best_ns', format_duration)}")
        ends = "" if row["best"] == row["baseline"] else f" ({text(_ends(row, 'speedup', format_ratio))})"
        over = format_over(row["speedup"], row["best"], row["baseline"], row["speedup_verdict"])
        lines += [f"{text(over)}{ends}"] if over else []
        lines += [f"tied with {text(row['tied_with'])}"] if pd.notna(row["tied_with"]) else []
    elif role == "peer":
        tied = ", tied" if row["over_peer_verdict"] == "tied" else ""
        if pd.notna(row["over_peer"]):
            lines.append(f"takes {_with_ends(row, 'over_peer', format_ratio)} the time of {text(row['best'])}{tied}")
    else:
        lines.append(f"median {text(format_duration(row['baseline_ns']))}")
    how = Timing(row["scope"], row["cache"]).label(on_gpu=look.on_gpu)
    return "<br>".join([*lines, f"{text(how)} · n = {row['n']}"])


def _with_ends(row: dict[Any, Any], column: str, write: Any) -> str:
    return f"{text(write(row[column]))} ({text(_ends(row, column, write))})"


def _ends(row: dict[Any, Any], column: str, write: Any) -> str:
    return format_ends(Estimate.of(row, column), write)
