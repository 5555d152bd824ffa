"""The top-level statements of a user's Python files: what each defines, and which names it uses.

Nothing is imported or run: the files are parsed. Modules beside the file count as its own, as in
`warpladder.workloads.neighbours`.
"""

import ast
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from warpladder.collectors.watch.names import DECLARING, Use, Uses, bound, first_name, last_name
from warpladder.collectors.watch.normal_form import of_python, without_docstrings

_OURS: Final = "warpladder"
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Methods of `Benchmark` that declare what all variants depend on.
_PROBLEM: Final = ("inputs", "reference")
#: The fewest characters of a text on one line that is taken for a part of a kernel's source.
_LONG_TEXT: Final = 40


class Imported(NamedTuple):
    """What a name stands for that was imported from a module beside the file.

    Attributes:
        files: of the module, and of the packages that it is in.
        member: the name in that module; empty for the module itself.
    """

    files: tuple[Path, ...]
    member: str = ""


@dataclass(frozen=True, eq=False)
class Statement:
    """A top-level statement, or a variant's function within one.

    Attributes:
        label: what a message calls it.
        form: its syntax tree as text, without comments, docstrings and the functions and sources of variants.
        defines: the names that it binds.
        imported: those of them that come from a module beside the file.
        uses: the names that it reads, at once or in its functions.
        handed_on: those that it only hands on to what declares a variant.
        files: modules beside the file on which it depends as a whole.
        candidates: files that its imports would run if they were there.
        acts: whether it does more than bind names: it runs, whoever uses what it defines.
        variants: the variants whose source it is in.
    """

    file: Path
    label: str
    form: str
    defines: frozenset[str]
    imported: Mapping[str, Imported]
    uses: frozenset[Use]
    handed_on: frozenset[Use]
    files: frozenset[Path]
    candidates: frozenset[Path]
    acts: bool
    variants: frozenset[str]


@dataclass(frozen=True)
class Sources:
    """The sources of the variants, as far as they are to be found in Python files.

    Attributes:
        functions: text of a function, or of several -> the variants whose source it is.
        texts: sources of kernels.
        names: name -> the variants of that name.
    """

    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    texts: Collection[str] = ()
    names: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def variants_of(self, block: str, *, whole: bool) -> frozenset[str]:
        """The variants whose source holds these lines, or is these lines and no more."""
        texts = (text for text in self.functions if (block == text if whole else block in text))
        return frozenset(name for text in texts for name in self.functions[text])

    def has_text(self, text: str) -> bool:
        """Whether a text is a part of a kernel's source, and long enough to be nothing else."""
        return ("\n" in text or len(text) >= _LONG_TEXT) and any(text in source for source in self.texts)


