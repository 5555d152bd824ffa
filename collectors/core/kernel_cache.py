"""Machine code on disk: what was compiled once is not compiled again, by this process or another, in this run or a later one.

An entry is one file, named by a hash of everything that the code depends on. It is written beside its place and renamed, so that two
recordings at once each find a whole entry or none. A damaged entry counts as none.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

#: Names the folder; without it `warpladder` in XDG_CACHE_HOME, or in `~/.cache`.
CACHE_VARIABLE: Final = "WARPLADDER_CACHE_DIR"
#: Bytes that all entries may take together; those that were not used for longest go first.
LIMIT_BYTES: Final = 512 << 20
_MAGIC: Final = b"warpladder kernel 1\n"
_SUFFIX: Final = ".kernel"


def cache_dir() -> Path:
    """The user's folder for what can be made again."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache") / "warpladder"


def share_with_libraries() -> None:
    """Have Numba, Triton and PyTorch's compiler keep there what they compile, and compile it in the process that asks, unless the user
    has said otherwise.

    It is for processes started after this one was told.
    """
    for variable, name in (
        ("NUMBA_CACHE_DIR", "numba"),
        ("TRITON_CACHE_DIR", "triton"),
        ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
    ):
        os.environ.setdefault(variable, str(cache_dir() / name))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def holds(key: str) -> bool:
    """Whether there is an entry; it may be damaged."""
    return _file(key).exists()


def key_of(*parts: str | Sequence[str]) -> str:
    """Name of the entry of what depends on these texts."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read(key: str) -> tuple[Mapping[str, Any], bytes] | None:
    """Facts and machine code of an entry; None where there is none, or none that is whole."""
    file = _file(key)
    try:
        found = file.read_bytes()
        os.utime(file)  # so that what is used stays
    except OSError:
        return None
    digest, _, rest = found.removeprefix(_MAGIC).partition(b"\n")
    if not found.startswith(_MAGIC) or hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    facts, _, code = rest.partition(b"\n")
    return json.loads(facts), code


def write(key: str, facts: Mapping[str, Any], code: bytes, limit_bytes: int = LIMIT_BYTES) -> None:
    """Keep an entry, where the folder can be written, and drop the oldest beyond the limit."""
    content = json.dumps(facts).encode() + b"\n" + code
    whole = _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    file = _file(key)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as beside:
            try:
                beside.write(whole)
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
        with suppress(OSError):  # another recording may have dropped it
            status = entry.stat()
            entries.append((status.st_mtime_ns, status.st_size, Path(entry.path)))
    excess = sum(size for _, size, _ in entries) - limit_bytes
    for _, size, path in sorted(entries):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size
