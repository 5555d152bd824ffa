"""Reads the events of a trace of PyTorch's profiler in pieces, so that the memory that it takes does not grow with the file.

The profiler writes a JSON object with the list `traceEvents`, or that list alone. msgspec decodes it; a piece that is no JSON is mended. Between two
events stands `},{` before a quoted key, which cannot stand inside a text, because a text ends at its quote. Within an event it can, so
a piece that ends there does not decode, and another end is tried.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from warpladder.collectors.kineto.mended import NotMended, mended
from warpladder.collectors.trace.compressed import UNREADABLE, NotTheFile, text_blocks
from warpladder.collectors.trace.model import ReportError
from warpladder.data.arrays import Bools, Floats, Int64s

#: Bytes of text that are decoded at once, the most that one event may have, and the most before the first one.
PIECE_BYTES: Final = 8 << 20
_MOST_EVENT_BYTES: Final = 256 << 20
_MOST_HEAD_BYTES: Final = 16 << 20
BETWEEN_EVENTS: Final = re.compile(rb'\}\s*,\s*\{\s*"(?=[A-Za-z])')
#: A piece ends in the last bytes of its text, at one of the last places between two events.
_WINDOW_BYTES: Final = 1 << 16
_TRIED: Final = 8
_LIST: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_BEGIN_BYTES: Final = 64
#: Microseconds below which a float64 holds every nanosecond: its neighbours are 2^-10 us apart.
_EXACT_US: Final = 1 << 43
#: Times in us are smaller, so that they are int64 in ns.
_MOST_US: Final = 1 << 51
_NS_PER_US: Final = 1000
NO_TEXT: Final = msgspec.Raw()
NO_ARGUMENTS: Final = msgspec.Raw(b"{}")
#: What is raised about a text that is no trace.
_DAMAGE: Final = (msgspec.MsgspecError, NotMended, RecursionError, UnicodeDecodeError)


class DeviceArguments(msgspec.Struct, gc=False):
    """The arguments of a kernel, copy or set. Those that become columns of a trace have the names of the columns."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    context: Any = None


class KernelArguments(DeviceArguments, gc=False):
    """The arguments of a kernel. The profiler does not tell static from dynamic shared memory."""

    grid: Any = None
    block: Any = None
    graph_id: Any = msgspec.field(default=None, name="graph id")
    registers: Any = msgspec.field(default=None, name="registers per thread")
    dynamic_shared_bytes: Any = msgspec.field(default=None, name="shared memory")
    collective: Any = msgspec.field(default=None, name="Collective name")


class CopyArguments(DeviceArguments, gc=False):
    """The arguments of a copy or set."""

    bytes: Any = None
    kind: Any = None


class CollectiveArguments(DeviceArguments, gc=False):
    """The arguments of a communication kernel, or of the call for it."""

    dtype: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    call: Any = msgspec.field(default=None, name="External id")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    out_elements: Any = msgspec.field(default=None, name="Out msg nelems")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_size: Any = msgspec.field(default=None, name="Group size")
    sequence: Any = msgspec.field(default=None, name="Seq")
    title: Any = msgspec.field(default=None, name="Process Group Description")
    source: Any = msgspec.field(default=None, name="Src Rank")
    destination: Any = msgspec.field(default=None, name="Dst Rank")
    in_splits: Any = msgspec.field(default=None, name="In split size")
    out_splits: Any = msgspec.field(default=None, name="Out split size")


class WaitArguments(DeviceArguments, gc=False):
    """The arguments of a wait of a stream or of the host, which the profiler writes with `enable_cuda_sync_events=True`."""

    event_stream: Any = msgspec.field(default=None, name="wait_on_stream")
    event_correlation: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


class MemoryArguments(msgspec.Struct, gc=False):
    """The arguments of an event of an allocator."""

    kind: Any = msgspec.field(default=None, name="Device Type")
    device: Any = msgspec.field(default=None, name="Device Id")
    bytes: Any = msgspec.field(default=None, name="Total Allocated")
    reserved_bytes: Any = msgspec.field(default=None, name="Total Reserved")


class CallArguments(msgspec.Struct, gc=False):
    """The arguments of an API call. Those of AMD have the size of a copy."""

    correlation: Any = None
    size: Any = None


class OperatorArguments(msgspec.Struct, gc=False):
    """The arguments of an operator. Those of its inputs are only stored, and stay text."""

    input_dims: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input type")
    input_strides: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input Strides")
    concrete_inputs: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Concrete Inputs")
    sequence: Any = msgspec.field(default=None, name="Sequence number")
    forward_thread: Any = msgspec.field(default=None, name="Fwd thread id")


class FunctionArguments(msgspec.Struct, gc=False):
    """The arguments of a function of Python."""

    number: Any = msgspec.field(default=None, name="Python id")
    parent: Any = msgspec.field(default=None, name="Python parent id")


