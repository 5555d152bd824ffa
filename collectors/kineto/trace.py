"""Presents a file of PyTorch's profiler, JAX or TensorFlow as a trace."""

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.collectors.core.demangle import demangled, short_name
from warpladder.collectors.kineto.collectives import RECORD, Collectives
from warpladder.collectors.kineto.columns import Codes, Texts, int_column, int_columns, numbers, triples
from warpladder.collectors.kineto.copies import Sizes, copy_of
from warpladder.collectors.kineto.events import (
    CallArguments,
    CopyArguments,
    DeviceArguments,
    Event,
    KernelArguments,
    MemoryArguments,
    Piece,
    TraceFile,
    WaitArguments,
    arguments_of,
    times_ns,
)
from warpladder.collectors.kineto.kinds import LINKS, MEMORY, Kinds
from warpladder.collectors.kineto.operations import Operations
from warpladder.collectors.kineto.owners import Launches, Places, Untold, Work, in_order, label_of, owners, owners_of_waits
from warpladder.collectors.kineto.spool import Spool
from warpladder.collectors.kineto.threads import Threads
from warpladder.collectors.trace import model
from warpladder.collectors.trace.attribution import distinct
from warpladder.collectors.trace.model import ID_BITS, WORK, ReportError, Trace
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import Part
from warpladder.data.advice import XLA_PROFILER
from warpladder.data.arrays import NONE, Int64s, numbered
from warpladder.data.columns import FAR
from warpladder.data.communication import collective_of, is_communication
from warpladder.data.names import PYTORCH, Source
from warpladder.data.words import counted

#: Kinds of mended places that a warning names.
_MOST_MENDED: Final = 4
_MEMORY_EVENT: Final = "[memory]"
#: What older profilers write as an operator, and newer ones as a range.
_STEP: Final = "ProfilerStep#"
#: How the name of an event of `cuda_sync` begins, in lower case. Profilers write `Stream Sync` or `Stream Synchronize`.
_WAITS: Final = {
    "stream wait": "stream_wait_event",
    "event": "event",
    "stream": "stream",
    "context": "context",
    "device": "context",
}
#: Columns that hold numbers of texts.
_NUMBERED: Final = ("name", "full_name", "text")
#: The same, in which 0 stands for null.
_NUMBERED_OR_NULL: Final = ("collective", "kind", "src_memory", "dst_memory", "source")
#: The code of a process that no process has.
_NO_PROCESS: Final = (1 << ID_BITS) - 1
#: Columns of `Work` and `Launches`.
_OF_WORK: Final = ("lane", "device", "correlation", "start_ns", "place")
_OF_CALLS: Final = ("thread", "correlation", "start_ns")


