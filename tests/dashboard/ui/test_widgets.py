"""Charts that are drawn once."""

import pandas as pd
import plotly.graph_objects as go

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
