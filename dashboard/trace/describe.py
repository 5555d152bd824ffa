"""Ranges and kernels in words, and short names of kernels."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpladder.data import kernel_names
from warpladder.data.arrays import Floats, Int64s, heads
from warpladder.data.kernel_names import CLOSED_BY

_TENTH: Final = Decimal("0.1")


class Tally(NamedTuple):
    """How often each value occurs in each group, sorted by group and value. Millions of durations have few distinct values."""

    group: Int64s
    value: Int64s
    n: Int64s


def tally(groups: npt.NDArray[Any], values: Int64s) -> Tally:
    """Count equal values of each group.

    Args:
        groups: number of each value's group.
    """
    rank, distinct = pd.factorize(values, sort=True)
    pair, pairs = pd.factorize(groups.astype(np.int64) * len(distinct) + rank, sort=True)
    group, value = np.divmod(pairs, max(len(distinct), 1))
    return Tally(group, distinct[value], np.bincount(pair, minlength=len(pairs)))


def describe(groups: npt.NDArray[Any], values: Int64s) -> pd.DataFrame:
    """Statistics of the values of each group that has any.

    Args:
        groups: number of each value's group.

    Returns:
        Indexed by the group's number: `total`, `n`, `mean`, `median`, `min`, `max`, `stddev` (of a sample, n - 1; 0 for one
        value).
    """
    return statistics(tally(groups, values))


def statistics(counted: Tally) -> pd.DataFrame:
    """The same as `describe`, from values that are counted already."""
    group, value, times_seen = counted
    if not len(group):
        return pd.DataFrame(columns=["total", "n", "mean", "median", "min", "max", "stddev"])
    first = heads(group)
    rows = np.diff(np.append(first, len(group)))
    n, total = np.add.reduceat(times_seen, first), np.add.reduceat(value * times_seen, first)
    mean = total / n
    squares = value - np.repeat(mean, rows)
    squares *= squares
    squares *= times_seen
    seen = np.cumsum(times_seen)
    middle = seen[first] - times_seen[first] + n // 2
    above, below = (value[np.searchsorted(seen, place, side="right")] for place in (middle, middle - (n % 2 == 0)))
    return pd.DataFrame(
        {
            "total": total,
            "n": n,
            "mean": mean,
            "median": (below + above) / 2,
            "min": value[first],
            "max": value[first + rows - 1],
            "stddev": np.sqrt(np.add.reduceat(squares, first) / np.maximum(n - 1, 1)),
        },
        index=group[first],
    )


def rounded(values: "pd.Series[float]") -> Floats:
    """The values with one decimal, rounded as SQLite's `round` does it for `nsys stats`: half away from zero, in decimal."""
    numbers = np.asarray(values, dtype=float)
    tenths = numbers * 10
    result = np.asarray(np.floor(tenths + 0.5) / 10)
    # The decimal form of a number matters only near a tie, within the last digits that a float holds.
    for place in np.flatnonzero(np.abs(tenths - np.floor(tenths) - 0.5) < 1e-14 * np.maximum(1, np.abs(tenths))):
        result[place] = float(Decimal(repr(float(numbers[place]))).quantize(_TENTH, ROUND_HALF_UP))
    return result


def times(
    groups: npt.NDArray[Any], durations: Int64s, count: str, names: Mapping[str, npt.NDArray[Any]], ties: Sequence[str]
) -> pd.DataFrame:
    """A summary of durations by group, as `nsys stats` prints it, the longest total first.

    Args:
        groups: number of each duration's group.
        count: heading of the number of rows.
        names: by heading, the name of each group.
        ties: headings of the columns that decide between equal totals.
    """
    sums = describe(groups, durations)
    frame = pd.DataFrame(
        {
            "Time (%)": rounded(100.0 * sums["total"] / max(sums["total"].sum(), 1)),
            "Total Time (ns)": sums["total"],
            count: sums["n"],
            "Avg (ns)": rounded(sums["mean"]),
            "Med (ns)": rounded(sums["median"]),
            "Min (ns)": sums["min"],
            "Max (ns)": sums["max"],
            "StdDev (ns)": rounded(sums["stddev"]),
            **{heading: values[sums.index] for heading, values in names.items()},
        }
    )
    return frame.sort_values(["Total Time (ns)", *ties], ascending=[False, *[True] * len(ties)], ignore_index=True)


_CAST: Final = re.compile(r"\((?:unsigned |signed )?(?:int|long|long long|short|char|bool|[A-Za-z_]\w*_t)\)(?=-?\d)")
_BOOL: Final = re.compile(r"\(bool\)([01])")
_QUALIFIER: Final = re.compile(r"(?:(?:\w+|<unnamed>|\(anonymous namespace\))::)+")
#: A longer name is not taken apart further than this, because a report may hold thousands of names of many kilobytes.
_MOST_CHARACTERS: Final = 1_500
_ARGUMENT_CHARACTERS: Final = 60
_OMITTED: Final = "…"


