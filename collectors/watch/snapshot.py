"""Your files at one moment, and the variants to measure again because of a change."""

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.watch.normal_form import digest, of_cpp, of_file, of_python
from warpladder.data import source_text
from warpladder.workloads.api import CudaVariant, Variant, Workload
from warpladder.workloads.declare import neighbours
from warpladder.workloads.declare.functions.parsed import ParsedFile, parsed
from warpladder.workloads.declare.functions.sources import Reach
from warpladder.workloads.declare.sources import include_folders

#: Attributes of variants that change nothing that is measured, or that `_declared` and `_reach` tell in another way.
_NOT_MEASURED: Final = ("name", "title", "place", "source", "declared_at")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
#: Statements that call nothing of the user's when the file is loaded, but for decorators.
_DEFINING: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Try, ast.TryStar)
#: The most names of a list that a message tells.
_MOST_NAMES: Final = 3


@dataclass(frozen=True)
class Snapshot:
    """The files at one moment. It holds hashes of what they say without comments, docstrings and layout.

    Attributes:
        files: every file whose save matters -> its hash; empty where it is not there.
        variants: workload and variant -> hash of its code and of what it declares.
        rest: name of each other part -> its hash.
        baselines: workload -> its baselines on a GPU and on a machine without one.
    """

    files: Mapping[Path, str] = field(default_factory=dict)
    variants: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rest: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """The differences between two snapshots.

    Attributes:
        variants: workload and variant of those to measure again.
        rest: names of the other parts that differ. Where there is one, everything is measured again.
    """

    variants: tuple[tuple[str, str], ...]
    rest: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the variants to measure again."""
        return list(dict.fromkeys(variant for _, variant in self.variants))


def files_now(files: Sequence[Path]) -> dict[Path, str]:
    """The hash of each file as it is now."""
    return {file: of_file(file) for file in files}


def take(files: Sequence[Path], workloads: Sequence[Workload]) -> Snapshot:
    """The snapshot of files that this process has loaded. Raises OSError: the source of a kernel cannot be read any
    more.

    Args:
        files: the user's files.
        workloads: those that they declare.
    """
    variants = {(workload.name, variant.name): variant for workload in workloads for variant in workload.variants}
    kernels = {variant.source_text for variant in variants.values() if isinstance(variant, CudaVariant)}
    folders = {each.parent for each in files}
    reached = {key: _take(Reach(str(files[0]), folders), variant) for key, variant in variants.items()}
    nodes = _nodes(reached.values())
    others = [_take(Reach(str(files[0]), folders), workload) for workload in workloads]
    beside = {file for file in neighbours.loaded() if folders & set(file.parents)}
    read = sorted({*python_files(files), *beside, *(Path(file.name) for file in {*nodes.values(), *_nodes(others).values()})})
    others.append(_take_acting(Reach(str(files[0]), folders), read, nodes))
    return Snapshot(
        files_now([*read, *sorted(kernel_files(workloads))]),
        {key: digest(*_declared(variant), *_code(reached[key], kernels)) for key, variant in variants.items()},
        {**_rest(read, files[0].parent, nodes, others, kernels), **_problems(workloads)},
        {workload.name: (workload.baseline, workload.host_baseline) for workload in workloads},
    )


def changed(before: Snapshot, now: Snapshot) -> Change:
    """Compare two snapshots. New variants count as changed."""
    rest = [name for name in {**before.rest, **now.rest} if before.rest.get(name) != now.rest.get(name)]
    variants = [key for key, digest_now in now.variants.items() if before.variants.get(key) != digest_now]
    return Change(tuple(variants), tuple(rest))


def _take(reach: Reach, thing: Variant | Workload) -> Reach:
    """Take the user's code that a variant runs, or the inputs, the reference and the buffers of a workload."""
    values = [getattr(thing, each.name) for each in fields(thing)]
    for each in (*values, *getattr(thing, "functions", ())):
        if callable(each):
            reach.take(each)
    if (at := getattr(thing, "declared_at", None)) and (file := parsed(at[0])) and (statement := file.at(at[1])):
        reach.take_statement(file, statement, _namespace(file))
    return reach


def _namespace(file: ParsedFile) -> Mapping[str, Any]:
    module = neighbours.loaded().get(Path(file.name))
    return vars(module) if module else {}


def _code(reach: Reach, kernels: Collection[str]) -> list[str]:
    """The code that a variant runs, as text: statements in their order, whatever the name of their file, and what they do not say."""
    nodes: list[Any] = sorted(reach.nodes, key=lambda node: (reach.nodes[node].name, node.lineno, node.col_offset))
    return [*(of_python(node, reach.nodes[node].statements, kernels) for node in nodes), *reach.other_text()]


def _nodes(reaches: Iterable[Reach]) -> dict[ast.AST, ParsedFile]:
    return {node: file for reach in reaches for node, file in reach.nodes.items()}