@dataclass(frozen=True)
class Modules:
    """The modules beside a user's file: where an import looks for them.

    Attributes:
        folder: that of the user's file.
    """

    folder: Path

    def candidates(self, dotted: str, base: Path | None = None) -> list[Path]:
        """Files that an import of a module would run if they were there: the module's and those of the packages around it."""
        parts = dotted.split(".") if dotted else []
        if base is None and (not parts or parts[0] == _OURS):
            return []
        places = [(base or self.folder).joinpath(*parts[: count + 1]) for count in range(len(parts))]
        found = [file for place in places for file in (place.with_name(f"{place.name}.py"), place / "__init__.py")]
        return [*found, *([base / "__init__.py"] if base else [])]

    def of(self, node: ast.Import | ast.ImportFrom, file: Path) -> Iterator[tuple[str, str, list[Path]]]:
        """The name that each part of an import binds, the member that it stands for, and the candidates for its module."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], "", self.candidates(alias.name)
            return
        base = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
        for alias in node.names:
            within = self.candidates(f"{node.module}.{alias.name}" if node.module else alias.name, base)
            yield alias.asname or alias.name, alias.name, within


def read(file: Path, sources: Sources, modules: Modules) -> list[Statement]:
    """The statements of a file, in its order. Raises OSError, SyntaxError and ValueError where it cannot be parsed."""
    text = file.read_text()
    tree = without_docstrings(ast.parse(text))
    lines = text.splitlines()
    imports = {name for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for name in bound(node)}
    found: list[Statement] = []
    for node in (each for statement in tree.body for each in _single(statement)):
        if isinstance(node, ast.Pass) or _is_main(node):
            continue
        declared = next((sources.names[name] for name in _declared_names(node) if name in sources.names), None)
        if declared:
            found.append(_statement(file, node, modules, frozenset(), acts=False, variants=declared))
            continue
        taken = _Variants(sources, lines)
        left = taken.visit(node)
        for function, variants in taken.found:
            whole = function is node
            names = frozenset(bound(node)) if whole else frozenset()
            found.append(_statement(file, function, modules, names, acts=False, variants=variants))
        if left is not None:
            found.append(_statement(file, left, modules, frozenset(bound(left)), acts=_acts(left, imports)))
    return found


def _single(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement; each of its names apart if it imports several."""
    match node:
        case ast.Import(names=names):
            yield from (ast.Import([alias]) for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            yield from (ast.ImportFrom(module, [alias], level) for alias in names)
        case _:
            yield node


def _statement(
    file: Path,
    node: Any,
    modules: Modules,
    defines: frozenset[str],
    *,
    acts: bool,
    variants: frozenset[str] = frozenset(),
) -> Statement:
    uses = Uses()
    uses.visit(node)
    at_top = isinstance(node, ast.Import | ast.ImportFrom)
    imported: dict[str, Imported] = {}
    files: set[Path] = set()
    looked_for: set[Path] = set()
    for each in ast.walk(node):
        if not isinstance(each, ast.Import | ast.ImportFrom):
            continue
        for name, member, candidates in modules.of(each, file):
            looked_for |= set(candidates)
            there = tuple(candidate for candidate in candidates if candidate.is_file())
            if there and at_top and member != "*":
                imported[name] = Imported(there, member)
            files |= set() if at_top and member != "*" else set(there)
    every, handed_on = frozenset(uses.found | uses.handed_on), frozenset(uses.handed_on - uses.found)
    beside, sought = frozenset(files), frozenset(looked_for)
    return Statement(file, _label(node), of_python(node), defines, imported, every, handed_on, beside, sought, acts, variants)


class _Variants(ast.NodeTransformer):
    """Takes the functions of variants and the texts of kernels out of a statement.

    Attributes:
        found: each function, and the variants whose source it is.
    """

    def __init__(self, sources: Sources, lines: Sequence[str]) -> None:
        self._sources, self._lines = sources, lines
        self.found: list[tuple[ast.AST, frozenset[str]]] = []
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)) and not _is_problem(node):
            # `inspect.getsource` may give more lines than those of a lambda, and other functions stand in them.
            variants = self._sources.variants_of(_block(node, self._lines), whole=isinstance(node, ast.Lambda))
            if variants:
                self.found.append((node, variants))
                return self._placeholder(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self._sources.has_text(node.value):
            return ast.Constant("the source of a variant")
        self._depth += 1
        try:
            return self.generic_visit(node)
        finally:
            self._depth -= 1

    def _placeholder(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Lambda):
            return ast.Constant("the function of a variant")
        return ast.Pass() if self._depth else None


def _block(node: Any, lines: Sequence[str]) -> str:
    """The lines of a function with its decorators, as `inspect.getsource` gives them."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return dedented("\n".join(lines[first - 1 : node.end_lineno]))


def dedented(text: str) -> str:
    """A text without the indentation that its lines share, and without space around it."""
    return textwrap.dedent(text).strip()


def _acts(node: ast.AST, imports: Collection[str]) -> bool:
    """Whether a statement does more than bind names. A decorator that was imported (`triton.jit`) only makes what it binds."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return any(alias.name == "*" for alias in node.names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return not all(first_name(decorator) in imports for decorator in node.decorator_list)
        case ast.Assign(targets=targets):
            return not all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
        case ast.AnnAssign(target=target):
            return not isinstance(target, ast.Name)
    return True


def _declared_names(node: ast.AST) -> Iterator[str]:
    """The names that a variant may have which a statement declares: `bench.variant(f, name="fast")`."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_name(node.value.func) in DECLARING):
        return
    given = {keyword.arg: keyword.value for keyword in node.value.keywords}
    for each in [given[name] for name in ("name", "kernel") if name in given][:1] or node.value.args[:1]:
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value.partition("<")[0].rpartition("::")[2]
        yield last_name(each)


def _is_problem(node: ast.AST) -> bool:
    """Whether a function is the inputs or the reference of a benchmark, and perhaps a variant too."""
    return any(
        last_name(each.func if isinstance(each, ast.Call) else each) in _PROBLEM for each in getattr(node, "decorator_list", [])
    )


def _is_main(node: ast.AST) -> bool:
    """Whether it is `if __name__ == "__main__":`, which does not run when the file is loaded."""
    return isinstance(node, ast.If) and ast.unparse(node.test).replace("'", '"') == '__name__ == "__main__"'


def _label(node: Any) -> str:
    names = list(bound(node)) if isinstance(node, ast.stmt) else []
    if isinstance(node, ast.Import | ast.ImportFrom):
        return f"the import of {', '.join(names) or node.names[0].name}"
    if names and not isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try):
        return ", ".join(dict.fromkeys(names))
    line = ast.unparse(node).partition("\n")[0]
    return f"{line[:40]}..." if len(line) > 40 else line
