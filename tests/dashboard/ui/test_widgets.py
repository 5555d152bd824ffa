"""Charts that are drawn once, and the figures of tables."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from warpladder.dashboard.ui import widgets
from warpladder.dashboard.ui.template import Chart


def test_a_chart_is_drawn_once_for_equal_arguments_whichever_objects_they_are() -> None:
    calls: list[str] = []

    def draw(frame: pd.DataFrame, *, word: str) -> Chart:
        calls.append(word)
        return Chart(f"{word}-{len(frame)}", "", go.Figure(), frame, "")

    shared = "ab" * 2
    once = pd.DataFrame({"name": [shared, shared], "pair": [(1, 2), (3, 4)]})
    again = pd.DataFrame({"name": ["".join(["ab", "ab"]), "".join(["ab", "ab"])], "pair": [(1, 2), (3, 4)]})
    first = widgets.drawn(draw, once, word="x")
    assert widgets.drawn(draw, again, word="x") is first
    assert widgets.drawn(draw, once, word="y").name == "y-2"
    assert widgets.drawn(draw, once.assign(name="other"), word="x") is not first
    assert calls == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("values", "style", "shown"),
    [
        ([15.8, 0.806, 2.5], "%.3g", "%.2f"),  # 15.80, 0.81, 2.50
        ([1071.0, 335.5], "%.4g", "%.0f"),
        ([3.0, 12.0, 0.0], "%.4g", "%.0f"),
        ([208.0, 0.0048, 0.3, 50.0], "%.4g", "%.4g"),  # 0.0048 would be 0.005
        ([0.5], "%d", "%d"),
    ],
)
def test_the_figures_of_a_column_have_equally_many_decimals_unless_small_ones_lose_their_digits(
    values: list[float], style: str, shown: str
) -> None:
    column = widgets._aligned(widgets.number("Time, ms", style=style), pd.Series(values))
    assert column["type_config"]["format"] == shown
