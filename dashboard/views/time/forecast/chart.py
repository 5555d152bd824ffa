"""A waterfall from today's step to the forecast and to the bound."""

from math import isnan
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_ends, format_percent
from warpladder.dashboard.core.operations.forecast import Forecast, in_vain
from warpladder.dashboard.ui.bars import LEGEND, add_bars, rows_of_bars, scale, write_beside
from warpladder.dashboard.ui.template import Chart, Look, error_bars, hatch, palette, text
from warpladder.dashboard.ui.text import cut
from warpladder.dashboard.views.time.forecast import query

_BAR_PX: Final = 28
_NAME_CHARACTERS: Final = 40
_NAMES: Final = {"step": "a step", "variant": "saved with the best variants", "floor": "what remains to the floors"}


def waterfall(stages: pd.DataFrame, forecast: Forecast, look: Look) -> Chart:
    """Bars of `query.waterfall`: whole steps from zero, and stages from the step without to the step with them."""
    rows = stages.to_dict("records")
    figure = rows_of_bars(look, [text(cut(row["stage"], _NAME_CHARACTERS)) for row in rows], _BAR_PX, 100)
    shades = palette(look.theme)
    colors = {"step": look.tones.muted, "variant": look.tones.good, "floor": shades[0]}
    for kind, name in _NAMES.items():
        places = [place for place, row in enumerate(rows) if row["kind"] == kind]
        if not places:
            continue
        low = [0.0 if kind == "step" else min(rows[place]["before_ns"], rows[place]["after_ns"]) for place in places]
        high = [max(rows[place]["before_ns"], rows[place]["after_ns"]) for place in places]
        whiskers = [forecast.after_ns if rows[place]["stage"] == query.FORECAST else None for place in places]
        add_bars(
            figure,
            [end - begin for begin, end in zip(low, high, strict=True)],
            [_hover(rows[place], forecast) for place in places],
            base=low,
            y=places,
            name=name,
            width=0.7,
            marker={"color": colors[kind], "pattern": hatch("/" if kind == "floor" else "", 0.25)},
            error_x=error_bars([each for each in whiskers if each], color=look.tones.text) if all(whiskers) else None,
        )
    write_beside(figure, stages[["before_ns", "after_ns"]].max(axis=1), [text(_label(row, forecast)) for row in rows])
    scale(figure, "time of a step on the device", max(forecast.step_ns, 1.0), 1.35)
    figure.update_layout(barmode="overlay", **LEGEND)
    data = stages.assign(change_ns=stages["after_ns"] - stages["before_ns"])
    return Chart("forecast", query.headline(forecast), figure, data, look.note(_note(forecast)))


def _note(forecast: Forecast) -> str:
    parts = ["a step from the start of its first device work to the end of the last, computed again with shorter kernels"]
    if forecast.gains:
        interval = format_ends(forecast.after_ns, format_duration)
        parts.append(
            f"each operation with a faster variant takes the time of the best one; interval of the ratios and of the steps: {interval}"
        )
    if not isnan(forecast.bound_ns):
        parts.append("a floor is the time of the bytes, or of the arithmetic in the precision used")
    parts.append("operations are replaced from the top; what another stream or the host covers gives nothing")
    return "; ".join(parts) + ". " + in_vain(forecast)


def _label(row: dict[Any, Any], forecast: Forecast) -> str:
    before, after = float(row["before_ns"]), float(row["after_ns"])
    if row["kind"] == "step":
        return format_duration(after)
    change = after - before
    if round(change) == 0:
        return "nothing: it is hidden"
    sign = "−" if change < 0 else "+" if change > 0 else ""
    return f"{sign}{format_duration(abs(change))}, {format_percent(100 * abs(change) / max(forecast.step_ns, 1.0))}"


def _hover(row: dict[Any, Any], forecast: Forecast) -> str:
    before, after = float(row["before_ns"]), float(row["after_ns"])
    name = f"<b>{text(cut(str(row['stage']), 100))}</b><br>"
    if row["kind"] == "step":
        return f"{name}{text(format_duration(after))} a step"
    return f"{name}{text(format_duration(before))} → {text(format_duration(after))} a step<br>{text(_label(row, forecast))}"
