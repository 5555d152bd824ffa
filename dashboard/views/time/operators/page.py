"""Operators: the operators of PyTorch that take the most time, and the kernels that each launched."""

from collections.abc import Callable
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.trace.operators import place_of
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.template import slug
from warpladder.dashboard.ui.text import cut, plain, short
from warpladder.dashboard.views.time.operators import chart, query
from warpladder.dashboard.views.time.operators.query import By
from warpladder.data import store

_LABELS: Final[dict[str, str]] = {
    "name": "by name",
    "shape": "by shape",
    "module": "by module",
    "range": "by range",
    "stack": "by stack",
}
#: The query parameter of the row whose kernels are listed.
_OPERATOR: Final = "operator"
#: A longer table is cut.
_MOST_SHOWN: Final = 1_000
_NAME_CHARACTERS: Final = 80
_MS: Final = 1e6
_US: Final = 1e3


_COLUMNS: Final = {
    "operator": st.column_config.TextColumn("Operator", width="medium"),
    "shapes": st.column_config.TextColumn("Shapes", width="medium", help="Of the inputs; [] is a scalar or no tensor."),
    "module": st.column_config.TextColumn(
        "Modules",
        width="medium",
        help="Around the operator, or around the operation whose gradient it computes; the innermost first.",
    ),
    "range": st.column_config.TextColumn(
        "Range", width="medium", help="The innermost around the operator, or around the operation whose gradient it computes."
    ),
    "place": st.column_config.TextColumn("Place", width="medium", help="The innermost frame outside of PyTorch."),
    "calls": widgets.number("Calls", "An operator that is the only one inside another of its name counts as that one.", "%d"),
    "self_device_ms": widgets.number("Self device, ms", "Durations of the kernels, copies and sets that it launched itself."),
    "percent": widgets.number("Share, %", "Of the durations of all kernels, copies and sets of the trace.", "%.3g"),
    "device_ms": widgets.number(
        "Device, ms", "With those of the operators inside; those inside another one of the row count once."
    ),
    "self_host_ms": widgets.number("Self host, ms", "Time on the host outside of the operators and API calls inside it."),
    "host_ms": widgets.number(
        "Host, ms", "Time on the host from start to end; those inside another one of the row count once."
    ),
    "launches": widgets.number("Launches", "Kernels, copies and sets that it launched itself.", "%d"),
    "types": st.column_config.TextColumn("Types", width="small", help="Of the inputs."),
    "strides": st.column_config.TextColumn("Strides", width="small", help="Empty where all inputs are contiguous."),
    "stack": st.column_config.TextColumn("Stack", width="medium", help="Functions of Python, the innermost first."),
}
_OF_KERNELS: Final = {
    "kernel": st.column_config.TextColumn("Kernel", width="medium"),
    "operator": st.column_config.TextColumn("Launched by", width="medium", help="The innermost operator around the launch."),
    "count": widgets.number("Executions", "Of the kernel, copy or set.", "%d"),
    "total_ms": widgets.number("Total, ms", "Sum of durations."),
    "percent": widgets.number("Share, %", "Of all device work inside the operator.", "%.3g"),
    "mean_us": widgets.number("Mean, µs", "Of one execution."),
    "name": st.column_config.TextColumn("Full name", width="large"),
}


def draw(run: store.Run) -> None:
    if not runs.load(run).traces.has_operators:
        widgets.no_operators(run)
    by = _by(run)
    frame, totals = runs.ask(run, query.operators, by), runs.ask(run, query.totals)
    look = runs.look_of(run, widgets.theme())
    names = query.keys(frame)

    def choose(name: str) -> None:
        state.set_text(_OPERATOR, run.run_id, name)

    widgets.show_chart(widgets.drawn(chart.leading, frame, totals, look, by), on_click=choose)
    _table(frame, names, choose)
    _kernels(run, by, frame.iloc[_place(run, names)])


def _by(run: store.Run) -> By:
    """The grouping to show, among those for which the profiler recorded something."""
    offered = runs.ask(run, query.groupings)
    if len(offered) == 1:
        return offered[0]
    with widgets.controls():
        chosen = state.choose("by", "Sum", list(offered), text=_LABELS.__getitem__, style="segmented", labelled=False)
    return next(by for by in offered if by == chosen)


def _place(run: store.Run, names: list[str]) -> int:
    """The row of the URL; the first one where the URL names none."""
    asked = state.text_of(_OPERATOR, run.run_id)
    if asked and asked not in names:
        state.note(f"The link asks for operator {short(asked)}, which is not here; showing {names[0]}.")
    return names.index(asked) if asked in names else 0


def _table(frame: pd.DataFrame, names: list[str], choose: Callable[[str], None]) -> None:
    """The operators as a table, whose rows can be chosen."""
    shown = frame.head(_MOST_SHOWN)
    times = ("self_device", "device", "self_host", "host")
    shown = shown.assign(**{f"{each}_ms": shown[f"{each}_ns"] / _MS for each in times})
    if "stack" in shown:
        shown["place"] = shown["stack"].map(place_of)
        shown["stack"] = shown["stack"].map(_one_line)
    widgets.table_to_choose(
        shown,
        "table of operators",
        lambda row: choose(names[row]),
        column_order=[name for name in _COLUMNS if name in shown],
        column_config=_COLUMNS,
        height=widgets.height(shown),
    )
    if len(shown) < len(frame):
        st.caption(f"The first {len(shown):,} of {len(frame):,} rows are shown; Data has all of them.")


def _kernels(run: store.Run, by: By, row: Any) -> None:
    """The kernels that the operators of a row launched, as a table with a download."""
    frame = runs.ask(run, query.launched, by, int(row["number"]))
    name = cut(row["operator"], _NAME_CHARACTERS)
    total = frame["total_ns"].sum()
    answer = f"launched {format_duration(total)} of device work" if len(frame) else "launched nothing"
    st.markdown(f"## {plain(f'{name} and the operators inside it {answer}')}")
    details = [f"{each}: {row[each]}" for each in query.DETAILS[by] if row[each]]
    st.caption(
        plain(" · ".join(["Choose another operator in the table (Shift+Space) or the chart.", *map(_one_line, details)]))
    )
    if frame.empty:
        return
    shown = frame.assign(total_ms=frame["total_ns"] / _MS, mean_us=frame["mean_ns"] / _US)
    widgets.table(
        shown,
        column_order=list(_OF_KERNELS),
        column_config=_OF_KERNELS,
        height=widgets.height(shown),
    )
    widgets.save_csv("CSV", frame, f"{slug('kernels', 'of', str(row['operator']))}.csv", "download kernels of operator")


def _one_line(detail: str) -> str:
    return detail.replace("\n", " < ")