@dataclass(frozen=True)
class _Name:
    """The parts of a kernel's name: `scope::base<arguments>`."""

    base: str
    scope: str = ""
    arguments: tuple[str, ...] = ()


def short_names(names: Sequence[str]) -> dict[str, str]:
    """A short name for each kernel, in which no two of these kernels are alike.

    `void cub::detail::Reduce<float, (int)4>(float *)` becomes `Reduce`. Where several names would be `Reduce`, each shows the
    template arguments in which they differ, or else its innermost namespace, or else a number. A name that is not C++ is that of
    its function.
    """
    parts = {name: _parse(name) for name in dict.fromkeys(names)}
    by_base: dict[str, list[str]] = {}
    for name, part in parts.items():
        by_base.setdefault(part.base, []).append(name)
    shorts: dict[str, str] = {}
    for base, group in by_base.items():
        shorts.update({group[0]: base} if len(group) == 1 else _distinguished([(name, parts[name]) for name in group]))
    # A number or arguments may make a name that another kernel has.
    seen = Counter(shorts.values())
    return {name: short if seen[short] == 1 else name for name, short in shorts.items()}


def _distinguished(group: Sequence[tuple[str, _Name]]) -> dict[str, str]:
    """Names of kernels with one base."""
    arguments = _differing([part.arguments for _, part in group])
    scopes = [f"{part.scope}::{part.base}" if part.scope else part.base for _, part in group]
    with_arguments = [part.base + shown for (_, part), shown in zip(group, arguments, strict=True)]
    both = [scope + shown for scope, shown in zip(scopes, arguments, strict=True)]
    for labels in (with_arguments, scopes, both):
        if len(set(labels)) == len(labels):
            return {name: label for (name, _), label in zip(group, labels, strict=True)}
    shorts, used = {}, Counter(with_arguments)
    number: Counter[str] = Counter()
    for (name, _), label in zip(group, with_arguments, strict=True):
        number[label] += 1
        shorts[name] = f"{label} #{number[label]}" if used[label] > 1 else label
    return shorts


def _differing(arguments: Sequence[tuple[str, ...]]) -> list[str]:
    """`<128, …, true>`: the arguments at as few places as it takes to tell these lists apart.

    Short arguments come first, and last those that some lists do not have.
    """
    width = max(map(len, arguments))
    columns = list(zip(*([*map(_simple, each), *[""] * (width - len(each))] for each in arguments), strict=True))
    chosen: list[int] = []
    distinct = 1
    for place in sorted(range(width), key=lambda each: ("" in columns[each], max(map(len, columns[each])), each)):
        more = len(set(zip(*(columns[each] for each in (*chosen, place)), strict=True)))
        if more > distinct:
            chosen.append(place)
            distinct = more
    texts = []
    for row, each in enumerate(arguments):
        shown: list[str] = []
        for place in range(len(each)):
            if place in chosen or shown[-1:] != [_OMITTED]:
                shown.append(columns[place][row] if place in chosen else _OMITTED)
        texts.append(f"<{', '.join(shown)}>" if chosen and shown else "")
    return texts


def _simple(argument: str) -> str:
    """A template argument without casts, namespaces and the parameters of functions."""
    argument = _BOOL.sub(lambda match: "true" if match[1] == "1" else "false", argument).removeprefix("void ")
    argument = _QUALIFIER.sub("", _CAST.sub("", argument)).split("(")[0].strip()
    return argument if len(argument) <= _ARGUMENT_CHARACTERS else f"{argument[: _ARGUMENT_CHARACTERS - 1]}{_OMITTED}"


def _parse(name: str) -> _Name:
    """The parts of a name; the whole name as its base where its brackets do not match."""
    full = " ".join(name.split()).removeprefix("void ")
    if not kernel_names.is_cpp(full):
        return _Name(kernel_names.function_name(full).rsplit("::", 1)[-1])
    text = full[:_MOST_CHARACTERS]
    opened, outer, component, argument = list[str](), 0, 0, 0
    bracket, arguments, end = -1, list[str](), len(text)
    for match in kernel_names.tokens(text):
        token, (first, last) = match[0], match.span()
        if token == "(" and not opened:
            end = first
            break
        if opened == [">"] and token in ",>":
            arguments.append(text[argument:first].strip())
            argument = last
        if token in CLOSED_BY:
            if not opened and token == "<":
                bracket, arguments, argument = first, [], last
            opened.append(CLOSED_BY[token])
        elif token in CLOSED_BY.values() and (not opened or opened.pop() != token):
            return _Name(full)
        elif token == "::" and not opened:
            outer, component, bracket, arguments = component, last, -1, []
    # In a name that was cut within its brackets the base is known, and the arguments are not.
    if opened and len(full) == len(text):
        return _Name(full)
    base = text[component : bracket if bracket >= 0 else end].strip()
    base = base if base.startswith(("operator", "[", "<", "(")) else base.split(" ")[-1]
    scope = text[outer:component].removesuffix("::")
    scope = scope if scope in ("<unnamed>", "(anonymous namespace)") else scope.split("<")[0]
    return _Name(base, scope, tuple(arguments)) if base else _Name(full)
