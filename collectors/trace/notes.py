"""Collects diagnostics about a trace: rows that were left out, and other doubts."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from warpladder.data.names import Source, diagnostic_row


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
        """Return the warnings and errors, one line each, the profiler's own messages last. Complete after `finish`."""
        serious = [row for row in self.rows if row["severity"] != "info"]
        return [f"{row['severity']}: {row['text']}" for row in sorted(serious, key=lambda row: row["source"] == Source.NSYS)]


def date_of_file(path: Path, notes: Notes) -> datetime:
    """Return the modification time of a report's file in UTC, and note that it replaces the start of the capture."""
    notes.add(
        "warning",
        Source.DATE,
        "the profile does not say when it was made; the run has the date of the file, which a copy may have changed",
    )
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
