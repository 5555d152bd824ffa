"""Variants that are suspect: their times change from process to process, or their source changed since they were measured."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.cells import cells, charted_cases, in_timing, timings
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.numbers import format_half_width
from warpladder.dashboard.core.run_data import RunData, once
from warpladder.data import source_text
from warpladder.data.names import NOT_DONE

#: Half of a 95 % interval over the median, from which on the median says little.
WIDE: Final = 0.5
#: A time is falling where the interval of a smaller size lies above the interval of the larger one by more than this factor.
#: Whole waves of blocks and tiles that fit explain smaller differences.
FALLS: Final = 1.25
WIDE_INTERVAL: Final = "wide interval"
FALLING_TIME: Final = "falling time"
_CELL: Final = ["workload", "variant", "role", "config", "case"]
COLUMNS: Final = (*_CELL, "what", "text")
#: The columns of cells that the doubts come from. Rows with fewer columns are selected faster.
_USED: Final = (
    *(*_CELL, "gpus", "scope", "cache", "n", "status", "flags"),
    *("median_ns", "low_ns", "high_ns", "size_rank", "min_bytes", "flops"),
)


def unsteady(data: RunData) -> pd.DataFrame:
    """The doubtful times of rungs, peers and hosts, in the first timing of each workload.

    Cells whose work was not done are left out, since a finding is about them.

    Returns:
        One row for each doubt: `workload`, `variant`, `role`, `config`, `case`, `what` (`WIDE_INTERVAL` or `FALLING_TIME`), `text`.
        The frame is the caller's own copy.
    """
    return _unsteady(data).copy()


@once
def _unsteady(data: RunData) -> pd.DataFrame:
    every = cells(data)[list(_USED)]
    every = every[(every["n"] >= MIN_SAMPLES) & (every["status"] == "ok") & ~every["role"].isin(["ceiling", "specimen"])]
    every = every[~every["flags"].map(lambda flags: bool(NOT_DONE.intersection(flags))).astype(bool)]
    every = every.astype({"min_bytes": float, "flops": float})
    suspects: list[dict[str, Any]] = []
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            charted = charted_cases(data, workload)[["case", "series"]]
            rows = in_timing(every, workload, timing)
            suspects += _wide(rows)
            lines: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
            for row in rows.merge(charted, on="case").sort_values("size_rank", kind="stable").to_dict("records"):
                lines.setdefault((row["variant"], row["config"], row["gpus"], row["series"]), []).append(row)
            for line in lines.values():
                suspects += _falling(line)
    return pd.DataFrame(suspects, columns=list(COLUMNS))


def _wide(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    half = (rows["high_ns"] - rows["low_ns"]) / 2 / rows["median_ns"]
    for row in rows[half > WIDE].to_dict("records"):
        known = format_half_width(row["median_ns"], row["low_ns"], row["high_ns"])
        yield _doubt(row, WIDE_INTERVAL, f"its median is known to {known}")


def _doubt(row: Mapping[Any, Any], what: str, text: str) -> dict[str, Any]:
    return {**{name: row[name] for name in _CELL}, "what": what, "text": text}


def _falling(line: list[dict[Any, Any]]) -> Iterator[dict[str, Any]]:
    """The cells of one variant and config, by size, that take less time than one of a smaller size, although the work grows."""
    for place, row in enumerate(line):
        slower = max(
            (
                before
                for before in line[:place]
                if before["size_rank"] < row["size_rank"]
                and row["high_ns"] * FALLS < before["low_ns"]
                and (row["min_bytes"] > before["min_bytes"] or row["flops"] > before["flops"])
            ),
            key=lambda before: float(before["low_ns"]),
            default=None,
        )
        if slower is not None:
            factor = slower["median_ns"] / row["median_ns"]
            text = f"{slower['case']} takes {factor:.2g} times as long, although it is smaller"
            yield _doubt(row, FALLING_TIME, text)


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
