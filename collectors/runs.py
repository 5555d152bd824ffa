"""Names of runs."""

import re
import secrets
from datetime import datetime


def new_run_id(started_at: datetime, label: str) -> str:
    """`20261121T074512Z-h200-full-3fa9`: when, the label, and four digits that keep two runs of one second apart."""
    words = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40]
    return "-".join(filter(None, (f"{started_at:%Y%m%dT%H%M%SZ}", words, secrets.token_hex(2))))