class KinetoTrace(Trace):
    """The tables of a trace. Raises ReportError: the file cannot be read, or is no trace.

    Args:
        path: `.json` or `.json.gz`, as `export_chrome_trace` writes it.
        notes: receives counts of events that are left out.

    Attributes:
        file: with what it has beside its events.
        threads: processes and threads.
        sizes: of copies, as their calls have them.
        operations: PyTorch's operators.
        collectives: communication kernels with their arguments.
        events: number of events in the file.
        base_ns: what is added to every time, which makes it a time since 1970 where the file has such a base.
    """

    def __init__(self, path: Path, notes: Notes) -> None:
        self.file = TraceFile(path)
        self.threads, self.sizes, self.operations, self.collectives = Threads(), Sizes(), Operations(), Collectives()
        self._kinds = Kinds()
        self._notes = notes
        self._texts = Texts()
        self._tables: dict[str, Spool] = defaultdict(Spool)
        #: Codes of the processes of the rows of a table, where they are several.
        self._owners: dict[str, Int64s] = {}
        self._processes = Counter[int]()
        self._places: dict[int, tuple[int, int]] = {}
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
        with _uncollected():
            for piece in self.file.pieces():
                begin = self._kinds.events
                for kind, rows in self._kinds.of(piece.events).items():
                    if kind == LINKS:
                        self._add_links([piece.events[row] for row in rows.tolist()])
                    elif kind == MEMORY:
                        self._add_memory([piece.events[row] for row in rows.tolist()])
                    elif (timed := self._timed(kind, piece, rows, begin))[0]:
                        add[kind](*timed)
        self.events = self._kinds.events
        if problem := self._kinds.problem():
            raise ReportError(f"{path.name}: {problem}")
        self._find_owners(path.name)
        self._tell_damage()
        columns = {table: frozenset(spool.names) for table, spool in self._tables.items()}
        for table in {*WORK, model.SYNCHRONIZATIONS} & columns.keys():
            columns[table] |= {"process"}
        base = self.file.head.base_ns
        self.base_ns = base if type(base) is int and 0 <= base < FAR else 0
        super().__init__(path.name, columns, XLA_PROFILER if self._kinds.is_xla else PYTORCH, self.base_ns)

    def _find_owners(self, name: str) -> None:
        """Find which process launched each piece of device work, where it may be one of several."""
        tables = [table for table in WORK if table in self._tables]
        if not tables or (len(self._processes) < 2 and not self.threads.texts()):
            return
        work = self._work(tables)
        calls = (
            self._tables[model.API_CALLS].arrays(_OF_CALLS) if model.API_CALLS in self._tables else [np.empty(0, np.int64)] * 3
        )
        thread, correlation, start = calls
        places = np.array([(code, *ends) for code, ends in self._places.items()], np.int64).reshape(-1, 3).T
        launches = Launches(thread >> ID_BITS, correlation, start)
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
        ends = np.cumsum([self._tables[table].rows for table in tables])[:-1]
        self._owners = dict(zip(tables, np.split(owner, ends), strict=True))
        if (waits := model.SYNCHRONIZATIONS) in self._tables:
            self._owners[waits] = owners_of_waits(self._work([waits]), work, owner, launches)

    def _work(self, tables: Sequence[str]) -> Work:
        parts = [self._tables[table].arrays(_OF_WORK) for table in tables]
        return Work(*map(np.concatenate, zip(*parts, strict=True)))

    def ranks(self) -> list[Part]:
        """The processes that launched device work, if they are several, in the order of their ids."""
        devices: dict[int, set[int]] = defaultdict(set)
        for table in set(WORK) & self._owners.keys():
            (device,) = self._tables[table].arrays(("device",))
            for code, ordinal in np.unique((self._owners[table], device), axis=1).T.tolist():
                devices[code].add(ordinal)
        devices.pop(NONE, None)
        names = self.threads.processes
        helpers: dict[str, list[int]] = defaultdict(list)
        for code in self._places:
            if code not in devices and (label := label_of(names[code])):
                helpers[label].append(code)
        return [
            Part(code, tuple(sorted(devices[code])), helpers=tuple(helpers[label_of(names[code])]), name=str(names[code]))
            for code in sorted(devices, key=lambda code: in_order(names[code]))
        ]

    def _tell_damage(self) -> None:
        """Note what was mended in the file."""
        if self.file.mended:
            places = ((what, counted(count, "place")) for what, count in self.file.mended.most_common(_MOST_MENDED))
            listed = ", ".join(f"{what} ({count})" for what, count in places)
            self._notes.add("warning", Source.REPORT, f"the file is not valid JSON, and is read all the same. It has {listed}")
        if self.file.lacks_end:
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
        return self._kinds.lanes.arguments_of(events, kind) if self._kinds.is_xla else arguments_of(events, kind)

    def _add_links(self, events: list[Event]) -> None:
        for phase in "sf":
            of_phase = [event for event in events if event.ph == phase]
            if of_phase:
                self.operations.add_links(phase, of_phase, self.threads.global_ids(of_phase))

    def _timed(self, kind: str, piece: Piece, rows: Int64s, begin: int) -> tuple[list[Event], Int64s, Int64s, Int64s]:
        """The events in some rows of a piece that have times, with start and end in ns, and their places in the file. `begin`:
        the place of the piece."""
        events = [piece.events[row] for row in rows.tolist()]
        duration, lasts = times_ns([event.dur for event in events])
        fine = piece.begun[rows] & lasts & (duration >= 0)
        if not fine.all():
            lost = int(len(fine) - fine.sum())
            self._notes.count("warning", Source.TIMES, f"{{}} {kind} without a start or a duration are left out", lost)
            events = [event for event, timed in zip(events, fine.tolist(), strict=True) if timed]
            rows, duration = rows[fine], duration[fine]
        start = piece.start[rows]
        return events, start, start + duration, rows + begin

    def _add(self, table: str, columns: dict[str, Any]) -> None:
        self._tables[table].add(columns)

    def _add_kernels(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        arguments = self._arguments(events, KernelArguments)
        name = self._named(self._texts.codes([event.name for event in events]), demangled)
        collective = self._collectives(name, self._texts.codes([each.collective for each in arguments]))
        self._add(
            model.KERNELS,
            {
                **self._of_device(events, arguments, start, end, place),
                "full_name": name,
                "name": self._named(name, short_name),
                **{
                    f"{size}_{axis}": column
                    for size in ("grid", "block")
                    for axis, column in zip("xyz", triples([getattr(each, size) for each in arguments]), strict=True)
                },
                **int_columns(arguments, "registers", "dynamic_shared_bytes", "graph_id"),
                "collective": collective,
            },
        )
        chosen = np.flatnonzero(collective)
        self.collectives.gather([events[row] for row in chosen.tolist()], place[chosen])

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
        known = {text: copy_of(*text) for text in set(texts)}
        kind, source, target = (self._texts.codes(words) for words in zip(*(known[text] for text in texts), strict=True))
        self._add(
            model.COPIES,
            {
                **self._of_device(events, arguments, start, end, place),
                **int_columns(arguments, "bytes"),
                "kind": kind,
                "src_memory": source,
                "dst_memory": target,
            },
        )

    def _add_sets(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        arguments = self._arguments(events, CopyArguments)
        self._add(
            model.SETS,
            {
                **self._of_device(events, arguments, start, end, place),
                **int_columns(arguments, "bytes"),
                "dst_memory": self._texts.codes(["device"] * len(events)),
            },
        )

    def _of_device(
        self, events: list[Event], arguments: Sequence[DeviceArguments], start: Int64s, end: Int64s, place: Int64s
    ) -> dict[str, Any]:
        """Columns that kernels, copies and sets share. `lane` is the process of the event, `place` its place in the file."""
        return {
            "start_ns": start,
            "end_ns": end,
            **int_columns(arguments, "device", "context", "stream", "correlation"),
            "lane": self.threads.process_codes(events),
            "place": place,
        }

    def _host(self, events: list[Event], place: Int64s) -> Int64s:
        """Global ids of the threads of events of the host."""
        thread = self.threads.global_ids(events)
        process = thread >> ID_BITS
        for code in np.sort(process[numbered(process)[1]]).tolist():
            own = place[process == code]
            first, last = self._places.get(code, (int(own.min()), int(own.max())))
            self._places[code] = min(first, int(own.min())), max(last, int(own.max()))
        return thread

    def _add_calls(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        thread = self._host(events, place)
        number, first = numbered(thread >> ID_BITS)
        self._processes.update(dict(zip((thread[first] >> ID_BITS).tolist(), np.bincount(number).tolist(), strict=True)))
        arguments = self._arguments(events, CallArguments)
        columns = int_columns(arguments, "correlation", "size")
        name = self._texts.codes([event.name for event in events])
        self._add(
            model.API_CALLS,
            {"start_ns": start, "end_ns": end, "thread": thread, "correlation": columns["correlation"], "name": name},
        )
        self.sizes.gather(thread >> ID_BITS, columns["correlation"], columns["size"])

    def _add_ranges(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        self.collectives.add_ranges(events, start)
        text = self._texts.codes([event.name for event in events])
        self._add(model.RANGES, {"start_ns": start, "end_ns": end, "thread": self._host(events, place), "text": text})

    def _add_operations(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        """The operators, and the steps, which older profilers write as operators."""
        name = self.operations.names.codes([event.name for event in events])
        if len(steps := self._named_rows(name, lambda text: text.startswith(_STEP))):
            self._add_ranges([events[row] for row in steps.tolist()], start[steps], end[steps], place[steps])
            others = np.setdiff1d(np.arange(len(events)), steps)
            events, name = [events[row] for row in others.tolist()], name[others]
            start, end, place = start[others], end[others], place[others]
        self.operations.gather(events, name, self._host(events, place), start, end)
        calls = self._named_rows(name, lambda text: text == RECORD)
        self.collectives.add_calls([events[row] for row in calls.tolist()], start[calls])

    def _named_rows(self, name: Codes, is_wanted: Callable[[str], bool]) -> Int64s:
        """The rows of operators with some names."""
        return np.flatnonzero(np.array([is_wanted(text) for text in self.operations.names.of])[name])

    def _add_functions(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        self.operations.add_functions(events, self._host(events, place), start, end)

    def _add_synchronizations(self, events: list[Event], start: Int64s, end: Int64s, place: Int64s) -> None:
        """The events of waits. Their process is the device, like that of work."""
        lane = self.threads.process_codes(events)
        arguments = arguments_of(events, WaitArguments)
        devices = [event.pid if each.device is None else each.device for event, each in zip(events, arguments, strict=True)]
        self._add(
            model.SYNCHRONIZATIONS,
            {
                "start_ns": start,
                "end_ns": end,
                "device": int_column(devices),
                **int_columns(arguments, "stream", "correlation", "event_stream", "event_correlation"),
                "kind": self._texts.codes([_kind_of_wait(event.name) for event in events]),
                "lane": lane,
                "place": place,
            },
        )

    def _add_memory(self, events: list[Event]) -> None:
        """The events of the allocators of devices; those of the host have the device type 0."""
        arguments = arguments_of(events, MemoryArguments)
        rows = np.flatnonzero(numbers([each.kind for each in arguments]) > 0).tolist()
        start, begun = times_ns([events[row].ts for row in rows])
        fine = begun & np.array([events[row].name == _MEMORY_EVENT for row in rows], bool)
        if not fine.any():
            return
        rows = [row for row, is_fine in zip(rows, fine.tolist(), strict=True) if is_fine]
        self._add(
            model.MEMORY_IN_USE,
            {
                "start_ns": start[fine],
                "process": self.threads.process_codes([events[row] for row in rows]),
                "source": self._texts.codes(["allocator"] * len(rows)),
                **int_columns([arguments[row] for row in rows], "device", "bytes", "reserved_bytes"),
            },
        )

    @property
    def process(self) -> int:
        """The code of the process whose calls launched the device work, of which a trace names only the device."""
        return self._processes.most_common(1)[0][0] if self._processes else 0

    def process_numbers(self, process: Int64s) -> Int64s:
        return self.threads.process_numbers(process)

    def thread_numbers(self, thread: Int64s) -> Int64s:
        return self.threads.thread_numbers(thread)

    def launched(self) -> Int64s:
        tables = [table for table in WORK if table in self._tables]
        parts = [np.empty(0, np.int64), *(self._tables[table].arrays(("correlation",))[0] for table in tables)]
        return distinct(np.concatenate(parts))

    def _has_rows(self, table: str) -> bool:
        return self._tables[table].rows > 0

    def _read(self, table: str, names: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
        spool, row = self._tables[table], 0
        is_filled = "bytes" in names and table in WORK
        needed = {*names, *(("correlation",) if is_filled else ())} & set(spool.names)
        for part in spool.batches(sorted(needed or spool.names[:1])):
            process = np.full(len(part), self.process)
            if table in self._owners:
                owner = self._owners[table][row : row + len(part)]
                process = np.where(owner == NONE, _NO_PROCESS, owner)
            row += len(part)
            columns = {name: self._column(name, part[name]) if name in needed else pa.array(process) for name in names}
            if is_filled:
                columns["bytes"] = self.sizes.filled(columns["bytes"], process, part["correlation"])
            yield pa.RecordBatch.from_pydict(columns)

    def _column(self, name: str, column: pa.Array) -> pa.Array:
        """A column of a table, of which some are numbers of texts or times without their base."""
        if name in _NUMBERED:
            return self._texts.column(column)
        if name in _NUMBERED_OR_NULL:
            return self._texts.column(pc.if_else(pc.equal(column, 0), None, column))
        return pc.add(column, self.base_ns) if name in ("start_ns", "end_ns") else column


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for circles of garbage, for which each list in the arguments of an event counts. It takes a twelfth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _kind_of_wait(name: Any) -> str | None:
    words = str(name).lower()
    return next((kind for begin, kind in _WAITS.items() if words.startswith(begin)), None)
