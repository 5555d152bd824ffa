"""Finds the workloads: every folder here with a `workload.py`, and single files that the user names."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from warpladder.workloads.api import Workload, WorkloadError
from warpladder.workloads.declare import locate, neighbours
from warpladder.workloads.declare.functions.benchmark import Benchmark

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
        raise WorkloadError(f"{name}: no such workload; known: {', '.join(names())}. A file of your own: FILE.py")
    where = f"workloads/{name}/workload.py"
    return _workloads_of(importlib.import_module(f"warpladder.workloads.{name}.workload"), where)[0]


def load_file(path: Path) -> tuple[Workload, ...]:
    """The workloads that a user's file declares: `WORKLOAD`, and its `Benchmark`s in the order of their names in the file.

    The file may import the modules and packages beside it.

    Raises:
        WorkloadError: there is no such file, it does not import, or it declares none.
    """
    if not locate.is_file(path):
        raise WorkloadError(
            f"{path}: no such file; give the path of a Python file that declares a Benchmark; `warpladder new NAME` writes one"
        )
    if path.suffix != ".py":
        raise WorkloadError(f"{path}: not a Python file; give the path of a .py file that declares a Benchmark")
    try:
        module = neighbours.load(path)
    except (Exception, SystemExit) as error:
        raise WorkloadError(_located_message(path, error)) from error
    return _workloads_of(module, str(path))


def load_all(workload_names: Sequence[str], files: Sequence[Path]) -> list[Workload]:
    """The named workloads, or all that ship when neither names nor files are given, then the workloads of the files."""
    return [workload for workload, _ in load_with_files(workload_names, files)]


def load_with_files(workload_names: Sequence[str], files: Sequence[Path]) -> list[tuple[Workload, Path | None]]:
    """The workloads of `load_all`, each with the user's file that declares it; None for a workload of the project."""
    selected = list(workload_names) or ([] if files else list(names()))
    loaded: list[tuple[Workload, Path | None]] = [(load(name), None) for name in selected]
    loaded += [(workload, file) for file in files for workload in load_file(file)]
    used_names: set[str] = set()
    for workload, file in loaded:
        if workload.name in used_names:
            raise WorkloadError(f"{f'{file}: ' if file else ''}{workload.name}: two workloads of this name; rename one")
        used_names.add(workload.name)
    return loaded


def _located_message(path: Path, error: BaseException) -> str:
    """File and line of an error in a user's file or in one beside it, with the path as the user gave it, and what failed."""
    message, place = _what_failed(error), locate.place_of(error)
    if place is None:
        return f"{path}: {message}"
    file, folder = Path(place.file), path.parent.resolve()
    if file == path.resolve():
        name = str(path)
    else:
        name = str(path.parent / file.relative_to(folder)) if file.is_relative_to(folder) else place.file
    if message.startswith(f"{file.name}:"):  # it names a line itself
        return name + message.removeprefix(file.name)
    return f"{name}:{place.line}: {message}" if place.line else f"{name}: {message}"


def _what_failed(error: BaseException) -> str:
    """The message of an exception of a user's file, and what to do, in one line. An error of this project has both in its
    message."""
    message = neighbours.as_written(locate.text_of(error))
    if type(error).__module__.partition(".")[0] == WorkloadError.__module__.partition(".")[0]:
        return message
    if isinstance(error, SystemExit):
        message = f"SystemExit: {message}" if message else "SystemExit"
        return f'{message}; the file ends the program: move that under `if __name__ == "__main__":`'
    name = type(error).__name__
    todo = "install it, or correct the name" if isinstance(error, ModuleNotFoundError) else "mend it, then try again"
    return f"{name}: {message}; {todo}" if message else f"{name}; {todo}"


def _workloads_of(module: ModuleType, where: str) -> tuple[Workload, ...]:
    workload = getattr(module, "WORKLOAD", None)
    declared = [workload] if isinstance(workload, Workload) else []
    benchmarks = dict.fromkeys(value for value in vars(module).values() if isinstance(value, Benchmark))
    try:
        workloads = (*declared, *(benchmark.workload for benchmark in benchmarks))
    except WorkloadError as error:
        message, name = str(error), Path(where).name
        has_line = message.startswith(f"{name}:")  # it names a line itself
        raise WorkloadError(where + message.removeprefix(name) if has_line else f"{where}: {message}") from error
    if not workloads:
        raise WorkloadError(
            f"{where}: declares no Benchmark at its top level, outside of `if __name__`, and sets no WORKLOAD; "
            "see docs/own-kernel.md"
        )
    return workloads
