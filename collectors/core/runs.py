"""Names of runs, and the folders that they are written in."""

import re
import secrets
from datetime import datetime
from pathlib import Path

from warpladder.data.store import RunExists, RunWriter


class LabelError(Exception):
    """A label that cannot be stored. Its message is one line that says what to do."""


def new_run_id(started_at: datetime, label: str) -> str:
    """`20261121T074512Z-h200-full-3fa9`: when, the label, and four digits that keep two runs of one second apart."""
    words = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40]
    return "-".join(filter(None, (f"{started_at:%Y%m%dT%H%M%SZ}", words, secrets.token_hex(2))))


def check_label(label: str) -> None:
    """Raises LabelError where the label is not text in UTF-8."""
    try:
        label.encode()
    except UnicodeEncodeError as error:
        shown = label.encode(errors="replace").decode()
        raise LabelError(f"--label {shown}: not valid UTF-8; write the label in UTF-8") from error


def open_writer(data_dir: Path, started_at: datetime, label: str, compression_level: int = 9) -> RunWriter:
    """A writer for a new run, under an id that is free. Raises StoreError where the folder cannot be written."""
    while True:
        try:
            return RunWriter(data_dir, new_run_id(started_at, label), compression_level)
        except RunExists:  # of the same second, and the same four digits
            continue
