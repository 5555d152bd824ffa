"""Reads the NVTX ranges of a report in the order of `nesting`, with domains, parents and depths."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.trace import attribution
from warpladder.collectors.trace.attribution import LaunchedWork
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.report import Report, Strings, as_dictionary, or_else, process_of
from warpladder.data import nesting, schema
from warpladder.data.advice import advice_of
from warpladder.data.arrays import Bools, Int64s, integers, numbered
from warpladder.data.names import Source

#: NvtxEventType of ranges -> our styles.
_STYLES: Final = dict(zip((59, 60), schema.RANGE_STYLES, strict=True))
_DOMAIN_CREATED: Final = 75
_FAR: Final = 1 << 62

_FIELDS: Final = ("thread", "start", "end", "text", "domain", "style")
_INTEGERS: Final = ("start", "end", "eventType", "globalTid", "textId", "domainId")


@dataclass(frozen=True)
class Ranges:
    """Columns of all ranges; the index of a range is its `range_id`.

    `thread` is Nsight's global thread id. The `end` of a range that was never closed is far in the future. `text` and `domain`
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


def read_ranges(report: Report, strings: Strings, notes: Notes) -> Ranges:
    """Read all push/pop and start/end ranges. Notes if there is none, or if some were never closed."""
    columns: dict[str, list[Int64s]] = {name: [np.empty(0, np.int64)] for name in _FIELDS}
    closed = [np.empty(0, bool)]
    texts: dict[str, int] = {}
    domains: dict[tuple[int, int], str] = {}
    for batch in report.batches("NVTX_EVENTS", _INTEGERS, ["text"]):
        kind = integers(batch["eventType"], -1)
        message = or_else(batch.column("text"), strings.of(batch.column("textId")))
        for index in np.flatnonzero(kind == _DOMAIN_CREATED).tolist():
            process = int(process_of(np.array(batch.column("globalTid")[index].as_py() or 0)))
            domains[process, batch.column("domainId")[index].as_py() or 0] = message[index].as_py()
        is_range = np.isin(kind, list(_STYLES))
        usable = is_range & batch.column("start").is_valid().to_numpy(zero_copy_only=False)
        start, end = (integers(batch[name]) for name in ("start", "end"))
        ended = batch.column("end").is_valid().to_numpy(zero_copy_only=False)
        backwards = usable & ended & (end < start)
        usable &= ~backwards
        notes.count("warning", Source.NVTX, "{} NVTX ranges without a start, or that end before they start, are left out",
                    int(is_range.sum() - usable.sum()))  # fmt: skip
        encoded = as_dictionary(message.filter(pa.array(usable)))
        codes = np.array([texts.setdefault(text, len(texts)) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
        columns["text"].append(codes[encoded.indices.to_numpy()] if len(codes) else np.empty(0, np.int64))
        columns["thread"].append(batch.column("globalTid").fill_null(0).to_numpy()[usable])
        columns["style"].append(np.searchsorted(list(_STYLES), kind[usable]))
        columns["domain"].append(batch.column("domainId").fill_null(0).to_numpy()[usable])
        columns["start"].append(np.clip(start[usable], -_FAR, _FAR - 1))
        columns["end"].append(np.where(ended, np.minimum(end, _FAR - 1), _FAR)[usable])
        closed.append(ended[usable])
    thread, start, end, text, domain, style = (np.concatenate(columns[name]) for name in _FIELDS)
    sorting = nesting.order(thread, start, end)
    thread, start, end = thread[sorting], start[sorting], end[sorting]
    ended = np.concatenate(closed)[sorting]
    _tell(report, notes, len(start), int((~ended).sum()))
    number, names = _domains(process_of(thread), domain[sorting], domains)
    parent = nesting.parents(thread, end)
    return Ranges(
        thread, start, end, ended, text[sorting], list(texts), number, names, parent, nesting.depths(parent), style[sorting]
    )  # fmt: skip


def _domains(process: Int64s, domain: Int64s, names: dict[tuple[int, int], str]) -> tuple[Int64s, list[str]]:
    """Return the number of each range's domain, and the names by number. Domain 0 is the default one, without a name."""
    code, first = numbered(process, domain)
    pairs = zip(process[first].tolist(), domain[first].tolist(), strict=True)
    return code, [names.get((owner, number), "" if number == 0 else f"domain {number}") for owner, number in pairs]


def _tell(report: Report, notes: Notes, ranges: int, unclosed: int) -> None:
    if not ranges:
        advice = advice_of(report.collector)
        lacks = f"the report has no {advice.ranges_are}, so nothing is attributed to any; {advice.ranges}"
        notes.add("info", Source.NVTX, lacks)
    if ranges and not report.has("NVTX_EVENTS", "globalTid"):
        notes.add("warning", Source.NVTX, "NVTX ranges lack the column globalTid, so no launch is attributed to them")
    notes.count(
        "warning", Source.NVTX, "{} NVTX ranges were never closed; they are taken as open until the trace's end", unclosed
    )


def range_rows(
    report: Report, ranges: Ranges, own: LaunchedWork, by_time: LaunchedWork, cells: dict[str, pa.Array], at_once: int
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
        "process": report.process_numbers(ranges.thread),
        "thread": report.thread_numbers(ranges.thread),
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
    table = schema.TABLES["ranges"].completed(columns, len(ranges))
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
