"""Tables as text, as Markdown, as CSV for spreadsheets, and as LaTeX for papers."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from warpladder.dashboard.core.cell import Estimate
from warpladder.dashboard.core.numbers import NOTHING, format_error, significant
from warpladder.dashboard.ui.text import plain_line
from warpladder.data.files import one_line

if TYPE_CHECKING:  # a recording prints its summary without Plotly
    from warpladder.dashboard.ui.template import Chart

_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|~$&#@]|:(?=\S))")


def markdown_text(text: str) -> str:
    """Text that Markdown shows unchanged, in a cell of a table too."""
    return _MARKDOWN.sub(r"\\\1", plain_line(text))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown, which shows every cell as it is."""
    lines = (map(markdown_text, headings), ("---",) * len(headings), *(map(markdown_text, row) for row in rows))
    return [f"| {' | '.join(line)} |" for line in lines]


#: The beginnings of cells that spreadsheets compute (OWASP, CSV injection), also in full width.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def csv(frame: pd.DataFrame) -> str:
    """A frame as CSV without its index. A text that looks like a formula gets an apostrophe; numbers stay."""
    texts = [name for name in frame.columns if frame[name].dtype.kind == "O"]
    inert = frame.assign(**{name: frame[name].astype(object).map(_inert_cell) for name in texts})
    return str(inert.rename(columns=_inert_cell).to_csv(index=False))


def _inert_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    # A carriage return alone is not quoted, and would start a new row.
    text = "\n".join(map(one_line, value.replace("\r\n", "\n").replace("\r", "\n").split("\n")))
    return f"'{text}" if text.startswith(_FORMULA) else text


#: Columns for the dashboard's own use, or that repeat another one.
_LEFT_OUT: Final = re.compile(
    r"(.*_)?title|.*_rank|size_value|params|detail|interval_kind|transfer|rung|row|kind|flops|(min|h2d|d2h)_bytes|color|rank|twin|"
    r"position|throttle_reasons|flags|badges|(.*_)?verdict|gain_from"
)
_ERRORS: Final = frozenset({"rel_l2_error", "error"})
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES: Final = ((1e3, "T"), (1.0, "G"), (1e-3, "M"))
_BYTES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_LEAST_DIGITS, _MOST_DIGITS = 3, 6
_LATEX: Final[Mapping[str, str]] = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "∞": r"$\infty$",
    "→": r"$\rightarrow$",
    "²": r"\textsuperscript{2}",
    "⚠": "!",
    "°": r"\textdegree{}",
}


@dataclass(frozen=True)
class _Column:
    """A column of a table: its heading, and the text of each row."""

    heading: str
    texts: list[str]
    numeric: bool


