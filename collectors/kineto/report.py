"""Presents a trace of PyTorch's profiler as a report, with the tables and columns of Nsight Systems."""

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.demangle import demangled, short_name
from warpladder.collectors.kineto.collectives import Collectives
from warpladder.collectors.kineto.columns import Codes, Texts, int_column, narrow, numbers, triples
from warpladder.collectors.kineto.copies import Sizes, codes_of_copy
from warpladder.collectors.kineto.events import (
    CallArguments,
    CopyArguments,
    DeviceArguments,
    Event,
    KernelArguments,
    MemoryArguments,
    TraceFile,
    arguments_of,
    times_ns,
)
from warpladder.collectors.kineto.kinds import LINKS, MEMORY, Kinds
from warpladder.collectors.kineto.operations import Operations
from warpladder.collectors.kineto.owners import Launches, Places, Untold, Work, in_order, label_of, owners, owners_of_waits
from warpladder.collectors.kineto.synchronizations import columns
from warpladder.collectors.kineto.threads import Threads
from warpladder.collectors.trace import device_tables as tables
from warpladder.collectors.trace import memory, synchronizations
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import WORK, Part
from warpladder.collectors.trace.report import BATCH_ROWS, Report, ReportError
from warpladder.data.advice import XLA_PROFILER
from warpladder.data.arrays import NONE, Int64s, integers, numbered
from warpladder.data.columns import FAR
from warpladder.data.communication import collective_of, is_communication
from warpladder.data.names import PYTORCH, Source
from warpladder.data.words import counted

#: Kinds of mended places that a warning names.
_MOST_MENDED: Final = 4
_TIMES: Final = frozenset(("start", "end"))
_NVTX: Final = "NVTX_EVENTS"
_TEXTS: Final = "StringIds"
_MEMORY_EVENT: Final = "[memory]"
_TEXT_COLUMNS: Final = frozenset(("value",))
_PUSH_POP: Final = 59
#: In the tables of Nsight Systems, the codes of the memory that is set.
_DEVICE_MEMORY: Final = 2
#: In global ids, a thread has this many bits.
_ID_BITS: Final = 24
#: The code of a process that no process has.
_NO_PROCESS: Final = (1 << _ID_BITS) - 1
#: Columns of `Work` and `Launches`.
_OF_WORK: Final = ("lane", "deviceId", "correlationId", "start", "place")
_OF_CALLS: Final = ("globalTid", "correlationId", "start")


