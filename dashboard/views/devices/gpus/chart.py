"""Speedup, efficiency and shares over the number of GPUs, and the best numbers of GPUs over size."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Cell, Estimate, Timing, records
from warpladder.dashboard.core.cells import doubt
from warpladder.dashboard.core.numbers import (
    format_duration,
    format_ends,
    format_estimate,
    format_percent,
    format_ratio,
    ranks_words,
    significant,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import add_bars
from warpladder.dashboard.ui.template import (
    ABOVE,
    BESIDE,
    Chart,
    Look,
    Theme,
    add_points,
    blank,
    bold_name,
    hatch,
    samples,
    slug,
    stack_shares,
    text,
    ticks,
)
from warpladder.dashboard.views.devices.gpus import query
from warpladder.dashboard.views.devices.gpus.query import PARTS

#: Times that differ by more than this factor get a logarithmic axis.
_LINEAR_RANGE: Final = 20.0
_SHARE_ROW_PX: Final = 16
_SCALE_NOTE: Final = (
    "A rank is one process with one GPU, or with none on the host. The time of a round is that of its slowest rank. Each "
    "number of ranks is a launch with its own rounds, so the ratios are not paired."
)
_PART_LOOKS: Final = dict(zip(PARTS.values(), (("#56B4E9", "\\"), ("#E69F00", "/"), ("#CC79A7", "x")), strict=True))


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The charts of each workload that several ranks measured, in each timing.

    These are the best number of ranks for the fastest variant, and the speedups at the largest case. The first timing also has
    weak scaling and the shares of phases.
    """
    for workload in cells.scaled_workloads(data):
        for place, timing in enumerate(query.timings(data, workload)):
            yield from _of_timing(data, look, workload, timing, first=place == 0)


def _of_timing(data: RunData, look: Look, workload: str, timing: Timing, *, first: bool) -> Iterator[Chart]:

    frame = query.scaling(data, workload, timing)
    if frame.empty:
        return
    variant = query.variant_to_show(frame)
    yield best_counts(query.crossover(data, workload, timing, variant), look)
    largest = frame[frame["size_rank"] == frame.loc[frame["ranks"] > 1, "size_rank"].max()]
    largest = largest[largest["case"] == largest["case"].iloc[-1]]
    yield strong(largest, look)
    if not first:
        return
    grown = query.weak(data, workload, timing)
    if len(grown):
        yield weak(grown[grown["per_rank"] == query.weak_to_show(grown)], look)
    for _, parts in query.shares(data, workload, timing).groupby("variant", sort=False):
        yield shares(parts, look)


@dataclass(frozen=True)
class _Panel:
    """One panel of lines over the number of ranks.

    Attributes:
        of: the figure of a row.
        ideal: its ideal value for a number of ranks.
        label: the name of the figure in a hover text.
        is_time: the figure is the median time, which a hover text shows anyway.
    """

    of: Callable[[Cell], Estimate]
    title: str
    write: Callable[[float], str]
    ideal: Callable[[int], float] | None
    label: str
    is_time: bool = False


_SPEEDUP: Final = _Panel(lambda row: row.speedup, "speedup over one rank", format_ratio, float, "speedup over one")
_EFFICIENCY: Final = _Panel(lambda row: row.efficiency, "efficiency", format_percent, lambda ranks: 100.0, "efficiency")
_TIME: Final = _Panel(lambda row: row.median_ns, "median time", format_duration, None, "median", is_time=True)
_WEAK: Final = _Panel(
    lambda row: row.weak_efficiency, "weak-scaling efficiency", format_percent, lambda ranks: 100.0, "efficiency"
)


def strong(frame: pd.DataFrame, look: Look) -> Chart:
    """Speedup and efficiency of one case over the number of ranks, with a line for each variant and one for the ideal.

    Args:
        frame: `query.scaling` of one case, not empty.
    """
    rows = records(frame)
    first = rows[0]
    figure = _panels(rows, look, _SPEEDUP, _EFFICIENCY)
    doubts = {(row.variant, row.ranks): why for row in rows if (why := doubt(row.n, row.flags))}
    timed = [row for row in rows if row.speedup.known and row.ranks > 1]
    trusted = [row for row in timed if (row.variant, row.ranks) not in doubts]
    title = f"{first.workload}, {first.case}: no time of one rank to compare with"
    if doubts and not trusted:
        title = f"{first.workload}, {first.case}: no speedup, as times are {next(iter(doubts.values()))}"
    if trusted:
        count = max(row.ranks for row in trusted)
        most = [row for row in trusted if row.ranks == count]
        fastest = min(most, key=lambda row: row.median_ns.value)
        title = (
            f"{first.workload}, {first.case}: {_who(fastest)} take {look.variant_name(first.workload, fastest.variant)} to "
            f"{format_estimate(fastest.speedup, format_ratio)}, {format_percent(fastest.efficiency.value)} of ideal"
        )
        top = max(most, key=lambda row: row.speedup.value)
        if top.variant != fastest.variant:
            title += f"; {look.variant_name(first.workload, top.variant)} gains most, {format_ratio(top.speedup.value)}"
    name = slug("gpus", first.workload, first.case, first.scope, first.cache, "speedup")
    return Chart(
        name, title, figure, frame, _note(rows, look, "Each variant with its fastest config at each number.", _SCALE_NOTE)
    )


