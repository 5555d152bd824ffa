"""The variants that a pattern picks, with their medians, and patterns that suit the ranges of a run."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import pandas as pd

from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace import picked
from warpladder.data import naming
from warpladder.data.naming import MOST_CHARACTERS, CellName, Naming, find


def preview(data: RunData) -> pd.DataFrame:
    """The medians of the picked variants, in the order of variants and cases.

    Args:
        data: the result of `picked.pick`.

    Returns:
        One row for each cell: `workload`, `variant`, `config`, `case`, `n`, and the medians `device_ns` (null where the ranges
        launched nothing) and `operation_ns`.
    """
    groups = data.grouped
    median = grouped_median_intervals(groups.durations, groups.keys["n"].to_numpy())["median"]
    cell = list(CellName._fields)
    scopes = groups.keys.assign(median=median).pivot_table(index=cell, columns="scope", values="median", sort=False)
    counts = groups.keys.groupby(cell, sort=False)["n"].max()
    medians = scopes.reindex(columns=list(naming.SCOPES)).add_suffix("_ns")
    frame = pd.concat([counts, medians], axis="columns").rename_axis(cell)
    places = data.cases.set_index(["workload", "case"])["size_rank"]
    frame = frame.reset_index()
    frame["place"] = places.reindex(pd.MultiIndex.from_frame(frame[["workload", "case"]])).to_numpy()
    order = ["workload", "place", "variant", "config"]
    return frame.sort_values(order, ignore_index=True).drop(columns="place")


def not_ranked(data: RunData) -> pd.DataFrame:
    """The picked cells that are not ranked, because most of their device time is attributed to no range.

    Args:
        data: the result of `picked.pick`.

    Returns:
        `variant`, `case` and `detail`.
    """
    skipped = data.results["status"] == "skipped"
    return data.results.loc[skipped, ["variant", "case", "detail"]].reset_index(drop=True)


#: The most texts that are searched for patterns, those with the most time first. Texts over `_MOST_CHARACTERS` are passed over.
MOST_TEXTS: Final = 2_000
_MOST_CHARACTERS: Final = 200
_MOST_WORDS: Final = 8
_MOST_SUGGESTIONS: Final = 8
#: The two ways to split a text: into words with their digits, or into words and numbers.
_TOKENS: Final = (re.compile(r"([\w.\-]+)"), re.compile(r"(\d+|[^\W\d_]+)"))
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_SPECIAL: Final = re.compile(r"([\\.^$*+?{}\[\]|()])")
_PLACEHOLDER: Final = re.compile(r"\{(workload|variant|config|case)\}")
#: Patterns for any texts, the least specific last.
_GENERAL: Final = (
    r"^(?P<variant>\D*[^\W\d])\W*(?P<case>\d.*)$",
    r"^(?P<variant>[^\W\d]\w*)\W+(?P<case>.+)$",
    r"^(?P<variant>.+)$",
)


class _Slots(NamedTuple):
    """Texts, split into parts, that differ only in their numbers and in the words at some places."""

    places: tuple[int, ...]
    texts: list[list[str]]


def suggestions(data: RunData) -> pd.DataFrame:
    """Patterns that give variants to compare, the best first.

    A pattern is found where texts differ in one word (the variant) or in two (workload and variant), and possibly in numbers
    (the case). It counts only where some case has at least two variants.

    Returns:
        `expression`, the numbers `variants` and `cases`, `names` (the first variants), `n` (ranges), and `percent` of the time
        of all searched ranges, which is device time where there is any, else host time.
    """
    every = picked.texts(data)
    frame = every[every["text"].str.len() <= _MOST_CHARACTERS].head(MOST_TEXTS)
    weight = frame["gpu_ns"] if frame["gpu_ns"].any() else frame["host_ns"]
    texts = list(frame["text"])
    rows = []
    for expression in dict.fromkeys([*_expressions(texts), *_GENERAL]):
        names = names_of(expression, texts)
        frame_of = pd.DataFrame({"name": names, "weight": weight.to_numpy(), "n": frame["n"].to_numpy()})
        frame_of = frame_of[frame_of["name"].notna()]
        if frame_of.empty:
            continue
        cells = pd.DataFrame(list(frame_of["name"]), columns=list(CellName._fields), index=frame_of.index)
        variants = cells.groupby(["workload", "case"])["variant"].transform("nunique")
        compared = cells[variants >= 2]
        count = compared[["workload", "variant"]].drop_duplicates()
        if 2 <= len(count) <= picked.MOST_VARIANTS:
            rows.append(
                {
                    "expression": expression,
                    "variants": len(count),
                    "cases": len(compared[["workload", "case"]].drop_duplicates()),
                    "names": ", ".join(dict.fromkeys(count["variant"].head(4))) + (", …" if len(count) > 4 else ""),
                    "n": int(frame_of["n"].loc[compared.index].sum()),
                    "percent": 100 * float(frame_of["weight"].loc[compared.index].sum()) / max(float(weight.sum()), 1.0),
                    "general": expression in _GENERAL,
                    "cells": frozenset(zip(compared.index, map(tuple, compared.to_numpy().tolist()), strict=True)),
                }
            )
    columns = ["expression", "variants", "cases", "names", "n", "percent"]
    if not rows:
        return pd.DataFrame(columns=columns)
    order = pd.DataFrame(rows)
    order["single"] = order["cases"] == 1
    order = order.sort_values(["general", "single", "percent", "cases"], ascending=[True, True, False, False], kind="stable")
    return order.drop_duplicates("cells").head(_MOST_SUGGESTIONS)[columns].reset_index(drop=True)


def names_of(expression: str, texts: Sequence[str]) -> list[CellName | None]:
    """The cell of each text by one of this module's patterns."""
    defaults = CellName("", "", "", "all")
    return [
        None if groups is None else defaults._replace(**{name: value for name, value in groups.items() if value})
        for groups in find(expression, texts)
    ]


