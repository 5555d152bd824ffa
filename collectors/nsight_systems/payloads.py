"""Reads what NCCL adds to its NVTX ranges: communicator, message size, and rank. A SQLite export has it with `--include-blobs=true`.

`NVTX_EVENTS.binaryData` is a blob: four integers of 8 bytes each, little-endian, and then the payload.

| bytes | integer | in a report of DDP on one GPU (Nsight Systems 2025.3) |
|---|---|---|
| 0 to 7 | domain | 1, as `domainId` of the row |
| 8 to 15 | schema | 0x1000005 of `ncclAllReduce`, and five others: all that the tables have of the domain |
| 16 to 23 | size of the payload | 24, 16 and 8, the `payloadSize` of the schema |
| 24 to 31 | offset of the payload | 32, also where the whole has 56, 48 or 40 bytes |

Nsight Systems does not document these four. The table is of all 73 payloads of this report, in each of whose steps the messages of
`ncclAllReduce` sum up to the bytes of the model's gradients. A payload counts only if all four are as in the table.

The tables `NVTX_PAYLOAD_SCHEMAS` and `NVTX_PAYLOAD_SCHEMA_ENTRIES` give the fields of a schema, with the types and offsets of
`nvToolsExtPayload.h` of NVTX; the offset of the first field is null. NCCL names its fields in `nvtx_payload_schemas.h`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.trace.model import process_of
from warpladder.collectors.trace.notes import Notes
from warpladder.data.arrays import Int64s, integers
from warpladder.data.names import Source

UNKNOWN: Final = -1
#: NCCL's names of fields -> ours.
_FIELDS: Final = {
    "NCCL communicator ID": "communicator",
    "Message size [bytes]": "bytes",
    "No. of ranks": "ranks",
    "Rank": "rank",
    "CUDA device": "device",
}
#: Types of NVTX: `int`, `uint64_t` and `size_t`. Larger unsigned numbers become negative, and keep their bits.
_TYPES: Final[dict[int, np.dtype[Any]]] = {5: np.dtype("<i4"), 18: np.dtype("<i8"), 22: np.dtype("<i8")}
_HEAD_BYTES: Final = 32
_NAMES: Final = ("thread", "start", *_FIELDS.values())


@dataclass(frozen=True)
class Payloads:
    """Payloads of NCCL's ranges. `UNKNOWN` where a payload lacks the field.

    Attributes:
        thread: Nsight's global id of the thread.
        start: of the range, ns.
        communicator: number that all ranks of the communicator share.
        bytes: of one message.
        ranks: of the communicator.
        rank: in the communicator.
        device: CUDA ordinal.
    """

    thread: Int64s
    start: Int64s
    communicator: Int64s
    bytes: Int64s
    ranks: Int64s
    rank: Int64s
    device: Int64s

    def __len__(self) -> int:
        return len(self.start)


class _Layout(NamedTuple):
    """Size of a payload, and the offset and type of our fields in it."""

    size: int | None
    fields: dict[str, tuple[int, np.dtype[Any]]]


def read_payloads(report: Report, notes: Notes, processes: Sequence[int] | None = None) -> Payloads:
    """The payloads of NCCL's ranges, of some processes or of all; none where the report has none. Raises ReportError: the file is damaged."""
    layouts = _layouts(report)
    parts: list[dict[str, Int64s]] = [{name: np.empty(0, np.int64) for name in _NAMES}]
    if layouts and report.has("NVTX_EVENTS", "binaryData"):
        for batch in report.batches("NVTX_EVENTS", ["start", "globalTid", "domainId"], ["binaryData"]):
            if processes is not None:
                batch = batch.filter(pa.array(np.isin(process_of(integers(batch["globalTid"])), processes)))
            parts += _decoded(batch, layouts, notes)
    found = Payloads(**{name: np.concatenate([part[name] for part in parts]) for name in _NAMES})
    if layouts and not len(found):
        notes.add(
            "info",
            Source.COLLECTIVES,
            "the ranges of NCCL lack their payloads, so that the sizes and communicators of collectives are not known; export the report with "
            "nsys export --type sqlite --include-blobs=true",
        )
    return found


