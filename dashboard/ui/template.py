"""The look of every chart: font, colours, marks, patterns for print without colours, ticks, title and note."""

import base64
import hashlib
import html
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.compare.within_run import is_mixed, with_precision, word
from warpladder.dashboard.core.cell import Cell, Estimate, Timing
from warpladder.dashboard.core.numbers import format_error, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.text import plain_line

#: Lightnesses (CIELAB, 0 to 100) that differ by less look alike in print.
LIGHTNESS_STEP: Final = 10.0
_HATCHES: Final = ("", "/", "x", ".", "-", "\\")


def luminance(color: str) -> float:
    """The relative luminance (W3C) of a colour `#rrggbb`, from 0 to 1."""
    red, green, blue = (_linear(int(color[place : place + 2], 16) / 255) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lightness(color: str) -> float:
    """The lightness L* (CIE 1976) of a colour `#rrggbb`, from 0 to 100."""
    part = luminance(color)
    return float(116 * part ** (1 / 3) - 16 if part > 216 / 24389 else part * 24389 / 27)


def patterns(colors: Sequence[str]) -> list[str]:
    """A pattern for each area, so that no two areas of about one lightness have the same one while patterns last.

    Args:
        colors: of the areas, `#rrggbb`.
    """
    result: list[str] = []
    for color in colors:
        alike = (abs(lightness(color) - lightness(other)) < LIGHTNESS_STEP for other in colors)
        used = [pattern for pattern, same in zip(result, alike, strict=False) if same]
        result.append(min(_HATCHES, key=used.count))
    return result


def apart_colors(colors: Sequence[str], paper: str) -> list[str]:
    """The colours of areas, of which each one that came before is paler by a third, so that no two areas have the same colour."""
    result: list[str] = []
    for color in colors:
        shade = color
        while shade in result:
            shade = _mixed(shade, paper)
        result.append(shade)
    return result


def _mixed(color: str, other: str) -> str:
    """A colour with a third of another one."""
    pairs = ((int(color[place : place + 2], 16), int(other[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{round((2 * own + of_other) / 3):02X}" for own, of_other in pairs)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_LINEAR_TICKS: Final = 6
#: The part of a logarithmic axis that a label takes.
_LABEL: Final = 0.07


def ticks(
    low: float, high: float, write: Callable[[float], str], *, logarithmic: bool, most: int = _LINEAR_TICKS
) -> dict[str, Any]:
    """Options of an axis that spans low to high, both positive where it is logarithmic.

    Args:
        write: writes a value, as `format_duration` does.
        most: about the number of ticks that a linear axis has room for, or of decades on a logarithmic one.
    """
    values = _log_values(low, high, most) if logarithmic else _linear_values(low, high, most)
    return {"tickmode": "array", "tickvals": values, "ticktext": [_short(write(value)) if value else "0" for value in values]}


def spaced(values: Iterable[float]) -> list[float]:
    """The positive values, from the smallest on, whose labels have room on a logarithmic axis."""
    shown: list[float] = []
    ordered = sorted(set(values))
    for value in ordered:
        if not shown or value >= shown[-1] * (ordered[-1] / ordered[0]) ** _LABEL:
            shown.append(value)
    return shown


def _linear_values(low: float, high: float, most: int) -> list[float]:
    span = high - low
    if span <= 1e-9 * abs(high):  # one value, but for rounding
        span = abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(size * power for size in _STEPS if span / (size * power) <= most)
    return [number * step for number in range(math.ceil(low / step), math.floor((high + 0.08 * span) / step) + 1)]


def _log_values(low: float, high: float, most: int) -> list[float]:
    stride = math.ceil(math.log10(high / low) / (most + 1)) or 1
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2, stride)
    # Three ticks a decade, where all of them are at most half as many again as on a linear axis.
    within = 3 if 3 * math.log10(high / low) <= 1.5 * most else 1
    return [lead * 10.0**decade for decade in decades for lead in (1.0, 2.0, 5.0)[:within]]


def _short(written: str) -> str:
    """`10 µs` for `10.0 µs`, because ticks are at round numbers."""
    number, space, unit = written.partition(" ")
    mantissa = number.rstrip("×")
    if "." in mantissa:
        number = mantissa.rstrip("0").rstrip(".") + number[len(mantissa) :]
    return number + space + unit


#: A legend right of the plot.
BESIDE: Final = {"y": 1, "yanchor": "top", "x": 1.01, "xanchor": "left"}
#: A legend on one line above the plot.
ABOVE: Final = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def error_bars(estimates: Iterable[Estimate], **options: Any) -> dict[str, Any]:
    """Error bars from figures to the ends of their intervals, for `error_x` or `error_y`."""
    ends = [(each.high - each.value, each.value - each.low) for each in estimates]
    up, down = [high for high, _ in ends], [low for _, low in ends]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1, "width": 3, **options}


def add_points(
    figure: go.Figure,
    style: "Style",
    name: str,
    x: Iterable[float],
    estimates: Iterable[Estimate],
    hovers: Iterable[str],
    *,
    size: float = 8,
    width: float = 0,
    **options: Any,
) -> None:
    """Draw the points of a variant with their intervals, and a line through them where it has a width.

    Args:
        name: in the legend, escaped by `text`.
    """
    figures = list(estimates)
    marker = {"symbol": style.symbol, "size": size, "color": style.color}
    line = {"mode": "lines+markers", "line": {"color": style.color, "dash": style.dash, "width": width}}
    places = {"x": list(x), "y": [each.value for each in figures], "error_y": error_bars(figures)}
    words = {"name": name, "hovertext": list(hovers), "hoverinfo": "text"}
    figure.add_scatter(marker=marker, **places, **words, **(line if width else {"mode": "markers"}), **options)


def hatch(shape: str | list[str], solidity: float = 0.2) -> dict[str, Any]:
    """The pattern of a bar, or one for each bar."""
    return {"shape": shape, "fillmode": "overlay", "size": 5, "solidity": solidity}


def words_beside(words: str, x: Any, y: Any, shift: float = 6, **options: Any) -> dict[str, Any]:
    """An annotation whose words, escaped by `template.text`, begin so many pixels right of a place."""
    place = {"x": x, "y": y, "xanchor": "left", "xshift": shift}
    return {**place, "text": words, "showarrow": False, "font": {"size": 12}, **options}


def word_right(words: str, shift: float, y: float, color: str, **options: Any) -> dict[str, Any]:
    """An annotation of a column of words, which begins so many pixels right of the plot."""
    return words_beside(text(words), 1, y, shift, xref="paper", **{"font": {"size": 12, "color": color}, **options})


def heading_right(words: str, shift: float, look: "Look") -> dict[str, Any]:
    """The heading of a column of `word_right`, above the plot."""
    return word_right(words, shift, 1, look.tones.muted, yref="paper", yanchor="bottom")


def name_rows(figure: go.Figure, names: Sequence[str], look: "Look", **options: Any) -> None:
    """Write names beside horizontal bars, which are at 0, 1, 2 and so on from the top.

    Args:
        names: escaped by `template.text`.
        options: further ones of the axis, such as its `range`.
    """
    font = {"color": look.tones.text, "size": 12}
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=list(names), showgrid=False, ticks="", tickfont=font)
    figure.update_yaxes(**options)


def stack_shares(figure: go.Figure, rows: Iterable[str], look: "Look") -> None:
    """Make horizontal bars of shares in percent one stack for each row, with the rows by name from the top."""
    figure.update_layout(barmode="stack")
    figure.update_xaxes(range=[0, 100], ticksuffix=" %")
    order = {"categoryorder": "array", "categoryarray": list(rows)}
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text}, **order)


