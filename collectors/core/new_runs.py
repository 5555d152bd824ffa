"""Opens a writer for a new run. Imports need nothing else of what recordings do."""

import re
import secrets
from datetime import datetime
from pathlib import Path

from warpladder.data.store import RunExists, RunWriter
from warpladder.errors import Error


def new_run_id(started_at: datetime, label: str) -> str:
    """Such as `20261121T074512Z-h200-full-3fa9`: time, label, and four random digits, for runs of the same second."""
    words = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40]
    return "-".join(filter(None, (f"{started_at:%Y%m%dT%H%M%SZ}", words, secrets.token_hex(2))))


def check_label(label: str) -> None:
    """Raise Error if the label is not valid UTF-8."""
    try:
        label.encode()
    except UnicodeEncodeError as error:
        printable = label.encode(errors="replace").decode()
        raise Error(f"--label {printable}: not valid UTF-8; write the label in UTF-8") from error


def open_writer(data_dir: Path, started_at: datetime, label: str, compression_level: int = 9) -> RunWriter:
    """Open a writer for a new run, under an unused id. Raises StoreError if the folder cannot be written."""
    while True:
        try:
            return RunWriter(data_dir, new_run_id(started_at, label), compression_level)
        except RunExists:  # another run has the same second and digits
            continue
