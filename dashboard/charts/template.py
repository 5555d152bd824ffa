"""The one Plotly template: colours, symbols, fonts and how numbers are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd
import plotly.graph_objects as go

from dashboard.queries.run_data import RunData

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Chart:
    """A figure with what is needed to show, name, download and believe it.

    Attributes:
        name: slug, unique within a run; the stem of exported files.
        title: states the answer where there is one; plain text.
        figure: the Plotly figure, without its title (pages and reports set the title in their own heading).
        data: what the CSV download holds.
        note: how it was measured: device, scope, cache, n, interval; plain text.
    """

    name: str
    title: str
    figure: go.Figure
    data: pd.DataFrame
    note: str


@dataclass(frozen=True)
class Style:
    """How a variant looks on every chart."""

    color: str
    symbol: str
    dash: str
    pattern: str


@dataclass(frozen=True)
class Look:
    """What the charts of one run share. `styles` is keyed by (workload, variant)."""

    theme: Theme
    styles: Mapping[tuple[str, str], Style]
    device: str


def look(data: RunData, theme: Theme = "light") -> Look:
    """Colours and symbols of a run's variants, assigned in the order of its variants table."""
    raise NotImplementedError


def format_duration(nanoseconds: float) -> str:
    """`12.3 µs`: three significant digits with an SI unit; `–` for a null."""
    raise NotImplementedError


def format_rate(value: float, unit: str = "GB/s") -> str:
    """`4.22 TB/s` for 4224 GB/s: three significant digits; `unit` is `GB/s` or `GFLOP/s`; `–` for a null."""
    raise NotImplementedError


def format_bytes(count: float) -> str:
    """`1.07 GB`: three significant digits, powers of 1000; `–` for a null."""
    raise NotImplementedError


def format_ratio(value: float) -> str:
    """`3.42x`: three significant digits; `–` for a null."""
    raise NotImplementedError


def format_percent(value: float) -> str:
    """`97.3 %`: three significant digits; `–` for a null."""
    raise NotImplementedError
