"""The warnings of the ranks of a job, as warnings of the job: each once, with the ranks that it is about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from warpladder.collectors.trace.notes import Notes
from warpladder.data.words import first_of

#: A count at the begin of a text, and all its numbers.
_COUNT: Final = re.compile(r"(\d[\d,]*) (?=\D)")
_NUMBER: Final = re.compile(r"\d[\d,.]*")
_RANKS_NAMED: Final = 8
_SERIOUS: Final = ("warning", "error")


def tell(of_ranks: Mapping[int, Iterable[Mapping[Any, Any]]], notes: Notes) -> None:
    """Add the warnings and errors of the ranks to those of their job.

    Texts that differ by their numbers are one: with the sum, where they begin with a count and differ by nothing else, else with the numbers
    of the first rank that has them.

    Args:
        of_ranks: rows of `diagnostics` by rank.
        notes: receives them; what it has already is not told twice.
    """
    told = {row["text"] for row in notes.rows}
    found: dict[tuple[str, str, str], dict[int, list[str]]] = {}
    for rank, rows in sorted(of_ranks.items()):
        for row in rows:
            if row["severity"] in _SERIOUS and row["text"] not in told:
                key = row["severity"], row["source"], _NUMBER.sub("#", row["text"])
                found.setdefault(key, {}).setdefault(rank, []).append(row["text"])
    for (severity, source, _), texts in found.items():
        text = _joined([text for each in texts.values() for text in each])
        same = [rank for rank, own in texts.items() if text in own] or list(texts)
        others = [rank for rank in texts if rank not in same]
        of = _named(same, len(of_ranks)) + (f"; with other numbers on {_named(others, len(of_ranks))}" if others else "")
        notes.add(severity, source, text if len(of_ranks) == 1 else f"{text} ({of})")


def _joined(texts: Sequence[str]) -> str:
    """One text for several that differ by their numbers."""
    if len(set(texts)) == 1 and not _COUNT.match(texts[0]):
        return texts[0]
    counts = [_COUNT.match(text) for text in texts]
    rests = {text[count.end() :] for text, count in zip(texts, counts, strict=True) if count}
    if len(rests) == 1 and all(counts):
        return f"{sum(int(count[1].replace(',', '')) for count in counts if count):,} {rests.pop()}"
    return texts[0]


def _named(ranks: Sequence[int], of: int) -> str:
    """`rank 3`, `ranks 0, 2, 5`, or `all 8 ranks`."""
    if len(ranks) == of:
        return f"all {of} ranks"
    return f"rank{'s' if len(ranks) > 1 else ''} {first_of(ranks, _RANKS_NAMED)}"
