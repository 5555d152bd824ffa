"""Variants whose source changed since they were measured."""

import hashlib
from pathlib import Path

import pandas as pd

from warpladder.dashboard.core.run_data import RunData
from warpladder.data import source_text


def stale_variants(data: RunData, root: Path) -> pd.DataFrame:
    """Variants whose recorded source is not what stands at their source_path below `root` now.

    A `.cu` file is compared by the SHA-256 of its text, with the files that it includes. A Python file holds several variants:
    it is searched for the recorded text.

    Returns:
        `workload`, `variant`, `source_path`, `reason`; a variant without a source_path, or with one that leads out of `root`, is
        never listed.
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
    return None if hashlib.sha256(now.encode()).hexdigest() == sha256 else "the file was changed since it was measured"
