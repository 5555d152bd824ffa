"""A cache of compiled kernels on disk, shared by all processes and runs.

An entry is one file. Its name is a hash of everything that the machine code depends on. It is written to a temporary file and
renamed, so that concurrent recordings find a complete entry or none. A damaged entry is ignored.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

#: Environment variable that names the cache folder; default: `warpladder` in XDG_CACHE_HOME or in `~/.cache`.
CACHE_VARIABLE: Final = "WARPLADDER_CACHE_DIR"
#: Most bytes of all entries together. The least recently used entries are removed first.
LIMIT_BYTES: Final = 512 << 20
_MAGIC: Final = b"warpladder kernel 1\n"
_SUFFIX: Final = ".kernel"


def cache_dir() -> Path:
    """Return the user's cache folder."""
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return Path(folder).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache") / "warpladder"


def share_with_libraries() -> None:
    """Set the caches of Numba, Triton and PyTorch's compiler to the cache folder, and have PyTorch compile in its own process.

    Variables that the user has set stay. Only processes that are started afterwards see the new values.
    """
    for variable, name in (
        ("NUMBA_CACHE_DIR", "numba"),
        ("TRITON_CACHE_DIR", "triton"),
        ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
    ):
        os.environ.setdefault(variable, str(cache_dir() / name))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def holds(key: str) -> bool:
    """Whether the cache has an entry of this name; it may be damaged."""
    return _file(key).exists()


def key_of(*parts: str | Sequence[str]) -> str:
    """Return the name of the entry for these texts."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read(key: str) -> tuple[Mapping[str, Any], bytes] | None:
    """Return the facts and the machine code of an entry; None if it is missing or damaged."""
    file = _file(key)
    try:
        entry = file.read_bytes()
        os.utime(file)  # marks the entry as used
    except OSError:
        return None
    digest, _, rest = entry.removeprefix(_MAGIC).partition(b"\n")
    if not entry.startswith(_MAGIC) or hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    facts, _, code = rest.partition(b"\n")
    return json.loads(facts), code


def write(key: str, facts: Mapping[str, Any], code: bytes, limit_bytes: int = LIMIT_BYTES) -> None:
    """Write an entry, and remove the least recently used ones beyond the limit. Do nothing if the folder cannot be written."""
    content = json.dumps(facts).encode() + b"\n" + code
    entry = _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    file = _file(key)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as beside:
            try:
                beside.write(entry)
                beside.close()
                Path(beside.name).replace(file)
            except BaseException:
                Path(beside.name).unlink(missing_ok=True)
                raise
        _drop_oldest(file.parent, limit_bytes)


def _file(key: str) -> Path:
    return cache_dir() / "kernels" / f"{key}{_SUFFIX}"


def _drop_oldest(folder: Path, limit_bytes: int) -> None:
    entries = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another recording may have removed it
            status = entry.stat()
            entries.append((status.st_mtime_ns, status.st_size, Path(entry.path)))
    excess = sum(size for _, size, _ in entries) - limit_bytes
    for _, size, path in sorted(entries):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size
