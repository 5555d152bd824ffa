"""Reads random traces of PyTorch's profiler in pieces of random sizes: `python -m tests.fuzz.trace_files [SECONDS] [SEED]`.

A trace has texts that look like the place between two events, escapes, nested arguments, and random white space. It may be gzip of one
or several parts, cut off, or damaged. It passes when the events are those of `json.loads`, or it is refused with one line.
"""

import gzip
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import msgspec

from warpladder.collectors.kineto import events
from warpladder.collectors.trace.model import ReportError

#: Texts that a reader which looks for places between events may take for one.
_TEXTS: Final = (
    *(
        '},{"ph":"X"',
        '}, {"',
        "},{",
        '"}]}',
        '\\"},{\\"',
        "\\",
        '\\\\"',
        '}\n,\n{ "name": ',
        '"traceEvents": [',
        "]",
        "[{",
        "\x1f\x8b",
    ),
    *("é", "\U0001f600", "\x00\x1b", "a" * 60, "void gemm<float, (int)8>(float*)", "", "null", "1"),
)
_KEYS: Final = ("correlation", "stream", "Input Dims", "Concrete Inputs", "graph id", "Seq", "unknown", '},{"a', "traceEvents")
_NUMBERS: Final = (0, -1, 7, 2**53 + 1, 2**70, 0.5, 4.6e12, 1e300, 1730000000123456.789)
_OTHERS: Final = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0}, {"id": 1, "x": [{"a": 1}, {"b": 2}]}],
    "distributedInfo": {"rank": 3},
}


def value(draw: random.Random, depth: int = 0) -> Any:
    """A random JSON value."""
    kind = draw.randrange(4 if depth > 2 else 6)
    if kind == 4:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 5:
        return {text(draw): value(draw, depth + 1) for _ in range(draw.randrange(4))}
    return draw.choice((draw.choice(_NUMBERS), text(draw), draw.choice((None, True, False))))


def text(draw: random.Random) -> str:
    return "".join(draw.choice(_TEXTS) for _ in range(draw.randrange(1, 4)))


def event(draw: random.Random) -> dict[str, Any]:
    """A random event with some of the fields, in random order."""
    fields: dict[str, Any] = {
        "ph": draw.choice("XsfiM"),
        "cat": draw.choice(("kernel", "cpu_op", text(draw))),
        "name": text(draw),
        "pid": draw.choice((7, "7", text(draw))),
        "tid": draw.choice((7, "stream 7")),
        "id": draw.randrange(99),
        "ts": draw.choice((draw.randrange(10**6), draw.random() * 1e6, 4600000000000.125, "12.5")),
        "dur": draw.randrange(1000),
        "args": {draw.choice(_KEYS): value(draw) for _ in range(draw.randrange(5))},
        text(draw): value(draw),
    }
    chosen = draw.sample(sorted(fields), draw.randrange(1, len(fields) + 1))
    return {name: fields[name] for name in chosen}


def document(draw: random.Random) -> tuple[bytes, int]:
    """The text of a random trace, and the length of what stands before its first event."""
    spaces = [draw.choice(("", "", " ", "\n", "\t \r\n")) for _ in range(4)]
    comma, colon = f"{spaces[0]},{spaces[1]}", f"{spaces[2]}:{spaces[3]}"

    def dump(each: Any) -> str:
        return json.dumps(each, ensure_ascii=draw.random() < 0.5, separators=(comma, colon))

    listed = "[" + comma.join(dump(event(draw)) for _ in range(draw.choice((0, 1, 5, 40)))) + spaces[0] + "]"
    if draw.random() < 0.2:
        return f"{spaces[1]}{listed}{spaces[2]}".encode(), 64
    others = [f"{dump(name)}{colon}{dump(each)}" for name, each in _OTHERS.items() if draw.random() < 0.5]
    at = draw.randrange(len(others) + 1)
    before = comma.join([*others[:at], f'"traceEvents"{colon}'])
    return ("{" + comma.join([before + listed, *others[at:]]) + "}" + spaces[1]).encode(), len(before.encode()) + 64


def hurt(draw: random.Random, data: bytes) -> bytes:
    """The same bytes, often cut off or with a changed byte."""
    how = draw.random()
    if how < 0.25:
        return data[: draw.randrange(len(data) + 1)]
    if how < 0.4 and data:
        place = draw.randrange(len(data))
        return data[:place] + bytes([draw.choice(b'{}[],:"\\a0 \xff\x00')]) + data[place + draw.randrange(2) :]
    return data


def zipped(draw: random.Random, data: bytes) -> bytes:
    """The bytes as gzip of one or several parts."""
    ends = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice((0, 0, 1, 4))))
    return b"".join(gzip.compress(data[begin:end], 1) for begin, end in zip([0, *ends], [*ends, len(data)], strict=True))


def wanted(data: bytes) -> list[Any] | None:
    """The events as `json.loads` reads them; None where the text is no trace."""
    try:
        read = json.loads(data)
        listed = read if isinstance(read, list) else read["traceEvents"]
    except (ValueError, LookupError, TypeError):
        return None
    known = {field.encode_name for field in msgspec.structs.fields(events.Event)}
    try:
        return [{name: each for name, each in one.items() if name in known and name != "args"} for one in listed]
    except AttributeError:
        return None


def found(path: Path) -> list[Any]:
    """The events as the reader gives them."""
    rows = [each for piece in events.TraceFile(path).pieces() for each in piece.events]
    names = {field.name: field.encode_name for field in msgspec.structs.fields(events.Event) if field.name != "args"}
    return [
        {other: float(given) if type(given).__name__ == "Decimal" else given
         for name, other in names.items() if (given := getattr(row, name)) is not None}
        for row in rows
    ]  # fmt: skip


def check(seed: int, folder: Path) -> str:
    """What is wrong about a random trace; empty if nothing is."""
    draw = random.Random(seed)
    data, least = document(draw)
    data = hurt(draw, data)
    right = wanted(data)
    is_zipped = draw.random() < 0.4
    stored = zipped(draw, data) if is_zipped else data
    is_cut = is_zipped and draw.random() < 0.2
    if is_cut:
        stored = stored[: draw.randrange(2, len(stored))]
    path = folder / ("trace.json.gz" if is_zipped else "trace.json")
    path.write_bytes(stored)
    size = draw.choice((least, least + 1, least + 97, 4096, 1 << 20))
    window = draw.choice((16, 200, size))
    with patch.multiple(events, PIECE_BYTES=size, _WINDOW_BYTES=window, _MOST_EVENT_BYTES=1 << 20):
        try:
            given = found(path)
        except ReportError as error:
            if str(error).count("\n"):
                return f"more than one line: {error}"
            return "" if right is None or is_cut or data != document(random.Random(seed))[0] else f"refused: {error}"
    if right is None:
        return "events of a text that is no trace" if is_cut else ""
    expected = [{name: each for name, each in one.items() if each is not None} for one in right]
    return "" if given == expected else f"other events: {len(given)} of {len(expected)}"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    begin, count = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - begin < seconds:
            if wrong := check(seed + count, Path(folder)):
                print(f"seed {seed + count}: {wrong}")
                sys.exit(1)
            count += 1
    print(f"{count} traces from seed {seed}: nothing is wrong")


if __name__ == "__main__":
    main()
