"""What the import could not take over, as rows of `diagnostics`."""

import re
from typing import Any, Final

from collectors.nsight_systems.source import Report

_SEVERITIES: Final = {2: "warning", 3: "error", 4: "error"}
_MOST: Final = 50
_LENGTH: Final = 500
#: A path tells the machine and often its user; its last part says enough.
_FOLDERS: Final = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)*[\\/](?=[^\s\\/:'\"]+)")


class Notes:
    """Collects the rows, and counts of rows that were left out."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._counts: dict[tuple[str, str, str], int] = {}

    def add(self, severity: str, source: str, text: str) -> None:
        cell = dict.fromkeys(("workload", "variant", "config", "case"))
        self.rows.append({"severity": severity, "source": source, "text": text, **cell})

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


def take_over_messages(report: Report, notes: Notes) -> None:
    """Warnings and errors that Nsight Systems itself left in the report, without paths and each once."""
    seen: set[str] = set()
    for row in report.rows("DIAGNOSTIC_EVENT", ["severity"], ["text"]):
        text = " ".join(_FOLDERS.sub("", row["text"]).split())[:_LENGTH]
        severity = _SEVERITIES.get(row["severity"])
        if severity and text and text not in seen and len(seen) < _MOST:
            seen.add(text)
            notes.add(severity, "nsys", text)
