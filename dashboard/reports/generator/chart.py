"""The parts of a generation's time, and its time over the number of images."""

from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.trusted import is_trusted
from warpladder.dashboard.reports.generator.names import AIM, COMPUTE, IN, OUT, OVERLAPPED, PARTS, PINNED, REST, WORKLOAD
from warpladder.dashboard.ui.marks import BESIDE, error_bars, hatch, stack_shares
from warpladder.dashboard.ui.numbers import format_duration, format_ends, format_percent, format_ratio
from warpladder.dashboard.ui.template import Chart, Look, blank, samples, slug, text
from warpladder.dashboard.ui.ticks import apart, ticks

_LOOKS: Final = dict(zip(PARTS, (("#56B4E9", "\\"), ("#009E73", ""), ("#E69F00", "/"), ("#8D939C", ".")), strict=True))
_NOT_KNOWN: Final = "overlapped, parts not known"
_PUBLISHED_MARKS: Final = ("circle-open", "square-open", "diamond-open")
_MARK: Final = {PINNED: " (pinned)", OVERLAPPED: " (overlapped)"}


def parts(frame: pd.DataFrame, look: Look) -> Chart:
    """Stacked shares of one case, with a bar for each variant. Each label has the variant's end-to-end time.

    The bar of an overlapped generation shows its longest part and the rest of its time.

    Args:
        frame: `query.generations` of one case, not empty.
    """
    case = str(frame["case"].iloc[0])
    rows = frame.to_dict("records")
    labels = {row["variant"]: _label(row, look) for row in rows}
    figure = blank(look.theme, 27 * len(rows) + 90)
    for part, (color, pattern) in (*_LOOKS.items(), (_NOT_KNOWN, (look.tones.grid, ""))):
        shown = [(row, share) for row in rows if (share := _share(row, part)) > 0]
        if not shown:
            continue
        figure.add_bar(
            x=[100 * share for _, share in shown],
            y=[labels[row["variant"]] for row, _ in shown],
            orientation="h",
            name=part,
            marker={"color": color, "pattern": hatch(pattern)},
            hoverinfo="text",
            hovertext=[_hover(row, part, share) for row, share in shown],
        )
    against = [place for place, row in enumerate(rows) if pd.notna(row["ratio"])]
    if against:
        figure.add_shape(
            type="line",
            x0=100 / AIM,
            x1=100 / AIM,
            y0=min(against) - 0.5,
            y1=max(against) + 0.5,
            showlegend=True,
            name=f"{AIM}× the longest part",
            line={"color": look.tones.text, "width": 1.5, "dash": "dot"},
        )
    figure.update_layout(
        legend={"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "traceorder": "normal"},
        margin={"t": 8, "r": 28},
    )
    stack_shares(figure, labels.values(), look)
    note = (
        f"{look.device}; share of end-to-end time; copies and kernels are timed by events on the device, and {REST} is the "
        "rest of the host's time; medians of each variant's fastest config. Overlapped: the longest of kernels "
        "(device time, hot L2) and fastest copies of pinned memory in each direction, each timed alone, and the rest; "
        f"{samples(frame['n'])}."
    )
    return Chart(slug("generator", case), _parts_title(frame, case, look), figure, frame, note)


def over_images(frame: pd.DataFrame, published: pd.DataFrame, look: Look) -> Chart:
    """End-to-end time over the number of images, with a line for each variant. Open marks show the report's table 4.

    Args:
        frame: `query.generations`, not empty, of the report's network.
        published: `query.published`.
    """
    figure = blank(look.theme, 420)
    for variant, line in frame.groupby("variant", sort=False):
        style = look.style(WORKLOAD, str(variant))
        figure.add_scatter(
            x=line["images"],
            y=line["median_ns"],
            mode="lines+markers",
            name=text(look.named(WORKLOAD, str(variant))),
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
        type="log", tickmode="array", tickvals=apart(counts), ticktext=[f"{n:,}" for n in apart(counts)], title_text="images"
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
        theirs = f"the report's fastest took {format_duration(1e9 * float(most['seconds'].min()))} on other hardware"
        best = most[is_trusted(most)].nsmallest(1, "median_ns").to_dict("records")
        ours = [f"take {format_duration(row['median_ns'])} by {look.named(WORKLOAD, row['variant'])}" for row in best]
        title = f"{most['images'].iloc[0]:,} images {ours[0] if ours else 'have no fastest generation here'}; {theirs}"
    note = (
        f"{look.device}, one GPU; end-to-end time, medians with {' and '.join(dict.fromkeys(frame['interval_kind']))}; "
        f"{samples(frame['n'])}. Open marks: the report's table 4, on two nodes with 1, 2 or 4 GPUs each. The report does not "
        "name the GPUs, so a ratio of the two does not show which code is better."
    )
    return Chart(slug("generator", "over images"), title, figure, data, note)


def _parts_title(frame: pd.DataFrame, case: str, look: Look) -> str:
    best = frame[is_trusted(frame)].nsmallest(1, "median_ns").to_dict("records")
    told = [
        f"{look.named(WORKLOAD, row['variant'])} is fastest end to end with {format_duration(row['median_ns'])}" for row in best
    ]
    title = f"At {case}, {told[0] if told else 'no generation may be called fastest'}"
    known = frame[frame["ratio"].notna()]
    if known.empty:
        return title
    within = int((known["ratio"] <= AIM).sum())
    return f"{title}; {within} of {len(known)} overlapped take at most {AIM}× their longest part"


def _label(row: dict[Any, Any], look: Look) -> str:
    ratio = f", {format_ratio(row['ratio'])}" if pd.notna(row["ratio"]) else ""
    name = f"{look.named(WORKLOAD, row['variant'])}{_MARK.get(row['transfer'], '')}"
    return f"{text(name)}  {text(format_duration(row['median_ns']))}{ratio}"


def _share(row: dict[Any, Any], part: str) -> float:
    """The share of a part in the variant's bar; 0 for a part that the variant does not have."""
    whole = float(row["median_ns"])
    if row["transfer"] != OVERLAPPED:
        # Each phase and the whole have their own medians, so the phases can add up to slightly more than the whole.
        return 0.0 if part == _NOT_KNOWN or pd.isna(row[part]) else float(row[part]) / max(whole, sum(_known(row)))
    if pd.isna(row["ratio"]):
        return float(part == _NOT_KNOWN)
    longest = min(1.0, float(row["longest_ns"]) / whole)
    return longest if part == row["longest"] else 1.0 - longest if part == REST else 0.0


def _known(row: dict[Any, Any]) -> list[float]:
    return [float(row[part]) for part in PARTS if pd.notna(row[part])]


def _hover(row: dict[Any, Any], part: str, share: float) -> str:
    lines = [f"{_name(row)}<br>{text(row['title'])}", f"{part}: <b>{text(format_percent(100 * share))}</b>"]
    if row["transfer"] != OVERLAPPED:
        lines[-1] += f", {text(format_duration(row[part]))}"
    else:
        alone = [f"{name} {text(format_duration(row[name]))}" for name in (IN, COMPUTE, OUT) if pd.notna(row[name])]
        lines += [f"alone: {', '.join(alone)}"] if alone else []
        lines += [f"whole over the longest: <b>{format_ratio(row['ratio'])}</b>"] if pd.notna(row["ratio"]) else []
    return "<br>".join([*lines, _how(row)])


def _whole_hover(row: dict[Any, Any]) -> str:
    ends = format_ends(Estimate.of(row, "median_ns"), format_duration)
    return (
        f"{_name(row)}<br>{row['images']:,} images: <b>{text(format_duration(row['median_ns']))}</b> "
        f"({text(ends)})<br>{_how(row)}"
    )


def _name(row: dict[Any, Any]) -> str:
    config = f" [{text(row['config'])}]" if row["config"] else ""
    return f"<b>{text(row['variant'])}</b>{config}"


def _how(row: dict[Any, Any]) -> str:
    copies = f"{text(row['transfer'])} copies · " if pd.notna(row["transfer"]) else ""
    return f"{copies}{text(row['precision'])} · n = {row['n']}"


def _by_variant(published: pd.DataFrame) -> pd.DataFrame:
    """One row for each number of images, and one column for each variant, such as `published_s: 1 GPU a node`."""
    wide = published.pivot(index="images", columns="variant", values="seconds")
    return wide.rename(columns="published_s: {}".format).reset_index().rename_axis(columns=None)
