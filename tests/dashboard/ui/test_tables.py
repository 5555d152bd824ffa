"""Tables for papers and web pages."""

import math

import pandas as pd
import plotly.graph_objects as go
import pytest

from warpladder.dashboard.ui import tables
from warpladder.dashboard.ui.template import Chart


def chart(**columns: list[object]) -> Chart:
    return Chart("times", "50 % of a_b & c", go.Figure(), pd.DataFrame(columns), "n = 3; $HOME")


MEASURED = {
    "variant": ["a_b", "c|d\ne"],
    "scope": ["device", "device"],
    "median_ns": [12_340.0, 98_765_432.0],
    "low_ns": [12_300.0, 98_000_000.0],
    "high_ns": [12_400.0, 99_000_000.0],
    "speedup": [1.5, math.nan],
    "speedup_low": [1.49, math.nan],
    "speedup_high": [1.52, math.nan],
    "params": ["{}", "{}"],
    "beats": [(), ()],
    "rel_l2_error": [3.14e-4, 0.0],
}


def test_a_figure_has_its_interval_its_unit_and_the_digits_that_the_interval_knows() -> None:
    lines = tables.markdown(chart(**MEASURED)).splitlines()
    assert lines[0] == r"**50 % of a\_b \& c**"
    assert lines[2] == r"n = 3; \$HOME. All rows: scope device."
    assert lines[4] == "| variant | median (ms) | speedup | relative error |"
    assert lines[5] == "| --- | ---: | ---: | ---: |"
    assert lines[6] == r"| a\_b | 0.012340 \[0.012300, 0.012400\] | 1.500 \[1.490, 1.520\] | 3.1e-4 |"
    assert lines[7] == r"| c\|d e | 98.77 \[98.00, 99.00\] | – | 0 |"


def test_latex_is_a_booktabs_table_in_which_no_name_is_a_command() -> None:
    written = tables.latex(chart(**MEASURED | {"variant": [r"\input{/etc/passwd}%$x_1^2~#&", "[µ] 2×"]}))
    lines = [line.strip() for line in written.splitlines()]
    assert r"\label{tab:times}" in lines and r"\begin{tabular}{lrrr}" in lines
    assert r"\caption{50 \% of a\_b \& c. n = 3; \$HOME. All rows: scope device.}" in lines
    start = lines.index(r"\midrule") + 1
    assert lines[start].startswith(
        r"\textbackslash{}input\{/etc/passwd\}\%\$x\_1\textasciicircum{}2\textasciitilde{}\#\& & 0.012340 [0.012300, 0.012400] &"
    )
    assert lines[start + 1].startswith(r"{}[\textmu{}] 2$\times$ & "), "a bracket after a line break would be its option"
    assert lines[start + 2] == r"\bottomrule"


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (100.0, 100.0, 100.0, "100 [100, 100]"),
        (0.0, 0.0, 0.0, "0.00 [0.00, 0.00]"),
        (1234.5678, 1234.5, 1234.6, "1234.57 [1234.50, 1234.60]"),
        (5.0, 1.0, 9.0, "5.00 [1.00, 9.00]"),
        (math.nan, math.nan, math.nan, "–"),
        (math.inf, 1.0, math.inf, "∞"),
    ],
)
def test_digits_are_from_three_to_six(value: float, low: float, high: float, written: str) -> None:
    frame = chart(name=["x", "y"], speedup=[value, 2.0], speedup_low=[low, 1.9], speedup_high=[high, 2.1])
    row = tables.markdown(frame).splitlines()[6]
    assert row.replace("\\", "") == f"| x | {written} |"


def test_a_chart_without_rows_is_a_table_without_rows() -> None:
    empty = Chart("none", "nothing", go.Figure(), pd.DataFrame({"variant": []}), "")
    assert r"\toprule" in tables.latex(empty)
    assert tables.markdown(empty).startswith("**nothing**")
