"""The kernels of a cubin with their resources: a cubin is an ELF file, and each kernel a symbol in it."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_MAGIC: Final = b"\x7fELF"
_CUDA: Final = 190  # the machine in the header of the file
_SYMBOLS: Final = 2  # the type of a section with symbols
_ENTRY: Final = 0x10  # of a symbol: a kernel, and not a function that kernels call
#: From this version of the format on, the architecture is in the second byte of the flags.
_SECOND_BYTE: Final = 8
#: An attribute of section `.nv.info`: format, attribute, size; then the number of a symbol and its registers.
_REGISTERS: Final = struct.Struct("<BBHII")
_WITH_SIZE: Final = 0x04  # a format; the value of the others is in the place of the size
_IS_REGISTERS: Final = (_WITH_SIZE, 0x2F, 8)
#: From compute capability 9.0 on, a section with shared memory begins with what the driver reserves.
_RESERVED_FROM: Final = 90
_RESERVED_BYTES: Final = 1024


class CubinError(Exception):
    """The file is not a cubin, or it is damaged."""


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel."""

    registers: int
    static_shared_bytes: int


@dataclass(frozen=True)
class Cubin:
    """The architecture of a cubin, such as `sm_90`, and its kernels by symbol."""

    architecture: str
    kernels: dict[str, Resources]


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


_SECTION: Final = struct.Struct("<IIQQQQII")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


def read(cubin: bytes) -> Cubin:
    """Read the headers of a cubin. Raises CubinError."""
    if cubin[:4] != _MAGIC or len(cubin) < 64:
        raise CubinError("not an ELF file")
    try:
        (machine,) = struct.unpack_from("<H", cubin, 0x12)
        if machine != _CUDA:
            raise CubinError("an ELF file for a processor, not for a GPU")
        (flags,) = struct.unpack_from("<I", cubin, 0x30)
        capability = flags >> 8 & 0xFF if cubin[8] >= _SECOND_BYTE else flags & 0xFF
        return Cubin(f"sm_{capability}", dict(_kernels(cubin, _RESERVED_BYTES if capability >= _RESERVED_FROM else 0)))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CubinError("a damaged ELF file") from error


def _kernels(cubin: bytes, reserved: int) -> Iterator[tuple[str, Resources]]:
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [_Section(*_SECTION.unpack_from(cubin, start + size * place)) for place in range(count)]
    names = [_text(cubin, sections[names_at].offset + each.name) for each in sections]
    shared = {name.removeprefix(".nv.shared."): each.size for name, each in zip(names, sections, strict=True)}
    registers = dict(_registers(cubin, sections[names.index(".nv.info")])) if ".nv.info" in names else {}
    for table in (each for each in sections if each.type == _SYMBOLS):
        strings = sections[table.link].offset
        for number in range(table.size // _SYMBOL.size):
            name, _, other, place, _, _ = _SYMBOL.unpack_from(cubin, table.offset + number * _SYMBOL.size)
            if other & _ENTRY and place < count and names[place].startswith(".text."):
                symbol = _text(cubin, strings + name)
                used = registers.get(number, sections[place].info >> 24)
                yield symbol, Resources(used, max(0, shared.get(symbol, 0) - reserved))


def _registers(cubin: bytes, section: _Section) -> Iterator[tuple[int, int]]:
    """The registers of each function, by the number of its symbol."""
    place, end = section.offset, section.offset + section.size
    while place + 4 <= end:
        form, _, size = struct.unpack_from("<BBH", cubin, place)
        if struct.unpack_from("<BBH", cubin, place) == _IS_REGISTERS:
            yield _REGISTERS.unpack_from(cubin, place)[3:]
        place += 4 + (size if form == _WITH_SIZE else 0)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")
