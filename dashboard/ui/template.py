"""The one Plotly template: colours, symbols, fonts, and the note and hover that every chart has."""

import hashlib
import html
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd
import plotly.graph_objects as go

from warpladder.dashboard.core.axes import Timing
from warpladder.dashboard.core.precision import is_mixed, named, word
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.numbers import (
    format_bytes,
    format_duration,
    format_error,
    format_percent,
    format_rate,
    format_ratio,
)

__all__ = [
    "SYMBOLS", "Chart", "Look", "Style", "Theme", "Tones", "blank", "format_bytes", "format_duration", "format_error", "format_percent", "format_rate",
    "format_ratio", "free_symbol", "hover", "look", "measured", "palette", "text", "tones",
]  # fmt: skip

Theme = Literal["light", "dark"]

#: The first six are those of Okabe and Ito, Color Universal Design (2008), without its yellow, which is too faint on white, and its
#: black, which is the text's. The dark row has the same hues, lighter.
_PALETTE: Final[Mapping[Theme, tuple[str, ...]]] = {
    "light": (
        "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
        "#6A4C9C", "#8A6D3B", "#9B1C31", "#5C7A00", "#008B9A", "#3B3B8F",
    ),
    "dark": (
        "#4FA8DC", "#F0804A", "#35C49A", "#E3A3C5", "#F2B84B", "#9AD3F5",
        "#B49BE0", "#CBB082", "#F0788C", "#B5D155", "#5CD3DE", "#9C9CF0",
    ),
}  # fmt: skip
#: The order in which rungs take the colours, round and round: of all orders that were tried, the one whose neighbours are furthest apart
#: in both themes, to common eyes and to those of the three colour-vision deficiencies (at least 25 in CIELAB).
_RUNG_COLORS: Final = (0, 7, 5, 4, 11, 10, 1, 3, 9, 2, 6, 8)
#: The symbols that tell variants apart. As many as are no divisor of the number of colours: only after 132 rungs are both the same again.
SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "x",
    "star",
    "triangle-down",
    "pentagon",
    "cross",
    "hexagram",
    "hourglass",
)
#: What a symbol ends with in each role, so that no peer looks like a rung, whatever their names. The last symbol has no such forms.
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
#: The dashboard's own font first, which its pages carry; an exported chart takes what its reader has.
_FONT: Final = (
    "'Source Sans', 'Source Sans 3', Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
)


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
    """How a variant looks on every chart: the colour and symbol are its own (see `look`), the dash and pattern those of its role.

    Attributes:
        precision: what its name is followed by; empty where all rungs and peers of its workload have the same.
    """

    color: str
    symbol: str
    dash: str
    pattern: str
    precision: str = ""


@dataclass(frozen=True)
class Tones:
    """Colours that belong to no variant."""

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
    """What the charts of one run share. `styles` is keyed by (workload, variant)."""

    theme: Theme
    styles: Mapping[tuple[str, str], Style]
    device: str
    on_gpu: bool

    @property
    def tones(self) -> Tones:
        return _TONES[self.theme]

    def style(self, workload: str, variant: str) -> Style:
        """A variant's style; for one that the run does not list, that of a rung of its name, which is what other runs show it with."""
        known = self.styles.get((workload, variant))
        return known or Style(_color(variant, self.theme), _symbols(variant, "rung")[0], "solid", "")

    def named(self, workload: str, variant: str) -> str:
        """A variant's name, with its precision where its workload has several."""
        return named(variant, self.style(workload, variant).precision)

    def note(self, words: str) -> str:
        """A chart's note: the device, then the words; these alone where a report does not name its device."""
        return f"{self.device}; {words}" if self.device else words[:1].upper() + words[1:]


def look(data: RunData, theme: Theme = "light") -> Look:
    """Colours and symbols of a run's variants.

    A colour is made of the variant's name alone. It is therefore the same in every run, on every page and in every export, whatever other
    variants the run has, and it stays when a variant is added. A place in the run's table would change with the variants that were
    recorded, and the declared order is not in a run that has some of them.

    - A numbered variant, such as `v03_shared_tile`, takes the colour and the symbol of its number. Neighbours on the ladder differ clearly,
      and where colours repeat, after twelve, symbols differ.
    - Any other name, such as a library's, a host variant's or a range of an imported report, takes those of a hash of it. Two names may
      have one colour; then their symbols differ.
    - A role has its own form of symbols, its dash and its pattern: a rung and a peer of one colour differ by them.
    - Where two variants of a workload still have the same colour and symbol, the later by name takes the next symbol that is free. Only a
      symbol can change in this way when a variant is added, never a colour.

    Ceilings and specimens are grey: they are what variants are compared with, or a warning.
    """
    styles: dict[tuple[str, str], Style] = {}
    for workload, variants in data.variants.groupby("workload", sort=False):
        taken: set[tuple[str, str]] = set()
        mixed = is_mixed(variants)
        ordered = variants[["variant", "role", "precision"]].sort_values("variant", kind="stable")
        for variant, role, precision in ordered.itertuples(index=False, name=None):
            color = _TONES[theme].muted if role in _GREY else _color(variant, theme)
            symbol = free_symbol(color, _symbols(variant, role), taken)
            taken.add((color, symbol))
            told = precision if mixed and role not in _GREY else ""
            styles[str(workload), variant] = Style(color, symbol, _DASHES[role], _PATTERNS[role], told)
    return Look(theme, styles, data.device, data.on_gpu)


