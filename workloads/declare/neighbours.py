"""Imports of a user's workload file: it can import the modules beside it, and no other module can.

The files of a folder become modules of a package whose name is derived from the folder's path. An import in one of them looks
in that package first, then in the usual places. So two folders may both have a `helpers.py`, and a `data.py` beside a workload
does not hide ours. The importing module decides where an import looks, so an import inside a function works too, long after the
file was loaded.

`sys.path` with `importlib` alone was tried. A module that a function imports when it runs then comes from the folder that was
loaded last: of two files with a `helpers.py` each, one calls the other's without a word. A `queue.py` beside the file would also
take the place of Python's own in the whole process.
"""

import builtins
import functools
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from warpladder.workloads.declare import locate

_PREFIX: Final = "user_workload_"
#: The package of `warpladder.workloads.api`. An import of this name never means a module beside the file.
_OURS: Final = "warpladder"


class EndOfModule(BaseException):
    """Ends the loading of a module at a line that would record: what the module declares stands above it."""


class _Loading(threading.local):
    """How many modules this thread is loading, one within the other."""

    depth = 0


_loading: Final = _Loading()


def end_if_loading() -> None:
    """Raise EndOfModule while a user's file is loaded."""
    if _loading.depth:
        raise EndOfModule


def load(file: Path, roots: Sequence[Path] = ()) -> ModuleType:
    """Runs a user's Python file again and returns its module. An exception of the file is passed on.

    Args:
        roots: further folders in which the file, and what it imports from them, look for modules before the usual places. So one process
            can hold two versions of a package.
    """
    file = file.resolve()
    _may_be_beside.cache_clear()
    package = _package_of(file.parent, roots)
    name = f"{package}.{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def as_written(message: str) -> str:
    """A message with the names of modules as the user wrote them."""
    words = message.split(_PREFIX)
    return words[0] + "".join(word.partition(".")[2] if "." in word else f"{_PREFIX}{word}" for word in words[1:])


def loaded() -> dict[Path, ModuleType]:
    """The modules that `load` has run in this process, and those beside them that they imported, by their files."""
    modules = [module for name, module in sys.modules.items() if is_of_user(name)]
    return {Path(file): module for module in modules if (file := getattr(module, "__file__", None))}


def is_of_user(module: object) -> bool:
    """Whether this is the name of a module that `load` has run, or of one beside it."""
    return isinstance(module, str) and module.startswith(_PREFIX)


def module_named(namespace: Mapping[str, Any], module: str, level: int) -> ModuleType | None:
    """The module that an import in this namespace names, with so many dots before it, if it has been imported."""
    package = namespace.get("__package__") or str(namespace.get("__name__", "")).rpartition(".")[0]
    try:
        relative = importlib.util.resolve_name("." * level + module, package or None)
    except ImportError:
        return None
    beside = f"{package.partition('.')[0]}.{module}" if package and not level else ""
    module_object = sys.modules.get(beside) or sys.modules.get(relative)
    return module_object if isinstance(module_object, ModuleType) else None


def files_named(importing: str, module: str, level: int, folders: Sequence[Path]) -> list[Path]:
    """The files that an import of a module of the user's would run, those of the packages around it first; none if there is no such module.

    Args:
        importing: the file with the import, from which one with dots looks.
        folders: those in which one without dots looks.
    """
    bases = [Path(importing).parents[level - 1]] if 0 < level <= len(Path(importing).parents) else [] if level else folders
    parts = module.split(".") if module else []
    for base in bases:
        places = [base.joinpath(*parts[:count]) for count in range(min(1, len(parts)), len(parts) + 1)]
        files = [_file_at(place) for place in places]
        if files[-1] or places[-1].is_dir():
            return [file for file in files if file]
    return []


