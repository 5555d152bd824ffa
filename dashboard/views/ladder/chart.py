"""The ladder of one case as bars."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare import within_run
from warpladder.dashboard.compare.within_run import PEERS_OF, compared, precisions, word
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Cell, Timing, records
from warpladder.dashboard.core.cells import best_of_charted, passed_over, sentence
from warpladder.dashboard.core.numbers import (
    format_duration,
    format_energy,
    format_error,
    format_estimate,
    format_half_width,
    format_loop,
    format_over,
    format_percent,
    format_rate,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import (
    Chart,
    Look,
    above_ceiling,
    blank,
    error_bars,
    hatch,
    heading_right,
    hover,
    measured,
    share_of_floor,
    slug,
    text,
    ticks,
    word_right,
)
from warpladder.dashboard.views.ladder import errors, query
from warpladder.dashboard.views.ladder.query import contestants, leaders

_Items = list[dict[str, Any]]

_ROW_PX: Final = 27
_LEAST_HEIGHT_PX: Final = 140  # room for the axis below a single row
_GROUPS: Final = {"ceiling": "Ceiling", "rung": "Ladder", "peer": "Peers", "host": "Host", "specimen": "Specimens"}
_GROUP_GAP: Final = 0.75
#: Left edges of the columns of figures, in pixels from the right end of the bars. They are apart in the widest of the fonts too.
_COLUMNS: Final = {"time": 8, "spread": 64, "gain": 120}
_COLUMNS_PX: Final = 170
#: Widths of the further columns, which stand after them.
_FURTHER_PX: Final = {"% of floor": 68, "error": 48, "energy": 60}
#: Height of a line of words about one of several floors.
_FLOOR_PX: Final = 14
#: The most ticks. The bars are narrow, because the page shows the source beside them.
_TICKS: Final = 3
_LABEL_LENGTH: Final = 26
#: Times that differ by more than this factor are drawn as marks on a logarithmic axis, since the short bars would look alike.
_BAR_RANGE: Final = 20.0


def charts(data: RunData, look: Look, workload: str, timing: Timing) -> Iterator[Chart]:
    """The ladders at the largest size, or at each of the cases that were selected.

    The first timing has the ladder of every series, with the chart of its errors. Other timings have the ladder of the last
    series.
    """
    first = timing == cells.timings(data, workload)[0]
    best = best_of_charted(data, workload, timing)
    largest = best.loc[best["role"].isin(["rung", "peer", "host"]), ["case", "size_rank"]].drop_duplicates()
    if len(cells.charted_cases(data, workload)) == len(cells.charted_cases(data.selected_from or data, workload)):
        largest = largest[largest["size_rank"] == largest["size_rank"].max()]
    cases = set(largest["case"])
    ordered = [case for case in cells.charted_cases(data, workload)["case"] if case in cases]
    for case in ordered if first else ordered[-1:]:
        yield ladder(query.ladder(data, workload, case, timing), look)
        costs = query.error_and_time(data, workload, case, timing)
        # Where no variant has a rounding error, there is nothing to show.
        if first and (costs["rel_l2_error"] > 0).any():
            yield errors.error_and_time(costs, look)


def ladder(frame: pd.DataFrame, look: Look) -> Chart:
    """The variants of one case: time with interval, gain of each rung, and the floor as a line.

    Where rungs or peers have several precisions, each row has its error against float64, and each precision has a floor.

    Args:
        frame: `query.ladder` with at least one cell that has samples.
    """
    specimens = frame.loc[(frame["role"] == "specimen") & (frame["n"] > 0), "variant"]
    # A specimen shows an error and not a time. It is drawn only where there is nothing else.
    if (frame["n"] > 0).sum() > len(specimens):
        frame = frame[frame["role"] != "specimen"]
    timed = frame[frame["n"] > 0]
    failed = frame[(frame["n"] == 0) & ~frame["status"].isin(["skipped", "ok"])]
    shown = pd.concat([timed, failed]).sort_index()
    rows = records(_place(shown))
    with_samples = [row for row in rows if row.n]
    first = with_samples[0]
    logarithmic = timed["median_ns"].max() > _BAR_RANGE * timed["median_ns"].min()
    depth = rows[-1].y + 1.3
    figure = blank(look.theme, max(int(_ROW_PX * depth) + 64, _LEAST_HEIGHT_PX))
    least = timed[["median_ns", "floor_ns"]].min().min() if logarithmic else 0
    _draw_times(figure, with_samples, look, logarithmic)
    (floor_words, floor_line), (group_words, group_lines) = _floor(timed, look, logarithmic), _groups(rows, look)
    figure.update_xaxes(
        title_text=f"median time{', log scale' if logarithmic else ''}",
        type="log" if logarithmic else "linear",
        tickangle=0,
        **ticks(least, timed["high_ns"].max(), format_duration, logarithmic=logarithmic, most=_TICKS),
    )
    mixed, metered = len({row.precision for row in rows}) > 1, any(row.energy_mj.known for row in rows)
    labels = {"tickmode": "array", "tickvals": [row.y for row in rows], "ticktext": _labels(rows, look)}
    figure.update_yaxes(range=[depth - 0.6, -0.95], showgrid=False, ticks="", zeroline=False, **labels)
    figure.update_yaxes(tickfont={"color": look.tones.text})
    above = _FLOOR_PX * len(floor_words) if len(floor_words) > 1 else 0
    places, room = dict(_COLUMNS), _COLUMNS_PX
    floored = bool(timed["percent_of_floor"].notna().any())
    for (column, width), shown_too in zip(_FURTHER_PX.items(), (floored, mixed, metered), strict=True):
        if shown_too:
            places[column], room = room + 2, room + width
    figure.update_layout(
        showlegend=False,
        margin={"r": room, "t": 28 + above},
        height=figure.layout.height + above,
        annotations=[*floor_words, *_columns(rows, look, places), *group_words],
        shapes=[*floor_line, *group_lines],
    )
    skipped = frame.loc[(frame["n"] == 0) & (frame["status"] == "skipped"), "variant"]
    note = measured(
        timed,
        look.device,
        *_on_comparisons(with_samples, look, mixed),
        above_ceiling(timed),
        sentence(_passed(timed)),
        "Error: relative error (L2 norm) against float64." if mixed else "",
        _on_energy(next(row for row in rows if row.energy_mj.known)) if metered else "",
        sentence(first.clocks),
        f"Skipped: {', '.join(skipped)}." if len(skipped) else "",
        f"Left out, because they are specimens: {', '.join(specimens)}." if len(specimens) else "",
    )
    name = slug("ladder", first.workload, first.case, first.scope, first.cache)
    held = ["held_clock_mhz"] if frame["held_clock_mhz"].isna().all() else []
    shown_columns = frame.drop(columns=["clocks", *held, *(() if metered else within_run.ENERGY_COLUMNS)])
    return Chart(name, _title(with_samples, look, timed), figure, shown_columns, note)


def _on_energy(one: Cell) -> str:
    """The sentence of the note about the energy of an execution, and how far that of identical code differs."""
    noise = f"; two copies of the baseline differ by {format_percent(100 * (one.energy_noise - 1))} at most"
    return (
        f"Energy: of an execution, repeated with a hot L2, above {one.idle_w:.0f} W idle; median of {one.energy_n:.0f} loops"
        f"{noise if one.energy_noise > 1 else ''}."
    )


def _on_comparisons(with_samples: list[Cell], look: Look, mixed: bool) -> tuple[str, ...]:
    """Sentences of the note about configs, gains and speedups."""
    first = with_samples[0]
    crossed = "; *: over the last rung of another precision before it" if any(_crosses(row) for row in with_samples) else ""
    config = f" [{first.baseline_config}]" if first.baseline_config else ""
    over = f"Speedups are over {look.variant_name(first.workload, first.baseline)}{config}." if first.baseline else ""
    return (
        "Each variant with its fastest config.",
        f"Gain: over the rung before{' in the same precision' if mixed else ''}, paired by round{crossed}.",
        sentence(first.no_speedup) or over,
    )


def _crosses(row: Cell) -> bool:
    """Whether its gain is over a rung of another precision."""
    return row.gain.known and row.gain_from != row.precision


def _place(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with `y`, their place on the vertical axis, with a gap before each group."""
    places, previous, y = [], None, -1.0
    for role in frame["role"]:
        y += 1.0 if role == previous or previous is None else 1.0 + _GROUP_GAP
        places.append(y)
        previous = role
    return frame.assign(y=places)


