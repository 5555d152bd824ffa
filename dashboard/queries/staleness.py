"""Variants whose source changed since they were measured."""

import hashlib
from pathlib import Path

import pandas as pd

from dashboard.queries.run_data import RunData


def stale_variants(data: RunData, root: Path) -> pd.DataFrame:
    """Variants whose recorded source is not what stands at their source_path below `root` now.

    A `.cu` file is compared by its SHA-256; of a Python file, which holds several variants, it is asked whether it still has
    the recorded text.

    Returns:
        `workload`, `variant`, `source_path`, `reason`; a variant without a source_path, or with one that leads out of `root`, is
        never listed.
    """
    columns = ["workload", "variant", "source_path", "source_text", "source_sha256"]
    rows = []
    for workload, variant, source_path, text, sha256 in data.variants[columns].itertuples(index=False):
        file = root / source_path
        if not source_path or not file.resolve().is_relative_to(root.resolve()):
            continue
        reason = _reason(file, text, sha256)
        if reason:
            rows.append({"workload": workload, "variant": variant, "source_path": source_path, "reason": reason})
    return pd.DataFrame(rows, columns=["workload", "variant", "source_path", "reason"])


def _reason(file: Path, text: str, sha256: str) -> str | None:
    if not file.is_file():
        return "the file is not there any more"
    now = file.read_bytes()
    if file.suffix == ".py":
        return None if text in now.decode(errors="replace") else "the function was changed since it was measured"
    return None if hashlib.sha256(now).hexdigest() == sha256 else "the file was changed since it was measured"