FAMILY: Final = "Warpladder Sans"
_FOLDER: Final = Path(__file__).resolve().parent / "fonts"
_WEIGHTS: Final = {"400": "100 500", "600": "501 900"}


@cache
def face(weight: str) -> str:
    """The CSS rule that declares one weight, with the font in it.

    Args:
        weight: `400` or `600`.
    """
    data = base64.b64encode((_FOLDER / f"warpladder-sans-{weight}.woff2").read_bytes()).decode()
    return (
        f"@font-face{{font-family:'{FAMILY}';font-weight:{_WEIGHTS[weight]};"
        f"src:url(data:font/woff2;base64,{data}) format('woff2')}}"
    )


def faces() -> str:
    """The CSS rules of both weights."""
    return "".join(map(face, _WEIGHTS))


def embedded(svg: str) -> str:
    """An SVG with the weights that its texts have."""
    bold = "font-weight" in svg or "<b>" in svg
    head, mark, rest = svg.partition(">")
    return f"{head}{mark}<style>{faces() if bold else face('400')}</style>{rest}"


Theme = Literal["light", "dark"]

#: The first six colours are from Okabe and Ito, Color Universal Design (2008), without their yellow, which is too faint on
#: white, and without black, which is the text's. The dark row has lighter colours of the same hues.
_PALETTE: Final[Mapping[Theme, tuple[str, ...]]] = {
    "light": (
        *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
        *("#6A4C9C", "#8A6D3B", "#9B1C31", "#5C7A00", "#008B9A", "#3B3B8F"),
    ),
    "dark": (
        *("#4FA8DC", "#F0804A", "#35C49A", "#E3A3C5", "#F2B84B", "#9AD3F5"),
        *("#B49BE0", "#CBB082", "#F0788C", "#B5D155", "#5CD3DE", "#9C9CF0"),
    ),
}
#: The order in which rungs take the colours; after the last one it starts again. Neighbours in this order differ by at least 25
#: in CIELAB, in both themes, for common eyes and for the three colour-vision deficiencies.
_RUNG_COLORS: Final = (0, 7, 5, 4, 11, 10, 1, 3, 9, 2, 6, 8)
#: The symbols of variants. There are 11 symbols and 12 colours, so that a pair of both comes again after 132 rungs only.
SYMBOLS: Final = (
    *("circle", "square", "diamond", "triangle-up", "x", "star"),
    *("triangle-down", "pentagon", "cross", "hexagram", "hourglass"),
)
#: The ending of a symbol's name in each role, so that a peer never looks like a rung. The last symbol has no such forms.
_ENDINGS: Final = {"rung": "", "peer": "-open", "host": "-dot"}
_NUMBERED: Final = re.compile(r"v([0-9]{1,4})(?![0-9])")
#: Chosen so that the peers and host variants that ship have different colours within each workload.
_SALT: Final = b"9689"
_DASHES: Final = {"ceiling": "longdash", "rung": "solid", "peer": "dash", "host": "dot", "specimen": "longdashdot"}
_GREY: Final = {
    "ceiling": ("diamond-open", "square-open", "hexagon-open"),
    "specimen": ("circle-open", "pentagon-open", "star-open", "hexagram-open"),
}
_PATTERNS: Final = {"ceiling": "-", "rung": "", "peer": "/", "host": ".", "specimen": "x"}
#: The pages carry the first font, and exported files the second one.
_FONT: Final = (
    f"'Source Sans', '{FAMILY}', 'Source Sans 3', Inter, system-ui, -apple-system, 'Segoe UI', Roboto, "
    "'Liberation Sans', Arial, sans-serif"
)


