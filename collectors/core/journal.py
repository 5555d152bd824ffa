"""Saves a recording on disk while it runs, and writes the run at its end, in another folder if the data folder is full.

`events.jsonl` holds one JSON object per line. `samples.arrows` holds the samples of the events as an Arrow stream, one batch
per event. A line is written after its batch, and both are synced to disk before the recording goes on. The reader skips an
event that was only partly written.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from warpladder.collectors.core.collector import AddCaptured
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.core.recording import Event, Recording, to_line
from warpladder.data import schema
from warpladder.data.names import Source, diagnostic_row
from warpladder.data.staging import Staging, sync
from warpladder.data.store import Run, RunWriter, StoreError

# -- events on disk ------------------------------------------------------------------------------------------------------------

_EVENTS: Final = "events.jsonl"
_SAMPLES: Final = "samples.arrows"
#: Key in a line: the number of its batch of samples.
_BATCH: Final = "samples"


class SpoolError(Exception):
    """The spool's folder cannot be written. The message is the reason."""


class Spool:
    """Writes events to a folder. Raises SpoolError: the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batches = 0
        try:
            self._events = (folder / _EVENTS).open("wb")
            self._samples = (folder / _SAMPLES).open("wb")
            self._stream = pa.ipc.new_stream(
                self._samples, schema.SAMPLES.arrow, options=pa.ipc.IpcWriteOptions(compression="zstd")
            )
        except OSError as error:
            raise SpoolError(error.strerror) from error

    def append(self, line: str, samples: pa.Table | None = None, *, durable: bool = True) -> None:
        """Write an event.

        Args:
            line: JSON object, without line feed.
            durable: return only after the event is synced to disk.
        """
        try:
            batches = samples.combine_chunks().to_batches() if samples is not None else []
            for batch in batches:  # one batch, or none if there are no rows
                self._stream.write_batch(batch)
                self._flush(self._samples, durable)
            ends = self._batches + len(batches)
            self._events.write(f'{{"{_BATCH}": [{self._batches}, {ends}], "event": {line}}}\n'.encode())
            self._batches = ends
            self._flush(self._events, durable)
            if not self._is_there():
                raise SpoolError("the folder was removed")
        except (OSError, pa.ArrowException) as error:
            raise SpoolError(getattr(error, "strerror", None) or str(error)) from error

    def close(self) -> None:
        """Close the files."""
        for file in (self._events, self._samples):
            with suppress(OSError):  # the buffer may hold bytes that a full disk refused
                file.close()

    @staticmethod
    def _flush(file: Any, durable: bool) -> None:
        file.flush()
        if durable:
            sync(file.fileno())

    def _is_there(self) -> bool:
        try:
            return os.path.samestat((self._folder / _EVENTS).stat(), os.fstat(self._events.fileno()))
        except OSError:
            return False


def read(folder: Path) -> Iterator[tuple[dict[str, Any], pa.Table | None]]:
    """Yield the complete events of a spool, each with its samples. Yields nothing if there is no spool."""
    try:
        lines = (folder / _EVENTS).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    batches = _batches(folder / _SAMPLES)
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            return
        first, end = entry[_BATCH]
        if not line.endswith(b"\n") or end > len(batches):
            return
        yield entry["event"], pa.Table.from_batches(batches[first:end]) if end > first else None


def _batches(file: Path) -> list[pa.RecordBatch]:
    batches = []
    try:
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            while True:
                batches.append(stream.read_next_batch())
    except (StopIteration, pa.ArrowException, OSError):
        return batches


# -- the journal ---------------------------------------------------------------------------------------------------------------

#: Folders for a run if its data folder cannot be written: the system's temporary folder, then a folder in memory.
_ELSEWHERE: Final[tuple[Callable[[], str], ...]] = (tempfile.gettempdir, lambda: "/dev/shm")


class SavedElsewhere(StoreError):
    """The data folder could not be written, and the run is in another one. The message names it."""

    def __init__(self, data_dir: Path, why: str, path: Path) -> None:
        move = f"{'' if data_dir.is_dir() else f'mkdir -p {data_dir} && '}mv {path} {data_dir}/"
        super().__init__(
            f"{data_dir}: cannot be written ({why}); the run was saved elsewhere; to move it when there is room: {move}"
        )
        self.path = path


def rooms_elsewhere() -> Iterator[Path]:
    """Make temporary folders for a run whose data folder cannot be written; yield each that can be made."""
    for parent in _ELSEWHERE:
        with suppress(OSError):
            yield Path(tempfile.mkdtemp(prefix="warpladder-", dir=parent()))


def why(error: StoreError) -> str:
    """Return the operating system's reason for the error, without the advice of its message."""
    cause = error.__cause__
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else str(error)


