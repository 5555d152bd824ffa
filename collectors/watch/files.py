"""The files whose save matters to a recording of your files: what they say, and a copy of them."""

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from warpladder.data import files, source_text
from warpladder.workloads.api import CudaVariant, Workload
from warpladder.workloads.declare import neighbours
from warpladder.workloads.declare.functions import bare
from warpladder.workloads.declare.functions.parsed import parsed
from warpladder.workloads.declare.sources import include_folders


def files_now(paths: Iterable[Path]) -> dict[Path, str]:
    """The hash of what each file says to a compiler, as it is now."""
    return {path: _hash_of(path) for path in paths}


def _hash_of(path: Path) -> str:
    try:
        content = files.read_bytes(path)
    except OSError:
        return ""
    with suppress(UnicodeDecodeError):
        content = (bare.of_python if path.suffix == ".py" else bare.of_cpp)(content.decode()).encode(errors="surrogatepass")
    return hashlib.sha256(content).hexdigest()


def files_of(paths: Sequence[Path], workloads: Iterable[Workload]) -> set[Path]:
    """Every file whose save matters to the user's files, which this process has loaded, whether or not it is there.

    Args:
        workloads: those that they declare.
    """
    folders = {path.parent for path in paths}
    beside = {file for file in neighbours.loaded() if folders & set(file.parents)}
    return {*python_files(paths), *beside, *_kernel_files(workloads)}


def python_files(paths: Iterable[Path]) -> set[Path]:
    """The user's files and the modules beside them that they import, whether or not they are there. Nothing is imported."""
    visited: set[Path] = set()
    todo = [(file, file.parent) for file in paths]
    while todo:
        file, folder = todo.pop()
        if file not in visited:
            visited.add(file)
            text = parsed(str(file))
            todo += [(each, folder) for each in _imports(text.tree, file, folder)] if text else []
    return visited


def _kernel_files(workloads: Iterable[Workload]) -> set[Path]:
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


def copy_files(paths: Iterable[Path], folder: Path) -> None:
    """Copy files into a folder, below which each has its own path, with links to all that lies beside it and around it.

    A file that is loaded there finds its modules, kernels and data as at its own place.
    """
    present = [path for path in paths if path.is_file()]
    for path in present:
        place = folder / path.relative_to(path.anchor)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
    for around in {parent for path in present for parent in path.parents}:
        with suppress(PermissionError):
            for entry in os.scandir(around):
                place = folder / Path(entry.path).relative_to(around.anchor)
                if not os.path.lexists(place):
                    place.symlink_to(entry.path)
