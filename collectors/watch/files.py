"""The files whose saves matter: the user's, the modules beside them, and the sources of kernels."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpladder.data import source_text
from warpladder.workloads.api import CudaVariant, Workload
from warpladder.workloads.declare.functions.parsed import parsed
from warpladder.workloads.declare.sources import include_folders


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