def free_symbol(color: str, symbols: Sequence[str], taken: Collection[tuple[str, str]]) -> str:
    """The first of the symbols that is not taken in this colour; the first of all where none is free.

    Args:
        taken: pairs of a colour and a symbol.
    """
    return next((symbol for symbol in symbols if (color, symbol) not in taken), symbols[0])


def _symbols(variant: str, role: str) -> list[str]:
    """The symbols of a role, the variant's own first."""
    forms = _GREY.get(role) or [f"{symbol}{_ENDINGS[role]}" for symbol in (SYMBOLS if role == "rung" else SYMBOLS[:-1])]
    start = _places(variant)[1] % len(forms)
    return [*forms[start:], *forms[:start]]


def _color(variant: str, theme: Theme) -> str:
    return _PALETTE[theme][_places(variant)[0]]


def _places(variant: str) -> tuple[int, int]:
    """Of a name alone: the place of its colour in the palette, and a number that its symbol is counted from."""
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
        height: in pixels; the width is that of the page.
    """
    tone = _TONES[theme]
    axis = {
        "gridcolor": tone.grid, "linecolor": tone.grid, "zerolinecolor": tone.grid, "tickcolor": tone.grid, "ticks": "outside",
        "ticklen": 4, "tickfont": {"color": tone.muted, "size": 12}, "title": {"font": {"color": tone.muted, "size": 12}},
        "automargin": True,
    }  # fmt: skip
    template = go.layout.Template(
        layout={
            "font": {"family": _FONT, "size": 13, "color": tone.text},
            "paper_bgcolor": tone.paper, "plot_bgcolor": tone.paper, "colorway": _PALETTE[theme],
            "xaxis": axis, "yaxis": axis, "hovermode": "closest", "bargap": 0.35,
            "hoverlabel": {
                "bgcolor": tone.paper, "bordercolor": tone.muted, "align": "left",
                "font": {"family": _FONT, "size": 12, "color": tone.text},
            },
            "legend": {"font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)", "tracegroupgap": 2},
        }
    )  # fmt: skip
    return go.Figure(layout={"template": template, "height": height, "margin": {"l": 8, "r": 8, "t": 12, "b": 8, "pad": 4}})


def stack_shares(figure: go.Figure, rows: Iterable[str], look: Look) -> None:
    """Make horizontal bars of shares in percent one stack a row, the rows by name from the top."""
    figure.update_layout(barmode="stack")
    figure.update_xaxes(range=[0, 100], ticksuffix=" %")
    figure.update_yaxes(
        autorange="reversed", showgrid=False, ticks="", tickfont={"color": look.tones.text},
        categoryorder="array", categoryarray=list(rows),
    )  # fmt: skip


def text(name: str) -> str:
    """A name as Plotly shows it. Plotly reads some HTML in every text, and a name out of a report is never markup."""
    return html.escape(" ".join(str(name).split()), quote=False)


def hover(row: Mapping[Any, Any], *figures: tuple[str, str]) -> str:
    """What hovering over a mark of a cell shows: who, how much, and how it was measured.

    Args:
        row: of `cells`.
        figures: labels with formatted values, in order.
    """
    config = f" [{row['config']}]" if row["config"] else ""
    lines = [f"<b>{text(row['variant'])}</b>{text(config)}", text(row["title"])]
    lines += [f"{text(label)}: <b>{text(value)}</b>" for label, value in figures]
    if pd.notna(row.get("rel_l2_error")):
        lines.append(
            f"{text(word(row['precision']))}, relative error {text(format_error(row['rel_l2_error']))} against float64"
        )
    lines.append(f"{text(row['case'])} · {text(timing(row))} · n = {row['n']} · {row['interval_kind']}")
    if len(row.get("flags", ())):
        lines.append(f"distrusted: {text(', '.join(row['flags']))}")
    return "<br>".join(lines)


def share_of_floor(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Label and value of a cell's percent of floor for its hover, which says so where it is above what was measured as the ceiling."""
    above = " (above the measured ceiling)" if row["percent_of_floor"] > 100 else ""
    return f"of the {row['floor_bound']} floor", f"{format_percent(row['percent_of_floor'])}{above}"


def above_ceiling(frame: pd.DataFrame) -> str:
    """A sentence for the note where a row is faster than the floor; empty where none is."""
    if not (frame["percent_of_floor"] > 100).any():
        return ""
    hot = (frame["cache"] == "hot").any()
    return "Above 100 %: faster than the ceiling measured in the same run" + (", or served by L2." if hot else ".")


def timing(row: Mapping[Any, Any]) -> str:
    """How a cell was timed, by its scope, cache and gpus: `device time, cold L2`."""
    return Timing(row["scope"], row["cache"]).label(on_gpu=row["gpus"] > 0)


def measured(frame: pd.DataFrame, device: str, *further: str) -> str:
    """The note of a chart of cells: device, scope, cache, n, and what the intervals are.

    Args:
        frame: rows of `cells` with samples.
        further: sentences to add.
    """
    how = " and ".join(dict.fromkeys(map(timing, frame[["scope", "cache", "gpus"]].to_dict("records"))))
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