@dataclass(frozen=True)
class Chart:
    """A figure with its name, title, data and note.

    Attributes:
        name: slug, unique within a run; the stem of exported files.
        title: the answer that the chart gives, as plain text.
        figure: the Plotly figure without a title, which pages and reports write above it.
        data: the rows of the CSV file.
        note: how the figures were measured (device, scope, cache, n, interval), as plain text.
    """

    name: str
    title: str
    figure: go.Figure
    data: pd.DataFrame
    note: str

    @cached_property
    def json(self) -> str:
        """The figure for a browser."""
        return str(self.figure.to_json(validate=False))


@dataclass(frozen=True)
class Style:
    """How a variant looks on every chart.

    Attributes:
        color: of the variant; see `look`.
        symbol: of the variant; see `look`.
        dash: of the variant's role.
        pattern: of the variant's role.
        precision: is written after the variant's name; empty where all rungs and peers of its workload have the same precision.
    """

    color: str
    symbol: str
    dash: str
    pattern: str
    precision: str = ""


@dataclass(frozen=True)
class Tones:
    """The colours of a theme that belong to no variant."""

    paper: str
    text: str
    muted: str
    grid: str
    good: str
    bad: str
    region: tuple[str, str]


_TONES: Final[Mapping[Theme, Tones]] = {
    "light": Tones("#ffffff", "#1f2328", "#626973", "#e6e8ec", "#00734F", "#B34A00", ("#E8EEF6", "#F6EAD9")),
    "dark": Tones("#14171c", "#e6e8eb", "#9aa2ad", "#2a2f37", "#4CD3A8", "#F79A6B", ("#1D2631", "#33291A")),
}


