"""A report of Nsight Systems as a trace. Here its tables, columns and numbers get the names and words of the model."""

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.nsight_systems import memory, waits
from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.trace import cupti_words, model
from warpladder.collectors.trace.model import Trace, as_dictionary, or_else
from warpladder.data import schema
from warpladder.data.advice import NSIGHT_SYSTEMS
from warpladder.data.arrays import Places, integers, numbered

_NVTX: Final = "NVTX_EVENTS"
_OF_WORK: Final = (
    "start_ns=start end_ns=end process=globalPid device=deviceId context=contextId stream=streamId correlation=correlationId"
)
#: Table of the model -> Nsight's table, and our columns with those of Nsight that they are made of.
_SOURCES: Final = {
    model.KERNELS: (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        f"{_OF_WORK} name=shortName full_name=demangledName registers=registersPerThread static_shared_bytes=staticSharedMemory "
        "dynamic_shared_bytes=dynamicSharedMemory graph_id=graphId graph_node_id=graphNodeId "
        "grid_x=gridX grid_y=gridY grid_z=gridZ block_x=blockX block_y=blockY block_z=blockZ",
    ),
    model.GRAPHS: ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", f"{_OF_WORK} graph_id=graphId"),
    model.COPIES: (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        f"{_OF_WORK} kind=copyKind migrates=copyKind bytes=bytes src_memory=srcKind dst_memory=dstKind",
    ),
    model.SETS: ("CUPTI_ACTIVITY_KIND_MEMSET", f"{_OF_WORK} bytes=bytes dst_memory=memKind"),
    model.API_CALLS: (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "start_ns=start end_ns=end thread=globalTid correlation=correlationId name=nameId",
    ),
    model.RANGES: (_NVTX, "start_ns=start end_ns=end thread=globalTid domain=domainId text=textId style=eventType"),
    model.SYNCHRONIZATIONS: (waits.TABLE, waits.COLUMNS),
    model.MEMORY_IN_USE: (memory.TABLE, memory.COLUMNS),
}
_TABLES: Final = {
    table: (source, dict(pair.split("=") for pair in columns.split())) for table, (source, columns) in _SOURCES.items()
}
#: Our column -> its words, by Nsight's numbers.
_WORDS: Final = {
    "kind": cupti_words.COPY_KINDS,
    "src_memory": cupti_words.MEMORY_KINDS,
    "dst_memory": cupti_words.MEMORY_KINDS,
}
#: A call that has a backtrace stands twice; its second row has this class.
_BACKTRACE: Final = 67
#: NvtxEventType of ranges -> our styles.
_STYLES: Final = dict(zip((59, 60), schema.RANGE_STYLES, strict=True))
_DOMAIN_CREATED: Final = 75
#: Bits of a global id of Nsight Systems below those of the machine: 24 of the process, 24 of the thread.
_ID: Final = (1 << 2 * model.ID_BITS) - 1


