"""The functions that variants of a user's file share: those of its modules and classes, and those of libraries that it names.

A variant that replaces one of them slows, or helps, the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter, is_not
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from warpladder.workloads.declare.neighbours import is_of_user, loaded

#: What of a function of Python decides what it does.
_PARTS: Final = ("__code__", "__defaults__", "__kwdefaults__")
_parts_of: Final = attrgetter(*_PARTS)
_OURS: Final = "warpladder"
#: Where a function stands: in a module or a class, and under which name.
_Place = tuple[Any, str]


class _Objects(list[Any]):
    """Objects that are compared by identity: some, such as arrays, cannot be compared as a whole."""

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _Objects) or len(self) != len(other) or any(map(is_not, self, other))

    __hash__ = None


class OwnFunctions:
    """The functions in the modules and classes of the user's folder, with their code and defaults."""

    def __init__(self) -> None:
        modules = list(loaded().values())
        classes = [
            each
            for module in modules
            for each in vars(module).values()
            if isinstance(each, type) and each.__module__ == module.__name__
        ]
        self._places = [(owner, name) for owner in (*modules, *classes) for name in _functions_in(owner)]
        self._names = [(vars(owner), name) for owner, name in self._places]
        self._of_python = [each for names, name in self._names if type(each := names[name]) is FunctionType]

    def get(self) -> _Objects:
        functions = [names.get(name) for names, name in self._names]
        return _Objects(chain(functions, *map(_parts_of, self._of_python)))

    def write(self, before: _Objects) -> None:
        for (owner, name), function in zip(self._places, before, strict=False):
            if vars(owner).get(name) is not function:
                setattr(owner, name, function)
        parts = iter(before[len(self._places) :])
        for function in self._of_python:
            for part in _PARTS:
                setattr(function, part, next(parts))


class LibraryFunctions:
    """The functions of libraries that the code of the user's modules names, such as `scipy.special.erf`.

    One counts as replaced where a function of the user stands in its place: libraries replace some of their own when they are first called.

    Args:
        besides: modules that are left out.
    """

    def __init__(self, besides: Sequence[ModuleType]) -> None:
        names = {name for file in loaded() for name in _names_in(file)}
        modules = [each for module in loaded().values() for each in vars(module).values() if type(each) is ModuleType]
        self._places = list(_reached(modules, names, besides))
        self._names = [(vars(module), name) for module, name in self._places]
        self._functions = _Objects(names[name] for names, name in self._names)

    def get(self) -> _Objects:
        now = _Objects(names.get(name) for names, name in self._names)
        if now != self._functions:
            now[:] = [each if _is_of_user(each) else function for each, function in zip(now, self._functions, strict=True)]
        return now

    def write(self, before: _Objects) -> None:
        for (module, name), function in zip(self._places, before, strict=True):
            if _is_of_user(vars(module).get(name)):
                setattr(module, name, function)


def _is_of_user(function: Any) -> bool:
    return is_of_user(getattr(function, "__module__", ""))


def _functions_in(owner: Any) -> list[str]:
    return [name for name, each in vars(owner).items() if callable(each) and not isinstance(each, type)]


def _reached(modules: Iterable[ModuleType], names: set[str], besides: Sequence[ModuleType]) -> Iterator[_Place]:
    """The functions with these names in modules, and in modules with these names in them."""
    waiting, seen = list(modules), set[int]()
    while waiting:
        module = waiting.pop()
        if id(module) in seen or is_of_user(module.__name__) or module.__name__.partition(".")[0] == _OURS:
            continue
        seen.add(id(module))
        waiting += [each for name in names if type(each := vars(module).get(name)) is ModuleType]
        if module not in besides:
            yield from ((module, name) for name in names & set(_functions_in(module)))


def _names_in(file: Path) -> set[str]:
    """The names that the code of a file uses; none where it cannot be read."""
    names: set[str] = set()
    with suppress(OSError, SyntaxError, ValueError):
        waiting: list[Any] = [compile(file.read_bytes(), str(file), "exec", dont_inherit=True)]
        while waiting:
            code = waiting.pop()
            names.update(code.co_names)
            waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return names
