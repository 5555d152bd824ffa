"""A file of Python code: which of its statements bind a name, which function a code object is, and which names a part of it reads."""

import ast
import linecache
import os
import symtable
import textwrap
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import CodeType
from typing import Final

from warpladder.workloads.declare.functions.bare import of_python

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS: Final = (*_FUNCTIONS, ast.ClassDef)
#: Functions that import a module whose name they are given, and those that run a file.
_IMPORTING: Final = frozenset({"import_module", "__import__"})
_RUNNING: Final = frozenset({"spec_from_file_location", "SourceFileLoader", "run_path", "run_module", "resolve_name"})


@dataclass(frozen=True)
class Imported:
    """The object that an import binds a name to.

    Attributes:
        module: as it is written, without the dots of a relative import.
        attribute: the name that is taken from the module; empty for the module itself, `*` for all of its names.
        level: the number of dots.
    """

    module: str
    attribute: str
    level: int


@dataclass(frozen=True)
class Read:
    """A name that code reads, with the attributes that it takes of it: `kit.tiles.f` is `kit` and `("tiles", "f")`."""

    name: str
    attributes: tuple[str, ...]


class ParsedFile:
    """The text of a file and its syntax.

    Attributes:
        name: as code objects have it.
        lines: the lines with their ends.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name, self.lines = name, text.splitlines(keepends=True)
        self.tree = ast.parse(text)

    @cached_property
    def _nodes(self) -> Sequence[ast.AST]:
        return [*ast.walk(self.tree)]

    @cached_property
    def bindings(self) -> Mapping[str, Sequence[ast.stmt]]:
        """Name at the top level -> the statements that bind it or change what it names, in the order of the file."""
        statements_of: dict[str, list[ast.stmt]] = {}
        imported = {name for name in self.imports if name != "*"}
        for statement in _top_level(self.tree.body):
            for name in dict.fromkeys(_bound(statement)):
                statements_of.setdefault(name, []).append(statement)
            if (name := _called_on(statement)) in statements_of and name not in imported:
                statements_of[name].append(statement)
        return statements_of

    @cached_property
    def imports(self) -> Mapping[str, Sequence[Imported]]:
        """Name -> the imports at the top level that bind it; `*` -> the imports of all names of a module."""
        return imports_in(_top_level(self.tree.body))

    @cached_property
    def imports_anywhere(self) -> Mapping[str, Sequence[Imported]]:
        """Name -> the imports that bind it, also within functions, as after `global`."""
        return imports_in(iter(self._nodes))

    def assigns(self, name: str) -> bool:
        """Whether a statement gives a value this name for good, as the head of a loop does not."""
        heads = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
        return any(not isinstance(statement, heads) for statement in self.bindings.get(name, ()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First and last line of a statement, or of the head of a loop, an `if` or a `with` block."""
        if isinstance(node, ast.Module):
            return 1, len(self.lines)
        first = min([getattr(node, "lineno", 1), *(each.lineno for each in getattr(node, "decorator_list", ()))])
        if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.If | ast.With | ast.AsyncWith):
            return first, max(first, node.body[0].lineno - 1)
        return first, getattr(node, "end_lineno", None) or first

    @cached_property
    def statements(self) -> Mapping[ast.stmt, None]:
        """The statements that run when the file is loaded, in order. Those in an `if`, `try`, `for`, `while`, `with` or `match` at the top
        level count by themselves."""
        return dict.fromkeys(_top_level([each for each in self.tree.body if not _is_idle(each)]))

    def at(self, line: int) -> ast.stmt | None:
        """The innermost of the statements that holds a line."""
        enclosing = [each for each in self.statements if self.span(each)[0] <= line <= (each.end_lineno or each.lineno)]
        return enclosing[-1] if enclosing else None

    def definition(self, code: CodeType) -> ast.AST | None:
        """The function or the lambda expression that was compiled to a code object; None if the file has it no more."""
        if code.co_name == "<lambda>":
            return self._lambda(code)
        definitions = [each for each in self._nodes if isinstance(each, _FUNCTIONS) and each.name == code.co_name]
        at_line = [
            each for each in definitions if self.span(each)[0] == code.co_firstlineno or each.lineno == code.co_firstlineno
        ]
        return at_line[0] if at_line else definitions[0] if len(definitions) == 1 else None

    def around(self, node: ast.AST) -> ast.AST:
        """The class at the top level that holds a method; the node itself for anything else."""
        for statement in _top_level(self.tree.body):
            if isinstance(statement, ast.ClassDef) and any(each is node for each in ast.walk(statement)):
                return statement
        return node

    def classes(self, name: str) -> list[ast.ClassDef]:
        """The classes of that name, wherever they stand."""
        return [each for each in self._nodes if isinstance(each, ast.ClassDef) and each.name == name]

    def _lambda(self, code: CodeType) -> ast.AST | None:
        candidates = [
            each
            for each in self._nodes
            if isinstance(each, ast.Lambda) and each.lineno <= code.co_firstlineno <= (each.end_lineno or each.lineno)
        ]
        places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]

        def rank(each: ast.Lambda) -> tuple[int, tuple[int, int], int]:
            last = each.end_lineno, each.end_col_offset
            inside = sum((each.lineno, each.col_offset) <= place < last for place in places)
            lines, columns = (each.end_lineno or 0) - each.lineno, (each.end_col_offset or 0) - each.col_offset
            return -inside, (lines, columns), each.col_offset

        best = min(candidates, key=rank, default=None)
        assigned = (each for each in _top_level(self.tree.body) if isinstance(each, ast.Assign | ast.AnnAssign))
        return best and next((each for each in assigned if each.value is best), best)


