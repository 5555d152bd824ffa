"""The ladder of one case as bars."""

import math
from typing import Any, Final, Literal

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.precision import is_peer_of, precisions, word
from warpladder.dashboard.ui.numbers import (
    format_duration,
    format_error,
    format_estimate,
    format_half_width,
    format_interval,
    format_over,
    format_percent,
    format_rate,
    format_ratio,
)
from warpladder.dashboard.ui.template import Chart, Look, above_ceiling, blank, hover, measured, share_of_floor, slug, text
from warpladder.dashboard.ui.ticks import ticks

_Items = list[dict[str, Any]]

_ROW_PX: Final = 27
_GROUPS: Final = {"ceiling": "Ceiling", "rung": "Ladder", "peer": "Peers", "host": "Host", "specimen": "Specimens"}
_GROUP_GAP: Final = 0.75
#: Left edges of the columns of figures, in pixels right of the bars.
_COLUMNS: Final = {"time": 8, "spread": 62, "gain": 110, "floor": 160, "error": 224}
_COLUMNS_PX: Final = 222
_ERROR_PX: Final = 48
#: Of a line of words about one of several floors.
_FLOOR_PX: Final = 14
#: The bars are narrow where the source stands beside them.
_TICKS: Final = 3
_LABEL_LENGTH: Final = 26
#: A bar must start at zero; beyond this range of times short ones could not be told apart, and marks on a log axis take their place.
_BAR_RANGE: Final = 20.0

Scale = Literal["auto", "linear", "log"]
SCALES: Final[tuple[Scale, ...]] = ("auto", "linear", "log")


def ladder(frame: pd.DataFrame, look: Look, scale: Scale = "auto") -> Chart:
    """Rung by rung the time with its 95 % interval, the gain of each step, the floor as a line, ceiling and peers apart.

    Where rungs or peers have several precisions, each has its error against float64, and each precision its floor.

    Args:
        frame: `query.ladder` with at least one cell that has samples.
        scale: of the times: bars on a linear axis, marks on a logarithmic one, or whichever lets the short times be compared.
    """
    specimens = frame.loc[(frame["role"] == "specimen") & (frame["n"] > 0), "variant"]
    # What a specimen shows is an error, not a time; alone it may stay, so that there is something to see.
    if (frame["n"] > 0).sum() > len(specimens):
        frame = frame[frame["role"] != "specimen"]
    timed = frame[frame["n"] > 0]
    failed = frame[(frame["n"] == 0) & ~frame["status"].isin(["skipped", "ok"])]
    shown = pd.concat([timed, failed]).sort_index()
    rows = _place(shown)
    logarithmic = scale == "log" or (scale == "auto" and timed["median_ns"].max() > _BAR_RANGE * timed["median_ns"].min())
    depth = float(rows["y"].max()) + 1.3
    figure = blank(look.theme, int(_ROW_PX * depth) + 64)
    _draw_times(figure, rows[rows["n"] > 0], look, logarithmic)
    (floor_words, floor_line), (group_words, group_lines) = _floor(timed, look, logarithmic), _groups(rows, look)
    figure.update_xaxes(
        title_text="median time, log scale" if logarithmic else "median time", type="log" if logarithmic else "linear",
        **ticks(timed[["median_ns", "floor_ns"]].min().min() if logarithmic else 0, timed["high_ns"].max(), format_duration,
                logarithmic=logarithmic, most=_TICKS),
        tickangle=0,
    )  # fmt: skip
    mixed = rows["precision"].nunique() > 1
    figure.update_yaxes(
        range=[depth - 0.6, -0.95], tickmode="array", tickvals=rows["y"], ticktext=_labels(rows, look),
        showgrid=False, ticks="", zeroline=False, tickfont={"color": look.tones.text},
    )  # fmt: skip
    above = _FLOOR_PX * len(floor_words) if len(floor_words) > 1 else 0
    figure.update_layout(
        showlegend=False, margin={"r": _COLUMNS_PX + mixed * _ERROR_PX, "t": 28 + above}, height=figure.layout.height + above,
        annotations=[*floor_words, *_columns(rows, look, mixed), *group_words],
        shapes=[*floor_line, *group_lines],
    )  # fmt: skip
    first = timed.iloc[0]
    skipped = frame.loc[(frame["n"] == 0) & (frame["status"] == "skipped"), "variant"]
    note = measured(
        timed, look.device, "Each variant with its fastest config.",
        f"Gain: over the rung before{' in the same precision' if mixed else ''}, paired by round"
        + ("; *: over the last rung before it of another one." if _crosses(timed).any() else "."),
        f"Speedups are over {look.named(first['workload'], first['baseline'])}"
        + (f" [{first['baseline_config']}]." if first["baseline_config"] else "."), above_ceiling(timed),
        "Error: the relative one (L2 norm) against float64." if mixed else "",
        f"Skipped: {', '.join(skipped)}." if len(skipped) else "",
        f"Left out, as a specimen of an error: {', '.join(specimens)}." if len(specimens) else "",
    )  # fmt: skip
    name = slug("ladder", first["workload"], first["case"], first["scope"], first["cache"])
    return Chart(name, _title(timed, look), figure, frame, note)


