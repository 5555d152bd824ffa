"""Facts about the machine of a report of Nsight Compute, as columns of table `run`."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, Final

from warpladder.collectors.core.environment import import_facts
from warpladder.collectors.nsight_compute.cells import ProfiledLaunch
from warpladder.collectors.nsight_compute.metrics import CAPABILITY, DEVICE_ID, L2_BYTES, MEMORY_BYTES, SM_COUNT
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.data import files
from warpladder.data.store import to_json

MAGIC: Final = b"NVR\0"
#: Size of the largest block header that is read; the header of kernels holds the table of strings.
_MOST_HEADER_BYTES: Final = 256 << 20
_MOST_BLOCKS: Final = 1_000_000
_TEXT_LIMIT: Final = 200
_VERSION_OF: Final = {
    "Nsight Compute Target": "collector_version",
    "CUDA Version": "cuda_version",
    "Display Driver Version": "driver_version",
}


class _Malformed(Exception):
    """The bytes are not a protocol buffer."""


@dataclass
class Header:
    """Time of the capture, number of launches, and columns of table `run`, as far as the report holds them."""

    created: datetime | None = None
    launches: int = 0
    columns: dict[str, str] = field(default_factory=dict)


def read_header(path: Path) -> Header:
    """Read the header of a report without NVIDIA's reader, and walk all its blocks, none of which may be truncated.

    The `.proto` files that Nsight Compute installs in `extras/FileFormat` define the format: a magic number, a header, and blocks
    up to the file's end. A block is a header with the payload's size, and the payload. Host, user and program names and paths are
    not read.

    Raises:
        ReportError: the file ends within a block, or a block is malformed.
        OSError: the file cannot be read.
    """
    header = Header()
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        try:
            file.seek(len(MAGIC))
            _sized(file, end)
            for _ in range(_MOST_BLOCKS):
                if file.tell() == end:
                    return header
                payload_bytes = 0
                for number, value in _fields(_sized(file, end)):
                    if number == _SESSION and isinstance(value, bytes):
                        _read_details(value, header)
                    elif number == _RESULTS and isinstance(value, int):
                        header.launches += value
                    elif number == _PAYLOAD_BYTES and isinstance(value, int):
                        payload_bytes = value
                if payload_bytes > end - file.tell():
                    raise _Malformed
                file.seek(payload_bytes, os.SEEK_CUR)
        except (_Malformed, UnicodeDecodeError) as error:
            raise ReportError(f"{path.name}: truncated or damaged; copy it again from where it was made") from error
    raise ReportError(f"{path.name}: truncated or damaged; copy it again from where it was made")


def _sized(file: BinaryIO, end: int) -> bytes:
    """Read a length of four bytes, then that many bytes."""
    count = int.from_bytes(file.read(4), "little")
    if count > min(_MOST_HEADER_BYTES, end - file.tell()):
        raise _Malformed
    return file.read(count)


def _read_details(details: bytes, header: Header) -> None:
    for number, value in _fields(details):
        if number == _CREATED and isinstance(value, int) and 0 < value < 1 << 34:
            header.created = datetime.fromtimestamp(value, UTC)
        elif number == _SYSTEM and isinstance(value, bytes):
            texts = _texts(value)
            header.columns |= {"os": texts.get(_OS, ""), "cpu_name": texts.get(_PROCESSOR, "")}
        elif number == _VERSION and isinstance(value, bytes):
            texts = _texts(value)
            column = _VERSION_OF.get(texts.get(1, ""))
            if column:
                header.columns[column] = texts.get(2, "").split(" ")[0]


def _texts(message: bytes) -> dict[int, str]:
    return {number: value.decode()[:_TEXT_LIMIT] for number, value in _fields(message) if isinstance(value, bytes)}


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the field numbers and values of a protocol buffer. A value is an integer, or the bytes of any other type."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield tag >> 3, value
            continue
        if kind == 2:
            count, place = _varint(message, place)
        elif kind in (1, 5):
            count = 8 if kind == 1 else 4
        else:
            raise _Malformed
        if place + count > len(message):
            raise _Malformed
        yield tag >> 3, message[place : place + count]
        place += count


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise _Malformed
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise _Malformed


def run_facts(path: Path, launches: Sequence[ProfiledLaunch], arguments: Sequence[str], notes: Notes) -> dict[str, Any]:
    """Return the columns of `run` except run_id, schema_version and label.

    Args:
        path: the report. Its modification time is used if it does not hold the time of the capture.
        launches: the report's launches, at least one.
        notes: receives a note if the report does not hold the time of the capture.
    """
    header = read_header(path)
    return {
        **import_facts(arguments),
        **header.columns,
        **_device(launches),
        "packages": to_json({"ncu-report": metadata.version("ncu-report")}),
        "started_at": header.created or date_of_file(path, notes),
        "collector": "nsight_compute",
        "source": path.name,
        "source_sha256": files.sha256(path),
    }


def _device(launches: Sequence[ProfiledLaunch]) -> dict[str, Any]:
    """Return the facts about the GPU with the most launches, and the number of GPUs."""
    devices = Counter(launch.values.get(DEVICE_ID, 0.0) for launch in launches)
    busiest = devices.most_common(1)[0][0]
    of_it = next(launch for launch in launches if launch.values.get(DEVICE_ID, 0.0) == busiest)
    major, minor = (_whole(of_it.values, name) for name in CAPABILITY)
    sm_count = _whole(of_it.values, SM_COUNT)
    return {
        "device_name": of_it.device,
        "device_count": min(len(devices), 1 << 14),
        "compute_capability": f"{major}.{minor or 0}" if major else "",
        "sm_count": sm_count if sm_count and sm_count < 1 << 31 else None,
        "l2_bytes": _whole(of_it.values, L2_BYTES) or None,
        "memory_bytes": _whole(of_it.values, MEMORY_BYTES) or None,
    }


def _whole(values: Mapping[str, float], name: str) -> int | None:
    value = values.get(name)
    return None if value is None or not 0 <= value < 1 << 62 else int(value)


# Field numbers of BlockHeader, SessionDetails and their submessages.
_RESULTS, _SESSION, _PAYLOAD_BYTES = 2, 3, 5
_CREATED, _SYSTEM, _VERSION = 2, 3, 8
_OS, _PROCESSOR = 1, 3
