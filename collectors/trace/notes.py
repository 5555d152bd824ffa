"""What could not be taken over from a trace, as rows of `diagnostics`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from warpladder.data.diagnostics import diagnostic_row

#: Source of what Nsight Systems itself left in a report.
PROFILER: Final = "nsys"


class Notes:
    """Collects the rows, and counts of rows that were left out."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, severity: str, source: str, text: str) -> None:
        self.rows.append(diagnostic_row(severity, source, text))

    def count(self, severity: str, source: str, text: str, number: int) -> None:
        """Adds up over batches; `text` has `{}` where the number goes."""
        if number:
            key = (severity, source, text)
            self._counts[key] = self._counts.get(key, 0) + number

    def finish(self) -> list[dict[str, Any]]:
        for (severity, source, text), number in self._counts.items():
            self.add(severity, source, text.format(f"{number:,}"))
        self._counts.clear()
        return self.rows

    def warnings(self) -> list[str]:
        """Those that are more than information, a line each, what the profiler left in the report last; whole after `finish`."""
        found = [row for row in self.rows if row["severity"] != "info"]
        return [f"{row['severity']}: {row['text']}" for row in sorted(found, key=lambda row: row["source"] == PROFILER)]


def date_of_file(path: Path, notes: Notes) -> datetime:
    """When a report's file was last written, in UTC, and a note that this stands for the start of its capture."""
    notes.add(
        "warning",
        "date",
        "the report does not say when it was captured, so that the date of its file stands for it; a copy or a download may have changed that",
    )
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