def _draw_times(figure: go.Figure, rows: list[Cell], look: Look, logarithmic: bool) -> None:
    """Draw a bar or a mark for each row."""
    for row in rows:
        style = look.style(row.workload, row.variant)
        bars = error_bars([row.median_ns], color=look.tones.text, thickness=1.2)
        shared = {
            "x": [row.median_ns.value],
            "y": [row.y],
            "hovertext": _hover(row),
            "hoverinfo": "text",
            "error_x": bars,
        }
        if logarithmic:
            figure.add_scatter(mode="markers", marker={"color": style.color, "symbol": style.symbol, "size": 10}, **shared)
        else:
            marker = {"color": style.color, "pattern": hatch(style.pattern, 0.25)}
            figure.add_bar(orientation="h", width=0.62, marker=marker, **shared)


def answering(frame: pd.DataFrame, look: Look) -> Chart:
    """The chart of `ladder` for a page: the whole row of a variant answers to the pointer, by a bar that is not seen. The `customdata`
    of a row is its place among the rows of `data` with samples.
    """
    chart = ladder(frame, look)
    figure = chart.figure
    rows = list(figure.data)
    for place, row in enumerate(rows):
        row.customdata = [place]
    times = [row.x[0] for row in rows]
    low = min(times) if figure.layout.xaxis.type == "log" else 0
    figure.add_bar(
        orientation="h",
        base=low,
        x=[max(times) - low] * len(rows),
        y=[row.y[0] for row in rows],
        width=0.98,
        marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        customdata=list(range(len(rows))),
        hovertext=[row.hovertext for row in rows],
        hoverinfo="text",
    )
    # Bars of several traces would stand beside each other, and so apart from their names.
    figure.update_layout(barmode="overlay")
    return chart