class KinetoReport(Report):
    """The tables of a trace. Raises ReportError: the file cannot be read, or is no trace.

    Args:
        path: `.json` or `.json.gz`, as `export_chrome_trace` writes it.
        notes: receives counts of events that are left out.

    Attributes:
        trace: the file, with what it has beside its events.
        threads: processes and threads.
        sizes: of copies, as their calls have them.
        operations: PyTorch's operators.
        collectives: communication kernels with their arguments.
        events: number of events in the file.
    """

    def __init__(self, path: Path, notes: Notes) -> None:
        self.trace = TraceFile(path)
        self.threads, self.sizes, self.operations, self.collectives = Threads(), Sizes(), Operations(), Collectives()
        self._kinds = Kinds()
        self._notes = notes
        self._texts = Texts()
        self._tables: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._processes = Counter[int]()
        self._places: dict[int, tuple[int, int]] = {}
        self._owners: dict[str, list[Int64s]] = {}
        add = {
            "kernels": self._add_kernels,
            "copies": self._add_copies,
            "sets": self._add_sets,
            "calls": self._add_calls,
            "ranges": self._add_ranges,
            "operations": self._add_operations,
            "functions": self._add_functions,
            "synchronizations": self._add_synchronizations,
        }
        for events in self.trace.pieces():
            for kind, chosen in self._kinds.of(events).items():
                if kind == LINKS:
                    self._add_links(chosen.events)
                elif kind == MEMORY:
                    self._add_memory(chosen.events)
                elif (timed := self._timed(kind, *chosen))[0]:
                    add[kind](*timed)
        self.events = self._kinds.events
        if problem := self._kinds.problem():
            raise ReportError(f"{path.name}: {problem}")
        self._find_owners(path.name)
        self._tell_damage()
        full = list(self._texts.of)
        self._add(_TEXTS, {"id": np.arange(len(full)), "value": pa.array(full, pa.string())})
        super().__init__(path.name, {table: frozenset(parts[0].schema.names) for table, parts in self._tables.items()})

    def _find_owners(self, name: str) -> None:
        """Find which process launched each piece of device work, where it may be one of several."""
        parts = [(table, part) for table in WORK for part in self._tables.get(table, ())]
        if not parts or (len(self._processes) < 2 and not self.threads.texts()):
            return
        work = _work([part for _, part in parts])
        calls = self._tables.get(tables.API, [])
        thread, correlation, start = (
            np.concatenate([np.empty(0, np.int64), *(integers(part[column]) for part in calls)]) for column in _OF_CALLS
        )
        places = np.array([(code, *ends) for code, ends in self._places.items()], np.int64).reshape(-1, 3).T
        launches = Launches(thread >> _ID_BITS, correlation, start)
        try:
            owner = owners(work, launches, Places(*places), self.threads.processes)
        except Untold:
            raise ReportError(
                f"{name}: holds the traces of several processes, and which of them launched what cannot be told, since they have the same "
                "correlation numbers; import the trace of each process with --job"
            ) from None
        found = np.unique(owner[owner != NONE])
        if len(found) < 2:
            self._processes = Counter(found.tolist()) or self._processes
            return
        lost = int((owner == NONE).sum())
        text = "{} kernels, copies and sets are of no process that can be told, and are left out"
        self._notes.count("warning", Source.LAUNCHES, text, lost)
        ends = np.cumsum([part.num_rows for _, part in parts])[:-1]
        for (table, _), rows in zip(parts, np.split(np.where(owner == NONE, _NO_PROCESS, owner), ends), strict=True):
            self._owners.setdefault(table, []).append(rows)
        for part in self._tables.get(synchronizations.SYNCHRONIZATION, ()):
            of_waits = owners_of_waits(_work([part]), work, owner, launches)
            rows = np.where(of_waits == NONE, _NO_PROCESS, of_waits)
            self._owners.setdefault(synchronizations.SYNCHRONIZATION, []).append(rows)

    def ranks(self) -> list[Part]:
        """The processes that launched device work, if they are several, in the order of their ids."""
        devices: dict[int, set[int]] = defaultdict(set)
        for table in set(WORK) & self._owners.keys():
            for part, rows in zip(self._tables[table], self._owners[table], strict=True):
                for code, device in np.unique(np.stack((rows, integers(part["deviceId"]))), axis=1).T.tolist():
                    devices[code].add(device)
        devices.pop(_NO_PROCESS, None)
        names = self.threads.processes
        helpers: dict[str, list[int]] = defaultdict(list)
        for code in self._places:
            if code not in devices and (label := label_of(names[code])):
                helpers[label].append(code)
        return [
            Part(code, tuple(sorted(devices[code])), helpers=tuple(helpers[label_of(names[code])]), name=str(names[code]))
            for code in sorted(devices, key=lambda code: in_order(names[code]))
        ]

    def only(self, part: Part) -> None:
        """Leave out the operators and collectives of other processes than those of a part of this report."""
        self.operations.only((part.process, *part.helpers))
        pieces = zip(self._tables.get(tables.KERNEL, ()), self._owners.get(tables.KERNEL, ()), strict=True)
        places = [integers(piece["place"])[owner == part.process] for piece, owner in pieces]
        self.collectives.only(np.concatenate([np.empty(0, np.int64), *places]))

    def _tell_damage(self) -> None:
        """Note what was mended in the file."""
        if self.trace.mended:
            places = ((what, counted(count, "place")) for what, count in self.trace.mended.most_common(_MOST_MENDED))
            listed = ", ".join(f"{what} ({count})" for what, count in places)
            self._notes.add("warning", Source.REPORT, f"the file is not valid JSON, and is read all the same. It has {listed}")
        if self.trace.lacks_end:
            self._notes.add(
                "warning",
                Source.REPORT,
                "the file ends without the end of its list of events; it is read up to there, and may have had more",
            )
        for category, count in self._kinds.left_out.items():
            self._notes.add("warning", Source.COLUMNS, f"{count:,} events `{category}` are left out, whose work is not known")
        if self._kinds.functions:
            what = f"{self._kinds.functions:,} functions of Python, whose names begin with `$`, are left out"
            self._notes.add("info", Source.COLUMNS, what)
        if texts := self.threads.texts():
            what = f"{len(texts):,} ids of processes and threads are texts, such as `{texts[0][:40]}`; each has a number"
            self._notes.add("info", Source.COLUMNS, what)

    def _arguments(self, events: list[Event], kind: Any) -> Any:
        return self._kinds.lanes.arguments_of(events, kind) if self.is_xla else arguments_of(events, kind)

    def _add_links(self, events: list[Event]) -> None:
        for phase in "sf":
            of_phase = [event for event in events if event.ph == phase]
            if of_phase:
                self.operations.add_links(phase, of_phase, self.threads.global_ids(of_phase))

    def _timed(self, kind: str, events: list[Event], place: Int64s) -> tuple[list[Event], Int64s, Int64s, Int64s]:
        """The events that have times, with start and end in ns, and their places in the file."""
        start, begun = times_ns([event.ts for event in events])
        duration, lasts = times_ns([event.dur for event in events])
        fine = begun & lasts & (duration >= 0)
        if not fine.all():
            lost = int(len(fine) - fine.sum())
            self._notes.count("warning", Source.TIMES, f"{{}} {kind} without a start or a duration are left out", lost)
            events = [event for event, timed in zip(events, fine.tolist(), strict=True) if timed]
            start, duration, place = start[fine], duration[fine], place[fine]
        return events, start, start + duration, place

    def _add(self, table: str, columns: dict[str, Any]) -> None:
        arrays = {name: narrow(pa.array(column)) if name not in _TEXT_COLUMNS else column for name, column in columns.items()}
        self._tables[table].append(pa.RecordBatch.from_pydict(arrays))

    def _add_kernels(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        arguments = self._arguments(events, KernelArguments)
        name = self._named(self._texts.codes([event.name for event in events]), demangled)
        collective = self._collectives(name, self._texts.codes([each.collective for each in arguments]))
        sizes = (triples([getattr(each, size) for each in arguments]) for size in ("grid", "block"))
        grid, block = sizes
        self._add(
            tables.KERNEL,
            {
                **self._of_device(events, arguments, start, end, place),
                "demangledName": name,
                "shortName": self._named(name, short_name),
                **{
                    f"{what}{axis}": column
                    for what, three in (("grid", grid), ("block", block))
                    for axis, column in zip("XYZ", three, strict=True)
                },
                "registersPerThread": int_column([each.registers for each in arguments]),
                # The profiler does not tell static from dynamic shared memory.
                "dynamicSharedMemory": int_column([each.shared_memory for each in arguments]),
                "graphId": int_column([each.graph for each in arguments]),
                "collectiveId": collective,
            },
        )
        chosen = np.flatnonzero(collective)
        correlation = numbers([arguments[place].correlation for place in chosen.tolist()])
        texts = list(self._texts.of)
        names, kinds = ([texts[code] for code in codes[chosen].tolist()] for codes in (name, collective))
        self.collectives.gather(
            [events[place] for place in chosen.tolist()], names, kinds, correlation, place[chosen], start[chosen], end[chosen]
        )

    def _collectives(self, name: Codes, named: Codes) -> Codes:
        """Codes of the collectives that kernels are part of, by their names or by the trace's names for the collectives; 0 for none."""
        number, first = numbered(name, named)
        texts = list(self._texts.of)
        found = [(texts[kernel], texts[kind]) for kernel, kind in zip(name[first].tolist(), named[first].tolist(), strict=True)]
        kinds = [collective_of(*each) if each[1] or is_communication(each[0]) else "" for each in found]
        return self._texts.codes(kinds)[number]

    def _named(self, name: Codes, rename: Callable[[str], str]) -> Codes:
        """Codes of other names of kernels, such as the short ones."""
        distinct, inverse = np.unique(name, return_inverse=True)
        texts = list(self._texts.of)
        return self._texts.codes([rename(texts[code]) for code in distinct.tolist()])[inverse]

    def _add_copies(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        arguments = self._arguments(events, CopyArguments)
        texts = list(zip([str(event.name) for event in events], [str(each.kind or "") for each in arguments], strict=True))
        codes = {text: codes_of_copy(*text) for text in set(texts)}
        kind, source, target = zip(*(codes[text] for text in texts), strict=True)
        self._add(
            tables.COPY,
            {
                **self._of_device(events, arguments, start, end, place),
                "bytes": int_column([each.bytes for each in arguments]),
                "copyKind": pa.array(kind, pa.int64()),
                "srcKind": pa.array(source, pa.int64()),
                "dstKind": pa.array(target, pa.int64()),
            },
        )

    def _add_sets(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        arguments = self._arguments(events, CopyArguments)
        device = pa.array(np.full(len(events), _DEVICE_MEMORY))
        self._add(
            tables.SET,
            {
                **self._of_device(events, arguments, start, end, place),
                "bytes": int_column([each.bytes for each in arguments]),
                "memKind": device,
            },
        )

    def _of_device(
        self, events: list[Event], arguments: Sequence[DeviceArguments], start: Int64s, end: Int64s, place: Int64s
    ) -> dict[str, Any]:
        """Columns that kernels, copies and sets share. `lane` is the process of the event, `place` its place in the file."""
        return {
            "start": start,
            "end": end,
            "deviceId": int_column([each.device for each in arguments]),
            "contextId": int_column([each.context for each in arguments]),
            "streamId": int_column([each.stream for each in arguments]),
            "correlationId": int_column([each.correlation for each in arguments]),
            "globalPid": np.zeros(len(start), np.int64),
            "lane": self.threads.process_codes(events),
            "place": place,
        }

    def _host(self, events: list[Event], place: Int64s) -> Int64s:
        """Global ids of the threads of events of the host."""
        thread = self.threads.global_ids(events)
        process = thread >> _ID_BITS
        for code in np.unique(process).tolist():
            own = place[process == code]
            first, last = self._places.get(code, (int(own.min()), int(own.max())))
            self._places[code] = min(first, int(own.min())), max(last, int(own.max()))
        return thread

    def _add_calls(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        thread = self._host(events, place)
        self._processes.update(Counter((thread >> _ID_BITS).tolist()))
        arguments = self._arguments(events, CallArguments)
        correlation = int_column([each.correlation for each in arguments])
        name = self._texts.codes([event.name for event in events])
        self._add(tables.API, {"start": start, "end": end, "globalTid": thread, "correlationId": correlation, "nameId": name})
        self.sizes.gather(thread >> _ID_BITS, correlation, int_column([each.size for each in arguments]))

    def _add_ranges(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        self.collectives.add_ranges(events, start)
        text = self._texts.codes([event.name for event in events])
        kind, domain = np.full(len(events), _PUSH_POP), np.zeros(len(events), np.int64)
        thread = self._host(events, place)
        self._add(
            _NVTX, {"start": start, "end": end, "eventType": kind, "globalTid": thread, "textId": text, "domainId": domain}
        )

    def _add_operations(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        self.operations.gather(events, self._host(events, place), start, end)
        self.collectives.add_calls(events, start)

    def _add_functions(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        self.operations.add_functions(events, self._host(events, place), start, end)

    @property
    def collector(self) -> str:
        return XLA_PROFILER if self.is_xla else PYTORCH

    @property
    def is_xla(self) -> bool:
        """Whether the trace is one of JAX or TensorFlow."""
        return self._kinds.is_xla

    def _add_synchronizations(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        lane = self.threads.process_codes(events)
        self._add(synchronizations.SYNCHRONIZATION, {**columns(events, start, end), "lane": lane, "place": place})

    def _add_memory(self, events: list[Event]) -> None:
        """The events of the allocators of devices; those of the host have the device type 0."""
        arguments = self._arguments(events, MemoryArguments)
        start, begun = times_ns([event.ts for event in events])
        of_device = numbers([each.kind for each in arguments]) > 0
        named = np.array([event.name == _MEMORY_EVENT for event in events])
        rows = np.flatnonzero(begun & of_device & named)
        if not len(rows):
            return
        chosen = [arguments[row] for row in rows.tolist()]
        self._owners.setdefault(memory.ALLOCATOR, []).append(self.threads.process_codes(events)[rows])
        self._add(
            memory.ALLOCATOR,
            {
                "start": start[rows],
                "globalPid": start[rows] * 0,
                "deviceId": int_column([each.device for each in chosen]),
                memory.IN_USE: int_column([each.allocated for each in chosen]),
                memory.RESERVED: int_column([each.reserved for each in chosen]),
            },
        )

    @property
    def base_ns(self) -> int:
        """The nanoseconds to add to every time of the trace, which make it a time since 1970 where the trace has such a base."""
        base = self.trace.head.base_ns
        return base if type(base) is int and 0 <= base < FAR else 0

    @property
    def origin_ns(self) -> int:
        return self.base_ns

    @property
    def process(self) -> int:
        """The code of the process whose calls launched the device work, of which a trace names only the device."""
        return self._processes.most_common(1)[0][0] if self._processes else 0

    def process_numbers(self, global_ids: Int64s) -> Int64s:
        return self.threads.process_numbers(global_ids)

    def thread_numbers(self, global_ids: Int64s) -> Int64s:
        return self.threads.thread_numbers(global_ids)

    def _has_rows(self, table: str) -> bool:
        return any(part.num_rows for part in self._tables[table])

    def _read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        names = [*integers, *texts]
        for number, part in enumerate(self._tables[table]):
            owner = self._owners[table][number] if table in self._owners else np.full(part.num_rows, self.process)
            columns = {name: part.column(name) for name in names}
            for name in _TIMES & columns.keys():
                columns[name] = pc.add(columns[name], self.base_ns)
            if "globalPid" in columns:
                columns["globalPid"] = pa.array(owner << _ID_BITS)
            if "bytes" in columns:
                columns["bytes"] = self.sizes.filled(columns["bytes"], owner, part.column("correlationId"))
            for begin in range(0, part.num_rows, BATCH_ROWS):
                yield pa.RecordBatch.from_pydict(columns).slice(begin, BATCH_ROWS)


def _work(parts: Sequence[pa.RecordBatch]) -> Work:
    return Work(*(np.concatenate([integers(part[column]) for part in parts]) for column in _OF_WORK))