def weak(frame: pd.DataFrame, look: Look) -> Chart:
    """Time and efficiency where every rank has the same amount of work, with a line for each variant.

    Args:
        frame: `query.weak` of one `per_rank`, not empty.
    """
    rows = records(frame)
    first = rows[0]
    each = f"{first.axis} {first.per_rank:,.0f} a rank"
    count = max(row.ranks for row in rows)
    most = [row for row in rows if row.ranks == count]
    most = [row for row in most if not doubt(row.n, row.flags)] or most
    top, least = (pick(most, key=lambda row: row.weak_efficiency.value) for pick in (max, min))
    keeps = format_percent(top.weak_efficiency.value)
    title = f"{first.workload}, {each}: {look.variant_name(first.workload, top.variant)} keeps {keeps} on {_who(top)}"
    if top.variant != least.variant:
        title += f", {look.variant_name(first.workload, least.variant)} {format_percent(least.weak_efficiency.value)}"
    name = slug("gpus", first.workload, "weak", f"{first.per_rank:.0f}", first.scope, first.cache)
    how = f"Weak scaling: {each} at every number. Efficiency: time of one rank over that of these, in percent."
    return Chart(name, title, _panels(rows, look, _TIME, _WEAK), frame, _note(rows, look, how, _SCALE_NOTE))