class Event(msgspec.Struct, gc=False):
    """An event of a trace. `ts` and `dur` are microseconds. The arguments stay text, of which `arguments_of` makes objects."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    id: Any = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = NO_ARGUMENTS


class Piece(NamedTuple):
    """Events that follow one another in the file, their times in ns, and which of these are times."""

    events: list[Event]
    start: Int64s
    begun: Bools


class Head(msgspec.Struct):
    """The parts of a trace beside its events."""

    device_properties: Any = msgspec.field(default=None, name="deviceProperties")
    distributed: Any = msgspec.field(default=None, name="distributedInfo")
    base_ns: Any = msgspec.field(default=0, name="baseTimeNanoseconds")
    cuda_runtime_version: Any = None
    cupti_version: Any = None
    hip_runtime_version: Any = None


class _Document(Head):
    events: list[Event] = msgspec.field(default_factory=list, name="traceEvents")


_DOCUMENT: Final = msgspec.json.Decoder(_Document, strict=False)
_EVENTS: Final = msgspec.json.Decoder(list[Event], strict=False)
#: The same with every digit of a time.
_EXACT_DOCUMENT: Final = msgspec.json.Decoder(_Document, strict=False, float_hook=Decimal)
_EXACT_EVENTS: Final = msgspec.json.Decoder(list[Event], strict=False, float_hook=Decimal)


class TraceFile:
    """A trace on disk.

    Args:
        path: JSON, which may be compressed.

    Attributes:
        head: what it has beside the events; complete after the last piece.
        text_bytes: bytes of its text that were read.
        mended: how many places of each kind were no JSON and were mended; complete after the last piece.
        lacks_end: the text ends behind an event, without the end of the list; likewise.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.head = Head()
        self.text_bytes = 0
        self.mended = Counter[str]()
        self.lacks_end = False

    def pieces(self) -> Iterator[Piece]:
        """Yield the events in pieces, in their order. Raises ReportError: the file cannot be read, is cut off, or is no
        trace."""
        try:
            yield from self._pieces(text_blocks(self._path, PIECE_BYTES))
        except NotTheFile as error:
            raise self._refused(str(error)) from None
        except UNREADABLE as error:
            raise self._refused(
                f"cannot be read ({str(error) or type(error).__name__}); copy it again, or profile again"
            ) from error

    def _pieces(self, blocks: Iterator[bytes]) -> Iterator[Piece]:
        prefix = rest = block = b""
        for more in blocks:
            self.text_bytes += len(more)
            if prefix:
                piece, rest = self._split(rest, block)
                if piece:
                    yield piece
                elif len(rest) > _MOST_EVENT_BYTES:
                    raise self._refused(f"an event has more than {_MOST_EVENT_BYTES >> 20} MiB; it is no trace of a profiler")
                block = more
            else:
                block += more
                prefix = _prefix(block)
                block = block[len(prefix) :]
                if not prefix and len(block) >= _MOST_HEAD_BYTES:
                    break
        if not prefix:
            raise self._refused("has no list traceEvents; give a trace of PyTorch's profiler (export_chrome_trace)")
        yield self._last(prefix, rest + block)

    def _split(self, rest: bytes, block: bytes) -> tuple[Piece | None, bytes]:
        """The events before one of the last places between two events in a block, and the text after it; None where none is found.
        `rest`: the text before the block."""
        window = max(0, len(block) - _WINDOW_BYTES)
        places = [between.start() + 1 for between in BETWEEN_EVENTS.finditer(block, window)][-_TRIED:]
        for end in reversed(places):
            piece = b"".join((b"[", rest, memoryview(block)[:end], b"]"))
            try:
                _, found = self._decoded(piece, _EVENTS, _EXACT_EVENTS)
            except _DAMAGE as error:
                if _is_cut(error) or "trailing" in str(error):  # the place is within an event, or behind the list
                    continue
                raise self._damaged(error) from None
            return found, block[block.index(b"{", end) :]
        return None, rest + block

    def _decoded(self, text: bytes, decoder: Any, exactly: Any) -> tuple[Any, Piece]:
        """The events of a text, or the document, mended where it is no JSON; and its events. Raises _DAMAGE: it is cut off, or
        damaged in another way."""
        try:
            return _exact(decoder.decode(text), lambda: exactly.decode(text))
        except _DAMAGE as error:
            if _is_cut(error) or "trailing" in str(error):
                raise
            whole, changed = mended(text)
            if not changed:
                raise
        result = _exact(decoder.decode(whole), lambda: exactly.decode(whole))
        self.mended += changed
        return result

    def _last(self, prefix: bytes, rest: bytes) -> Piece:
        """The events of the last piece, and the head from the text around the list."""
        is_list = prefix.lstrip().startswith(b"[")
        decoders = (_EVENTS, _EXACT_EVENTS) if is_list else (_DOCUMENT, _EXACT_DOCUMENT)
        text = prefix + rest
        try:
            found, piece = self._decoded(text, *decoders)
        except _DAMAGE as error:
            if not _is_cut(error) or not rest:
                raise self._damaged(error) from None
            try:
                found, piece = self._decoded(_closed(text, is_list), *decoders)
            except _DAMAGE:
                raise self._damaged(error) from None
            self.lacks_end = True
        if not is_list:
            found.events = []  # the piece has them
            self.head = found
        return piece

    def _damaged(self, error: Exception) -> ReportError:
        what = "is cut off" if _is_cut(error) else f"is damaged ({error})"
        return self._refused(f"{what}; copy it again, or profile again")

    def _refused(self, why: str) -> ReportError:
        return ReportError(f"{self._path.name}: {why}")


