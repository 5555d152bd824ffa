"""The text that stands for a function variant: its own source, and the source of all user code that it reaches.

A hash of whole files in its place was tried on the 50 edits of tests/collectors/watch/test_changes.py. It measures 127 variants again that
did not change, of 165, and after any edit no cell of the file has equal code, of which a comparison of two runs needs eight. The source
of the function itself, with whole files beside it, misses 104 of the 129 variants that changed. This module errs in none.
"""

import ast
import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

from warpladder.workloads.declare import locate, neighbours
from warpladder.workloads.declare.functions import trees, wrapped
from warpladder.workloads.declare.functions.extensions import CFunction
from warpladder.workloads.declare.functions.parsed import (
    Imported,
    ParsedFile,
    Pieces,
    Read,
    imports_in,
    imports_run,
    names_filled,
    names_read,
    parsed,
)

_OURS: Final = "warpladder"
_MISSING: Final = object()
#: Of more things in a list, none is looked at.
_MOST_ITEMS: Final = 1_000


def source_of(function: Callable[..., object]) -> str:
    """The text that stands for a function variant.

    It holds the statement that defines the function, with its decorators, and every statement of its file that it reaches through
    names: functions, classes, imports, and what is assigned at the top level. Files below the folder of its file count too if they
    are the user's own. They follow the function's file, each after a comment with its name. Statements stand in the order of their
    file, each once. Comments tell what the statements do not: the values that a closure or an object holds, the arguments of a
    `functools.partial`, and the SHA-256 of compiled libraries.

    The text changes when something of this changes, and not with the run: it holds no address and no folder. A function without
    Python text gives one line that names it.
    """
    reach = Reach(_file_of(function))
    reach.take(function)
    return reach.text() or wrapped.comment_of(function) + "\n"


def source_file_of(function: Callable[..., object]) -> Path | None:
    """The file that defines a function; None for a notebook's cell, for compiled functions, and where the file is gone."""
    if isinstance(function, CFunction):
        return function.source_file
    file = _file_of(function)
    return Path(file) if file and not locate.is_cell(file) and Path(file).is_file() else None


def _file_of(function: object) -> str:
    """The file of the innermost Python function or of the class of an object; empty if there is none."""
    inner = wrapped.layers(function)[-1]
    if isinstance(inner, CFunction):
        return ""
    if (code := wrapped.code_of(inner)) is not None:
        own = inner.__self__ if type(inner) is MethodType else None
        return code.co_filename if own is None else _file_of_class(own if isinstance(own, type) else type(own))
    kind = inner if isinstance(inner, type) else type(inner)
    file = _file_of_class(kind)
    if file and locate.is_own(file):
        return file
    return next((home.file.name for home in _Names().homes(function)), "")


def _file_of_class(kind: type) -> str:
    """The file of a class. A notebook's class has only the file of its methods."""
    for each in vars(kind).values():
        each = wrapped.layers(each.__func__ if isinstance(each, staticmethod | classmethod) else each)[-1]
        if (
            type(each) is FunctionType
            and each.__module__ == kind.__module__
            and each.__qualname__.startswith(kind.__qualname__)
        ):
            return each.__code__.co_filename
    file = wrapped.attribute(sys.modules.get(kind.__module__), "__file__")
    return file if isinstance(file, str) and file.endswith(".py") else ""


@dataclass(frozen=True)
class _Home:
    """A name at the top level of a module of the user's."""

    file: ParsedFile
    namespace: Mapping[str, Any]
    name: str


class _Names:
    """The names at the top level of the user's modules, by the identity of what they name."""

    def __init__(self) -> None:
        self._of: dict[int, list[tuple[str, Mapping[str, Any], str]]] = {}
        for file, namespace in locate.own_modules():
            for name, value in list(namespace.items()):
                self._of.setdefault(id(value), []).append((file, namespace, name))

    def homes(self, thing: object) -> Iterator[_Home]:
        """The names that modules of the user's give an object."""
        for file, namespace, name in self._of.get(id(thing), ()):
            if namespace.get(name) is thing and (text := parsed(file)) and text.assigns(name):
                yield _Home(text, namespace, name)


