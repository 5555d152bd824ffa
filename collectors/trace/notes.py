"""Collects diagnostics about a trace: rows that were left out, and other doubts."""

import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpladder.data.names import Source, diagnostic_row

#: From so many messages of Nsight Systems on, only the first is quoted, with at most so many characters.
_SEVERAL, _QUOTED = 2, 60


class Notes:
    """Collects rows of `diagnostics`, and counts of rows that were left out."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, severity: str, source: str, text: str) -> None:
        self.rows.append(diagnostic_row(severity, source, text))

    def count(self, severity: str, source: str, text: str, number: int) -> None:
        """Add to a count over all batches. `{}` in `text` is replaced by the total."""
        if number:
            key = (severity, source, text)
            self._counts[key] = self._counts.get(key, 0) + number

    def finish(self) -> list[dict[str, Any]]:
        for (severity, source, text), number in self._counts.items():
            self.add(severity, source, text.format(f"{number:,}"))
        self._counts.clear()
        return self.rows

    def warnings(self) -> list[str]:
        """Return the warnings and errors, as `told` does. Complete after `finish`."""
        return told(self.rows)


def told(rows: Sequence[Mapping[Any, Any]], *, every: bool = False) -> list[str]:
    """Return the warnings and errors among rows of `diagnostics`, one line each. `every`: each message of Nsight
    Systems itself, and not only the first of them."""
    serious = [row for row in rows if row["severity"] != "info"]
    lines = [f"{row['severity']}: {row['text']}" for row in serious if row["source"] != Source.NSYS]
    of_nsys = [row for row in serious if row["source"] == Source.NSYS]
    quoted = [
        f'{row["severity"]} of Nsight Systems itself; data that it names may be missing: "{row["text"]}"' for row in of_nsys
    ]
    if every or len(quoted) < _SEVERAL:
        return [*lines, *quoted]
    first = textwrap.shorten(min(of_nsys, key=lambda row: row["severity"])["text"], _QUOTED, placeholder=" …")
    return [
        *lines,
        f'Nsight Systems itself left {len(of_nsys)} messages in the report, such as "{first}" (all: warpladder summary RUN --all)',
    ]


def date_of_file(path: Path, notes: Notes) -> datetime:
    """Return the modification time of a report's file in UTC, and note that it replaces the start of the capture."""
    notes.add(
        "warning",
        Source.DATE,
        "the profile does not tell when it was made; the run's id has the date of the file, which a copy may have changed",
    )
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