def _layouts(report: Report) -> dict[tuple[int, int], _Layout]:
    """By domain and schema, the layouts with a communicator. A schema that is described in two ways has none."""
    sizes: dict[tuple[int, int], set[int | None]] = {}
    for row in report.rows("NVTX_PAYLOAD_SCHEMAS", ["domainId", "schemaId", "payloadSize"]):
        sizes.setdefault((row["domainId"], row["schemaId"]), set()).add(row["payloadSize"])
    described: dict[tuple[int, int], dict[str, set[tuple[Any, Any]]]] = {}
    for row in report.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", ["domainId", "schemaId", "idx", "type", "offset"], ["name"]):
        name = _FIELDS.get(row["name"])
        offset = 0 if row["idx"] == 0 and row["offset"] is None else row["offset"]
        if name:
            described.setdefault((row["domainId"], row["schemaId"]), {}).setdefault(name, set()).add((offset, row["type"]))
    found = {}
    for key, fields in described.items():
        size = sizes.get(key, set())
        if len(size) == 1 and "communicator" in fields and all(len(ways) == 1 for ways in fields.values()):
            placed = {name: next(iter(ways)) for name, ways in fields.items()}
            known = {
                name: (offset, _TYPES[kind]) for name, (offset, kind) in placed.items() if offset is not None and kind in _TYPES
            }
            found[key] = _Layout(next(iter(size)), known)
    return found


def _decoded(batch: pa.RecordBatch, layouts: dict[tuple[int, int], _Layout], notes: Notes) -> Iterator[dict[str, Int64s]]:
    """Yield the payloads of rows, those of the same schema and length at once."""
    texts = batch.column("binaryData")
    length = pc.binary_length(texts).to_numpy(zero_copy_only=False) // 2
    columns = {name: batch.column(name).fill_null(0).to_numpy() for name in ("globalTid", "start", "domainId")}
    unreadable = 0
    for size in np.unique(length[length > 0]).tolist():
        at = np.flatnonzero(length == size)
        raw = bytes.fromhex("".join(texts.take(pa.array(at)).to_pylist()))
        blobs = np.frombuffer(raw, np.uint8).reshape(len(at), size)
        if size < _HEAD_BYTES:
            unreadable += len(at)
            continue
        head = blobs[:, :_HEAD_BYTES].copy().view("<i8")
        sound = (head[:, 0] == columns["domainId"][at]) & (head[:, 2] == size - _HEAD_BYTES)
        sound &= head[:, 3] == _HEAD_BYTES
        unreadable += int((~sound).sum())
        for domain, schema in np.unique(head[sound, :2], axis=0).tolist():
            layout = layouts.get((domain, schema))
            if layout is None:  # of another library, or without a communicator
                continue
            chosen = sound & (head[:, 0] == domain) & (head[:, 1] == schema)
            if layout.size not in (None, size - _HEAD_BYTES):
                unreadable += int(chosen.sum())
                continue
            times = {"thread": columns["globalTid"][at][chosen], "start": columns["start"][at][chosen]}
            yield {**times, **_fields(blobs[chosen, _HEAD_BYTES:], layout)}
    notes.count(
        "warning", Source.COLLECTIVES, "{} payloads of NVTX ranges are in no known layout, and are left out", unreadable
    )


def _fields(payload: npt.NDArray[np.uint8], layout: _Layout) -> dict[str, Int64s]:
    values = {name: np.full(len(payload), UNKNOWN) for name in _FIELDS.values()}
    for name, (offset, kind) in layout.fields.items():
        if 0 <= offset <= payload.shape[1] - kind.itemsize:
            values[name] = payload[:, offset : offset + kind.itemsize].copy().view(kind)[:, 0].astype(np.int64)
    return values