class Reach:
    """Everything of the user's that functions reach.

    Args:
        start: the file or cell of a function; empty if it has none. Files of the user count that are in its folder or below it, or in a
            root with which it was loaded.

    Attributes:
        nodes: each statement, nested function and lambda expression that was taken.
    """

    def __init__(self, start: str) -> None:
        self._start = start
        self._folder = Path.cwd() if locate.is_cell(start) or not start else Path(start).parent
        self._folders = (self._folder, *neighbours.folders_around(start))
        self._is_own = not start or locate.is_own(start)
        self._pieces: dict[str, Pieces] = {}
        self._seen: dict[object, object] = {}
        self._texts: dict[str, str] = {}
        self.nodes: set[ast.AST] = set()
        self._libraries: dict[str, None] = {}
        self._places: set[str] = set()
        self._data: set[Path] = set()

    @functools.cached_property
    def _names(self) -> _Names:
        return _Names()

    def text(self) -> str:
        """All that was taken; empty if there is nothing."""
        parts = []
        for name in sorted(self._pieces, key=self._place):
            beside = name != self._start and not locate.is_cell(name)
            parts.append(f"# {self._relative(name)}\n\n" * beside + self._pieces[name].text())
        parts += self.made()
        return "\n\n".join(parts) + "\n" if parts else ""

    def bare(self, without: Container[ast.AST] = ()) -> str:
        """The statements by their syntax, as `bare.of_python` writes it, and the values of closures and the like.

        Args:
            without: statements to leave out.
        """
        return "\n".join(self._pieces[name].text(bare=True, without=without) for name in sorted(self._pieces, key=self._place))

    def made(self) -> list[str]:
        """The text other than statements: kernels that none holds as they are, compiled libraries, and the digest of files that are read."""
        nodes = [node for pieces in self._pieces.values() for node in pieces.nodes.values()]
        constants = (each.value for node in nodes for each in ast.walk(node) if isinstance(each, ast.Constant))
        written = {text.strip() for text in constants if isinstance(text, str)}
        kernels = {name: code.strip("\n") for name, code in self._texts.items() if code.strip() not in written}
        made = [f"# {name}, as the file makes it\n{code}" for name, code in kernels.items()]
        return [*made, *self._libraries, *self._files_read({*written, *(code.strip() for code in self._texts.values())})]

    def _files_read(self, texts: Collection[str]) -> list[str]:
        """The digest of the files that code may read which asks for its own place: those that it names, or all that are beside it."""
        if not self._places and not self._data:
            return []
        within = [each for name in self._pieces for each in Path(name).parents if any(map(each.is_relative_to, self._folders))]
        files = {*self._data, *trees.named_by(texts, within)}
        if not files:
            files = {file for place in self._places for file in trees.data_below(Path(place))}
        files = {file for file in files if not trees.holds(file, texts)}
        return [f"# files that it may read: {trees.digest_of(sorted(files), self._folder)}"] if files else []

    def _written(self, value: object) -> str | None:
        """A plain value as Python writes it, without its place; None for another value."""
        written = wrapped.plain(value)
        return None if written is None else self._placeless(written)

    def _placeless(self, written: str) -> str:
        """A text with the folders of the user's tree relative to that of the function's file."""
        for folder in sorted(map(str, self._folders), key=len, reverse=True):
            before, *others = re.split(rf"(?<=['\"]){re.escape(folder)}(?=[/'\"])", written)
            if others:
                self._places.add(folder)
                written = self._relative(folder).join([before, *others])
        return neighbours.as_written(written)

    # -- objects ---------------------------------------------------------------------------------------------------------

    def take(self, thing: object, name: str = "") -> None:
        """Take the text of an object, and of what it was made of."""
        if isinstance(thing, CFunction):
            self._libraries[thing.source_text.rstrip("\n")] = None
        if id(thing) in self._seen or _is_ours(thing):
            return
        self._seen[id(thing)] = thing
        layers = wrapped.layers(thing)
        for layer in layers:
            self._layer(layer, name)
        inner = layers[-1]
        if type(inner) is FunctionType and len(layers) == 1 and inner.__name__ != "<lambda>":
            return
        if not self._by_name(thing, inner):
            self._describe(layers)

    def _layer(self, layer: object, name: str) -> None:
        if type(layer) is FunctionType:
            self._function(layer)
        elif type(layer) is MethodType:
            self._class(layer.__self__ if isinstance(layer.__self__, type) else type(layer.__self__))
        elif isinstance(layer, type):
            self._class(layer)
        elif isinstance(layer, functools.partial):
            for value in (*layer.args, *layer.keywords.values()):
                self._value(value)
        else:
            self._class(type(layer))
            self._attributes(layer)
        if (code := wrapped.cuda_code(layer)) is not None:
            self._texts[name or str(wrapped.attribute(layer, "name") or "code")] = code
        if (library := wrapped.library_of(layer)) and (not self._pieces or locate.is_own(str(library))):
            self._libraries[wrapped.comment_of(layer) if callable(layer) else f"# {wrapped.digest_of(library)}"] = None

    def _attributes(self, thing: object) -> None:
        """Tell the plain values that an object of a user's class holds, which no statement may tell: `Kernel(tile=8)` in a loop."""
        if (file := _file_of_class(type(thing))) and self._is_near(file) and not _is_ours(thing):
            for name, value in sorted(getattr(thing, "__dict__", {}).items()):
                if (written := self._written(value)) is not None:
                    self._libraries[f"# {name} = {written}, of a {type(thing).__name__}"] = None

    def _by_name(self, thing: object, inner: object) -> bool:
        """Take the statements that bind a name to the object; False if there are none."""
        if type(inner) is FunctionType:
            file = parsed(inner.__code__.co_filename)
            names = [name for name, value in list(inner.__globals__.items()) if value is thing]
            homes = [_Home(file, inner.__globals__, name) for name in names if file and file.assigns(name)]
        else:
            homes = list(self._names.homes(thing))
        for home in homes:
            if self._is_near(home.file.name):
                self._name(home.file, home.namespace, home.name)
        return any(self._is_near(home.file.name) for home in homes)

    def _describe(self, layers: list[object]) -> None:
        """Say how an object was made of a function, where no statement does."""
        inner = layers[-1]
        code = wrapped.code_of(inner)
        file = parsed(code.co_filename) if code else None
        node = file.definition(code) if file and code else None
        if not (file and node and isinstance(inner, FunctionType) and self._is_near(file.name)):
            return
        words = inner.__name__ if inner.__name__ != "<lambda>" else "lambda"
        decorated = bool(getattr(node, "decorator_list", ()))
        for layer in reversed(layers[:-1]):
            if not decorated or type(layer) in (functools.partial, MethodType):
                words = wrapped.describe(layer, words)
        if "(" in words:
            self._note(file, node, f"# {words}")

    def _function(self, function: FunctionType) -> None:
        """Take the statement of a Python function, and tell the values that its closure and its defaults hold."""
        if ("function", id(function)) in self._seen:
            return
        self._seen["function", id(function)] = function
        code = function.__code__
        if code.co_filename.startswith("<") and not locate.is_cell(code.co_filename):  # of `exec`, which has no text to show
            self._libraries[wrapped.comment_of(function)] = None
        if not self._is_near(code.co_filename) or (file := parsed(code.co_filename)) is None:
            return
        if (node := file.definition(code)) is None:
            return
        cells = wrapped.cells_of(function)
        for name, value in cells.items():
            if (written := self._written(value)) is not None:
                self._note(file, node, f"# {name} = {written}, in the function around it")
        for name, written in wrapped.defaults_of(function, node):
            self._note(file, node, f"# {name} = {self._placeless(written)} by default")
        self.take_statement(file, file.around(node), function.__globals__, cells)

    def _class(self, kind: type) -> None:
        file = _file_of_class(kind)
        if not file or not self._is_near(file) or _is_ours(kind) or (text := parsed(file)) is None:
            return
        namespace = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
        outermost = kind.__qualname__.partition(".")[0]
        local = "<locals>" in kind.__qualname__
        for node in text.classes(kind.__name__) if local else text.bindings.get(outermost, ()):
            self.take_statement(text, node, namespace)

    def _value(self, value: object, name: str = "") -> None:
        """Take what a variable holds, beyond the statement that sets it."""
        if isinstance(value, str) and "\n" in value.strip():
            if name:
                self._texts.setdefault(name, value)
        elif isinstance(value, str | Path):
            file = Path(value)
            if (
                file.is_absolute()
                and file.suffix != ".py"
                and any(map(file.is_relative_to, self._folders))
                and locate.is_file(file)
            ):
                self._data.add(file)
        elif isinstance(value, ModuleType):
            self._module(value, ())
        elif type(value) in (dict, list, tuple):
            self._items(value)
        elif callable(value) or len(wrapped.layers(value)) > 1 or wrapped.library_of(value):
            self.take(value, name)

    def _items(self, held: Any) -> None:
        """Take the functions that a list, a tuple or a dictionary holds, which statements elsewhere may have put there, as a decorator does."""
        if id(held) in self._seen or len(held) > _MOST_ITEMS:
            return
        self._seen[id(held)] = held
        for each in list(held.values() if isinstance(held, dict) else held):
            if type(each) in (dict, list, tuple):
                self._items(each)
            elif type(wrapped.layers(each)[-1]) is FunctionType:
                self.take(each)

    # -- names -----------------------------------------------------------------------------------------------------------

    def take_statement(
        self, file: ParsedFile, node: ast.AST, namespace: Mapping[str, Any], cells: Mapping[str, Any] | None = None
    ) -> None:
        """Take a statement, and what the names in it stand for.

        Args:
            namespace: of its module.
            cells: name -> value in the functions around a nested function.
        """
        self.nodes |= set(file.statements) if isinstance(node, ast.Module) else {node}
        pieces = self._pieces.setdefault(file.name, Pieces(file))
        span = file.span(node)
        if isinstance(pieces.nodes.get(span), ast.Lambda):  # a part of the statement
            pieces.nodes[span] = node
        if pieces.nodes.setdefault(span, node) is node and not cells:
            if ("statement", id(node)) in self._seen:
                return
            self._seen["statement", id(node)] = node
        if not self._is_own:
            return
        local = imports_in(ast.walk(node)) if not isinstance(node, ast.Import | ast.ImportFrom) else {}
        reads, filled = names_read(node), names_filled(node)
        self._take_imported_by_call(file, node, namespace)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            for imported in _unread(node, reads):
                self._imported(namespace, imported, ())
        for read in reads:
            if read.name in local:
                for imported in local[read.name]:
                    self._imported(namespace, imported, read.attributes)
            elif cells and read.name in cells:
                if isinstance(value := cells[read.name], ModuleType):
                    self._module(value, read.attributes)
                else:
                    self._value(value)
            else:
                self._name(file, namespace, read.name, read.attributes, fills=read.name in filled)

    def _name(
        self,
        file: ParsedFile,
        namespace: Mapping[str, Any],
        name: str,
        attributes: tuple[str, ...] = (),
        *,
        fills: bool = False,
    ) -> None:
        """Take the statements that bind a name at the top level of a file, and what it names; but not what is in a list that is only filled."""
        key = ("name", id(namespace), name, attributes, fills)
        value = namespace.get(name, _MISSING)
        if key in self._seen or (_is_ours(value) and not isinstance(value, CFunction)):
            return
        self._seen[key] = namespace
        statements = list(file.bindings.get(name, ()))
        if value is _MISSING and not statements:  # a builtin, or a name that is not bound yet
            for imported in file.imports_anywhere.get(name, ()):
                self._imported(namespace, imported, attributes)
            return
        code = wrapped.code_of(value)
        meant = [each for each in statements if code and file.name == code.co_filename and each is file.definition(code)]
        for statement in meant or statements:
            self.take_statement(file, statement, namespace)
        if isinstance(value, ModuleType):
            self._module(value, attributes)
            return
        for imported in file.imports.get(name, ()):
            self._imported(namespace, imported, attributes)
        if not statements:
            self._from_elsewhere(file, namespace, name, value)
        if value is not _MISSING and not (fills and type(value) in (dict, list)):
            self._value(value, name)

    def _from_elsewhere(self, file: ParsedFile, namespace: Mapping[str, Any], name: str, value: object) -> None:
        """Take the statement of a name that another cell of the notebook binds, or an import of all names of a module."""
        for imported in file.imports.get("*", ()):
            module = _module_named(namespace, imported)
            if module is not None and name in vars(module):
                self._imported(namespace, Imported(imported.module, name, imported.level), ())
                return
        if (code := wrapped.code_of(value)) and code.co_filename != file.name:
            return  # its own text is taken where it stands
        for cell in reversed([each for each in list(linecache.cache) if locate.is_cell(each) and each != file.name]):
            text = parsed(cell)
            if text and name in text.bindings:
                for statement in text.bindings[name]:
                    self.take_statement(text, statement, namespace)
                return
        if (written := self._written(value)) is not None:
            pieces = self._pieces.setdefault(file.name, Pieces(file))
            pieces.notes.setdefault(min(pieces.nodes, default=(1, 1))[0], {})[f"{name} = {written}"] = None

    def _imported(self, namespace: Mapping[str, Any], imported: Imported, attributes: tuple[str, ...]) -> None:
        names = (imported.attribute, *attributes) if imported.attribute not in ("", "*") else attributes
        module = _module_named(namespace, imported)
        if module is not None:
            self._module(module, names)
        else:
            self._not_loaded(str(namespace.get("__file__", "")), imported.module, imported.level, names)

    def _not_loaded(self, importing: str, module: str, level: int, names: tuple[str, ...]) -> bool:
        """Take a module that is imported when the function runs, as a whole, and those of the names that are modules in it. False if there
        is none."""
        found = False
        for part in ("", *names):
            module = ".".join(filter(None, (module, part)))
            files = neighbours.files_named(importing, module, level, self._folders) if module else []
            if part and not files:
                break
            for file in files:
                found = True
                self._file(file)
        return found

    def _file(self, file: Path) -> None:
        """Take a file as a whole, with all that it imports."""
        if not self._is_near(str(file)):
            return
        if text := parsed(str(file)):
            self.take_statement(text, text.tree, {"__file__": str(file)})
        else:
            self._libraries[f"# {self._relative(str(file))}: {wrapped.digest_of(file)}"] = None

    def _take_imported_by_call(self, file: ParsedFile, node: ast.AST, namespace: Mapping[str, Any]) -> None:
        """Take the modules whose names are given to `importlib.import_module`; for a computed name, all Python files of the user's."""
        for imported in imports_run(node):
            if imported:
                self._imported({"__file__": file.name, **namespace}, imported, ())
            else:
                tops = [
                    each for each in self._folders if not any(each != top and each.is_relative_to(top) for top in self._folders)
                ]
                files = trees.python_below(dict.fromkeys(tops))
                self._libraries[f"# all files, for an import of a computed name: {trees.digest_of(files, self._folder)}"] = None

    def _module(self, module: ModuleType, attributes: tuple[str, ...]) -> None:
        """Take what is read of a module beside the function's file: an attribute, or all of it if it is passed on whole."""
        if (library := wrapped.library_of(module)) and locate.is_own(str(library)):
            self._libraries[f"# {neighbours.as_written(module.__name__)}: compiled, in {wrapped.digest_of(library)}"] = None
        name = wrapped.attribute(module, "__file__")
        if library or _is_ours(module):
            return
        folders = list(getattr(module, "__path__", ()))
        files = [name] if isinstance(name, str) else [f"{each}/__init__.py" for each in folders]
        if not any(map(self._is_near, files)):
            return
        file = parsed(name) if isinstance(name, str) else None  # None for an empty file too
        value = vars(module).get(attributes[0], _MISSING) if attributes else _MISSING
        is_bound = bool(attributes) and file is not None and attributes[0] in file.bindings
        if isinstance(value, ModuleType) and not is_bound:
            self._module(value, attributes[1:])
        elif file and (value is not _MISSING or is_bound):
            self._name(file, vars(module), attributes[0], attributes[1:])
        elif not attributes or not sum(self._not_loaded(f"{each}/__init__.py", "", 1, attributes) for each in folders):
            self._whole(module, file)

    def _whole(self, module: ModuleType, file: ParsedFile | None) -> None:
        """Take a module, and those in it that are loaded: it is passed on, or makes its attributes when they are asked for."""
        if ("whole", id(module)) in self._seen:
            return
        self._seen["whole", id(module)] = module
        if file:
            self.take_statement(file, file.tree, vars(module))
        for value in list(vars(module).values()):
            if isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}."):
                self._module(value, ())

    # -- places ----------------------------------------------------------------------------------------------------------

    def _note(self, file: ParsedFile, node: ast.AST, note: str) -> None:
        self._pieces.setdefault(file.name, Pieces(file)).notes.setdefault(file.span(node)[0], {})[note] = None

    def _is_near(self, file: str) -> bool:
        """Whether a file is the function's own, or one of the user's in the folders that count."""
        if file == self._start or not self._start:
            return file == self._start or locate.is_own(file)
        near = locate.is_cell(file) or any(Path(file).is_relative_to(folder) for folder in self._folders)
        return self._is_own and near and locate.is_own(file)

    def _relative(self, file: str) -> str:
        is_near = any(map(Path(file).is_relative_to, self._folders))
        return Path(os.path.relpath(file, self._folder)).as_posix() if is_near else Path(file).name

    def _place(self, file: str) -> tuple[bool, int, str]:
        """Orders files: cells as they ran, the function's own file, then others by name."""
        if locate.is_cell(file):
            return False, list(linecache.cache).index(file) if file in linecache.cache else 0, file
        return file != self._start, 0, self._relative(file)


def _unread(node: ast.AST, reads: Iterable[Read]) -> Iterator[Imported]:
    """The imports in a function or a file whose names it does not read: they may run for what they do, or name all of a module."""
    chains = {(read.name, *read.attributes)[: count + 1] for read in reads for count in range(len(read.attributes) + 1)}
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (
                Imported(a.name, "", 0)
                for a in each.names
                if ((a.asname,) if a.asname else tuple(a.name.split("."))) not in chains
            )
        elif isinstance(each, ast.ImportFrom):
            unread = (alias for alias in each.names if (alias.asname or alias.name,) not in chains)
            yield from (Imported(each.module or "", alias.name, each.level) for alias in unread)


def _module_named(namespace: Mapping[str, Any], imported: Imported) -> ModuleType | None:
    return neighbours.module_named(namespace, imported.module, imported.level)


def _is_ours(value: object) -> bool:
    """Whether an object is of this package: a benchmark, or what its file imports to declare one."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == _OURS
    kind = value if isinstance(value, type | FunctionType) else type(value)
    return str(kind.__module__).partition(".")[0] == _OURS
