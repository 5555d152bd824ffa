"""The text of a trace in blocks, from a file that may be compressed or have a byte order mark."""

import codecs
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

#: Bytes of text that a block has at most.
BLOCK_BYTES: Final = 16 << 20
_LFS: Final = b"version https://git-lfs"
_BY_PYARROW: Final = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
_XZ, _ZIP = b"\xfd7zXZ\0", b"PK\x03\x04"
#: What the standard library and pyarrow raise about a compressed file that is cut off or damaged.
UNREADABLE: Final = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException)


class NotTheFile(Exception):
    """The file is not one trace. The message says what it is and what to do."""

    def __init__(self, message: str, *, is_archive: bool = True) -> None:
        super().__init__(message)
        self.is_archive = is_archive


def text_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The text of a file in blocks, in UTF-8 and without a byte order mark.

    Raises:
        NotTheFile: it is a git-lfs pointer, or an archive of several files.
        UNREADABLE: it cannot be read, or is cut off.
    """
    blocks = _unpacked(path, block_bytes)
    first = next(blocks, b"")
    encoding = json.detect_encoding(first[:4])
    if not encoding.startswith("utf-8"):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        yield decoder.decode(first).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from blocks


def _unpacked(path: Path, size: int) -> Iterator[bytes]:
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        head = raw.read(len(_LFS))
        raw.seek(0)
        file: Any = raw
        if head.startswith(_LFS):
            raise NotTheFile("a git-lfs pointer, not the trace itself; fetch it with `git lfs pull`", is_archive=False)
        if head.startswith(_XZ):
            file = stack.enter_context(lzma.open(raw))
        elif known := next((name for name, begin in _BY_PYARROW.items() if head.startswith(begin)), None):
            file = stack.enter_context(pa.input_stream(str(path), compression=known))
        elif head.startswith(_ZIP):
            archive = stack.enter_context(zipfile.ZipFile(raw))
            file = stack.enter_context(archive.open(_member(archive)))
        while block := file.read(size):
            yield block


def _member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The file in an archive of one."""
    members = [each for each in archive.infolist() if not each.is_dir()]
    if len(members) != 1:
        raise NotTheFile(f"an archive of {len(members)} files; unpack it, and import the trace, or a job's folder with --job")
    if members[0].flag_bits & 1:
        raise NotTheFile("an archive with a password; unpack it first")
    return members[0]
