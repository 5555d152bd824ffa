"""Figures for the column of a paper, up to what the browser draws."""

import pytest

from warpladder.dashboard.ui import paper
from warpladder.dashboard.ui.template import Chart, blank
from warpladder.errors import Error


@pytest.mark.parametrize(
    ("width", "pixels"),
    [("384px", 384), ("4in", 384), ("10.16cm", 384), ("101.6 MM", 384), ("288pt", 384), ("84mm", 84 * 96 / 25.4)],
)
def test_a_width_is_a_length_of_print(width: str, pixels: float) -> None:
    assert paper.parse(width).width_px == pytest.approx(pixels)


@pytest.mark.parametrize(
    ("width", "font_size", "said"),
    [
        ("84", None, "--width 84: write a length in mm, cm, in, pt, px, such as 84mm"),
        ("-84mm", None, "--width -84mm: write a length in"),
        ("84em", None, "--width 84em: write a length in"),
        ("1mm", None, "--width 1mm: write a length from 20mm to 2000mm"),
        ("90in", None, "--width 90in: write a length from 20mm to 2000mm"),
        ("84mm", "eight", "--font-size eight: write points from 4 to 72, such as 8"),
        (None, "0", "--font-size 0: write points from 4 to 72"),
        ("84mm", "20", "--width 84mm: too narrow for texts of 20 pt; write 165mm or more, or a smaller --font-size"),
    ],
)
def test_a_size_that_no_picture_has_is_one_clear_line(width: str | None, font_size: str | None, said: str) -> None:
    with pytest.raises(Error) as caught:
        paper.parse(width, font_size)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)


def chart() -> Chart:
    figure = blank("light", 400)
    figure.add_scatter(x=[1, 2], y=[3, 4], name="a", textfont={"size": 9})
    figure.update_layout(margin={"r": 200}, legend={"y": 1, "x": 1.01})
    figure.update_xaxes(title_text="a title that is far too long for one line of a narrow column of text in a paper")
    for shift in (8, 120):
        figure.add_annotation(x=1, xref="paper", xshift=shift, y=0, text=str(shift), font={"size": 11})
    return Chart("some", "a title", figure, None, "a note")  # type: ignore[arg-type]


def test_texts_have_the_size_in_points_that_is_asked_for() -> None:
    size = paper.parse("84mm", "9")
    drawn = paper.figure(chart(), size)
    layout = drawn["layout"]
    of_text = {
        layout["template"]["layout"]["font"]["size"],
        drawn["data"][0]["textfont"]["size"],
        layout["annotations"][0]["font"]["size"],
    }
    assert {pixels * size.scale * 72 / 96 for pixels in of_text} == {9.0}
    assert layout["width"] * size.scale == pytest.approx(84 * 96 / 25.4)
    assert layout["font"]["family"].startswith("'Warpladder Sans'")


def test_a_column_has_its_legend_above_and_one_column_of_figures() -> None:
    layout = paper.figure(chart(), paper.parse("84mm", "8", heading=False))["layout"]
    assert layout["legend"]["orientation"] == "h"
    assert [each["text"] for each in layout["annotations"]] == ["8"]
    assert "<br>" in layout["xaxis"]["title"]["text"]
    assert "title" not in layout


def test_a_wide_picture_keeps_the_layout_of_the_page() -> None:
    drawn, shown = paper.figure(chart(), paper.SCREEN)["layout"], chart().figure.to_plotly_json()["layout"]
    assert {name: drawn[name] for name in ("legend", "annotations", "xaxis")} == {
        name: shown[name] for name in ("legend", "annotations", "xaxis")
    }
    assert drawn["title"]["text"] == "a title"


def test_panels_side_by_side_are_below_each_other_in_a_column() -> None:
    from plotly.subplots import make_subplots

    figure = blank("light", 300)
    figure = make_subplots(1, 3, shared_yaxes=True, subplot_titles=list("abc"), figure=figure)
    for column in (1, 2, 3):
        figure.add_scatter(x=[1, 2], y=[3, 4], row=1, col=column)
    layout = paper.figure(Chart("some", "", figure, None, ""), paper.parse("84mm", heading=False))["layout"]  # type: ignore[arg-type]
    tops = [layout[f"yaxis{number}"]["domain"][1] for number in ("", "2", "3")]
    assert tops == pytest.approx([1, 2 / 3, 1 / 3])
    assert [each["y"] for each in layout["annotations"]] == pytest.approx(tops)
    assert all(layout[f"xaxis{number}"]["domain"] == [0, 1] for number in ("", "2", "3"))
