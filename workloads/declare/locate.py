"""Places in the user's own code: which files are the user's, and where an exception of one comes from."""

import itertools
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from warpladder.installation import ROOT

#: Folders of a path that say that its file is installed, or written by a compiler of Python functions.
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_GENERATED: Final = "torchinductor_"
#: Variables that name folders in which compilers keep the code that they generate.
_CACHES: Final = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR")
_ROOMS: Final = ("collectors", "dashboard", "data", "warpladder", "workloads")


def is_file(path: Path) -> bool:
    """Whether there is such a file. None can have a name of more than 255 bytes or with a null character."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class Place:
    """A line of a file, or of a notebook's cell.

    Attributes:
        file: as the code object has it: an absolute path for a loaded workload file.
        line: from 1; 0 if it is not known.
    """

    file: str
    line: int

    def __str__(self) -> str:
        name = f"cell {_number_of_cell(self.file)}".rstrip() if is_cell(self.file) else Path(self.file).name
        return f"{name}:{self.line}" if self.line else name


def where(error: BaseException) -> str:
    """The place in the user's own code that an exception comes from, such as `bench.py:27`; empty if there is none."""
    place = place_of(error)
    return str(place) if place else ""


def place_of(error: BaseException) -> Place | None:
    """The deepest line of the user's own code in the exception's traceback; for an error of syntax, the line that it names.

    The cause of an exception is followed if the exception was raised outside of the user's code.
    """
    visited: set[int] = set()
    deepest: Place | None = None
    following: BaseException | None = error
    while following is not None and id(following) not in visited:
        visited.add(id(following))
        place, raised_there = _in_traceback(following)
        deepest = place or deepest
        if raised_there:
            break
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return deepest


def text_of(error: BaseException) -> str:
    """Write an exception's text on one line of at most 500 characters; empty where it has none or cannot be shown."""
    try:
        text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    except Exception:  # an exception class of the user may fail at its own text
        return ""
    return " ".join(text.split())[:500]


def is_own(file: str) -> bool:
    """Whether a file of code is the user's: not of Python, not installed, not of this package, and not generated.
    `file`: path of a source file, or the name that a notebook gives its cell."""
    return _is_own(file, tuple(map(os.environ.get, _CACHES)))


def own_modules() -> Iterator[tuple[str, dict[str, Any]]]:
    """The files and the namespaces of the imported modules that are the user's."""
    caches = tuple(map(os.environ.get, _CACHES))
    for module in list(sys.modules.values()):
        namespace = vars(module) if isinstance(module, ModuleType) else {}
        file = namespace.get("__file__")
        if isinstance(file, str) and file.endswith(".py") and _is_own(file, caches):
            yield file, namespace


def is_cell(file: str) -> bool:
    """Whether the name belongs to a notebook's cell, or to code that was typed at Python's prompt."""
    if file == "<stdin>" or file.startswith(("<ipython-input-", "<python-input-")):
        return True
    return "ipykernel_" in file and Path(file).parent.name.startswith("ipykernel_") and not Path(file).exists()


def _in_traceback(error: BaseException) -> tuple[Place | None, bool]:
    """The deepest line of the user's own code, and whether the exception was raised in it or in a library that it called."""
    if isinstance(error, SyntaxError) and error.filename and is_own(error.filename) and Path(error.filename).is_file():
        return Place(error.filename, error.lineno or 0), True
    place, is_in_project = None, False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if is_own(file):
            place, is_in_project = Place(file, line or 0), False
        else:
            is_in_project = is_in_project or _is_ours(file)
    return place, place is not None and not is_in_project


@cache
def _is_own(file: str, caches: tuple[str | None, ...]) -> bool:
    if (cell := is_cell(file)) or file.startswith("<"):
        return cell
    path = Path(file)
    if not path.is_absolute() and not path.exists():  # of a library that Cython compiled elsewhere
        return False
    path = path.resolve() if path.exists() else path.absolute()
    parts = path.parts
    if _INSTALLED & set(parts) or any(part.startswith(_GENERATED) for part in parts):
        return False
    if (".triton", "cache") in itertools.pairwise(parts):
        return False
    if any(path.is_relative_to(Path(folder).absolute()) for folder in caches if folder):
        return False
    return not _is_ours(file) and not any(path.is_relative_to(folder) for folder in _of_python())


@cache
def _of_python() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib")
    return tuple(dict.fromkeys(Path(folder).resolve() for name in names if (folder := sysconfig.get_path(name))))


@cache
def _is_ours(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    return any(path.is_relative_to((ROOT / room).resolve()) for room in _ROOMS)


def _number_of_cell(file: str) -> str:
    """The number that the notebook shows beside the cell; empty if it is not known."""
    if file.startswith("<ipython-input-"):
        return file.removeprefix("<ipython-input-").partition("-")[0]
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return str(numbers.get(file, ""))