class NsightTrace(Trace):
    """The trace in a report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        columns = {
            table: frozenset(ours for ours, column in named.items() if ours == "text" or report.has(source, column))
            for table, (source, named) in _TABLES.items()
            if report.has(source)
        }  # a text may also stand in the table itself
        super().__init__(report.name, columns, NSIGHT_SYSTEMS)

    def tool_name(self, table: str, column: str = "") -> str:
        source, named = _TABLES[table]
        return named[column] if column else source

    def _has_rows(self, table: str) -> bool:
        return self.report.has_rows(_TABLES[table][0])

    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        if table == model.RANGES:
            return self._ranges(names)
        if table == model.SYNCHRONIZATIONS:
            return (batch.select(names) for batch in waits.batches(self.report))
        if table == model.MEMORY_IN_USE:
            return (batch.select(names) for batch in memory.batches(self.report))
        return self._renamed(table, names)

    def _renamed(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        source, named = _TABLES[table]
        once = table == model.API_CALLS and not {*names} <= {"start_ns", "end_ns"}
        columns = dict.fromkeys([*(named[name] for name in names), *(["eventClass"] if once else [])])
        with closing(self.report.batches(source, [*columns])) as batches:
            for batch in batches:
                if once:
                    batch = batch.filter(pc.not_equal(batch.column("eventClass").fill_null(0), _BACKTRACE))
                yield pa.record_batch([self._column(name, batch.column(named[name])) for name in names], names=[*names])

    def _column(self, name: str, column: pa.Array) -> pa.Array:
        """A column of the model from that of Nsight Systems."""
        if name in ("name", "full_name"):
            return self._texts.of(column)
        if name in _WORDS:
            place = pc.index_in(column, pa.array(list(_WORDS[name]), pa.int64()))
            return pa.array(list(_WORDS[name].values()), pa.string()).take(place)
        if name == "migrates":
            return pc.is_in(column, pa.array(cupti_words.MIGRATIONS, pa.int64())).cast(pa.int64())
        if name == "style":
            return pa.DictionaryArray.from_arrays(
                pc.index_in(column, pa.array(list(_STYLES), pa.int64())), list(_STYLES.values())
            )
        if name == "process":
            return _process(column)
        return pc.bit_wise_and(column, _ID) if name == "thread" else column

    @cached_property
    def _texts(self) -> "_Texts":
        return _Texts(self.report)

    def _ranges(self, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        named = _TABLES[model.RANGES][1]
        read = named.values() if "text" in names else ["eventType", *(named[name] for name in names)]
        kept, domains = list[pa.RecordBatch](), dict[tuple[int, int], str]()
        for batch in self.report.batches(_NVTX, [*dict.fromkeys(read)], ["text"] if "text" in names else []):
            is_range = pc.is_in(batch["eventType"], pa.array(list(_STYLES)))
            if "domain" in names:
                domains |= self._domains(batch.filter(pc.equal(batch["eventType"], _DOMAIN_CREATED)))
            kept.append(batch.filter(is_range))
        while kept:  # the name of a domain may come behind its ranges
            batch = kept.pop(0)
            columns = {name: self._column(name, batch[named[name]]) for name in names if name not in ("text", "domain")}
            if "text" in names:
                columns["text"] = self._messages(batch)
            if "domain" in names:
                columns["domain"] = _domain(batch, domains)
            yield pa.record_batch([columns[name] for name in names], names=[*names])

    def _messages(self, batch: pa.RecordBatch) -> pa.Array:
        return or_else(batch["text"], self._texts.of(batch["textId"]))

    def _domains(self, created: pa.RecordBatch) -> dict[tuple[int, int], str]:
        """The names of domains by process and number, from the events of their creation."""
        process, number = integers(_process(created["globalTid"])), integers(created["domainId"])
        return dict(zip(zip(process.tolist(), number.tolist(), strict=True), self._messages(created).to_pylist(), strict=True))


def _process(global_id: pa.Array) -> pa.Array:
    return pc.bit_wise_and(pc.shift_right(global_id, model.ID_BITS), (1 << model.ID_BITS) - 1)


def _domain(batch: pa.RecordBatch, names: dict[tuple[int, int], str]) -> pa.Array:
    """The name of each range's domain. Domain 0 is the default one, without a name."""
    process, number = integers(_process(batch["globalTid"])), integers(batch["domainId"])
    code, first = numbered(process, number)
    pairs = zip(process[first].tolist(), number[first].tolist(), strict=True)
    found = [names.get(pair, f"domain {pair[1]}" if pair[1] else "") for pair in pairs]
    return pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int32)), pa.array(found, pa.string()))


class _Texts:
    """The texts of a report by their ids, for columns at once."""

    def __init__(self, report: Report) -> None:
        # Each distinct text is stored once.
        ids, places, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [pa.array([""])]
        count = 1
        for batch in report.batches("StringIds", ["id"], ["value"]):
            texts = as_dictionary(batch.column("value"))
            ids.append(integers(batch["id"], -1))
            places.append(count + integers(texts.indices))
            values.append(texts.dictionary)
            count += len(texts.dictionary)
        self._ids, self._places = Places(np.concatenate(ids)), np.concatenate(places)
        self._values = pa.chunked_array(values, pa.string())

    def of(self, ids: pa.Array) -> pa.Array:
        """The texts of an int64 column of ids as a dictionary; "" if the id is null or unknown."""
        encoded = ids.fill_null(-1).dictionary_encode()
        found = self._ids.of(integers(encoded.dictionary))
        place = np.where(found >= 0, np.append(self._places, 0)[found], 0)
        used, number = np.unique(place, return_inverse=True)
        texts = self._values.take(pa.array(used)).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(number[encoded.indices.to_numpy()].astype(np.int32)), texts)
