"""Speedups over the sequential host code, as in the tensor report's tables 4 (without the copies) and 5 (with them)."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cell import Entry, Estimate, Timing
from warpladder.dashboard.core.cells import baseline_variant, best_config, cells, charted_cases
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.dashboard.core.numbers import format_ends, format_ratio
from warpladder.dashboard.core.run_data import RunData, find_entry
from warpladder.dashboard.ui.bars import panels
from warpladder.dashboard.ui.template import Chart, Look, bold_name, error_bars, samples, slug, text, ticks
from warpladder.data import figures

_COLUMNS: Final = [
    "variant",
    "title",
    "config",
    "case",
    "size_rank",
    "size",
    "series",
    "copies",
    "scope",
    "cache",
    "reference",
    "speedup",
    "low",
    "high",
    "n",
    "paired",
]


def with_and_without_copies(data: RunData, workload: str) -> pd.DataFrame:
    """Speedups over the sequential host code, as in the tensor report's tables 4 (without the copies) and 5 (with them).

    Host and device are not measured in the same rounds, so the ratios are not paired.

    Returns:
        One row for each (case, variant, copies) of the rungs and peers, with the fastest config. Empty without host samples or
        without GPU samples. The columns are `variant`, `title`, `config`, `case`, `size_rank`, `scope`, `cache`, `speedup`,
        `low`, `high`, `n`, `paired`, and

        - `size`, `series`: see `axes.charted_cases`;
        - `copies`: True for the scope `end_to_end`; False for the scope `device` with a hot L2, or `operation` where there is
          no device scope;
        - `reference`: the host variant.
    """
    every = cells(data)
    best = best_config(every[(every["workload"] == workload) & (every["gpus"] > 0) & every["role"].isin(["rung", "peer"])])
    best = best.merge(charted_cases(data, workload)[["case", "size", "series"]], on="case")
    # The host variant that speedups are counted from on a machine without a GPU; empty without one.
    host = baseline_variant(data, workload, Timing("operation", "hot"), on_host=True, preferred=figures.SEQUENTIAL)
    rows = []
    for copies, scopes in ((False, ("device", "operation")), (True, ("end_to_end",))):
        scope = next((scope for scope in scopes if (best["scope"] == scope).any()), "")
        for row in best[(best["scope"] == scope) & (best["cache"] == "hot")].to_dict("records"):
            of_host = data.rounds(workload, row["case"], "operation", "hot")
            reference = find_entry(of_host, host, "")
            if reference is None:
                continue
            own = data.rounds(workload, row["case"], row["scope"], row["cache"])[
                Entry(row["variant"], row["config"], int(row["gpus"]), 0)
            ]
            ratio = paired_ratio(of_host[reference], own, independent=True)
            rows.append(
                {
                    **{column: row[column] for column in _COLUMNS if column in row},
                    "copies": copies,
                    "reference": host,
                    "speedup": ratio.ratio,
                    "low": ratio.low,
                    "high": ratio.high,
                    "n": ratio.n,
                    "paired": ratio.paired,
                }
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


def sizes_to_choose(frame: pd.DataFrame, workload: str) -> tuple[tuple[str, ...], str]:
    """The sizes that a reader can choose from, and the size to show first: the report's, or else the largest.

    Returns:
        No sizes where the workload has one series. The sizes are then the axis of the chart.
    """
    sizes = tuple(frame.sort_values("size_rank", kind="stable")["size"].unique())
    if frame["series"].nunique() < 2:
        return (), ""
    published = figures.read(workload)["case"] if workload in figures.reports() else pd.Series(dtype=str)
    of_report = frame.loc[frame["case"].isin(published), "size"]
    return sizes, str(of_report.iloc[0]) if len(of_report) else sizes[-1]


def chart(frame: pd.DataFrame, look: Look, workload: str, size: str = "") -> Chart:
    """Speedups over the sequential host code: a panel without the copies, and a panel with them.

    Args:
        frame: `query.with_and_without_copies`, not empty.
        size: one of `query.sizes_to_choose`, and the axis has the series at that size; empty where the axis has the sizes.
    """
    frame = (frame[frame["size"] == size] if size else frame).sort_values(["size_rank", "case"], kind="stable")
    labels = _differing_parts(list(dict.fromkeys(frame["case"])))
    counted = [copies for copies in (False, True) if (frame["copies"] == copies).any()]
    titles = {False: "without the copies", True: "with the copies in and out"}
    figure = panels(look, [titles[copies] for copies in counted], 400, shared_yaxes=True, horizontal_spacing=0.03)
    for column, copies in enumerate(counted, start=1):
        part = frame[frame["copies"] == copies]
        for variant, line in part.groupby("variant", sort=False):
            style = look.style(workload, str(variant))
            figure.add_scatter(
                x=[labels[case] for case in line["case"]],
                y=line["speedup"],
                mode="markers" if size else "lines+markers",
                row=1,
                col=column,
                name=text(look.variant_name(workload, str(variant))),
                legendgroup=text(str(variant)),
                showlegend=column == 1,
                marker={"symbol": style.symbol, "size": 9, "color": style.color},
                line={"color": style.color, "dash": style.dash, "width": 1.5},
                error_y=error_bars(_speedup(row) for row in line.to_dict("records")),
                hoverinfo="text",
                hovertext=[_copies_hover(row) for row in line.to_dict("records")],
            )
    low, high = frame["speedup"].min(), frame["speedup"].max()
    figure.update_yaxes(type="log", **ticks(low, high, format_ratio, logarithmic=True))
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(labels.values()))
    axes = {label.split("=")[0] for label in labels.values() if label.count("=") == 1}
    if len(axes) == 1 and all(label.count("=") == 1 for label in labels.values()):
        # Five sizes with the axis before each have no room side by side in a narrow window.
        values = [label.split("=")[1] for label in labels.values()]
        figure.update_xaxes(tickvals=list(labels.values()), ticktext=values, title_text=axes.pop())
    reference = look.variant_name(workload, frame["reference"].iloc[0])
    figure.update_yaxes(title_text=f"speedup over {text(reference)}", row=1, col=1)
    figure.update_layout(margin={"t": 34}, legend={"x": 1.01, "y": 1})
    best = {copies: frame[frame["copies"] == copies].nlargest(1, "speedup").to_dict("records")[0] for copies in counted}
    title = "; ".join(
        f"{titles[copies]}, {format_ratio(row['speedup'])} ({look.variant_name(workload, row['variant'])})"
        for copies, row in best.items()
    )
    scopes = " and ".join(Timing(row["scope"], row["cache"]).label(on_gpu=True) for row in best.values())
    note = (
        f"{look.device}; {scopes}, against the {reference} operation; ratios of medians with 95 % intervals, not paired, "
        f"because host and device have separate rounds; {samples(frame['n'])}."
    )
    title = f"Largest speedup over {reference}: {title}{f', at {size}' if size else ''}"
    return Chart(slug("copies", workload, size), title, figure, frame, note)


def _copies_hover(row: dict[Any, Any]) -> str:
    interval = text(format_ends(_speedup(row), format_ratio))
    return (
        f"{bold_name(row['variant'], row['config'])}<br>{text(row['title'])}<br>speedup: "
        f"<b>{text(format_ratio(row['speedup']))}</b> ({interval})<br>"
        f"{text(row['case'])} · {text(Timing(row['scope'], row['cache']).label(on_gpu=True))} · n = {row['n']}"
    )


def _speedup(row: dict[Any, Any]) -> Estimate:
    return Estimate(row["speedup"], row["low"], row["high"])


def _differing_parts(cases: list[str]) -> dict[str, str]:
    """The axes in which the cases differ, such as `perm=210` for `n=512,perm=210` where all cases have n=512."""
    parts = {case: case.split(",") for case in cases}
    common = set.intersection(*(set(of_case) for of_case in parts.values()))
    return {case: text(",".join(part for part in of_case if part not in common) or case) for case, of_case in parts.items()}


def charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    frame = with_and_without_copies(data, workload)
    if len(frame):
        _, size = sizes_to_choose(frame, workload)
        yield chart(frame, look, workload, size)
