"""The charts of the generator's report: the parts of a generation, its time over the number of images, and figures 2 to 6."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.cells import is_trusted
from warpladder.dashboard.core.numbers import (
    format_bytes,
    format_duration,
    format_ends,
    format_percent,
    format_rate,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.bars import add_bars, bars_of_shares, rows_of_bars, scale
from warpladder.dashboard.ui.template import (
    BESIDE,
    Chart,
    Look,
    blank,
    bold_name,
    error_bars,
    hatch,
    palette,
    patterns,
    samples,
    slug,
    spaced,
    text,
    ticks,
)
from warpladder.dashboard.views.reports.details import generator, table_4

_LOOKS: Final = dict(
    zip(generator.PARTS, (("#56B4E9", "\\"), ("#009E73", ""), ("#E69F00", "/"), ("#8D939C", ".")), strict=True)
)
_NOT_KNOWN: Final = "overlapped, parts not known"
_PUBLISHED_MARKS: Final = ("circle-open", "square-open", "diamond-open")
_MARK: Final = {generator.PINNED: " (pinned)", generator.OVERLAPPED: " (overlapped)"}


def parts(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked shares of one case, with a bar for each variant. Each label has the variant's end-to-end time.

    The bar of an overlapped generation shows its longest part and the rest of its time.

    Args:
        frame: `query.generations` of one case, not empty.
    """
    case = str(frame["case"].iloc[0])
    rows = frame.to_dict("records")
    looks = {**_LOOKS, _NOT_KNOWN: (look.tones.grid, "")}
    shares = [(row, part, _share(row, part)) for row in rows for part in looks]
    bars = [(_label(row, look), part, share, _hover(row, part, share) if share else "") for row, part, share in shares]
    figure = bars_of_shares(look, pd.DataFrame(bars, columns=["label", "part", "share", "hover"]), looks, 27, "")
    against = [place for place, row in enumerate(rows) if pd.notna(row["ratio"])]
    if against:
        figure.add_shape(
            type="line",
            x0=100 / generator.AIM,
            x1=100 / generator.AIM,
            y0=min(against) - 0.5,
            y1=max(against) + 0.5,
            showlegend=True,
            name=f"{generator.AIM}× the longest part",
            line={"color": look.tones.text, "width": 1.5, "dash": "dot"},
        )
    figure.update_layout(
        legend={"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "traceorder": "normal"},
        margin={"t": 8, "r": 28},
    )
    note = (
        f"{look.device}; share of end-to-end time; copies and kernels are timed by events on the device, and {generator.REST} is the "
        "rest of the host's time; medians of each variant's fastest config. Overlapped: the longest of kernels "
        "(device time, hot L2) and fastest copies of pinned memory in each direction, each timed alone, and the rest; "
        f"{samples(frame['n'])}."
    )
    return Chart(slug("generator", case), _parts_title(frame, case, look), figure, frame, note)


def over_images(frame: pd.DataFrame, published: pd.DataFrame, look: Look) -> Chart:
    """End-to-end time over the number of images, with a line for each variant. Open marks show the report's table 4.

    Args:
        frame: `query.generations`, not empty, of the report's network.
        published: `table_4.published`.
    """
    figure = blank(look.theme, 420)
    for variant, line in frame.groupby("variant", sort=False):
        style = look.style(generator.WORKLOAD, str(variant))
        figure.add_scatter(
            x=line["images"],
            y=line["median_ns"],
            mode="lines+markers",
            name=text(look.variant_name(generator.WORKLOAD, str(variant))),
            line={"color": style.color, "width": 1.6},
            marker={"symbol": style.symbol, "size": 7, "color": style.color},
            error_y=error_bars(Estimate.of(row, "median_ns") for row in line.to_dict("records")),
            hoverinfo="text",
            hovertext=[_whole_hover(row) for row in line.to_dict("records")],
        )
    for (variant, rows), mark in zip(published.groupby("variant", sort=False), _PUBLISHED_MARKS, strict=True):
        figure.add_scatter(
            x=rows["images"],
            y=1e9 * rows["seconds"],
            mode="markers",
            name=f"report: {text(str(variant))}",
            marker={"symbol": mark, "size": 9, "color": look.tones.muted, "line": {"width": 1.5}},
            hoverinfo="text",
            hovertext=[
                f"<b>report, {text(row['variant'])}</b><br>{row['images']:,} images: "
                f"<b>{text(format_duration(1e9 * row['seconds']))}</b><br>{text(row['hardware'])}<br>{text(row['note'])}"
                for row in rows.to_dict("records")
            ],
        )
    counts = sorted({*frame["images"], *published["images"]})
    figure.update_xaxes(
        type="log", tickmode="array", tickvals=spaced(counts), ticktext=[f"{n:,}" for n in spaced(counts)], title_text="images"
    )
    times = [*frame["median_ns"], *(1e9 * published["seconds"])]
    figure.update_yaxes(type="log", title_text="end to end", **ticks(min(times), max(times), format_duration, logarithmic=True))
    figure.update_layout(legend=BESIDE, margin={"t": 12})
    both = frame.merge(published, on="images", suffixes=("", "_published"))
    data = frame.merge(_by_variant(published), on="images", how="left")
    title = f"End to end over {len(set(frame['images']))} numbers of images"
    if len(both):
        # The report computes in fp32.
        same = both[both["precision"] == "fp32"] if (both["precision"] == "fp32").any() else both
        most = same[same["images"] == same["images"].max()]
        published_time = f"the report's fastest took {format_duration(1e9 * float(most['seconds'].min()))} on other hardware"
        best = most[is_trusted(most)].nsmallest(1, "median_ns").to_dict("records")
        fastest = [
            f"take {format_duration(row['median_ns'])} by {look.variant_name(generator.WORKLOAD, row['variant'])}"
            for row in best
        ]
        title = (
            f"{most['images'].iloc[0]:,} images {fastest[0] if fastest else 'have no fastest generation here'}; "
            f"{published_time}"
        )
    note = (
        f"{look.device}, one GPU; end-to-end time, medians with {' and '.join(dict.fromkeys(frame['interval_kind']))}; "
        f"{samples(frame['n'])}. Open marks: the report's table 4, on two nodes with 1, 2 or 4 GPUs each. The report does not "
        "name the GPUs, so a ratio of the two does not show which code is better."
    )
    return Chart(slug("generator", "over images"), title, figure, data, note)


def _parts_title(frame: pd.DataFrame, case: str, look: Look) -> str:
    best = frame[is_trusted(frame)].nsmallest(1, "median_ns").to_dict("records")
    fastest = [
        f"{look.variant_name(generator.WORKLOAD, row['variant'])} is fastest end to end with {format_duration(row['median_ns'])}"
        for row in best
    ]
    title = f"At {case}, {fastest[0] if fastest else 'no generation may be called fastest'}"
    with_ratio = frame[frame["ratio"].notna()]
    if with_ratio.empty:
        return title
    within = int((with_ratio["ratio"] <= generator.AIM).sum())
    return f"{title}; {within} of {len(with_ratio)} overlapped take at most {generator.AIM}× their longest part"


def _label(row: dict[Any, Any], look: Look) -> str:
    ratio = f", {format_ratio(row['ratio'])}" if pd.notna(row["ratio"]) else ""
    name = f"{look.variant_name(generator.WORKLOAD, row['variant'])}{_MARK.get(row['transfer'], '')}"
    return f"{text(name)}  {text(format_duration(row['median_ns']))}{ratio}"


def _share(row: dict[Any, Any], part: str) -> float:
    """The share of a part in the variant's bar; 0 for a part that the variant does not have."""
    total = float(row["median_ns"])
    if row["transfer"] != generator.OVERLAPPED:
        # Each phase and the whole have their own medians, so the phases can add up to slightly more than the whole.
        known = sum(float(row[each]) for each in generator.PARTS if pd.notna(row[each]))
        return 0.0 if part == _NOT_KNOWN or pd.isna(row[part]) else float(row[part]) / max(total, known)
    if pd.isna(row["ratio"]):
        return float(part == _NOT_KNOWN)
    longest = min(1.0, float(row["longest_ns"]) / total)
    return longest if part == row["longest"] else 1.0 - longest if part == generator.REST else 0.0


def _hover(row: dict[Any, Any], part: str, share: float) -> str:
    lines = [
        f"{bold_name(row['variant'], row['config'])}<br>{text(row['title'])}",
        f"{part}: <b>{text(format_percent(100 * share))}</b>",
    ]
    if row["transfer"] != generator.OVERLAPPED:
        lines[-1] += f", {text(format_duration(row[part]))}"
    else:
        alone = [
            f"{name} {text(format_duration(row[name]))}"
            for name in (generator.IN, generator.COMPUTE, generator.OUT)
            if pd.notna(row[name])
        ]
        lines += [f"alone: {', '.join(alone)}"] if alone else []
        lines += [f"whole over the longest: <b>{format_ratio(row['ratio'])}</b>"] if pd.notna(row["ratio"]) else []
    return "<br>".join([*lines, _how(row)])


def _whole_hover(row: dict[Any, Any]) -> str:
    ends = format_ends(Estimate.of(row, "median_ns"), format_duration)
    return (
        f"{bold_name(row['variant'], row['config'])}<br>{row['images']:,} images: <b>{text(format_duration(row['median_ns']))}</b> "
        f"({text(ends)})<br>{_how(row)}"
    )


def _how(row: dict[Any, Any]) -> str:
    copies = f"{text(row['transfer'])} copies · " if pd.notna(row["transfer"]) else ""
    return f"{copies}{text(row['precision'])} · n = {row['n']}"


def _by_variant(published: pd.DataFrame) -> pd.DataFrame:
    """One row for each number of images, and one column for each variant, such as `published_s: 1 GPU a node`."""
    wide = published.pivot(index="images", columns="variant", values="seconds")
    return wide.rename(columns="published_s: {}".format).reset_index().rename_axis(columns=None)


#: Places in the palette. Copies have the colours of `chart.parts`.
_COLORS: Final = {
    generator.PRODUCTS: 0,
    generator.OPERANDS: 3,
    generator.DIRECT: 1,
    generator.NORMS: 2,
    generator.DENSE: 6,
    generator.LAST: 7,
    generator.IN: 5,
    generator.OUT: 4,
}
#: Distance of a band's middle below the middle of its row, and the band's height. Copies in and out have separate bands,
#: because they can run at once.
_BANDS: Final = {generator.IN: (0.23, 0.13), generator.OUT: (0.38, 0.13)}
_KERNELS: Final = (-0.12, 0.5)
_ROW_PX: Final = 58
_MOST_BARS: Final = 2_000


def figures_2_to_6(frame: pd.DataFrame, look: Look, case: str) -> Chart:
    """One row for each execution of `executions.executions`, which is not empty, on a common time axis.

    At most 2,000 bars are drawn: those that start first, up to the same time in all rows.
    """
    keys = frame.drop_duplicates(["variant", "config"]).reset_index(drop=True)
    row_of = {(row["variant"], row["config"]): place for place, row in enumerate(keys.to_dict("records"))}
    whole_ns = int(keys["span_ns"].max())
    cut = len(frame) > _MOST_BARS
    until_ns = int(np.sort(frame["start_ns"])[_MOST_BARS]) if cut else whole_ns
    shown = frame[frame["start_ns"] < until_ns] if cut else frame
    names = [
        f"{text(name(row))}<br>{text(row['figure'])} · {text(format_duration(row['span_ns']))}"
        for row in keys.to_dict("records")
    ]
    ends = {"range": [len(keys) - 0.45, -0.45], "zeroline": False}
    figure = rows_of_bars(look, names, _ROW_PX, 112, least=1, **ends)
    drawn = [kind for kind in generator.KINDS if (shown["kind"] == kind).any()]
    colors = [palette(look.theme)[_COLORS[kind]] if kind in _COLORS else look.tones.muted for kind in drawn]
    for kind, color, pattern in zip(drawn, colors, patterns(colors), strict=True):
        rows = shown[shown["kind"] == kind].to_dict("records")
        middle, height = _BANDS.get(kind, _KERNELS)
        add_bars(
            figure,
            [row["end_ns"] - row["start_ns"] for row in rows],
            [_execution_hover(row) for row in rows],
            base=[row["start_ns"] for row in rows],
            name=kind,
            width=height,
            y=[row_of[row["variant"], row["config"]] + middle for row in rows],
            marker={"color": color, "pattern": hatch(pattern), "line": {"width": 0}},
        )
    figure.update_layout(
        barmode="overlay",
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        margin={"t": 56, "r": 28},  # two lines of legend
    )
    scale(figure, "time from the start of an execution", until_ns)
    left_out = (
        f" The chart has the {len(shown):,} bars of {len(frame):,} that start within {format_duration(until_ns)}; the Timeline "
        "has all of them."
        if cut
        else ""
    )
    note = look.note(
        "for each variant, the end-to-end execution of median duration, from its first device work to its last, traced under "
        f"a profiler, which makes launches longer; {samples(keys['n'])}; fp32. Wide bands are kernels. Thin bands below them "
        f"are copies in and copies out.{left_out} After figures 2 to 6 of S. Yi, SHPC 2021 Fall Term Project Report. "
        "Figures 2 to 5 show 16 inputs; the report does not name the GPU."
    )
    return Chart(slug("generator", "figures", case), _title(frame, case), figure, frame, note)


def name(row: dict[Any, Any]) -> str:
    """`v05_mixed [products=3]`, plain text."""
    return f"{row['variant']} [{row['config']}]" if row["config"] else str(row["variant"])


def _title(frame: pd.DataFrame, case: str) -> str:
    ran = frame.assign(who=[name(row) for row in frame.to_dict("records")], ns=frame["end_ns"] - frame["start_ns"])
    kernels = ran[~ran["kind"].isin(generator.COPIES)]
    mixes = kernels[kernels["variant"] == generator.MIXED_VARIANT]
    sums = (mixes if len(mixes) else kernels).groupby("who")["ns"].sum()
    if sums.empty:
        return f"At {case}, no kernel of the report's figures was traced"
    fastest, kernel_ns = str(sums.idxmin()), int(sums.min())
    shares = kernels[kernels["who"] == fastest].groupby("kind")["ns"].sum().nlargest(2) / kernel_ns
    where = ", ".join(f"{format_percent(100 * share)} {kind}" for kind, share in shares.items())
    take = (
        f"{fastest} is the fastest of {len(sums)} mixes: kernels take"
        if len(mixes) and len(sums) > 1
        else f"the kernels of {fastest} take"
    )
    copies = ran[ran["kind"].isin(generator.COPIES) & (ran["variant"] == generator.OVERLAPPED_VARIANT)]
    hides = (
        f"; {generator.OVERLAPPED_VARIANT} hides {format_percent(100 * copies['hidden_ns'].sum() / copies['ns'].sum())} of its copies"
        if copies["ns"].sum()
        else ""
    )
    return f"At {case}, {take} {format_duration(kernel_ns)}, {where}{hides}"


def _execution_hover(row: dict[Any, Any]) -> str:
    duration = row["end_ns"] - row["start_ns"]
    lines = [f"<b>{text(row['name'])}</b>: <b>{text(format_duration(duration))}</b>", row["kind"]]
    if pd.notna(row["bytes"]):
        rate = f" at {format_rate(row['bytes'] / duration)}" if duration else ""
        hidden = f", {format_percent(100 * row['hidden_ns'] / duration)} behind kernels" if duration else ""
        lines[0] = f"<b>{row['kind']}</b>: <b>{text(format_duration(duration))}</b>"
        lines[1] = text(f"{format_bytes(row['bytes'])}{rate}{hidden}")
    return "<br>".join([*lines, f"{text(name(row))}, after {text(format_duration(row['start_ns']))}"])


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    frame = generator.generations(data)
    if frame.empty:
        return
    case = generator.case_to_show(frame)
    yield parts(frame[frame["case"] == case], look)
    for each in dict.fromkeys((case, generator.FIGURE_6_CASE)):
        work = generator.executions(data, each)
        if len(work):
            yield figures_2_to_6(work, look, each)
    of_report = generator.of_report(frame)
    if len(of_report):
        yield over_images(of_report, table_4.published(), look)