def _is_cut(error: Exception) -> bool:
    return "truncated" in str(error)


def _closed(text: bytes, is_list: bool) -> bytes:
    """The text with the end that it lacks, if it ends behind an event."""
    text = text.rstrip(b" \t\r\n\0").removesuffix(b",")
    if text.endswith(b"}"):
        return text + (b"]" if is_list else b"]}")
    return text + b"}" if text.endswith(b"]") and not is_list else text


def _prefix(text: bytes) -> bytes:
    """The text before the first event; empty where the list has not begun."""
    if text[:_BEGIN_BYTES].lstrip().startswith(b"["):
        return text[: text.index(b"[") + 1]
    found = _LIST.search(text)
    return text[: found.end()] if found else b""


def _exact(found: Any, again: Callable[[], Any]) -> tuple[Any, Piece]:
    """Events, or a document, decoded again with every digit where a float64 does not hold a time; and its events."""
    events = _events(found)
    stamps = [event.ts for event in events]
    values = _floats(stamps)
    floats = np.array([stamp for stamp in stamps if isinstance(stamp, float)]) if values is None else values
    late = floats[floats >= _EXACT_US]
    if np.any(late % 1 != 0):
        found, values = again(), None
        events = _events(found)
        stamps = [event.ts for event in events]
    return found, Piece(events, *(_exact_ns(stamps) if values is None else _rounded_ns(values)))


def _events(found: Any) -> list[Event]:
    return found.events if isinstance(found, _Document) else found


def _floats(values: Sequence[Any]) -> Floats | None:
    """Numbers, NaN for None; None where something else is among them, or an integer that a float64 does not hold."""
    try:
        return np.asarray(pa.array(values, pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowException, OverflowError):
        return None


_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
_Arguments = TypeVar("_Arguments")


def arguments_of(events: Sequence[Event], kind: type[_Arguments]) -> list[_Arguments]:
    """The arguments of events; the defaults where an event has none, or something else in their place."""
    decoder = _decoder_of(kind)
    try:
        found: list[_Arguments] = decoder.decode(b"[" + b",".join([event.args for event in events]) + b"]")
    except _DAMAGE:
        found = [_arguments(decoder, event) or kind() for event in events]
    return found


def _decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """A decoder of a list of arguments."""
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(list[kind])
    return _DECODERS[kind]


def _arguments(decoder: msgspec.json.Decoder[Any], event: Event) -> Any:
    try:
        return decoder.decode(b"[" + event.args + b"]")[0]
    except _DAMAGE:
        return None


def times_ns(microseconds: Sequence[Any]) -> tuple[Int64s, Bools]:
    """Times in ns, exact to the digits of the file, and which of them are times.

    A float64 below `_EXACT_US` is less than half a nanosecond from its text. Its whole part and its fraction are exact, so the fraction,
    rounded to nanoseconds, has the digits of the text. A product with 1000 would not.
    """
    values = _floats(microseconds)
    return _exact_ns(microseconds) if values is None else _rounded_ns(values)


def _exact_ns(microseconds: Sequence[Any]) -> tuple[Int64s, Bools]:
    """The same of times of any type, one by one."""
    pairs = [_nanoseconds(each) for each in microseconds]
    return np.array([ns for ns, _ in pairs], np.int64), np.array([fine for _, fine in pairs], bool)


def _rounded_ns(values: Floats) -> tuple[Int64s, Bools]:
    """The same of numbers."""
    fine = np.abs(values) < _MOST_US
    values = np.where(fine, values, 0.0)
    whole = np.floor(values)
    return whole.astype(np.int64) * _NS_PER_US + np.rint((values - whole) * _NS_PER_US).astype(np.int64), fine


def _nanoseconds(microseconds: Any) -> tuple[int, bool]:
    """One time of any type, such as a Decimal."""
    try:
        exact = Decimal(microseconds)
        return (round(exact * _NS_PER_US), True) if abs(exact) < _MOST_US else (0, False)
    except (InvalidOperation, TypeError, ValueError):
        return 0, False
