"""Reads the ranges of a trace in the order of `nesting`, with domains, parents and depths."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace import attribution
from warpladder.collectors.trace.attribution import LaunchedWork
from warpladder.collectors.trace.model import RANGES, Trace, as_dictionary, process_of
from warpladder.collectors.trace.notes import Notes
from warpladder.data import nesting, schema
from warpladder.data.advice import advice_of
from warpladder.data.arrays import Bools, Int64s, integers
from warpladder.data.names import Source

_FAR: Final = 1 << 62

_FIELDS: Final = ("thread", "start", "end", "text", "domain", "style")


@dataclass(frozen=True)
class Ranges:
    """Columns of all ranges; the index of a range is its `range_id`.

    `thread` is the code of the thread in the trace. The `end` of a range that was never closed is far in the future. `text` and `domain`
    are indices into `texts` and `domains`; `style` is an index into `schema.RANGE_STYLES`.
    """

    thread: Int64s
    start: Int64s
    end: Int64s
    closed: Bools
    text: Int64s
    texts: list[str]
    domain: Int64s
    domains: list[str]
    parent: Int64s
    depth: Int64s
    style: Int64s

    def __len__(self) -> int:
        return len(self.start)


def read_ranges(trace: Trace, notes: Notes) -> Ranges:
    """Read all ranges. Notes if there is none, or if some were never closed."""
    columns: dict[str, list[Int64s]] = {name: [np.empty(0, np.int64)] for name in _FIELDS}
    texts, domains = dict[str, int](), dict[str, int]()
    styles = {style: number for number, style in enumerate(schema.RANGE_STYLES)}
    for batch in trace.batches(RANGES, ("thread", "start_ns", "end_ns", "text", "domain", "style")):
        start, end = (integers(batch[name]) for name in ("start_ns", "end_ns"))
        begun, ended = (batch[name].is_valid().to_numpy(zero_copy_only=False) for name in ("start_ns", "end_ns"))
        usable = begun & ~(ended & (end < start))
        notes.count("warning", Source.NVTX, "{} NVTX ranges without a start, or that end before they start, are left out",
                    len(batch) - int(usable.sum()))  # fmt: skip
        rows = batch if usable.all() else batch.filter(pa.array(usable))
        columns["text"].append(_codes(as_dictionary(rows["text"]), texts))
        columns["domain"].append(_codes(rows["domain"].fill_null(""), domains))
        columns["style"].append(_codes(rows["style"].fill_null(schema.RANGE_STYLES[0]), styles))
        columns["thread"].append(integers(rows["thread"]))
        columns["start"].append(np.clip(start[usable], -_FAR, _FAR - 1))
        columns["end"].append(np.where(ended, np.minimum(end, _FAR - 1), _FAR)[usable])
    thread, start, end, text, domain, style = (np.concatenate(columns[name]) for name in _FIELDS)
    sorting = nesting.order(thread, start, end)
    thread, start, end, text, domain, style = (column[sorting] for column in (thread, start, end, text, domain, style))
    _tell(trace, notes, end)
    parent = nesting.parents(thread, end)
    depth = nesting.depths(parent)
    return Ranges(thread, start, end, end < _FAR, text, list(texts), domain, list(domains), parent, depth, style)


def _codes(column: pa.Array, known: dict[str, int]) -> Int64s:
    """The number of each text, the next free one for a new text."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = np.array([known.setdefault(text, len(known)) for text in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[encoded.indices.to_numpy()])


def _tell(trace: Trace, notes: Notes, end: Int64s) -> None:
    if not len(end):
        advice = advice_of(trace.collector)
        lacks = f"the report has no {advice.ranges_are}, so nothing is attributed to any; {advice.ranges}"
        notes.add("info", Source.NVTX, lacks)
    if len(end) and not trace.has(RANGES, "thread"):
        column = trace.tool_name(RANGES, "thread")
        notes.add("warning", Source.NVTX, f"NVTX ranges lack the column {column}, so no launch is attributed to them")
    unclosed = "{} NVTX ranges were never closed; they are taken as open until the trace's end"
    notes.count("warning", Source.NVTX, unclosed, int((end == _FAR).sum()))


def range_rows(
    trace: Trace, ranges: Ranges, own: LaunchedWork, by_time: LaunchedWork, cells: dict[str, pa.Array], at_once: int
) -> list[pa.Table]:
    """Make the rows of table `ranges`, in pieces.

    Args:
        own: device work launched inside a range, on the range's thread.
        by_time: device work attributed by time; `thread` is the range's thread.
        cells: columns workload, variant, config, case, scope and round; null for a range that measures no cell.
        at_once: rows per piece.
    """
    device_time = attribution.device_time(ranges.thread, ranges.start, ranges.end, own)
    idle = device_time.items == 0
    number = np.arange(len(ranges))
    columns = {
        "range_id": number,
        "parent_id": pa.array(ranges.parent, mask=ranges.parent < 0),
        "depth": pc.cast(pa.array(ranges.depth), pa.int32()),
        "process": trace.process_numbers(process_of(ranges.thread)),
        "thread": trace.thread_numbers(ranges.thread),
        "domain": pa.DictionaryArray.from_arrays(pa.array(ranges.domain), pa.array(ranges.domains, pa.string())),
        "text": pa.DictionaryArray.from_arrays(pa.array(ranges.text), pa.array(ranges.texts, pa.string())),
        "style": pa.DictionaryArray.from_arrays(pa.array(ranges.style), pa.array(schema.RANGE_STYLES, pa.string())),
        "start_ns": ranges.start,
        "end_ns": pa.array(ranges.end, mask=~ranges.closed),
        "gpu_start_ns": pa.array(device_time.start, mask=idle),
        "gpu_end_ns": pa.array(device_time.end, mask=idle),
        "gpu_busy_ns": pa.array(device_time.busy, mask=idle),
        **_with_by_time(ranges, own, by_time),
        **cells,
    }
    table = schema.RANGES.bounded(schema.RANGES.completed(columns, len(ranges)))
    return [table.slice(begin, at_once) for begin in range(0, len(ranges), at_once)]


def _with_by_time(ranges: Ranges, own: LaunchedWork, by_time: LaunchedWork) -> dict[str, pa.Array]:
    """Return columns time_gpu_start_ns, time_gpu_end_ns and time_gpu_busy_ns of table `ranges`."""
    names = ("time_gpu_start_ns", "time_gpu_end_ns", "time_gpu_busy_ns")
    if not len(by_time.start):
        return {}
    of = ranges.thread, ranges.start, ranges.end
    without = attribution.device_time(*of, by_time).items == 0
    times = attribution.device_time(*of, LaunchedWork(*map(np.concatenate, zip(own, by_time, strict=True))))
    return {name: pa.array(column, mask=without) for name, column in zip(names, times[1:], strict=True)}
