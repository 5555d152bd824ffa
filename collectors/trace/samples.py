"""The samples of a recording, with the device times of its trace."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.nvtx_ranges import EXECUTIONS_TEXT, SAMPLE_TEXT, TWIN
from warpladder.collectors.trace.model import Trace, as_dictionary
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.tables import write_tables
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.statistics import AGREE_ABOVE_NS, AGREE_WITHIN
from warpladder.data.store import RunWriter

_CELL: Final = ["workload", "variant", "config", "case"]
#: Columns that identify a device sample.
KEY: Final = [*_CELL, "cache", "twin", "round"]


def add_trace(
    writer: RunWriter, trace: Trace, samples: pd.DataFrame, notes: Notes
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Write the trace tables of a recording. Returns table `samples` with the trace's device times, and rows of
    `diagnostics`. `samples`: table `samples`, timed by CUDA events."""
    written = write_tables(trace, writer, None, "", notes)
    retimed_samples, rows = retimed(samples, traced_samples(written.pieces))
    slower = diagnostic_row(
        "info",
        Source.TRACING,
        "operation and end_to_end are the host's clock while a tracer was at work, which lengthens every launch",
    )
    none = diagnostic_row(
        "warning",
        Source.TRACING,
        "no cell was measured, so that the trace has no samples to time; the statuses in table results say why",
    )
    return retimed_samples, [*([none] if samples.empty else []), slower, *rows]


def traced_samples(ranges: Sequence[pa.Table]) -> pd.DataFrame:
    """Compute the device time of each of this project's samples. Returns columns `KEY` and duration_ns (int64); for a
    repeated sample, the last one.

    Work attributed by time counts too, such as the work of PyTorch's backward pass, which is launched on its own thread.

    A cold sample is the time from the start of an execution's first device work to the end of its last. A hot sample is the
    time in which work of the batch was running, because tracing widens the gaps between nodes of a graph. Both are divided by
    the number of executions.

    Args:
        ranges: rows of table `ranges`, in pieces.
    """
    table = pa.concat_tables(ranges)
    inner = table.filter(_matching(table["text"], f"^{EXECUTIONS_TEXT.pattern}$"))
    of_device = ["gpu_start_ns", "gpu_end_ns", "gpu_busy_ns"]
    timed = inner.select(["parent_id", "text", "start_ns", "round", *_CELL]).to_pandas()
    for column in of_device:
        timed[column] = pc.coalesce(inner[f"time_{column}"], inner[column]).to_pandas()
    timed = timed.dropna(subset=["round", "gpu_busy_ns", "variant"])
    around = table.filter(pc.is_in(table["range_id"], inner["parent_id"].unique()))
    texts = dict(zip(around["range_id"].to_pylist(), around["text"].to_pylist(), strict=True))
    sample = [SAMPLE_TEXT.fullmatch(texts.get(parent) or "") for parent in timed["parent_id"]]
    timed = timed.assign(
        cache=pd.Series([match["cache"] if match else None for match in sample], index=timed.index, dtype="str"),
        twin=[int(match is not None and match["mark"] == TWIN) for match in sample],
        executions=[int(EXECUTIONS_TEXT.fullmatch(text)["executions"]) for text in timed["text"]],  # type: ignore[index]
    ).dropna(subset=["cache"])
    span = timed["gpu_end_ns"] - timed["gpu_start_ns"]
    timed["device_ns"] = np.where(timed["cache"] == "cold", span, timed["gpu_busy_ns"])
    sums = timed.groupby([*KEY, "parent_id"], as_index=False)[["device_ns", "executions"]].sum()
    last = sums.sort_values("parent_id").drop_duplicates(KEY, keep="last")
    duration_ns = (last["device_ns"] / last["executions"]).round().clip(lower=1).astype(np.int64)
    found_samples: pd.DataFrame = last[KEY].assign(duration_ns=duration_ns).astype({"round": np.int32, "twin": np.int8})
    return found_samples


def _matching(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Return which rows match. Each text of a dictionary is matched once."""
    chunks = [as_dictionary(chunk) for chunk in texts.chunks]
    return pa.chunked_array(
        [pc.match_substring_regex(chunk.dictionary, pattern).take(chunk.indices) for chunk in chunks], pa.bool_()
    )


def retimed(samples: pd.DataFrame, traced: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Replace the device times of samples with the times of the trace. Returns table `samples` without device samples
    that the trace lacks, and rows of `diagnostics`.

    Args:
        samples: table `samples` of the recording, with device times by CUDA events.
        traced: result of `traced_samples`.
    """
    on_device = (samples["scope"] == "device").to_numpy()
    joined = samples[on_device].merge(traced, on=KEY, how="left", suffixes=("", "_traced"))
    lost = joined["duration_ns_traced"].isna()
    matched = joined[~lost]
    rows = list(_lost_rows(joined[lost])) + _agreement_rows(matched)
    matched = matched.assign(duration_ns=matched["duration_ns_traced"].astype(np.int64)).drop(columns="duration_ns_traced")
    return pd.concat([matched, samples[~on_device]], ignore_index=True), rows


def _lost_rows(lost: pd.DataFrame) -> list[dict[str, Any]]:
    counts = lost.groupby(_CELL, as_index=False).size()
    return [
        diagnostic_row(
            "warning", Source.LOST, f"{row['size']} device samples have no device work in the trace and are left out", row
        )
        for row in counts.to_dict("records")
    ]


def _agreement_rows(timed: pd.DataFrame) -> list[dict[str, Any]]:
    """Make one diagnostic for the run: the difference between CUDA events and the trace for the same executions."""
    cold = timed[timed["cache"] == "cold"]
    if cold.empty:
        return []
    cells = cold.groupby(_CELL)[["duration_ns", "duration_ns_traced"]].median()
    ratio = cells["duration_ns"] / cells["duration_ns_traced"] - 1
    long = cells["duration_ns_traced"] >= AGREE_ABOVE_NS
    parts = []
    if long.any():
        within = int((ratio[long].abs() <= AGREE_WITHIN).sum())
        parts.append(
            f"of {int(long.sum())} cells of {AGREE_ABOVE_NS / 1000:g} us and more, {within} agree within {AGREE_WITHIN:.0%} "
            f"(the largest difference is {ratio[long].abs().max():.1%})"
        )
    if (~long).any():
        more_ns = (cells["duration_ns"] - cells["duration_ns_traced"])[~long].median()
        parts.append(f"of {int((~long).sum())} shorter ones, events read {more_ns:,.0f} ns more in the median")
    text = f"CUDA events around the same cold executions, against the trace, medians: {'; '.join(parts)}"
    return [diagnostic_row("info", Source.AGREEMENT, text)]
