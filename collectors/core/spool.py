"""Saves the events of a recording on disk at once, so that they survive the end of its process.

`events.jsonl` holds one JSON object per line. `samples.arrows` holds the samples of the events as an Arrow stream, one batch
per event. A line is written after its batch, and both are synced to disk before the recording goes on. The reader skips an
event that was only partly written.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from warpladder.data import schema
from warpladder.data.staging import sync

_EVENTS: Final = "events.jsonl"
_SAMPLES: Final = "samples.arrows"
#: Key in a line: the number of its batch of samples.
_BATCH: Final = "samples"


class SpoolError(Exception):
    """The spool's folder cannot be written. The message is the reason."""


class Spool:
    """Writes events to a folder.

    Raises:
        SpoolError: the folder cannot be written.
    """

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
            samples: rows of table `samples` that belong to it.
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
            found = json.loads(line)
        except ValueError:
            return
        first, end = found[_BATCH]
        if not line.endswith(b"\n") or end > len(batches):
            return
        yield found["event"], pa.Table.from_batches(batches[first:end]) if end > first else None


def _batches(file: Path) -> list[pa.RecordBatch]:
    found = []
    try:
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            while True:
                found.append(stream.read_next_batch())
    except (StopIteration, pa.ArrowException, OSError):
        return found