def latex(chart: "Chart") -> str:
    """A chart's data as a `table` that needs the package booktabs."""
    columns, shared = _columns(chart.data)
    places = "".join("r" if column.numeric else "l" for column in columns)
    caption = latex_text(" ".join(filter(None, (_sentence(chart.title), _sentence(chart.note), shared))))
    lines = (" & ".join(map(latex_text, row)) for row in _rows(columns))
    # LaTeX takes neither start for an option of the line break before it.
    rows = [f"    {'{}' if line.startswith(('[', '*')) else ''}{line} \\\\\n" for line in lines]
    head = [f"    {' & '.join(latex_text(column.heading) for column in columns)} \\\\\n"] if columns else []
    return (
        "% Needs \\usepackage{booktabs}.\n\\begin{table}\n  \\centering\n"
        f"  \\caption{{{caption}}}\n  \\label{{tab:{chart.name}}}\n  \\begin{{tabular}}{{{places}}}\n"
        f"    \\toprule\n{''.join(head)}    \\midrule\n{''.join(rows)}    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


def markdown(chart: "Chart") -> str:
    """A chart's data as a table of GitHub's Markdown, under its title and note."""
    columns, shared = _columns(chart.data)
    about = " ".join(filter(None, (_sentence(chart.note), shared)))
    lines = [[column.heading for column in columns], *_rows(columns)]
    head, *rows = [f"| {' | '.join(map(markdown_text, line))} |\n" for line in lines]
    rule = f"|{'|'.join(' ---: ' if column.numeric else ' --- ' for column in columns)}|\n"
    return f"**{markdown_text(chart.title)}**\n\n{markdown_text(about)}\n\n{head}{rule}{''.join(rows)}"


def latex_text(text: str) -> str:
    """Text that LaTeX shows unchanged. Letters of other alphabets stay as they are."""
    return "".join(_LATEX.get(letter, letter) for letter in plain_line(text))


def _sentence(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."


def _rows(columns: Sequence[_Column]) -> Iterable[tuple[str, ...]]:
    return zip(*(column.texts for column in columns), strict=True)


def _columns(frame: pd.DataFrame) -> tuple[list[_Column], str]:
    """The columns of a table, and a sentence with the values that all rows share."""
    ends = {column for name in frame.columns for column in _ends(frame, str(name))}
    shared: list[str] = []
    columns: list[_Column] = []
    for name in map(str, frame.columns):
        values = frame[name]
        if name in ends or _LEFT_OUT.fullmatch(name) or values.isna().all() or not any(map(_word, values)):
            continue
        column = _column(frame, name)
        if len(frame) > 1 and len(set(column.texts)) == 1 and not _ends(frame, name):
            shared.append(f"{column.heading} {column.texts[0]}")
        else:
            columns.append(column)
    return columns, f"All rows: {', '.join(shared)}." if shared else ""


def _ends(frame: pd.DataFrame, name: str) -> tuple[str, ...]:
    """The columns of the ends of a figure's interval, where it has one."""
    if name == "speedup" and {"low", "high"} <= set(frame.columns):
        return "low", "high"
    _, *ends = Estimate.names(name)
    return tuple(ends) if set(ends) <= set(frame.columns) else ()


def _column(frame: pd.DataFrame, name: str) -> _Column:
    values = frame[name]
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return _Column(_heading(name), [_word(value) for value in values], numeric=False)
    if name in _ERRORS:
        return _Column(_heading(name), [format_error(value) for value in values], numeric=True)
    factor, heading = _unit(name, values)
    ends = _ends(frame, name)
    integral = pd.api.types.is_integer_dtype(values) and factor == 1
    write: Callable[[Any], str] = (lambda value: f"{value:d}") if integral else significant
    if not ends:
        figures = (NOTHING if pd.isna(value) else write(int(value) if integral else value / factor) for value in values)
        return _Column(heading, list(figures), numeric=True)
    triples = frame[[name, *ends]].astype(float) / factor
    return _Column(heading, [_estimate(*row) for row in triples.itertuples(index=False, name=None)], numeric=True)


def _estimate(value: float, low: float, high: float) -> str:
    """`12.34 [12.31, 12.40]`: as many digits as make two of half the interval, but from three to six."""
    if math.isnan(value):
        return NOTHING
    if not all(map(math.isfinite, (value, low, high))):
        return significant(value)
    size = math.floor(math.log10(abs(value))) if value else 0
    half = (high - low) / 2
    digits = size - math.floor(math.log10(half)) + 2 if half > 0 else _LEAST_DIGITS
    places = max(0, min(max(digits, _LEAST_DIGITS), _MOST_DIGITS) - 1 - size)
    return f"{value:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if pd.isna(value) else str(value)


def _unit(name: str, values: "pd.Series[Any]") -> tuple[float, str]:
    """The divisor of a column, and its heading with the unit."""
    middle = values.astype(float).abs().median()
    if name.endswith("_ns"):
        factor, unit = _fitting(middle, _TIMES)
        return factor, f"{_heading(name.removesuffix('_ns'))} ({unit})"
    if name.endswith(("gb_per_s", "gflop_per_s")):
        factor, prefix = _fitting(middle, _RATES)
        what, rate = ("bandwidth", "B/s") if name.endswith("gb_per_s") else ("rate", "FLOP/s")
        prior = _heading(re.sub(r"_?g(b|flop)_per_s$", "", name))
        return factor, f"{prior or what} ({prefix}{rate})"
    if name == "bytes" or name.endswith("_bytes"):
        factor, unit = _fitting(middle, _BYTES)
        return factor, f"{_heading(name)} ({unit})"
    return 1.0, _heading(name)


def _fitting(middle: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next(((factor, unit) for factor, unit in units if middle >= factor), units[-1])


def _heading(name: str) -> str:
    words = "relative error" if name == "rel_l2_error" else name.replace("percent_of_", "% of ").replace("_percent", " %")
    return words.replace("_", " ")