def _take_acting(reach: Reach, files: Sequence[Path], variant_nodes: Collection[ast.AST]) -> Reach:
    """Take the statements that do more than define something, and what they use, but for those that variants hold or declare."""
    for file in filter(None, map(parsed, map(str, files))):
        namespace = _namespace(file)
        for each in file.statements:
            if _sets(each) or not (each in variant_nodes or isinstance(each, _DEFINING) or _declares(file, each, namespace)):
                reach.take_statement(file, each, namespace)
    return reach


def _rest(
    files: Sequence[Path],
    folder: Path,
    variant_nodes: Mapping[ast.AST, ParsedFile],
    others: Sequence[Reach],
    kernels: Collection[str],
) -> dict[str, str]:
    """The code that every measurement depends on, by file: all but the nodes that variants reach and nothing else does.

    Args:
        folder: names of files are relative to it.
        variant_nodes: the nodes that variants reach.
        others: what the workloads and other statements reach.
        kernels: as for `of_python`.
    """
    shared = {each for node, file in _nodes(others).items() for each in file.within(node)}
    alone = {node for node, file in variant_nodes.items() if shared.isdisjoint(file.within(node))}
    rest = {}
    for path in files:
        file = parsed(str(path))
        left_out = {*alone, *file.statements} if file else set()
        forms = (
            [of_python(each, left_out, kernels) for each in file.statements if each not in alone] if file else [of_file(path)]
        )
        if any(forms):
            rest[f"the rest of {os.path.relpath(path, folder)}"] = digest(*forms)
    return rest


def _sets(statement: ast.stmt) -> bool:
    """Whether a statement sets an attribute or an item, as `torch.backends.cuda.matmul.allow_tf32 = True` does for all variants."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)


def _declares(file: ParsedFile, statement: ast.stmt, namespace: Mapping[str, Any]) -> bool:
    """Whether a statement binds a workload or variants. The functions that it names are theirs, and not called by it."""
    values = [namespace.get(name) for name, statements in file.bindings.items() if statement in statements]
    flat = [inner for each in values for inner in (each if isinstance(each, tuple | list) else [each])]
    return any(isinstance(each, Workload | Variant) for each in flat)


def _declared(variant: Variant) -> list[str]:
    """The declaration of a variant, apart from its functions, and its kernels."""
    values = {each.name: getattr(variant, each.name) for each in fields(variant) if each.name not in _NOT_MEASURED}
    kernels = of_cpp(variant.source_text) if isinstance(variant, CudaVariant) else ""
    return [
        variant.kind,
        kernels,
        *(_ADDRESS.sub("", f"{name}={value!r}") for name, value in values.items() if not callable(value)),
    ]


def _problems(workloads: Sequence[Workload]) -> dict[str, str]:
    """The declaration of a workload, apart from its functions."""
    digests = {}
    for workload in workloads:
        digests[f"the cases of {workload.name}"] = digest(
            *(_ADDRESS.sub("", repr(each)) for each in (workload.cases, workload.axes))
        )
        digests[f"the tolerance of {workload.name}"] = digest(repr(sorted(workload.tolerance.items())))
        digests[f"the baseline of {workload.name}"] = digest(workload.baseline, workload.host_baseline)
    return digests


def listed(names: Sequence[str]) -> str:
    """`a and b`, or `a, b, c and 2 more`."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    *first, last = [*names[:_MOST_NAMES], *more]
    return f"{', '.join(first)} and {last}" if first else last


def python_files(files: Sequence[Path]) -> set[Path]:
    """The user's files and the modules beside them that they import, whether or not they are there. Nothing is imported."""
    visited: set[Path] = set()
    todo = [(file, file.parent) for file in files]
    while todo:
        file, folder = todo.pop()
        if file not in visited:
            visited.add(file)
            text = parsed(str(file))
            todo += [(each, folder) for each in _imports(text.tree, file, folder)] if text else []
    return visited


def kernel_files(workloads: Sequence[Workload]) -> set[Path]:
    """The kernel sources of the variants, and what they include, whether or not they are there."""
    sources: set[Path] = set()
    for each in (variant for workload in workloads for variant in workload.variants):
        if isinstance(each, CudaVariant) and each.source_file:
            folders = [Path(folder) for folder in include_folders(each.options, each.source_file)]
            sources |= source_text.files_of(each.source_file.resolve(), folders)
    return sources


def _imports(tree: ast.Module, file: Path, folder: Path) -> Iterator[Path]:
    """The files that the imports in a file run if they are there: modules, and the packages around them."""
    for node in ast.walk(tree):
        base, names = folder, []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [folder, *file.parents][min(node.level, len(file.parents))]
            names = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
        for parts in (name.split(".") for name in names if base != folder or name.partition(".")[0] != "warpladder"):
            for place in (base.joinpath(*parts[: count + 1]) for count in range(len(parts))):
                yield from (place.with_name(f"{place.name}.py"), place / "__init__.py")