def _floor(timed: pd.DataFrame, look: Look, logarithmic: bool) -> tuple[_Items, _Items]:
    """Words and a line for each floor of the rungs, or of all rows where no rung has one. A precision has its own floor."""
    with_floor = timed[timed["floor_ns"].notna()]
    with_floor = with_floor[with_floor["role"] == "rung"] if (with_floor["role"] == "rung").any() else with_floor
    last = with_floor.drop_duplicates("precision", keep="last").sort_values("floor_ns", ascending=False)
    several = last["floor_ns"].nunique() > 1
    words: _Items = []
    lines: _Items = []
    for floor, group in last.groupby("floor_ns", sort=False):
        at = float(str(floor))
        precisions = f"{', '.join(map(word, group['precision']))} " if several else ""
        words.append(
            {
                # On a logarithmic axis, an annotation is placed at the logarithm, and a shape at the value.
                "x": math.log10(at) if logarithmic else at,
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "xanchor": "left",
                # The words about several floors are above the headings of the columns.
                "yshift": _FLOOR_PX * (len(words) + 1) if several else 0,
                "showarrow": False,
                "font": {"size": 11, "color": look.tones.good},
                "text": f"{precisions}{group['floor_bound'].iloc[-1]} floor {format_duration(at)}",
                "hovertext": f"by {', '.join(dict.fromkeys(group['floor_ceiling']))}, measured in the same run",
            }
        )
        line = {"color": look.tones.good, "width": 1.5, "dash": "dot"}
        lines.append({"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line})
    return words, lines


def _columns(rows: list[Cell], look: Look, places: Mapping[str, int]) -> _Items:
    """The columns of figures right of the bars.

    Args:
        places: column -> its left edge.
    """
    words = [heading_right(column, shift, look) for column, shift in places.items() if column != "spread"]
    for row in rows:
        figures = _figures(row, look)
        shown = {column: figure for column, figure in figures.items() if column in places}
        words += [word_right(written, places[name], row.y, color, **about) for name, (written, color, about) in shown.items()]
    return words


def _figures(row: Cell, look: Look) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Column -> the words of a row, their colour, and further options. A verdict has a colour."""
    tones = look.tones
    if row.n == 0:
        return {"time": (row.status.replace("_", " "), tones.bad, {"hovertext": text(row.detail)})}
    median, of_verdict = row.median_ns, {"faster": tones.good, "slower": tones.bad}
    spread = format_half_width(median.value, median.low, median.high)
    figures: dict[str, tuple[str, str, dict[str, Any]]] = {
        "error": (format_error(row.rel_l2_error), tones.text, {}),
        "time": (format_duration(median.value), tones.text, {}),
        "spread": (spread, tones.muted, {"font": {"size": 11, "color": tones.muted}}),
        "% of floor": (format_percent(row.percent_of_floor.value), tones.text, {}),
    }
    if row.gain_verdict:
        gain = format_ratio(row.gain.value) if row.gain_verdict in of_verdict else row.gain_verdict
        tone = of_verdict.get(row.gain_verdict, tones.muted)
        figures["gain"] = gain + "*" * int(_crosses(row)), tone, {"hovertext": text(_gain(row))}
    if row.energy_mj.known:
        tone = {"less": tones.good, "more": tones.bad}.get(row.energy_verdict, tones.text)
        about = "; ".join(f"{label}: {value}" for label, value in _of_energy(row))
        figures["energy"] = format_energy(row.energy_mj.value), tone, {"hovertext": text(about)}
    return figures


def _of_energy(row: Cell) -> list[tuple[str, str]]:
    """Labels and values of the energy of a row, for a hover text."""
    figures = [("energy an execution", format_estimate(row.energy_mj, format_energy))]
    if row.per_watt.known:
        figures.append(("a watt", format_rate(row.per_watt.value, row.per_watt_unit)))
    if row.energy_ratio.known:
        over = f"{format_estimate(row.energy_ratio, format_ratio)}, {row.energy_verdict}"
        figures.append((f"energy over {row.baseline}", over))
    return [*figures, ("in the loop", format_loop(row.loop_ns, row.loop_w, row.loop_mhz))]


def _groups(rows: list[Cell], look: Look) -> tuple[_Items, _Items]:
    """The name of each group except the first, and the line above it."""
    words: _Items = []
    lines: _Items = []
    first_of = {row.role: row for row in reversed(rows)}
    for role in list(dict.fromkeys(row.role for row in rows))[1:]:
        y = first_of[role].y - 0.88
        place = {"x": 0, "xref": "paper", "xanchor": "right", "xshift": -8, "y": y}
        font = {"size": 11, "color": look.tones.muted}
        words.append({**place, "text": _GROUPS[role], "showarrow": False, "font": font})
        line = {"color": look.tones.grid, "width": 1}
        lines.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line})
    return words, lines


def _labels(rows: list[Cell], look: Look) -> list[str]:
    """The names, with their configs where all labels are short enough to leave room for the bars."""
    names = [look.variant_name(row.workload, row.variant) for row in rows]
    with_config = max(len(name) + len(row.config) for name, row in zip(names, rows, strict=True)) <= _LABEL_LENGTH
    return [
        text(name) + (f" <i>{text(row.config)}</i>" if row.config and with_config else "") + (" ⚠" if row.flags else "")
        for name, row in zip(names, rows, strict=True)
    ]


def _hover(row: Cell) -> str:
    """The hover text of a bar."""
    figures = [("median", format_estimate(row.median_ns, format_duration))]
    if row.gb_per_s.known:
        figures.append(("bandwidth", format_rate(row.gb_per_s.value)))
    if row.gflop_per_s.known:
        figures.append(("rate", format_rate(row.gflop_per_s.value, "GFLOP/s")))
    if row.percent_of_floor.known:
        figures.append(share_of_floor(row))
    if row.speedup.known:
        figures.append((f"speedup over {row.baseline}", format_estimate(row.speedup, format_ratio)))
    if pd.notna(row.held_clock_mhz):
        figures.append(("clock held", f"{row.held_clock_mhz:,.0f} MHz"))
    if row.gain.known:
        figures.append((f"gain over {row.gain_over}, {word(row.gain_from)}", _gain(row)))
    return hover(row, *figures, *(_of_energy(row) if row.energy_mj.known else []))


def _gain(row: Cell) -> str:
    return f"{format_estimate(row.gain, format_ratio)}, {row.gain_verdict}"


def _title(with_samples: list[Cell], look: Look, timed: pd.DataFrame) -> str:
    """The best rung with its percent of floor, the best of each other precision or else the best peer that it beats, and the peers that are
    faster than these or tied with them. No peer of fp32 is named for a rung in 3xTF32 where a rung in fp32 is faster. Without a rung that may be called best, the reason.
    """
    by_name = {row.variant: row for row in with_samples}
    fastest = [by_name[name] for name in leaders(timed)["variant"]]
    where = f"{with_samples[0].workload}, {with_samples[0].case}"
    if not fastest:
        return f"{where}: {_passed(timed)}"
    best, *others = fastest
    reaches = f"reaches {format_percent(best.percent_of_floor.value)} of the {best.floor_bound} floor"
    floor = reaches if best.percent_of_floor.known else f"takes {format_duration(_median(best))}"
    over = format_over(best.speedup.value, best.variant, best.baseline, best.verdict) if best.speedup.known else ""
    as_fast = {row.variant: f"{format_ratio(_median(best) / _median(row))} as fast" for row in others}
    as_fast |= {row.variant: "as fast, within the noise" for row in others if best.variant in row.ties}
    further = "".join(f"; {look.variant_name(row.workload, row.variant)} is {as_fast[row.variant]}" for row in others)
    beaten = "" if others else _beaten_peer(with_samples, best, look)
    named = [_peer(with_samples, rung, _own_peers(rung, fastest), look) for rung in fastest]
    peers = "".join(
        f"; {how} peer{'s' * (len(names) > 1)}: {', '.join(names)}"
        for how in ("faster", "tied")
        if (names := dict.fromkeys(name for each, name in named if each == how))
    )
    parts = f"{floor}{over and f', {over}'}{_tied_with(with_samples, best, look)}{beaten}{further}{peers}"
    return f"{where}: {look.variant_name(best.workload, best.variant)} {parts}"


def _passed(timed: pd.DataFrame) -> str:
    """The words about the fastest rung or peer of each precision that may not be called best; empty where the best are faster."""
    best, contest = leaders(timed), contestants(timed)
    reasons = []
    for precision in precisions(contest):
        won = best[best["precision"] == precision]
        reasons.append(passed_over(compared(contest, precision), won))
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def _tied_with(with_samples: list[Cell], best: Cell, look: Look) -> str:
    """The next rung, where the best one is not known to be faster, unless that is the baseline, which is named anyway."""
    others = [
        row for row in with_samples if row.role == best.role and row.precision == best.precision and best.variant in row.ties
    ]
    second = min(others, key=_median, default=None)
    if second is None or (second.variant == best.baseline and best.verdict == "tied"):
        return ""
    joined = " and" if best.verdict == "tied" and best.variant != best.baseline else ", tied with"
    return f"{joined} {look.variant_name(second.workload, second.variant)}"


def _peers_of(rung: Cell) -> tuple[str, ...]:
    return PEERS_OF.get(rung.precision, (rung.precision,))


def _own_peers(rung: Cell, fastest: list[Cell]) -> set[str]:
    """The precisions of the peers that a rung is compared with, without those of a faster rung that can take its place: of one in 3xTF32 not fp32,
    if a rung in fp32 is faster."""
    before = [row for row in fastest if row.precision in _peers_of(rung) and _median(row) < _median(rung)]
    return set(_peers_of(rung)).difference(*map(_peers_of, before))


def _median(row: Cell) -> float:
    return row.median_ns.value


def _beaten_peer(with_samples: list[Cell], best: Cell, look: Look) -> str:
    """`; 1.06× the best peer, torch_compile`: the fastest peer that the best rung is compared with; empty where that is not known to be slower."""
    peers = [row for row in with_samples if row.role == "peer" and row.precision in _peers_of(best) and best.role == "rung"]
    peer = min(peers, key=_median, default=None)
    if peer is None or best.variant in (*peer.beats, *peer.ties) or peer.variant == best.baseline:
        return ""
    return f"; {format_ratio(_median(peer) / _median(best))} the best peer, {look.variant_name(peer.workload, peer.variant)}"


def _peer(with_samples: list[Cell], rung: Cell, precisions_of_peers: set[str], look: Look) -> tuple[str, str]:
    """`faster` and the fastest peer that is, with its speedup over the rung that it is compared with; else `tied` and the fastest peer that
    is not known to be slower; else nothing.
    """
    peers = [row for row in with_samples if row.role == "peer" and row.precision in precisions_of_peers and rung.role == "rung"]
    faster = min((row for row in peers if rung.variant in row.beats), key=_median, default=None)
    tied = min((row for row in peers if rung.variant in row.ties), key=_median, default=None)
    if faster:
        return "faster", f"{look.variant_name(faster.workload, faster.variant)} {format_ratio(_median(rung) / _median(faster))}"
    return ("tied", look.variant_name(tied.workload, tied.variant)) if tied else ("", "")
