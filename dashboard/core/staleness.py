"""Variants whose source changed since they were measured."""

import hashlib
import re
from pathlib import Path
from typing import Final

import pandas as pd

from warpladder.dashboard.core.run_data import RunData

_INCLUDE: Final = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


def stale_variants(data: RunData, root: Path) -> pd.DataFrame:
    """Variants whose recorded source is not what stands at their source_path below `root` now.

    A `.cu` file is compared by the SHA-256 of its text, with what it includes in place as `warpladder.workloads.api.read_source` has it; of a Python file, which holds several variants, it is asked whether it still has
    the recorded text.

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
    now = _with_includes(file)
    return None if hashlib.sha256(now.encode()).hexdigest() == sha256 else "the file was changed since it was measured"


def _with_includes(file: Path) -> str:
    """The text of a source as it is measured; of an included file that is not there any more, nothing."""
    text = file.read_text(errors="replace") if file.is_file() else ""

    def included(match: re.Match[str]) -> str:
        other = file.parent / match[1]
        line = text.count("\n", 0, match.start()) + 1
        return f'#line 1 "{other.name}"\n{_with_includes(other)}#line {line + 1} "{file.name}"\n'

    return _INCLUDE.sub(included, text)