def shares(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked shares of copies and communication, of one variant, with a bar for each case and number of ranks.

    Args:
        frame: `query.shares` of one variant, not empty.
    """
    rows = records(frame)
    first = rows[0]
    labels = {
        (row.case, row.ranks): f"{text(row.case)}, {_who(row)}  {text(format_duration(whole))}"
        for row, whole in zip(rows, frame["median_ns"].tolist(), strict=True)
    }
    figure = blank(look.theme, _SHARE_ROW_PX * len(labels) + 84)
    for part, (color, pattern) in _PART_LOOKS.items():
        if of_part := [row for row in rows if row.part == part]:
            hover_lines = [((part, format_estimate(row.share, format_percent)), *_beside_nccl(row)) for row in of_part]
            hovers = [_hover(row, *figures) for row, figures in zip(of_part, hover_lines, strict=True)]
            names = [labels[row.case, row.ranks] for row in of_part]
            marker = {"color": color, "pattern": hatch(pattern)}
            add_bars(figure, [row.share.value for row in of_part], hovers, y=names, name=part, marker=marker)
    legend = {**ABOVE, "y": 1.01, "traceorder": "normal"}
    figure.update_layout(legend=legend, margin={"t": 30, "r": 28}, showlegend=True, bargap=0.25)
    stack_shares(figure, labels.values(), look)
    scope = first.scope.replace("_", " ")
    figure.update_xaxes(title={"text": f"share of the slowest rank's {scope} time", "standoff": 12})
    note = (
        f"{look.device}; {_timing(first)}; of each round's slowest rank, medians over rounds; {samples(frame['n'])}. The rest "
        f"of a bar is kernels, launches and waiting. {_on_phases(rows)}"
    )
    name = slug("gpus", first.workload, first.variant, first.scope, "shares")
    return Chart(name, _shares_title(rows, look), figure, frame, note)


def _shares_title(rows: list[Cell], look: Look) -> str:
    """The sum of the shares at the largest case, for each number of ranks."""
    largest = [row for row in rows if row.size_rank == max(each.size_rank for each in rows)]
    last = [row for row in largest if row.case == largest[-1].case]
    sums = {count: sum(row.share.value for row in last if row.ranks == count) for count in sorted({row.ranks for row in last})}
    figures = [f"{format_percent(share)} on {ranks_words(count, on_gpu=_on_gpu(last[0]))}" for count, share in sums.items()]
    parts = list(dict.fromkeys(row.part for row in last))
    what = parts[0] if len(parts) == 1 else "communication and copies" if "communication" in parts else "copies"
    verb = "is" if what == "communication" else "are"
    return f"{look.variant_name(last[0].workload, last[0].variant)}, {last[0].case}: {what} {verb} {', '.join(figures)}"


def _beside_nccl(row: Cell) -> list[tuple[str, str]]:
    """Figures of communication for a hover text: its time without the wait for other ranks, and NCCL's own time."""
    if math.isnan(row.least_ns):
        return []
    least = [("without waiting for a rank", format_duration(row.least_ns))]
    if math.isnan(row.alone_ns):
        return least
    alone = f"{format_duration(row.alone_ns)}, {format_ratio(row.least_ns / row.alone_ns)}"
    return [*least, ("NCCL alone, and over it", alone)]


def _on_phases(rows: list[Cell]) -> str:
    communication = [row for row in rows if row.part == "communication"]
    if not communication:
        return "Phases that overlap can exceed 100 %. A variant whose copies overlap its kernels has no phases."
    how = ", summed over launches, including time in which other kernels run" if _on_gpu(communication[0]) else ""
    sentence = f"Communication: its own time{how}, with the wait for slower ranks."
    largest = max(row.size_rank for row in communication)
    last = [row for row in communication if row.size_rank == largest and not math.isnan(row.alone_ns)]
    ratios = [f"{format_ratio(row.least_ns / row.alone_ns)} on {_who(row)}" for row in last]
    return f"{sentence} Without that wait, over NCCL's own time for as many bytes: {', '.join(ratios)}." if ratios else sentence


def _panels(rows: Sequence[Cell], look: Look, *panels: _Panel) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(panels), horizontal_spacing=0.09, figure=blank(look.theme, 400))
    counts = sorted({row.ranks for row in rows})
    span = float(counts[-1] - counts[0] or 1)
    margin = 0.08 * span if len(counts) > 1 else 0.5
    for place, panel in enumerate(panels, start=1):
        if panel.ideal:
            line = {"color": look.tones.muted, "width": 1.5, "dash": "dot"}
            legend = {"name": "ideal", "legendgroup": "ideal", "showlegend": place == len(panels)}
            ideal = {"x": counts, "y": list(map(panel.ideal, counts)), "mode": "lines", "hoverinfo": "skip", "line": line}
            figure.add_scatter(**ideal, **legend, row=1, col=place)
        measured = [row for row in rows if panel.of(row).known]
        for variant in dict.fromkeys(row.variant for row in measured):
            _draw_line(figure, [row for row in measured if row.variant == variant], look, panel, place)
        _set_scale(figure, measured, counts, panel, place)
    kinds = {row.kind for row in rows}
    word = "GPUs" if "host" not in kinds else "processes" if kinds == {"host"} else "GPUs, or processes"
    labels = {"tickmode": "array", "tickvals": counts, "ticktext": [str(count) for count in counts]}
    figure.update_xaxes(title_text=word, range=[counts[0] - margin, counts[-1] + margin], **labels)
    figure.update_layout(legend=BESIDE, margin={"t": 12})
    return figure


def _set_scale(figure: go.Figure, measured: list[Cell], counts: list[int], panel: _Panel, place: int) -> None:
    """Give a panel a linear axis from 0, or a logarithmic one for times that differ too much."""
    high, low = max(panel.of(row).high for row in measured), min(panel.of(row).low for row in measured)
    logarithmic = high > _LINEAR_RANGE * low > 0 and panel.is_time
    highest = max([high, *(panel.ideal(count) for count in counts)] if panel.ideal else [high])
    scale = ticks(low if logarithmic else 0, highest, panel.write, logarithmic=logarithmic)
    figure.update_yaxes(title_text=panel.title, type="log" if logarithmic else "linear", row=1, col=place, **scale)
    if not logarithmic:
        figure.update_yaxes(range=[0, highest * 1.08], row=1, col=place)


def _draw_line(figure: go.Figure, line: list[Cell], look: Look, panel: _Panel, place: int) -> None:
    workload, variant = line[0].workload, line[0].variant
    style = look.style(workload, variant)
    owns = [(row, [] if panel.is_time else [(panel.label, format_estimate(panel.of(row), panel.write))]) for row in line]
    hovers = [_hover(row, *own, ("median", format_estimate(row.median_ns, format_duration))) for row, own in owns]
    points = text(look.variant_name(workload, variant)), [row.ranks for row in line], map(panel.of, line), hovers
    group: dict[str, Any] = {"legendgroup": variant, "showlegend": place == 1}
    add_points(figure, style, *points, width=1.8, **group, row=1, col=place)


