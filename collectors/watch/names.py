"""The names that Python code binds and uses, and the calls in it that declare variants."""

import ast
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

#: What declares a variant: methods of `Benchmark`, and the classes of variants.
DECLARING: Final = ("variant", "cuda", "HostVariant", "LibraryVariant")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Use(NamedTuple):
    """A name that a statement reads, and the attribute that it takes from it; empty for the name alone."""

    name: str
    attribute: str = ""


class Uses(ast.NodeVisitor):
    """The names of the module that a statement uses, without the local names of functions and comprehensions.

    Attributes:
        handed_on: names in the arguments of a call that declares a variant.
        found: all others.
    """

    def __init__(self) -> None:
        self.found: set[Use] = set()
        self.handed_on: set[Use] = set()
        self._into = self.found
        self._local: list[set[str]] = []

    def _add(self, name: str, attribute: str = "") -> None:
        if not any(name in names for names in self._local):
            self._into.add(Use(name, attribute))

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        into = self._into
        if last_name(node.func) in DECLARING:
            self._into = self.handed_on
        for each in (*node.args, *node.keywords):
            self.visit(each)
        self._into = into

    def visit_Name(self, node: ast.Name) -> None:
        self._add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self._add(node.value.id, node.attr)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: _Function) -> None:
        for each in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(each)
        shared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
        self._body(node.body, (_parameters(node.args) | {name for each in node.body for name in bound(each)}) - shared)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._body([node.body], _parameters(node.args))

    def _body(self, nodes: Sequence[ast.AST], local: set[str]) -> None:
        into, self._into = self._into, self.found
        self._local.append(local)
        for node in nodes:
            self.visit(node)
        self._local.pop()
        self._into = into

    def generic_visit(self, node: ast.AST) -> None:
        targets = [each.target for each in node.generators] if isinstance(node, _COMPREHENSIONS) else []
        self._local.append({each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)})
        super().generic_visit(node)
        self._local.pop()


def _parameters(arguments: ast.arguments) -> set[str]:
    return {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}


def bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds where it stands, not within functions."""
    match node:
        case ast.Import():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in node.names if alias.name != "*")
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from bound(child)


def first_name(node: ast.AST) -> str:
    """`triton` of `triton.autotune(...)`; empty where it begins with no name."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST) -> str:
    """`variant` of `bench.variant`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
