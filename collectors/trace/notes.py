"""What could not be taken over from a trace, as rows of `diagnostics`."""

from typing import Any


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