class Journal:
    """The state of a recording, in memory and on disk.

    Raises:
        Error: the label cannot be stored.
        StoreError: the folder cannot be written.
    """

    def __init__(self, data_dir: Path, first: Event, add_captured: AddCaptured | None = None) -> None:
        self.recording = Recording(add_captured)
        self._data_dir = data_dir
        self._events: list[tuple[str, pa.Table | None]] = []
        self._problem = ""  # why the data folder could not be written
        line = to_line(first)
        self.recording.apply(line)
        self._home = self._writer = self._opened(data_dir)
        try:
            self._spool: Spool | None = self._spooled([(line, None)])
        except SpoolError as error:
            self._home.staging.remove()
            raise StoreError(f"{data_dir}: cannot be written ({error}); choose another folder with --data-dir") from error
        self._events.append((line, None))

    def note(self, event: Event, samples: pa.Table | None = None, *, durable: bool = True) -> None:
        """Add an event. It is on disk when this returns; if the run's folder cannot be written, in another folder.

        Args:
            event: see `warpladder.collectors.core.recording`.
            samples: rows of `samples` that belong to the event.
            durable: False if the event may be lost in a power failure.
        """
        line = to_line(event)
        self.recording.apply(line, samples)
        self._events.append((line, samples))
        if self._spool is not None:
            try:
                self._spool.append(line, samples, durable=durable)
            except SpoolError as error:
                self._move(str(error))

    def commit(self, unreached: str) -> str:
        """Write the run, and end the journal. Returns the run's id.

        Args:
            unreached: reason to store for cells without a status.

        Raises:
            SavedElsewhere: the data folder cannot be written.
            StoreError: no folder can be written, or a row does not fit the schema.
        """
        self._close_spool()
        for writer in self._writers():
            try:
                self.recording.write(writer, unreached)
                path = writer.commit(durable=True)
            except StoreError as error:
                if writer is not self._home:
                    self._give_up(writer)
                if not isinstance(error.__cause__, OSError):  # the run itself is invalid, so that another folder would not help
                    raise StoreError(f"{error}; what was measured is kept in {self._home.staging.path}") from error
                self._problem = self._problem or why(error)
                continue
            self._home.staging.remove()
            if self._writer not in (writer, self._home):
                self._give_up(self._writer)
            if path.parent == self._data_dir:
                return writer.run_id
            raise SavedElsewhere(self._data_dir, self._problem, path)
        self.leave()
        raise StoreError(
            f"{self._data_dir}: cannot be written ({self._problem}), and neither can {tempfile.gettempdir()}; free some space: "
            "the next recording there takes up what was kept of this one"
        )

    def leave(self) -> None:
        """End without a run. If a case was finished, the files stay, and the next recording salvages them."""
        self._close_spool()
        if self.recording.finished:
            self._home.leave()
        else:
            self._home.staging.remove()

    def _writers(self) -> Iterator[RunWriter]:
        """Yield writers to try in order: for the data folder, for the folder in use, and for any temporary folder."""
        if not self._problem:
            yield self._home
        with suppress(StoreError):
            if self._data_dir.is_dir():  # only the staging folder was removed, or space is free again
                yield self._opened(self._data_dir)
        if self._writer is not self._home:
            yield self._writer
        for room in rooms_elsewhere():
            with suppress(StoreError):
                yield self._opened(room)

    def _move(self, problem: str) -> None:
        """Save the recording in another folder from now on; if none can be written, only in memory."""
        self._problem = self._problem or problem
        self._close_spool()
        if self._writer is not self._home:
            return
        for room in rooms_elsewhere():
            with suppress(StoreError, SpoolError):
                self._writer = self._opened(room)
                self._spool = self._spooled(self._events)
                return
            if self._writer is not self._home:
                self._give_up(self._writer)
                self._writer = self._home

    def _opened(self, folder: Path) -> RunWriter:
        return open_writer(folder, self.recording.started, self.recording.label)

    def _spooled(self, events: list[tuple[str, pa.Table | None]]) -> Spool:
        spool = Spool(self._writer.staging.path)
        for line, samples in events:
            spool.append(line, samples)
        return spool

    def _close_spool(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def _give_up(self, writer: RunWriter) -> None:
        """Remove a writer's folder, and the temporary folder around it."""
        with writer:
            pass
        if writer.path.parent != self._data_dir:
            with suppress(OSError):
                writer.path.parent.rmdir()


def store_run(writer: RunWriter, data_dir: Path, label: str, fill: Callable[[RunWriter], None]) -> str:
    """Write and commit a run; in another folder if the data folder cannot be written. Returns the run's id.

    Args:
        fill: writes every table; called again for each other folder.

    Raises:
        SavedElsewhere: the data folder cannot be written.
        StoreError: no folder can be written, or rows do not fit the schema.
    """
    try:
        fill(writer)
        writer.commit()
        return writer.run_id
    except StoreError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        for room in rooms_elsewhere():
            with suppress(StoreError), open_writer(room, datetime.now(UTC), label) as other:
                fill(other)
                path = other.commit()
                break
        else:
            raise
        raise SavedElsewhere(data_dir, why(error), path) from error


# -- inner runs: a recording under a tool, and further passes, write to a folder inside the staging folder of the final run --------

#: Tables of the inner run that a tool does not change.
OF_CELLS: Final = ("ceilings", "variants", "cases", "results", "cell_launches", "machine_code")
_FOLDER: Final = "inside"
_RUNS: Final = "runs"


def make_folder(staging: Staging) -> tuple[Path, Path]:
    """Make the folder for the tool's files and the data folder of the inner run. `salvage` finds them after a crash."""
    folder = staging.path / _FOLDER
    folder.mkdir()
    return folder, folder / _RUNS


def runs_of(staging: Staging, further: str = _RUNS) -> Path:
    """Return the data folder of the inner recording, or of a further pass; it may not exist."""
    return staging.path / _FOLDER / further


def without_trace(run: Run, writer: RunWriter, why: str) -> None:
    """Write the inner run unchanged, with a diagnostic that says why the tool's tables are missing."""
    copy_run(run, writer, [diagnostic_row("warning", Source.TRACING, why)])


def copy_run(run: Run, writer: RunWriter, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the inner run, without trace tables, and further rows of `diagnostics`."""
    writer.append("run", [{**run.info, "run_id": writer.run_id}])
    for table in (*OF_CELLS, "samples"):
        writer.append(table, run.table(table))
    writer.append("diagnostics", [*run.records("diagnostics"), *rows])
