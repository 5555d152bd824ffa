"""Calling a kernel from Python, section 0.3 of the transposition report: the costs of each route."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.numbers import format_duration, format_estimate
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import ABOVE, Chart, Look, blank, error_bars, hatch, samples, slug, text
from warpladder.data import hand_over
from warpladder.data.names import Phase

WORKLOAD: Final = "call_routes"
#: The calls that are made in a row, and the cases of one call and of that many. The matrix is so small that the launch takes longer.
IN_A_ROW: Final = 100
ONE_CASE, ROW_CASE = "n=64,calls=1", f"n=64,calls={IN_A_ROW}"
#: The report's matrix. The steps of the first use were timed there.
REPORT_CASE: Final = "n=1024,calls=1"
#: Scope of a step -> the beginning of its columns.
STEPS: Final[Mapping[str, str]] = {
    Phase.IMPORT: "import",
    Phase.COMPILE: "compile",
    Phase.LOAD: "load",
    Phase.FIRST_CALL: "first_call",
    Phase.HAND_OVER: "hand_over",
}
#: From this share of a call's time on, the device takes the time of many calls in a row, and not the host.
_BUSY: Final = 0.9


def routes(data: RunData) -> pd.DataFrame:
    """The cost of each route, one row for each rung and peer, fastest in a row first and those without samples last.

    Returns:
        Columns `variant`, `title`, `n` (samples of one call), and in ns

        - `call`, `in_a_row`, `report`, each with `_low` and `_high`: one call and the mean of many in a row, from the launch until the
          host has waited for the device, on 64x64; one call on the report's matrix;
        - `import`, `compile`, `load`, `first_call`, `hand_over`: the steps of a first use with empty caches; null where a route has
          no such step or it was not timed;
        - `compile_cached`: `compile` with the compiled code in a cache on disk; null where the route keeps none there;

        and

        - `device_bound`: the device takes the time of the calls in a row;
        - `zero_copy`, `interface`: how the arrays were handed over; null and empty where that is not told;
        - `why`: the reason that a route has no samples, empty if it has.

        Empty if the run does not have the workload.
    """
    every = cells(data)
    timed = every[(every["workload"] == WORKLOAD) & every["role"].isin(["rung", "peer"])]
    rows = [_route(timed[timed["variant"] == variant]) for variant in timed["variant"].unique()]
    frame = pd.DataFrame(rows)
    return frame if frame.empty else frame.sort_values("in_a_row", kind="stable", na_position="last", ignore_index=True)


def timed(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `routes` that have samples of one call and of many in a row."""
    return frame[frame["call"].notna() & frame["in_a_row"].notna()] if len(frame) else frame


def _route(rows: pd.DataFrame) -> dict[str, Any]:
    call, in_a_row, report = (_estimate(rows, case, "operation", "hot") for case in (ONE_CASE, ROW_CASE, REPORT_CASE))
    device = _estimate(rows, ROW_CASE, "device", "hot")
    steps = {name: _estimate(rows, REPORT_CASE, scope, "cold").value for scope, name in STEPS.items()}
    details = rows.loc[rows["n"] > 0, "detail"]
    handed = next((hand_over_result for detail in details if (hand_over_result := hand_over.of_detail(detail))), None)
    failed = rows[(rows["n"] == 0) & (rows["status"] != "ok")]
    first = rows.iloc[0]
    return {
        "variant": first["variant"],
        "title": first["title"],
        "n": int(_cell(rows, ONE_CASE, "operation", "hot")["n"].sum()),
        **call.columns("call"),
        **in_a_row.times(1 / IN_A_ROW).columns("in_a_row"),
        **report.columns("report"),
        **steps,
        "compile_cached": _estimate(rows, REPORT_CASE, Phase.COMPILE, "hot").value,
        "device_bound": device.known and device.value >= _BUSY * in_a_row.value,
        "zero_copy": handed[0] if handed else None,
        "interface": handed[1] if handed else "",
        "why": "" if call.known else next(iter(failed["detail"]), "not measured in this run"),
    }


def _cell(rows: pd.DataFrame, case: str, scope: str, cache: str) -> pd.DataFrame:
    cell = rows[(rows["case"] == case) & (rows["scope"] == scope) & (rows["cache"] == cache)]
    return cell[(cell["n"] > 0) & (cell["status"] == "ok")]


def _estimate(rows: pd.DataFrame, case: str, scope: str, cache: str) -> Estimate:
    """The median of a cell with its interval; unknown where it has no samples."""
    cell = _cell(rows, case, scope, cache)
    return Estimate.of(cell.iloc[0], "median_ns") if len(cell) else Estimate.unknown()


#: Column -> its words and the pattern of its bars.
_KINDS: Final = {"call": ("one call", ""), "in_a_row": (f"each of {IN_A_ROW} in a row", "/")}


def chart(frame: pd.DataFrame, look: Look) -> Chart:
    """Two bars for each route, with the intervals of the medians.

    Args:
        frame: `query.timed` of `query.routes`, not empty.
    """
    rows = frame.to_dict("records")
    names = [text(look.variant_name(WORKLOAD, row["variant"])) for row in rows]
    figure = blank(look.theme, 46 * len(rows) + 90)
    colors = [look.style(WORKLOAD, row["variant"]).color for row in rows]
    for kind, (words, pattern) in _KINDS.items():
        estimates = [Estimate.of(row, kind).times(1e-3) for row in rows]
        figure.add_bar(
            x=[estimate.value for estimate in estimates],
            y=names,
            orientation="h",
            name=words,
            marker={"color": colors, "pattern": hatch(pattern)},
            error_x=error_bars(estimates, color=look.tones.text),
            hoverinfo="text",
            hovertext=[_hover(row, kind, words) for row in rows],
        )
    figure.update_layout(barmode="group", legend=ABOVE, margin={"t": 36})
    figure.update_xaxes(title_text="host time of a call, µs", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text})
    first, last = rows[0], rows[-1]
    title = f"In a row, a call takes {format_duration(first['in_a_row'])} by {look.variant_name(WORKLOAD, first['variant'])}"
    if len(rows) > 1:
        title += f" and {format_duration(last['in_a_row'])} by {look.variant_name(WORKLOAD, last['variant'])}"
    note = look.note(
        "operation time on 64x64, from the launch until the host has waited for the device, hot L2; medians with 95 % interval; "
        f"{samples(frame['n'])}."
    )
    return Chart(slug("routes", WORKLOAD), title, figure, frame, note)


def _hover(row: dict[Any, Any], kind: str, words: str) -> str:
    lines = [f"<b>{text(row['variant'])}</b>", text(row["title"])]
    lines.append(f"{words}: <b>{text(format_estimate(Estimate.of(row, kind), format_duration))}</b>")
    if kind == "in_a_row" and row["device_bound"]:
        lines.append("the device takes this time, not the host")
    return "<br>".join(lines)


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    frame = routes(data)
    if len(timed(frame)):
        yield chart(timed(frame), look)
