"""What is to be told of a report: warnings and errors that Nsight Systems itself left in it, and how it was opened."""

import re
from typing import Final

from collectors.trace.notes import Notes
from collectors.trace.report import Report

_SEVERITIES: Final = {2: "warning", 3: "error", 4: "error"}
_MOST: Final = 50
_LENGTH: Final = 500
#: A path tells the machine and often its user; its last part says enough.
_FOLDERS: Final = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)*[\\/](?=[^\s\\/:'\"]+)")


def take_over_messages(report: Report, notes: Notes) -> None:
    """Remarks on the report, then what Nsight Systems itself left in it, without paths and each once."""
    for remark in report.remarks:
        notes.add(remark[0], "report", remark[1])
    seen: set[str] = set()
    for row in report.rows("DIAGNOSTIC_EVENT", ["severity"], ["text"]):
        text = " ".join(_FOLDERS.sub("", row["text"]).split())[:_LENGTH]
        severity = _SEVERITIES.get(row["severity"])
        if severity and text and text not in seen and len(seen) < _MOST:
            seen.add(text)
            notes.add(severity, "nsys", text)
