"""Variants whose source changed since they were measured."""

import hashlib
from pathlib import Path

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data import source_text


def stale_variants(data: RunData, root: Path) -> pd.DataFrame:
    """Variants whose recorded source differs from the file at their source_path below `root`.

    A `.cu` file is compared with its includes in place, as `warpladder.workloads.api.read_source` puts them: by the SHA-256 of its text, and
    where that differs by its code, so that an edited comment does not count. A Python file holds several variants, so it is searched for
    the recorded text.

    Returns:
        `workload`, `variant`, `source_path` and `reason`. A variant has no row where it has no source_path, or one outside
        `root`.
    """
    columns = ["workload", "variant", "source_path", "source_text", "source_sha256"]
    rows = []
    for workload, variant, source_path, text, sha256 in data.variants[columns].itertuples(index=False):
        file = root / source_path
        try:
            if not source_path or not file.resolve().is_relative_to(root.resolve()):
                continue
            reason = _reason(file, text, sha256)
        except (OSError, ValueError):  # a path that no file can have, or a file that may not be read
            reason = "the file cannot be read"
        if reason:
            rows.append({"workload": workload, "variant": variant, "source_path": source_path, "reason": reason})
    return pd.DataFrame(rows, columns=["workload", "variant", "source_path", "reason"])


def _reason(file: Path, text: str, sha256: str) -> str | None:
    if not file.is_file():
        return "the file is not there any more"
    if file.suffix == ".py":
        now = file.read_text(errors="replace")
        return None if text in now else "the function was changed since it was measured"
    now = source_text.read(file, lenient=True)
    same = hashlib.sha256(now.encode()).hexdigest() == sha256 or source_text.code(now) == source_text.code(text)
    return None if same else "the file was changed since it was measured"
