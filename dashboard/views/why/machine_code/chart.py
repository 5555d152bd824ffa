"""The instructions of each variant's hot loop, by the unit that executes them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.sass import ARITHMETIC, Unit
from warpladder.dashboard.ui.bars import add_bars
from warpladder.dashboard.ui.template import (
    ABOVE,
    Chart,
    Look,
    Theme,
    blank,
    bold_name,
    hatch,
    name_rows,
    palette,
    patterns,
    slug,
    text,
)
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.why.machine_code import query

_ROW_PX: Final = 24
_NAME_LENGTH: Final = 44
#: Places in the palette. A unit has the same colour on every chart.
_COLORS: Final[Mapping[Unit, int]] = {
    Unit.TENSOR: 1,
    Unit.FP32: 4,
    Unit.FP16: 7,
    Unit.FP64: 8,
    Unit.GLOBAL: 0,
    Unit.SHARED: 5,
    Unit.LOCAL: 11,
    Unit.CONSTANT: 10,
    Unit.TEXTURE: 6,
    Unit.INTEGER: 2,
    Unit.SPECIAL: 9,
    Unit.MOVE: 3,
    Unit.WARP: 6,
}
#: Colours of units that do neither arithmetic nor accesses.
_GREYS: Final[Mapping[Theme, Mapping[Unit, str]]] = {
    "light": {Unit.UNIFORM: "#6b7280", Unit.SYNC: "#9aa1ab", Unit.CONTROL: "#bcc2ca", Unit.OTHER: "#dde0e5"},
    "dark": {Unit.UNIFORM: "#9aa2ad", Unit.SYNC: "#787f8a", Unit.CONTROL: "#5b626c", Unit.OTHER: "#3f454e"},
}


def charts(data: RunData, look: Look) -> Iterator[Chart]:
    """The charts of the last case with machine code of each workload."""
    for workload in data.code.workloads:
        for case in query.cases(data, workload)[-1:]:
            frame = query.mix_by_variant(data, workload, case)
            if len(frame):
                yield mix(frame, look, workload, case)


def mix(frame: pd.DataFrame, look: Look, workload: str, case: str) -> Chart:
    """Stacked bars of the shares of units in the hot loop of each variant.

    Args:
        frame: `query.mix_by_variant`, not empty.
    """
    cells = list(frame.drop_duplicates("variant")[["variant", "config", "part"]].itertuples(index=False, name=None))
    greys = _GREYS[look.theme]
    units = [unit for unit in (*_COLORS, *greys) if unit in set(frame["unit"])]
    colors = [greys.get(unit) or palette(look.theme)[_COLORS[unit]] for unit in units]
    figure = blank(look.theme, _ROW_PX * max(len(cells), 3) + 110)
    for unit, color, pattern in zip(units, colors, patterns(colors), strict=True):
        of_unit = frame[frame["unit"] == unit].set_index("variant")
        rows = [of_unit.loc[variant] if variant in of_unit.index else None for variant, _, _ in cells]
        percents = [0.0 if row is None else row["percent"] for row in rows]
        hovers = ["" if row is None else _hover(str(row.name), row) for row in rows]
        add_bars(figure, percents, hovers, width=0.74, name=text(unit), marker={"color": color, "pattern": hatch(pattern)})
    names = []
    for variant, config, part in cells:
        marks = ("" if part == "hot loop" else " · no loop") + (f" [{config}]" if config else "")
        names.append(text(cut(f"{look.variant_name(workload, variant)}{marks}", _NAME_LENGTH)))
    name_rows(figure, names, look, range=[len(cells) - 0.45, -0.55])
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", title_text="instructions of the hot loop")
    legend = {**ABOVE, "y": 1.0, "yref": "paper", "traceorder": "normal"}
    figure.update_layout(barmode="stack", margin={"t": 60, "r": 16}, legend=legend)
    note = look.note(
        f"{case}; instructions in the machine code, each counted once. The loop of the launch with the most instructions; where a "
        "kernel has no loop, its whole code."
    )
    return Chart(slug("instruction-mix", workload, case), _title(frame, look, workload), figure, frame, note)


def _title(frame: pd.DataFrame, look: Look, workload: str) -> str:
    shares = frame[frame["unit"].isin(set(map(str, ARITHMETIC)))].groupby("variant", sort=False)["percent"].sum()
    if shares.empty:
        return "The instructions of each variant's hot loop"
    most = str(shares.idxmax())
    part = frame.loc[frame["variant"] == most, "part"].iloc[0]
    return (
        f"{look.variant_name(workload, most)} has the largest share of floating-point arithmetic in its {part}: "
        f"{format_percent(shares.max())}"
    )


def _hover(variant: str, row: "pd.Series[Any]") -> str:
    counted = f"{row['count']} of {row['instructions']} instructions of the {row['part']}"
    return (
        f"{bold_name(variant, str(row['config']))}<br>{text(str(row['unit']))}: {counted}, <b>{row['percent']:.1f} %</b>"
        f"<br>{text(cut(str(row['kernel']), 80))}"
    )