def _hover(row: Cell, *figures: tuple[str, str]) -> str:
    lines = [f"{bold_name(row.variant, row.config)} on {_who(row)}", text(row.title)]
    lines += [f"{text(label)}: <b>{text(value)}</b>" for label, value in figures]
    return "<br>".join([*lines, f"{text(row.case)} · {text(_timing(row))} · n = {row.n}"])


def _on_gpu(row: Cell) -> bool:
    return row.kind != "host"


def _who(row: Cell) -> str:
    return ranks_words(row.ranks, on_gpu=_on_gpu(row))


def _timing(row: Cell) -> str:
    return Timing(row.scope, row.cache).label(on_gpu=_on_gpu(row))


def _note(rows: Sequence[Cell], look: Look, *further: str) -> str:
    how = " and ".join(dict.fromkeys(map(_timing, rows)))
    kinds: Iterable[str] = dict.fromkeys(row.interval_kind for row in rows)
    counts = samples([row.n for row in rows])
    return " ".join([f"{look.device}; {how}; medians with {' and '.join(kinds)}; {counts}.", *further])


_ROW_PX: Final = 40
_PLACES: Final = ("best", "tied", "slower")
#: The place whose colours another one has.
_LOOKS: Final = {"unknown": "slower"}
#: Best and tied differ in lightness, and each tile says its place in words.
_COLORS: Final[dict[Theme, tuple[str, str, str]]] = {
    "light": ("#00734F", "#9ED8C2", "#EEF0F3"),
    "dark": ("#2FB98F", "#1F5B4A", "#262B33"),
}
_WORDS: Final[dict[Theme, tuple[str, str, str]]] = {
    "light": ("#ffffff", "#10231c", "#40474f"),
    "dark": ("#06120d", "#e6f5ef", "#c3c9d1"),
}
_MOST_STRETCHES: Final = 4


@dataclass(frozen=True)
class _Tile:
    """A tile at column `x` and row `y`, in the colours of a place: `best`, `tied`, `slower` or `unknown`."""

    x: int
    y: int
    place: str
    label: str
    hover: str


def best_counts(frame: pd.DataFrame, look: Look) -> Chart:
    """Tiles of cases by number of ranks: the best one, those tied with it, and how much slower the others are.

    Args:
        frame: `query.crossover` of one variant, not empty.
    """
    compared = records(frame)
    first = compared[0]
    on_gpu = first.kind != "host"
    columns, counts = list(dict.fromkeys(frame["case"])), sorted(set(frame["ranks"]))
    tiles = [_tile(row, columns.index(row.case), counts.index(row.ranks)) for row in compared]
    figure = _draw_tiles(tiles, [ranks_words(int(ranks), on_gpu=on_gpu) for ranks in counts], columns, look)
    timing = Timing(first.scope, first.cache).label(on_gpu=on_gpu)
    note = (
        f"{look.device}; {timing}; {samples(frame['n'])}. Times are those of the slowest rank. Tied: the 95 % interval of the "
        "ratio to the best holds 1, or it is within the noise of the baseline against itself. Each number of ranks is a launch "
        "with its own rounds, so the ratios are not paired."
    )
    name = slug("gpus", first.workload, first.variant, first.scope, first.cache, "best")
    return Chart(name, _title(frame, look, on_gpu), figure, frame, note)


def _draw_tiles(tiles: Sequence[_Tile], rows: Sequence[str], columns: Sequence[str], look: Look) -> go.Figure:
    """A map of tiles with their words, the first row on top.

    Args:
        rows: names of the rows.
        columns: names of the columns.
    """
    figure = blank(look.theme, _ROW_PX * len(rows) + 74)
    number = np.full((len(rows), len(columns)), np.nan)
    hovers = np.full(number.shape, "", dtype=object)
    for tile in tiles:
        number[tile.y, tile.x] = _PLACES.index(_LOOKS.get(tile.place, tile.place))
        hovers[tile.y, tile.x] = tile.hover
    colors = _COLORS[look.theme]
    scale = [[(place + end) / 3, color] for place, color in enumerate(colors) for end in (0, 1)]
    shared = {"zmin": -0.5, "zmax": 2.5, "colorscale": scale, "showscale": False, "xgap": 4, "ygap": 4, "hoverongaps": False}
    across, down = list(range(len(columns))), list(range(len(rows)))
    figure.add_heatmap(z=number, x=across, y=down, hovertext=hovers, hoverinfo="text", **shared)
    words = _WORDS[look.theme]
    fonts = {place: {"size": 11, "color": color} for place, color in zip(_PLACES, words, strict=True)}
    figure.layout.annotations = [
        {
            "x": tile.x,
            "y": tile.y,
            "text": tile.label,
            "showarrow": False,
            "font": fonts[_LOOKS.get(tile.place, tile.place)],
        }
        for tile in tiles
    ]
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "tickmode": "array"}
    figure.update_xaxes(range=[-0.5, len(columns) - 0.5], **axis, tickvals=across, ticktext=[text(name) for name in columns])
    ends = {"range": [len(rows) - 0.5, -0.5], "tickfont": {"color": look.tones.text}}
    figure.update_yaxes(**ends, **axis, tickvals=down, ticktext=[text(row) for row in rows])
    return figure


