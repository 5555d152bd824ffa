"""Digests of the files that code may read or import without a statement that names them."""

import hashlib
import os
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

#: Of more files or bytes, no digest is made.
_MOST_FILES: Final = 2000
_MOST_BYTES: Final = 64 << 20


def python_below(folders: Iterable[Path]) -> Iterator[Path]:
    """The files of Python in folders, which a computed import may name. It ends where they are too many for a digest."""
    return islice((file for folder in folders for file in _below(folder) if file.suffix == ".py"), _MOST_FILES + 1)


def data_below(folder: Path) -> Iterator[Path]:
    """The files in a folder that are no Python. It ends where they are too many for a digest."""
    return islice((file for file in _below(folder) if file.suffix != ".py"), _MOST_FILES + 1)


def named_by(texts: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """The files that texts of a program name in some folders, and those in the folders that they name."""
    folders = list(folders)
    for text in texts:
        if len(text) > 255 or not text.strip("./ ") or not text.isprintable() or Path(text).is_absolute():
            continue
        for place in (folder / text for folder in folders):
            if place.is_file():
                yield place
            elif place.is_dir():
                yield from data_below(place)


def holds(file: Path, texts: Container[str]) -> bool:
    """Whether a file has one of these texts, which have no blanks around them."""
    try:
        return file.stat().st_size <= _MOST_BYTES and file.read_text().strip() in texts
    except (OSError, ValueError):
        return False


def digest_of(files: Iterable[Path], start: Path) -> str:
    """SHA-256 of files and of their names, which are relative to `start`. Where they are too many to read, or one cannot be read, it is
    the place of `start`, so that trees in two places are not equal."""
    digest, size, seen = hashlib.sha256(), 0, set[Path]()
    for file in files:
        if file in seen:
            continue
        seen.add(file)
        try:
            size += file.stat().st_size
            if len(seen) > _MOST_FILES or size > _MOST_BYTES:
                return f"more than can be compared, in {start}"
            content = file.read_bytes()
        except OSError:
            return f"some that cannot be read, in {start}"
        digest.update(f"{os.path.relpath(file, start)}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    return f"SHA-256 {digest.hexdigest()}"


def _below(folder: Path) -> Iterator[Path]:
    """The files in a folder, in order, without hidden ones, compiled ones and environments."""
    for place, folders, files in os.walk(folder):
        kept = [each for each in folders if not each.startswith(".") and each != "__pycache__"]
        folders[:] = sorted(each for each in kept if not Path(place, each, "pyvenv.cfg").exists())
        yield from (file for name in sorted(files) if not name.startswith(".") and (file := Path(place, name)).is_file())