@dataclass
class Pieces:
    """The statements that are taken of one file.

    Attributes:
        nodes: first and last line -> the statement.
        notes: line -> comments to put before the statement of that line.
    """

    file: ParsedFile
    nodes: dict[tuple[int, int], ast.AST] = field(default_factory=dict)
    notes: dict[int, dict[str, None]] = field(default_factory=dict)

    def text(self, *, bare: bool = False, without: Container[ast.AST] = ()) -> str:
        """The statements in the order of the file, with blank lines between them but where lines follow one another. See `Reach.bare`."""
        text, before = "", -1
        for (first, last), node in sorted(self.nodes.items()):
            if node in without or any(a <= first and last <= b and (a, b) != (first, last) for a, b in self.nodes):
                continue
            notes = [note for line in sorted(self.notes) if first <= line <= last for note in self.notes[line]]
            lines = self._lines(first, last, node)
            follows = first == before + 1 and first == last and not notes
            text += ("\n" if follows else "\n\n") + "\n".join([*notes, of_python(lines) if bare else lines])
            before = last if first == last else -1
        return text.strip("\n")

    def _lines(self, first: int, last: int, node: ast.AST) -> str:
        text = "".join(self.file.lines[first - 1 : last])
        if isinstance(node, ast.Lambda):
            text = ast.get_source_segment("".join(self.file.lines), node) or text
        return "\n".join(line.rstrip() for line in textwrap.dedent(text).rstrip().splitlines())


def parsed(file: str) -> ParsedFile | None:
    """A file as it is now, or a notebook's cell as it ran; None if there is no text, or no Python in it."""
    # Opening a FIFO would wait for a writer. The name of code need not be one that a file can have.
    if os.path.exists(file) and not os.path.isfile(file):  # noqa: PTH110, PTH113
        return None
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    return _parsed(file, text) if text else None


@lru_cache(maxsize=4096)
def names_read(node: ast.AST) -> tuple[Read, ...]:
    """The names that a part of a file reads without binding them itself, with the attributes that it takes of them."""
    part: ast.AST = node
    if isinstance(node, ast.For | ast.AsyncFor):
        part = node.iter
    elif isinstance(node, ast.While | ast.If):
        part = node.test
    elif isinstance(node, ast.With | ast.AsyncWith):
        part = ast.Tuple([item.context_expr for item in node.items], ast.Load())
    reads = _collect(part)
    free = _free(part) | set(imports_in(ast.walk(part)))
    return tuple(read for read in reads if read.name in free)


#: Methods that put something into a list or a dictionary.
_FILLING: Final = frozenset({"append", "add", "extend", "insert", "setdefault", "update"})