@dataclass(frozen=True)
class Look:
    """The theme, device and styles that the charts of one run share.

    Attributes:
        styles: by (workload, variant).
    """

    theme: Theme
    styles: Mapping[tuple[str, str], Style]
    device: str
    on_gpu: bool

    @property
    def tones(self) -> Tones:
        return _TONES[self.theme]

    def style(self, workload: str, variant: str) -> Style:
        """A variant's style. A variant that the run does not list has the style of a rung of that name, as in other runs."""
        own = self.styles.get((workload, variant))
        return own or Style(_color(variant, self.theme), _symbols(variant, "rung")[0], "solid", "")

    def variant_name(self, workload: str, variant: str) -> str:
        """A variant's name, with its precision where its workload has several."""
        return with_precision(variant, self.style(workload, variant).precision)

    def note(self, words: str) -> str:
        """A chart's note: the device and the words; the words alone where a report does not name its device."""
        return f"{self.device}; {words}" if self.device else words[:1].upper() + words[1:]


def look(data: RunData, theme: Theme = "light") -> Look:
    """Colours and symbols of a run's variants.

    A colour depends on the variant's name. So a variant has the same colour in every run, on every page and in every export.

    - A numbered variant, such as `v03_shared_tile`, takes the colour and the symbol of its number. Neighbours on the ladder
      differ clearly. Colours repeat after twelve rungs, and then the symbols differ.
    - Any other name takes the colour and the symbol of its hash. Where two such names of a workload have one colour, the later one by name
      takes the next free colour; beyond twelve names, their symbols differ.
    - A role has its own form of symbols, its dash and its pattern, so that a rung and a peer of one colour differ.
    - Where two variants of a workload still have the same colour and symbol, the later one by name takes the next free symbol.

    Ceilings and specimens are grey, because they are no competitors.
    """
    styles: dict[tuple[str, str], Style] = {}
    for workload, variants in data.variants.groupby("workload", sort=False):
        used: set[tuple[str, str]] = set()
        taken: list[int] = []
        mixed = is_mixed(variants)
        ordered = variants[["variant", "role", "precision"]].sort_values("variant", kind="stable")
        for variant, role, precision in ordered.itertuples(index=False, name=None):
            color = _TONES[theme].muted if role in _GREY else _free_color(variant, theme, taken)
            symbol = free_symbol(color, _symbols(variant, role), used)
            used.add((color, symbol))
            shown_precision = precision if mixed and role not in _GREY else ""
            styles[str(workload), variant] = Style(color, symbol, _DASHES[role], _PATTERNS[role], shown_precision)
    return Look(theme, styles, data.device, data.on_gpu)


def free_symbol(color: str, symbols: Sequence[str], used: Collection[tuple[str, str]]) -> str:
    """The first symbol that is not taken in this colour; the first of all where none is free.

    Args:
        used: pairs of a colour and a symbol.
    """
    return next((symbol for symbol in symbols if (color, symbol) not in used), symbols[0])


def _symbols(variant: str, role: str) -> list[str]:
    """The symbols of a role, the variant's own first."""
    forms = _GREY.get(role) or [f"{symbol}{_ENDINGS[role]}" for symbol in (SYMBOLS if role == "rung" else SYMBOLS[:-1])]
    start = _places(variant)[1] % len(forms)
    return [*forms[start:], *forms[:start]]


def _color(variant: str, theme: Theme) -> str:
    return _PALETTE[theme][_places(variant)[0]]


def _free_color(variant: str, theme: Theme, taken: list[int]) -> str:
    """The colour of a variant of a workload. That of a name without a number is one of the fewest names, and is added to those taken."""
    place = _places(variant)[0]
    if not _NUMBERED.match(variant):
        colors = len(_RUNG_COLORS)
        place = min(range(place, place + colors), key=lambda each: taken.count(each % colors)) % colors
        taken.append(place)
    return _PALETTE[theme][place]


def _places(variant: str) -> tuple[int, int]:
    """The place of a name's colour in the palette, and a number that decides its symbol."""
    colors = len(_RUNG_COLORS)
    if numbered := _NUMBERED.match(variant):
        number = int(numbered[1]) - 1
        return _RUNG_COLORS[number % colors], number
    digest = hashlib.blake2b(variant.encode(errors="replace"), digest_size=8, salt=_SALT).digest()
    number = int.from_bytes(digest, "big")
    return number % colors, number // colors


def tones(theme: Theme) -> Tones:
    """The colours of a theme that belong to no variant."""
    return _TONES[theme]


def palette(theme: Theme) -> tuple[str, ...]:
    """The colours that tell variants apart, for names that no run lists."""
    return _PALETTE[theme]