def _tile(row: Cell, x: int, y: int) -> _Tile:
    median = text(format_duration(row.median_ns.value))
    lines = [
        f"<b>{text(row.variant)}</b> {text(row.config)} on {_who(row)}".replace("  ", " "),
        f"{text(row.case)}: <b>{median}</b> ({text(format_ends(row.median_ns, format_duration))})",
    ]
    if why := doubt(row.n, row.flags):
        lines.append(text(why))
    if row.place != "best" and row.over_best.known:
        ends = format_ends(row.over_best, format_ratio)
        lines.append(f"{format_ratio(row.over_best.value)} the time of the best ({ends}), {row.place}")
    if row.speedup.known and row.ranks > 1:
        lines.append(f"speedup over one {format_estimate(row.speedup, format_ratio)}")
    lines.append(f"n = {row.n} · {text(row.interval_kind)}")
    ratio = format_ratio(row.over_best.value)
    over = f"+{significant(100 * (row.over_best.value - 1), 1)} %" if ratio == "1.00×" else ratio
    word = row.place if row.place != "slower" else over
    label = f"<b>{median}</b><br>{word}"
    return _Tile(x, y, row.place, label, "<br>".join(lines))


def _title(frame: pd.DataFrame, look: Look, on_gpu: bool) -> str:
    """The title: the best number of ranks for each group of consecutive cases, with the numbers that are tied with it. A case in
    which nothing may be called best is left out.
    """
    first = frame.iloc[0]
    subject = f"{first['workload']}, {look.variant_name(first['workload'], first['variant'])}"
    sizes = frame["case"].nunique()
    frame = frame[frame.groupby("case")["place"].transform(lambda places: (places == "best").any())]
    if frame.empty:
        return f"{subject}: no number is best; each time is {doubt(int(first['n']), first['flags'])}"
    best = []
    for case, rows in frame.groupby("case", sort=False):
        counts = [str(ranks) for ranks in sorted(rows.loc[rows["place"].isin(["best", "tied"]), "ranks"])]
        best.append((" or ".join(counts), str(case)))
    stretches = [(counts, [case for _, case in group][-1]) for counts, group in groupby(best, key=lambda pair: pair[0])]
    name = subject
    counts, last = stretches[0]
    unit = ranks_words(1, on_gpu=on_gpu)[2:] if counts == "1" else ranks_words(2, on_gpu=on_gpu)[2:]
    are = f"{name}: {counts} {unit} {'is' if counts == '1' else 'are'} best"
    if len(stretches) == 1:
        where = "every size" if len(best) == sizes else last if len(best) == 1 else f"{len(best)} of {sizes} sizes"
        return f"{name}: {counts.replace('or', 'and')} {unit} are tied at {where}" if "or" in counts else f"{are} at {where}"
    if len(stretches) > _MOST_STRETCHES or frame["series"].nunique() > 1:
        alone = frame[frame["place"].isin(["best", "tied"])].groupby("case")["ranks"].transform("size") == 1
        won = frame.loc[alone.index[alone], "ranks"].value_counts().sort_index()
        numbers = ", ".join(
            f"{ranks_words(int(ranks), on_gpu=on_gpu)} in {count}" for ranks, count in zip(won.index.tolist(), won, strict=True)
        )
        tied = len(best) - int(won.sum())
        ties = f"{', ' if numbers else ''}several in {tied}" if tied else ""
        return f"{name}: fastest of {len(best)} cases are {numbers}{ties}"
    between = "".join(f", {counts} up to {case}" for counts, case in stretches[1:-1])
    return f"{are} up to {last}{between}, {stretches[-1][0]} above"
