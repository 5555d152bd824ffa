"""Finds the workloads: every folder here with a `workload.py`, and single files that the user names."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from warpladder.workloads import locate, neighbours
from warpladder.workloads.api import Workload, WorkloadError

_HERE = Path(__file__).resolve().parent


def names() -> tuple[str, ...]:
    """Names of the workloads in this folder."""
    return tuple(sorted(file.parent.name for file in _HERE.glob("*/workload.py")))


def load(name: str) -> Workload:
    """The workload of that name.

    Raises:
        WorkloadError: there is none, or its `workload.py` has no `WORKLOAD`.
    """
    if name not in names():
        raise WorkloadError(f"{name}: no such workload; known: {', '.join(names())}. A file of your own: --workload FILE.py")
    return _workload_of(importlib.import_module(f"warpladder.workloads.{name}.workload"), f"workloads/{name}/workload.py")


def load_file(path: Path) -> Workload:
    """The workload that a user's file declares as `WORKLOAD`. The file may import the modules and packages beside it.

    Raises:
        WorkloadError: there is no such file, it does not import, or it has no `WORKLOAD`.
    """
    if not path.is_file():
        raise WorkloadError(f"{path}: no such file; give the path of a Python file that sets WORKLOAD")
    if path.suffix != ".py":
        raise WorkloadError(f"{path}: not a Python file; give the path of a .py file that sets WORKLOAD")
    try:
        module = neighbours.load(path)
    except (Exception, SystemExit) as error:
        raise WorkloadError(f"{_place_from(path, error)}: {_what_failed(error)}") from error
    return _workload_of(module, str(path))


def load_all(workload_names: Sequence[str], files: Sequence[Path]) -> list[Workload]:
    """The named workloads, or all that ship when neither names nor files are given, then those of the files."""
    chosen = list(workload_names) or ([] if files else list(names()))
    loaded = [load(name) for name in chosen] + [load_file(file) for file in files]
    seen: set[str] = set()
    for workload in loaded:
        if workload.name in seen:
            raise WorkloadError(f"{workload.name}: two workloads of this name; rename one")
        seen.add(workload.name)
    return loaded


def _place_from(path: Path, error: BaseException) -> str:
    """File and line of an error in a user's file or in one beside it, with the path as the user gave it."""
    place = locate.place_of(error)
    if place is None:
        return str(path)
    file, folder = Path(place.file), path.parent.resolve()
    if file == path.resolve():
        name = str(path)
    else:
        name = str(path.parent / file.relative_to(folder)) if file.is_relative_to(folder) else place.file
    return f"{name}:{place.line}" if place.line else name


def _what_failed(error: BaseException) -> str:
    """What an exception of a user's file says, and what to do, in one line. An error of ours says both itself."""
    said = neighbours.as_written(locate.text_of(error))
    if type(error).__module__.partition(".")[0] == WorkloadError.__module__.partition(".")[0]:
        return said
    if isinstance(error, SystemExit):
        said = f"SystemExit: {said}" if said else "SystemExit"
        return f'{said}; the file ends the program: move that under `if __name__ == "__main__":`'
    name = type(error).__name__
    todo = "install it, or correct the name" if isinstance(error, ModuleNotFoundError) else "mend it, then try again"
    return f"{name}: {said}; {todo}" if said else f"{name}; {todo}"


def _workload_of(module: ModuleType, where: str) -> Workload:
    workload = getattr(module, "WORKLOAD", None)
    if type(workload).__name__ == Workload.__name__ and not isinstance(workload, Workload):
        theirs = type(workload).__module__
        raise WorkloadError(f"{where}: imports {theirs}; import {Workload.__module__} in its place")
    if not isinstance(workload, Workload):
        raise WorkloadError(f"{where}: sets no WORKLOAD = Workload(...); see docs/own-workload.md")
    return workload