def blank(theme: Theme, height: int) -> go.Figure:
    """An empty figure in the project's template.

    Args:
        height: in pixels; the width is the width of the page.
    """
    tone = _TONES[theme]
    small = {"color": tone.muted, "size": 12}
    lines = dict.fromkeys(("gridcolor", "linecolor", "zerolinecolor", "tickcolor"), tone.grid)
    axis = {**lines, "ticks": "outside", "ticklen": 4, "tickfont": small, "title": {"font": small}, "automargin": True}
    font = {"family": _FONT, "color": tone.text}
    template = go.layout.Template(
        layout={
            "font": {**font, "size": 13},
            "paper_bgcolor": tone.paper,
            "plot_bgcolor": tone.paper,
            "colorway": _PALETTE[theme],
            "xaxis": axis,
            "yaxis": axis,
            "hovermode": "closest",
            "bargap": 0.35,
            "hoverlabel": {"bgcolor": tone.paper, "bordercolor": tone.muted, "align": "left", "font": {**font, "size": 12}},
            "legend": {"font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)", "tracegroupgap": 2},
        }
    )
    return go.Figure(layout={"template": template, "height": height, "margin": {"l": 8, "r": 8, "t": 12, "b": 8, "pad": 4}})


def text(name: str) -> str:
    """A name, escaped for Plotly, which reads some HTML in every text. A name out of a report is never markup."""
    return html.escape(plain_line(str(name)), quote=False)


def bold_name(variant: str, config: str) -> str:
    """`<b>v05_mixed</b> [products=3]`, escaped: how a hover text begins."""
    return f"<b>{text(variant)}</b>{f' [{text(config)}]' if config else ''}"


def hover(cell: Cell, *figures: tuple[str, str]) -> str:
    """The hover text of a cell: its variant, its figures, and how they were measured.

    Args:
        figures: labels with formatted values, in order.
    """
    lines = [bold_name(cell.variant, cell.config), text(cell.title)]
    lines += [f"{text(label)}: <b>{text(value)}</b>" for label, value in figures]
    if not math.isnan(cell.rel_l2_error):
        lines.append(f"{text(word(cell.precision))}, relative error {text(format_error(cell.rel_l2_error))} against float64")
    how = text(timing(cell.scope, cell.cache, cell.gpus))
    lines.append(f"{text(cell.case)} · {how} · n = {cell.n} · {cell.interval_kind}")
    if cell.flags:
        lines.append(f"distrusted: {text(', '.join(cell.flags))}")
    return "<br>".join(lines)


def share_of_floor(cell: Cell) -> tuple[str, str]:
    """Label and value of a cell's percent of floor, for a hover text."""
    percent = cell.percent_of_floor.value
    above = " (above the measured ceiling)" if percent > 100 else ""
    return f"of the {cell.floor_bound} floor, by {cell.floor_ceiling}", f"{format_percent(percent)}{above}"


def above_ceiling(frame: pd.DataFrame) -> str:
    """A sentence for the note where a row is faster than its floor; empty where none is."""
    if not (frame["percent_of_floor"] > 100).any():
        return ""
    hot = (frame["cache"] == "hot").any()
    return "Above 100 %: faster than the ceiling measured in the same run" + (", or served by L2." if hot else ".")


def timing(scope: str, cache: str, gpus: int) -> str:
    """How a cell was timed: `device time, cold L2`."""
    return Timing(scope, cache).label(on_gpu=gpus > 0)


def measured(frame: pd.DataFrame, device: str, *further: str) -> str:
    """The note of a chart of cells: device, scope, cache, n, and the kind of the intervals.

    Args:
        frame: rows of `cells` with samples.
        further: sentences to add.
    """
    how = " and ".join(
        dict.fromkeys(timing(*row) for row in frame[["scope", "cache", "gpus"]].itertuples(index=False, name=None))
    )
    kinds = " and ".join(kind for kind in dict.fromkeys(frame["interval_kind"]) if kind)
    return " ".join([f"{device}; {how}; medians with {kinds}; {samples(frame['n'])}.", *filter(None, further)])


def samples(counts: Iterable[int]) -> str:
    """`n = 40` or `n = 38 to 40`."""
    numbers = sorted(set(counts))
    if not numbers:
        return "n = 0"
    return f"n = {numbers[0]}" if len(numbers) == 1 else f"n = {numbers[0]} to {numbers[-1]}"


def slug(*parts: str) -> str:
    """`ladder-conv2d-n-512` out of names: lower-case letters, digits and hyphens."""
    joined = "-".join(parts).lower()
    return "-".join("".join(letter if letter.isascii() and letter.isalnum() else " " for letter in joined).split())
