"""Charts of experiments inside a kernel: without each class of work, at each mark, and the blocks of a multiprocessor."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plotly.subplots import make_subplots

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.inside import Inside, few, sentence
from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import (
    ABOVE,
    Chart,
    Look,
    blank,
    error_bars,
    hatch,
    slug,
    text,
    ticks,
)
from warpladder.dashboard.views.why.experiments import query
from warpladder.dashboard.views.why.experiments.query import ORIGINAL, OTHERS, Blocks, bars, marks
from warpladder.data.names import Experiment, Fact
from warpladder.data.naming import CellName

_ROW_PX: Final = 26
_MOST_ROWS: Final = 32
_STAGES: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#6A4C9C")


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """Of each cell: without each class of work, the marks, and the blocks of the multiprocessor that ends last."""
    for cell in data.experiments.cells:
        found = data.experiments.of(cell)
        if found.was_altered:
            yield without(found, look, cell)
        if at_each := at_marks(found, look, cell):
            yield at_each
        if blocks := query.blocks(data, cell):
            yield over_time(blocks, blocks.multiprocessors[0], found, look, cell)


def without(found: Inside, look: Look, cell: CellName) -> Chart:
    """The time of the kernel, and its time without each class of work, with intervals."""
    frame = bars(found)
    rows = frame.to_dict("records")
    figure = rows_of_bars(look, [text(row["what"]) for row in rows], _ROW_PX, 70, least=0, range=None, autorange="reversed")
    color, original = look.style(cell.workload, cell.variant).color, float(frame["ns"].iloc[0])
    altered = [row["what"] != ORIGINAL for row in rows]
    for place, row in enumerate(rows):
        look_of_bar = {"opacity": 0.55 if altered[place] else 1.0, "pattern": hatch("/" if row["note"] else "")}
        ends = error_bars([Estimate(row["ns"], row["low_ns"], row["high_ns"])], color=look.tones.text)
        shape = {"y": [place], "width": 0.7, "showlegend": False, "error_x": ends}
        add_bars(figure, [row["ns"]], [text(_words(row))], marker={"color": color, **look_of_bar}, **shape)
    changes = [f"  {text(_change(row['ns'] / original))}" if change else "" for row, change in zip(rows, altered, strict=True)]
    words = [f"<b>{text(format_duration(row['ns']))}</b>{change}" for row, change in zip(rows, changes, strict=True)]
    write_beside(figure, [max(row["ns"], row["high_ns"]) for row in rows], words)
    scale(figure, "", float(frame[["ns", "high_ns"]].max().max()), 1.25)
    longer = found.assembled_over_original
    assembled = f" The PTX as it is, assembled here, takes {_change(longer or 1.0)}; the others are compared with it."
    note = look.note(
        f"{cell.case}, {_config(cell)}kernel {found.about}; medians with 95 % intervals, paired by round; hot L2. "
        "A class that is out costs next to nothing; what is computed then does not count. Hatched: the alteration changed more "
        f"than its class.{assembled if longer is not None and abs(longer - 1) > 0.03 else ''}"
    )
    return Chart(slug("without", *cell), sentence(found), figure, frame, note)


def _words(row: Mapping[Any, Any]) -> str:
    ends = f"{format_duration(row['low_ns'])} to {format_duration(row['high_ns'])}"
    lines = f"; lines {few(str(row['lines']))}" if row["lines"] else ""
    return f"{row['what']}: {ends}{lines}{'; ' if row['note'] else ''}{row['note']}"


def _change(ratio: float) -> str:
    percent = round(100 * (ratio - 1))
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"


def _config(cell: CellName) -> str:
    return f"{cell.variant}[{cell.config}], " if cell.config else f"{cell.variant}, "


def at_marks(found: Inside, look: Look, cell: CellName) -> Chart | None:
    """What a microsecond less at each mark saves; None where no waits were tried."""
    frame = marks(found)
    if frame.empty:
        return None
    rows = frame.to_dict("records")
    figure = rows_of_bars(look, [text(row["mark"]) for row in rows], _ROW_PX, 70, least=0)
    figure.add_scatter(
        x=frame["saved"],
        y=list(range(len(rows))),
        mode="markers",
        showlegend=False,
        marker={"color": look.style(cell.workload, cell.variant).color, "size": 9},
        error_x=error_bars([Estimate(row["saved"], row["low"], row["high"]) for row in rows], color=look.tones.text),
        hoverinfo="text",
        hovertext=[text(f"{row['mark']}: {row['saved']:.3f} ({row['low']:.3f} to {row['high']:.3f})") for row in rows],
    )
    ends = [max(row["saved"], row["high"]) for row in rows]
    write_beside(figure, ends, [f"{row['saved']:.2f}" for row in rows], 8)
    figure.add_vline(x=1, line={"color": look.tones.grid, "width": 2}, layer="below")
    low, high = min(0.0, float(frame["low"].min())), max(1.0, float(frame["high"].max()))
    figure.update_xaxes(range=[1.1 * low - 0.02, 1.15 * high], title_text="µs of the kernel that 1 µs less there saves")
    first = rows[0]
    title = f"1 µs less at the {first['mark']} saves {first['saved']:.2f} µs"
    note = look.note(
        f"{cell.case}, {_config(cell)}kernel {found.about}; slope of the time over waits of three lengths there, median of the "
        "rounds with its 95 % interval. 1: on the critical path; 0: something else takes as long."
    )
    return Chart(slug("marks", *cell), title, figure, frame, note)


def over_time(blocks: Blocks, multiprocessor: int, found: Inside, look: Look, cell: CellName) -> Chart:
    """The blocks of one multiprocessor with their stages, and the blocks that run on the average over time."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.25, 0.75], vertical_spacing=0.04)
    figure.update_layout(blank(look.theme, 380).layout)
    running = blocks.running()
    figure.add_scatter(
        x=running["at_ns"],
        y=running["blocks"],
        mode="lines",
        line={"shape": "hv", "color": look.tones.text, "width": 1.5},
        showlegend=False,
        row=1,
        col=1,
        hovertemplate="%{y:.1f} blocks<extra></extra>",
    )
    parts = blocks.of(multiprocessor)
    parts = parts[parts["place"] < _MOST_ROWS]
    colors = dict(zip(blocks.stages, (*_STAGES, look.tones.muted), strict=False)) | {OTHERS: look.tones.muted}
    for stage in blocks.stages:
        of_stage, waiting = parts[parts["stage"] == stage], "/" if stage.startswith("waiting at ") else ""
        spans = zip(of_stage["block"], of_stage["stage_ns"], strict=True)
        hovers = [text(f"block {block}, {stage}: {format_duration(ns)}") for block, ns in spans]
        marker = {"color": colors[stage], "line": {"width": 0}, "pattern": hatch(waiting)}
        shape = {"base": of_stage["from_ns"], "y": of_stage["place"], "width": 0.8, "name": text(stage)}
        add_bars(figure, of_stage["stage_ns"], hovers, marker=marker, **shape, row=2, col=1)
    most = float(blocks.spans["end_ns"].max())
    figure.update_xaxes(range=[0, most * 1.01], **ticks(0, most, format_duration, logarithmic=False))
    figure.update_yaxes(title_text="blocks", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(
        title_text=f"multiprocessor {multiprocessor}", showticklabels=False, ticks="", showgrid=False, row=2, col=1
    )
    figure.update_yaxes(range=[min(parts["place"].max(), _MOST_ROWS) + 0.6, -0.6], row=2, col=1)
    figure.update_layout(barmode="overlay", legend=ABOVE, margin={"t": 36})
    data, note = blocks.parts.drop(columns="place"), _how(blocks, found, look, cell)
    return Chart(slug("blocks", *cell), _waves(blocks, found), figure, data, note)


def _waves(blocks: Blocks, found: Inside) -> str:
    """How long multiprocessors have no block."""
    ends = blocks.spans.groupby("multiprocessor")["end_ns"].max()
    first, last = float(ends.min()), float(ends.max())
    busy = found.fact(Fact.BUSY)
    share = f"; multiprocessors have a block for {format_percent(100 * busy)} of the time" if busy is not None else ""
    return f"The last multiprocessor ends {format_duration(last - first)} after the first, at {format_duration(last)}{share}"


def _how(blocks: Blocks, found: Inside, look: Look, cell: CellName) -> str:
    total = found.fact(Fact.BLOCKS)
    probed = found.of(Experiment.TIME, "probes")
    longer = f", which take {_change(float(probed[0]['value']) / found.original_ns)}" if probed else ""
    of_all = f" of {total:.0f}" if total is not None else ""
    return look.note(
        f"{cell.case}, {_config(cell)}kernel {found.about}; one execution with probes{longer}. {len(blocks.spans)}{of_all} blocks, on "
        f"{blocks.spans['multiprocessor'].nunique()} multiprocessors; above, blocks of a multiprocessor, their mean. The stages of a block "
        "are drawn one after another, each with the time that its warps spend there in sum."
    )