def _file_at(place: Path) -> Path | None:
    """The file of the package or the module at a path without its suffix."""
    names = (f"{place.name}{suffix}" for suffix in (*EXTENSION_SUFFIXES, ".py"))
    files = (place / "__init__.py", *(place.with_name(name) for name in names))
    return next((file for file in files if file.is_file()), None)


def folders_around(file: str) -> tuple[Path, ...]:
    """The folder of a user's file and the roots that it was loaded with, of which the file is in one; empty for another file, or without roots."""
    above = set(map(str, Path(file).parents))
    for name, package in list(sys.modules.items()):
        if is_of_user(name) and "." not in name and len(package.__path__) > 1 and not above.isdisjoint(package.__path__):
            return tuple(map(Path, package.__path__))
    return ()


def _package_of(folder: Path, roots: Sequence[Path]) -> str:
    """Name of the package whose modules are the files of some folders. It is the same in every process."""
    folders = list(map(str, (folder, *roots)))
    name = _PREFIX + hashlib.sha256("\0".join(folders).encode(errors="surrogateescape")).hexdigest()[:12]
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = folders
        sys.modules[name] = package
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        importlib.import_module = _import_module
    return name


_import_anywhere: Final = importlib.import_module


@functools.wraps(_import_anywhere)
def _import_module(name: str, package: str | None = None) -> ModuleType:
    """`importlib.import_module`. Called in a user's module, it looks in the folder of that module first, as an import statement does."""
    caller = sys._getframe(1).f_globals.get("__name__")
    if not is_of_user(caller):
        return _import_anywhere(name, package)
    absolute = importlib.util.resolve_name(name, package)
    beside = str(caller).partition(".")[0]
    is_beside = not is_of_user(absolute) and _may_be_beside(beside, absolute.partition(".")[0])
    return _import_anywhere(f"{beside}.{absolute}" if is_beside else absolute)


@functools.cache
def _may_be_beside(package: str, name: str) -> bool:
    """`_is_beside`, as it was at the first import of the name: an import in a timed function stays fast."""
    return _is_beside(package, name)


class _Loader(SourceFileLoader):
    """Runs a module whose imports look in its own folder first.

    It compiles the source each time. Python's compiled files are found by the second of the last change and the size, and a file
    that is edited while it is watched may be saved twice in a second.
    """

    def path_stats(self, path: Any) -> Mapping[str, Any]:
        raise OSError  # read and write no compiled file

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        beside: dict[str, bool] = {}  # keeps an import inside a timed function as fast as others

        def import_(
            name: str,
            globals: Mapping[str, object] | None = None,
            locals: Mapping[str, object] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            first = name.partition(".")[0]
            if not level and first not in beside:
                beside[first] = _is_beside(package, first)
            if level or not beside[first]:
                return builtins.__import__(name, globals, locals, fromlist or (), level)
            imported = builtins.__import__(f"{package}.{name}", globals, locals, fromlist or (), 0)
            return imported if fromlist else sys.modules[f"{package}.{first}"]

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_}
        _loading.depth += 1
        try:
            with redirect_stdout(sys.stderr):  # stdout is of the command, which may print JSON
                super().exec_module(module)
        except EndOfModule:
            pass
        finally:
            _loading.depth -= 1


class _Finder(MetaPathFinder):
    """Finds the modules of folders of users, and has them run by `_Loader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or path is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def _is_beside(package: str, name: str) -> bool:
    """Whether a folder has a module or package of that name. A folder without `__init__.py` counts only if no other package has
    its name, but for such a folder of the user's, as the current one may have."""
    if f"{package}.{name}" in sys.modules:
        return True
    if name == _OURS:
        return False
    spec = PathFinder.find_spec(f"{package}.{name}", sys.modules[package].__path__)
    if spec is None:
        return False
    if spec.origin is not None or (other := importlib.util.find_spec(name)) is None:
        return True
    return other.origin is None and all(
        locate.is_own(f"{each}/{name}.py") for each in other.submodule_search_locations or ["<"]
    )