def _place(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with their place on the vertical axis, a gap before each group."""
    places, previous, y = [], None, -1.0
    for role in frame["role"]:
        y += 1.0 if role == previous or previous is None else 1.0 + _GROUP_GAP
        places.append(y)
        previous = role
    return frame.assign(y=places)


def _draw_times(figure: go.Figure, rows: pd.DataFrame, look: Look, logarithmic: bool) -> None:
    for row in rows.to_dict("records"):
        style = look.style(row["workload"], row["variant"])
        shared: dict[str, Any] = {
            "x": [row["median_ns"]], "y": [row["y"]], "hovertext": _hover(row), "hoverinfo": "text",
            "error_x": {
                "type": "data", "symmetric": False, "array": [row["high_ns"] - row["median_ns"]],
                "arrayminus": [row["median_ns"] - row["low_ns"]], "color": look.tones.text, "thickness": 1.2, "width": 3,
            },
        }  # fmt: skip
        if logarithmic:
            figure.add_scatter(mode="markers", marker={"color": style.color, "symbol": style.symbol, "size": 10}, **shared)
        else:
            pattern = {"shape": style.pattern, "fillmode": "overlay", "size": 5, "solidity": 0.25}
            figure.add_bar(orientation="h", width=0.62, marker={"color": style.color, "pattern": pattern}, **shared)


def _floor(timed: pd.DataFrame, look: Look, logarithmic: bool) -> tuple[_Items, _Items]:
    """Words and a line for each floor of the rungs, or of what else there is: precisions and places have their own."""
    known = timed[timed["floor_ns"].notna()]
    known = known[known["role"] == "rung"] if (known["role"] == "rung").any() else known
    last = known.drop_duplicates("precision", keep="last").sort_values("floor_ns", ascending=False)
    several = last["floor_ns"].nunique() > 1
    words: _Items = []
    lines: _Items = []
    for floor, group in last.groupby("floor_ns", sort=False):
        at = float(str(floor))
        which = f"{', '.join(map(word, group['precision']))} " if several else ""
        words.append(
            {
                # An annotation on a logarithmic axis stands at the logarithm, a shape at the value.
                "x": math.log10(at) if logarithmic else at, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": "left",
                # Several stand above the headings of the columns.
                "yshift": _FLOOR_PX * (len(words) + 1) if several else 0, "showarrow": False, "font": {"size": 11, "color": look.tones.good},
                "text": f"{which}{group['floor_bound'].iloc[-1]} floor {format_duration(at)}",
            }
        )  # fmt: skip
        line = {"color": look.tones.good, "width": 1.5, "dash": "dot"}
        lines.append({"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line})
    return words, lines


def _columns(rows: pd.DataFrame, look: Look, mixed: bool) -> _Items:
    """Time, gain, percent of floor and, of mixed precisions, error of each row, as columns right of the bars."""
    headings = [("time", "time"), ("gain", "gain"), ("% of floor", "floor"), *([("error", "error")] if mixed else [])]
    words = [_word(heading, column, 1, look.tones.muted, yref="paper", yanchor="bottom") for heading, column in headings]
    crosses = _crosses(rows)
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        if mixed and row["n"]:
            words.append(_word(format_error(row["rel_l2_error"]), "error", row["y"], look.tones.text))
        if row["n"] == 0:
            words.append(
                _word(row["status"].replace("_", " "), "time", row["y"], look.tones.bad, hovertext=text(row["detail"]))
            )
            continue
        words.append(_word(format_duration(row["median_ns"]), "time", row["y"], look.tones.text))
        spread = format_half_width(row["median_ns"], row["low_ns"], row["high_ns"])
        words.append(_word(spread, "spread", row["y"], look.tones.muted, font={"size": 11, "color": look.tones.muted}))
        words.append(_word(format_percent(row["percent_of_floor"]), "floor", row["y"], look.tones.text))
        if row["gain_verdict"] in ("faster", "slower", "tied"):
            tone = {"faster": look.tones.good, "slower": look.tones.bad}.get(row["gain_verdict"], look.tones.muted)
            gain = ("tied" if row["gain_verdict"] == "tied" else format_ratio(row["gain"])) + "*" * int(crosses[place])
            words.append(_word(gain, "gain", row["y"], tone, hovertext=text(_gain(row))))
    return words


def _word(words: str, column: str, y: float, color: str, **options: Any) -> dict[str, Any]:
    return {
        "x": 1, "xref": "paper", "xanchor": "left", "xshift": _COLUMNS[column], "y": y, "text": text(words), "showarrow": False,
        "font": {"size": 12, "color": color}, **options,
    }  # fmt: skip


def _groups(rows: pd.DataFrame, look: Look) -> tuple[_Items, _Items]:
    """Name of each group but the first, and the line above it."""
    words, lines = [], []
    first_of = rows.drop_duplicates("role").iloc[1:]
    for role, y in zip(first_of["role"], first_of["y"] - 0.88, strict=True):
        font = {"size": 11, "color": look.tones.muted}
        words.append(
            {
                "x": 0,
                "xref": "paper",
                "xanchor": "right",
                "xshift": -8,
                "y": y,
                "text": _GROUPS[role],
                "showarrow": False,
                "font": font,
            }
        )
        line = {"color": look.tones.grid, "width": 1}
        lines.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line})
    return words, lines


def _labels(rows: pd.DataFrame, look: Look) -> list[str]:
    """Names with their configs where all are short enough to leave room for the bars; else the hover alone tells the config."""
    names = [look.named(row["workload"], row["variant"]) for row in rows.to_dict("records")]
    told = max(len(name) + len(config) for name, config in zip(names, rows["config"], strict=True)) <= _LABEL_LENGTH
    return [
        text(name) + (f" <i>{text(config)}</i>" if config and told else "") + (" ⚠" if len(flags) else "")
        for name, config, flags in zip(names, rows["config"], rows["flags"], strict=True)
    ]


def _crosses(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Which gains are over a rung of another precision."""
    return rows["gain"].notna() & (rows["gain_from"] != rows["precision"])


def _hover(row: dict[Any, Any]) -> str:
    figures = [("median", f"{format_duration(row['median_ns'])} ({_range(row, '_ns', format_duration)})")]
    if pd.notna(row["gb_per_s"]):
        figures.append(("bandwidth", format_rate(row["gb_per_s"])))
    if pd.notna(row["gflop_per_s"]):
        figures.append(("rate", format_rate(row["gflop_per_s"], "GFLOP/s")))
    if pd.notna(row["percent_of_floor"]):
        figures.append(share_of_floor(row))
    if pd.notna(row["speedup"]):
        figures.append((f"speedup over {row['baseline']}", format_estimate(Estimate.of(row, "speedup"), format_ratio)))
    if pd.notna(row["gain"]):
        figures.append((f"gain over {row['gain_over']}, {word(row['gain_from'])}", _gain(row)))
    return hover(row, *figures)


def _gain(row: dict[Any, Any]) -> str:
    return f"{format_estimate(Estimate.of(row, 'gain'), format_ratio)}, {row['gain_verdict']}"


def _range(row: dict[Any, Any], suffix: str, write: Any) -> str:
    return format_interval(write(row[f"low{suffix}"]), write(row[f"high{suffix}"]))


def _title(timed: pd.DataFrame, look: Look) -> str:
    """The fastest rung and how far it is from the floor; of the other precisions the fastest; and the peers that are faster than these."""
    rungs = timed[timed["role"] == "rung"]
    shown = rungs if len(rungs) else timed[timed["role"] != "specimen"] if (timed["role"] != "specimen").any() else timed
    fastest = [shown[shown["precision"] == precision].nsmallest(1, "median_ns").iloc[0] for precision in precisions(shown)]
    best, *others = fastest
    reaches = f"reaches {format_percent(best['percent_of_floor'])} of the {best['floor_bound']} floor"
    floor = reaches if pd.notna(best["percent_of_floor"]) else f"takes {format_duration(best['median_ns'])}"
    pair = (best["variant"], best["config"]), (best["baseline"], best["baseline_config"])
    over = f", {format_over(best['speedup'], *pair)}" if pd.notna(best["speedup"]) else ""
    further = "".join(
        f"; {look.named(row['workload'], row['variant'])} is {format_ratio(best['median_ns'] / row['median_ns'])} as fast"
        for row in others
    )
    faster = ", ".join(dict.fromkeys(filter(None, (_faster_peer(timed, row, look) for row in fastest))))
    peers = f"; faster peers: {faster}" if faster else ""
    return f"{best['workload']}, {best['case']}: {look.named(best['workload'], best['variant'])} {floor}{over}{further}{peers}"


def _faster_peer(timed: pd.DataFrame, rung: pd.Series, look: Look) -> str:
    """The fastest peer that a rung is compared with, and how much faster it is; empty where none is, beyond the intervals of both."""
    peers = timed[is_peer_of(timed, rung["precision"])].nsmallest(1, "median_ns")
    if rung["role"] != "rung" or peers.empty or not peers["high_ns"].iloc[0] < rung["low_ns"]:
        return ""
    peer = peers.iloc[0]
    return f"{look.named(peer['workload'], peer['variant'])} {format_ratio(rung['median_ns'] / peer['median_ns'])}"
