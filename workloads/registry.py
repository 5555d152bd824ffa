"""Finds the workloads: every folder here with a `workload.py`, and single files that the user names."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from warpladder.workloads.api import Workload, WorkloadError
from warpladder.workloads.declare import locate, neighbours
from warpladder.workloads.declare.functions.benchmark import Benchmark, at_version

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
    return _workloads_of(_declared_in(importlib.import_module(f"warpladder.workloads.{name}.workload"), where), where)[0]


def load_file(path: Path) -> tuple[Workload, ...]:
    """The workloads that a user's file declares: `WORKLOAD`, and its `Benchmark`s in the order of their names in the file.

    The file may import the modules and packages beside it.

    Raises:
        WorkloadError: there is no such file, it does not import, or it declares none.
    """
    return _workloads_of(_declared_by(path), str(path))


@dataclass(frozen=True)
class Version:
    """A version of a user's file.

    Attributes:
        roots: the folders in which it looks for modules first, beside its own.
        name: of the version, in the names of variants; empty for the user's own.
    """

    file: Path
    roots: tuple[Path, ...] = ()
    name: str = ""

    def workloads(self) -> tuple[Workload, ...]:
        """The workloads that it declares. Raises WorkloadError."""
        return _workloads_of(_declared_by(self.file, self.roots), str(self.file))


def load_versions(own: Version, other: Version) -> tuple[Workload, ...]:
    """The workloads of a file, each with the variants of another version of it after its own, named `NAME@version`.

    Inputs, reference, tolerance and cases are those of the file.

    Raises:
        WorkloadError: a version cannot be loaded, or they declare a workload in two ways.
    """
    declared = _declared_by(own.file, own.roots)
    others = {each.name: each for each in _declared_by(other.file, other.roots)}
    _check_apart(own, other)

    def beside(each: Workload | Benchmark) -> Workload:
        namesake = others.get(each.name)
        if isinstance(each, Benchmark) and isinstance(namesake, Benchmark):
            return each.beside(namesake, other.name)
        if isinstance(each, Workload) and isinstance(namesake, Workload):
            return replace(each, variants=(*each.variants, *(at_version(variant, other.name) for variant in namesake.variants)))
        if namesake:
            raise WorkloadError(
                f"{each.name} is a Benchmark in one version, and a Workload in the other; record each, and compare the runs"
            )
        return _workload_of(each)

    return _workloads_of(declared, str(own.file), beside)


def _check_apart(own: Version, other: Version) -> None:
    """Raise WorkloadError where the other version has a module of the user's own, which it imported by a name that is made when it runs."""

    def is_below(file: Path, version: Version) -> bool:
        return any(map(file.is_relative_to, (version.file.parent, *version.roots)))

    for file, module in neighbours.loaded().items():
        for name, value in vars(module).items() if is_below(file, other) else ():
            of = sys.modules.get(value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", "")))
            place = Path(getattr(of, "__file__", None) or "/")
            if is_below(place, own) and not is_below(place, other) and locate.is_own(str(place)):
                raise WorkloadError(
                    f"{file}: {name} is of {place}, so that one version would run code of the other; import it by an `import` statement"
                )


def _declared_by(path: Path, roots: Sequence[Path] = ()) -> tuple[Workload | Benchmark, ...]:
    """What a user's file declares. Raises WorkloadError."""
    if not locate.is_file(path):
        raise WorkloadError(
            f"{path}: no such file; give the path of a Python file that declares a Benchmark; `warpladder new NAME` writes one"
        )
    if path.suffix != ".py":
        raise WorkloadError(f"{path}: not a Python file; give the path of a .py file that declares a Benchmark")
    try:
        module = neighbours.load(path, roots)
    except (Exception, SystemExit) as error:
        raise WorkloadError(_located_message(path, error)) from error
    return _declared_in(module, str(path))


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


def _declared_in(module: ModuleType, where: str) -> tuple[Workload | Benchmark, ...]:
    """What a module declares: `WORKLOAD`, then benchmarks. Raises WorkloadError where that is nothing."""
    workload = getattr(module, "WORKLOAD", None)
    declared = [workload] if isinstance(workload, Workload) else []
    benchmarks = dict.fromkeys(value for value in vars(module).values() if isinstance(value, Benchmark))
    if not declared and not benchmarks:
        raise WorkloadError(
            f"{where}: declares no Benchmark at its top level, outside of `if __name__`, and sets no WORKLOAD; "
            "see docs/own-kernel.md"
        )
    return (*declared, *benchmarks)


def _workload_of(declared: Workload | Benchmark) -> Workload:
    return declared.workload if isinstance(declared, Benchmark) else declared


def _workloads_of(
    declared: Sequence[Workload | Benchmark], where: str, workload_of: Callable[[Workload | Benchmark], Workload] = _workload_of
) -> tuple[Workload, ...]:
    """The workloads of what a file declares. An error of one names the file. Raises WorkloadError."""
    try:
        return tuple(map(workload_of, declared))
    except WorkloadError as error:
        message, name = str(error), Path(where).name
        has_line = message.startswith(f"{name}:")  # it names a line itself
        raise WorkloadError(where + message.removeprefix(name) if has_line else f"{where}: {message}") from error