def written(text: str) -> str:
    """The regular expression of a pattern that a user typed.

    A text with placeholders, such as `tile {variant} n={case}`, must match a whole range text, and the characters around the
    placeholders are literal. Any other text is a regular expression already.
    """
    text = text.strip().removeprefix("nvtx:")
    if "(?P<" in text or not _PLACEHOLDER.search(text):
        return text
    parts = _PLACEHOLDER.split(text)
    # Every placeholder matches as little as it can, so the last one takes the rest.
    filled = [f"(?P<{part}>.+?)" if place % 2 else _literal(part) for place, part in enumerate(parts)]
    return f"^{''.join(filled)}$"


def of_texts(texts: Sequence[str], *, beginnings: bool) -> str:
    """The pattern of chosen texts. Each is a variant, or the beginning of a variant's texts, and then the rest is the case."""
    choice = "|".join(_literal(text) for text in dict.fromkeys(texts))
    return rf"^(?P<variant>{choice})[\s_:=,/.-]*(?P<case>.*)$" if beginnings else f"^(?P<variant>{choice})$"


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _expressions(texts: Sequence[str]) -> Iterator[str]:
    for tokens in _TOKENS:
        groups: dict[tuple[str, ...], _Slots] = {}
        for text in texts:
            parts = tokens.split(text)
            same = ["\0" if place % 2 and _NUMBER.fullmatch(part) else part for place, part in enumerate(parts)]
            words = [place for place in range(1, len(parts), 2) if same[place] != "\0"][:_MOST_WORDS]
            for places in (*((place,) for place in words), *combinations(words, 2)):
                key = [*same, str(places)]
                for place in places:
                    key[place] = ""
                groups.setdefault(tuple(key), _Slots(places, [])).texts.append(parts)
        for slots in groups.values():
            if _is_grid(slots) and (expression := _expression(slots)) is not None and len(expression) <= MOST_CHARACTERS:
                yield expression


def _is_grid(slots: _Slots) -> bool:
    """Whether every place has several words, and two places have more than half of the possible pairs of their words."""
    words = [{parts[place] for parts in slots.texts} for place in slots.places]
    if any(len(each) < 2 for each in words):
        return False
    pairs = {tuple(parts[place] for place in slots.places) for parts in slots.texts}
    return len(words) == 1 or 2 * len(pairs) > len(words[0]) * len(words[1])


def _expression(slots: _Slots) -> str | None:
    """The pattern of the texts; None where a word that varies is between numbers that vary."""
    texts = slots.texts
    numbers = [
        place
        for place in range(1, len(texts[0]), 2)
        if place not in slots.places and len({parts[place] for parts in texts}) > 1
    ]
    first, last = (numbers[0], numbers[-1]) if numbers else (len(texts[0]), -1)
    if any(first < place < last for place in slots.places):
        return None
    # The case of `n=8` is named `n=8`, and not `8`.
    if numbers and first >= 3 and texts[0][first - 1] == "=" and first - 2 not in slots.places:
        first -= 2
    groups = dict(zip(slots.places, ("variant",) if len(slots.places) == 1 else ("workload", "variant"), strict=True))
    written_parts = []
    for place, part in enumerate(texts[0]):
        if place == first:
            written_parts.append("(?P<case>")
        if place in groups:
            word = r"\w+" if all(re.fullmatch(r"\w+", parts[place]) for parts in texts) else r"[\w.-]+"
            written_parts.append(f"(?P<{groups[place]}>{word})")
        elif place in numbers:
            written_parts.append(r"\d+" if all(parts[place].isdigit() for parts in texts) else r"[\d.]+")
        else:
            written_parts.append(_literal(part))
        if place == last:
            written_parts.append(")")
    return f"^{''.join(written_parts)}$"


def command(chosen: Naming, source: str) -> str:
    """The command line that imports the report with the same variants."""
    return f"warpladder import {shlex.quote(source) if source else 'REPORT'} {chosen.option}"
