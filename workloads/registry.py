"""Finds the workloads: every folder here with a `workload.py`, and single files that the user names."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from warpladder.workloads import neighbours
from warpladder.workloads.api import Workload, WorkloadError

_HERE = Path(__file__).resolve().parent


def names() -> tuple[str, ...]:
    """Names of the workloads that ship with the project, or were dropped into this folder."""
    return tuple(sorted(file.parent.name for file in _HERE.glob("*/workload.py")))


def load(name: str) -> Workload:
    """The workload of that name.

    Raises:
        WorkloadError: there is none, or its `workload.py` has no `WORKLOAD`.
    """
    if name not in names():
        raise WorkloadError(f"{name}: no such workload; known: {', '.join(names())}. A file of your own: --workload FILE.py")
    return _workload_of(importlib.import_module(f"warpladder.workloads.{name}.workload"), f"workloads/{name}/workload.py")


def load_file(path: Path) -> Workload:
    """The workload that a file of the user's declares as `WORKLOAD`. It may import the modules and packages beside it.

    Raises:
        WorkloadError: there is no such file, it does not import, or it has no `WORKLOAD`.
    """
    if not path.is_file():
        raise WorkloadError(f"{path}: no such file; give the path of a Python file that sets WORKLOAD")
    if path.suffix != ".py":
        raise WorkloadError(f"{path}: not a Python file; give the path of a .py file that sets WORKLOAD")
    try:
        module = neighbours.load(path)
    except Exception as error:
        said = neighbours.as_written(f"{type(error).__name__}: {error}")
        raise WorkloadError(f"{path}: does not import ({said}); mend it, then try again") from error
    return _workload_of(module, str(path))


def load_all(workload_names: Sequence[str], files: Sequence[Path]) -> list[Workload]:
    """The named workloads, or all that ship when neither names nor files are given, then those of the files."""
    chosen = list(workload_names) or ([] if files else list(names()))
    loaded = [load(name) for name in chosen] + [load_file(file) for file in files]
    seen: set[str] = set()
    for workload in loaded:
        if workload.name in seen:
            raise WorkloadError(f"{workload.name}: two workloads of this name; rename one")
        seen.add(workload.name)
    return loaded


def _workload_of(module: ModuleType, where: str) -> Workload:
    workload = getattr(module, "WORKLOAD", None)
    if not isinstance(workload, Workload):
        raise WorkloadError(f"{where}: sets no WORKLOAD = Workload(...); see docs/own-workload.md")
    return workload