@lru_cache(maxsize=4096)
def names_filled(node: ast.AST) -> frozenset[str]:
    """The names of lists and dictionaries into which a part of a file puts something, and of which it reads nothing, as a decorator that registers does."""
    used = Counter(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    filled = Counter[str]()
    for each in ast.walk(node):
        is_item = isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
        is_method = isinstance(each, ast.Attribute) and each.attr in _FILLING
        if (is_item or is_method) and isinstance(thing := getattr(each, "value", None), ast.Name):
            filled[thing.id] += 1
    return frozenset(name for name, count in filled.items() if count == used[name])


def imports_in(statements: Iterator[ast.AST]) -> dict[str, list[Imported]]:
    """Name -> what the imports among the statements bind it to."""
    imports: dict[str, list[Imported]] = {}
    for each in statements:
        if isinstance(each, ast.Import):
            for alias in each.names:
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                imports.setdefault(alias.asname or module, []).append(Imported(module, "", 0))
        elif isinstance(each, ast.ImportFrom):
            for alias in each.names:
                imported = Imported(each.module or "", alias.name, each.level)
                imports.setdefault(alias.asname or alias.name, []).append(imported)
    return imports


@lru_cache(maxsize=4096)
def imports_run(node: ast.AST) -> tuple[Imported | None, ...]:
    """The modules that a part of a file imports by a call with their name; None for each whose name is computed, and for a file that is run.

    Every use of `importlib.import_module` or the like counts, so that one under another name, or handed on, is a computed one.
    """
    literal: dict[ast.AST, Imported] = {}
    used: list[ast.AST] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and (imported := _imported_by(each)):
            literal[each.func] = imported
        if isinstance(each, ast.ImportFrom):
            used += [alias for alias in each.names if alias.name in _IMPORTING and alias.asname]
        elif _last_name(each) in {*_IMPORTING, *_RUNNING}:
            used.append(each)
    return tuple(literal.get(each) for each in used)


def _imported_by(call: ast.Call) -> Imported | None:
    """The module of a call such as `importlib.import_module("kit.late")` or `import_module(".late", __package__)`."""
    match call:
        case ast.Call(func, [ast.Constant(str(name))], []) if name.strip(".") == name and _last_name(func) in _IMPORTING:
            return Imported(name, "", 0)
        case ast.Call(func, [ast.Constant(str(name)), ast.Name("__package__")], []) if _last_name(func) == "import_module":
            return Imported(name.lstrip("."), "", len(name) - len(name.lstrip(".")))
        case ast.Call(func, [ast.Constant(str(name)), ast.Constant(str(package))], []) if _last_name(func) == "import_module":
            up = len(name) - len(name.lstrip("."))
            around = package.split(".")[: len(package.split(".")) - max(up - 1, 0)] if up else []
            return Imported(".".join([*around, name.lstrip(".")]), "", 0)
    return None


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=512)
def _parsed(file: str, text: str) -> ParsedFile | None:
    try:
        return ParsedFile(file, text)
    except (SyntaxError, ValueError, RecursionError):  # no Python, or a change since the file was imported
        return None


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement does nothing when a file is loaded: a docstring, or `if __name__ == "__main__"`."""
    if isinstance(statement, ast.If):
        match statement.test:
            case ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]):
                return True
        return False
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those inside its `if`, `try`, `for`, `while`, `with` and `match`."""
    todo = list(reversed(body))
    while todo:
        statement = todo.pop()
        yield statement
        if isinstance(statement, _DEFINITIONS):
            continue
        inner = [each for name in ("body", "orelse", "finalbody") for each in getattr(statement, name, ())]
        parts = (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))
        todo += reversed([*inner, *(each for part in parts for each in part.body)])


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds at the top level, or whose attributes and items it sets."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
        return
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        return
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
        targets = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in statement.items if item.optional_vars]
    else:
        return
    todo = list(reversed(targets))
    while todo:
        target = todo.pop()
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            todo += reversed(target.elts)
        elif isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
            todo.append(target.value)


def _called_on(statement: ast.stmt) -> str:
    """The name of the object whose method a statement calls, as `settings.update(tile=8)` does; empty for another statement."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return ""
    thing = call.func.value
    while isinstance(thing, ast.Attribute | ast.Subscript):
        thing = thing.value
    return thing.id if isinstance(thing, ast.Name) else ""


def _collect(node: ast.AST) -> dict[Read, None]:
    """Each name that is read below a node, with the longest chain of attributes that starts at it."""
    reads: dict[Read, None] = {}
    todo = [node]
    while todo:
        chain: list[str] = []
        root = todo.pop()
        while isinstance(root, ast.Attribute):
            chain.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name):
            reads[Read(root.id, tuple(reversed(chain)))] = None
        else:
            todo += reversed(list(ast.iter_child_nodes(root)))
    return reads


def _free(node: ast.AST) -> set[str]:
    """The names that a part of a file reads or changes in the scope around it."""
    try:
        scopes = [symtable.symtable(ast.unparse(node), "<part>", "exec")]
    except (SyntaxError, ValueError, RecursionError):  # a part that stands in a function alone, as one with `nonlocal`
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    names: set[str] = set()
    for scope in scopes:
        module = scope.get_type() == "module"
        names |= {each.get_name() for each in scope.get_symbols() if each.is_referenced() and (module or each.is_global())}
        scopes += scope.get_children()
    return names
