"""The code that a workload and its variants run, as digests: equal where nothing that is measured differs.

`record --against` and `record --watch` find what changed with them. The code of a variant is what `source_of` takes, of all of its
functions and of the statement that declares it; comments, docstrings and layout do not count.
"""

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from warpladder.workloads.declare import neighbours
from warpladder.workloads.declare.functions.bare import of_cpp
from warpladder.workloads.declare.functions.benchmark import Benchmark
from warpladder.workloads.declare.functions.parsed import ParsedFile, names_read, parsed
from warpladder.workloads.declare.functions.sources import Reach, source_file_of
from warpladder.workloads.declare.functions.variants import FunctionVariant
from warpladder.workloads.declare.workloads import CudaVariant, Variant, Workload

#: Workload and variant -> digest. That of a workload itself has no variant; see PROCESS too.
Code = Mapping[tuple[str, str], str]
#: Fields that change nothing that is measured, or that are told in another way.
_NOT_MEASURED: Final = ("name", "title", "place", "source", "declared_at", "variants")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
#: Decorators that make a function known to the whole process, such as PyTorch's.
_REGISTERING: Final = frozenset({"custom_op", "triton_op", "impl", "register_kernel"})
#: The key of what acts on the whole process.
PROCESS: Final = ("", "")


def code_of(workloads: Sequence[Workload], file: Path) -> dict[tuple[str, str], str]:
    """The digests of the workloads that a user's file declares, of their variants, and of what acts on the whole process."""
    reached: set[ast.AST] = set()
    texts: dict[tuple[str, str], str] = {}
    for workload in workloads:
        things: dict[str, Variant | Workload] = {"": workload, **{each.name: each for each in workload.variants}}
        for name, thing in things.items():
            reach = _reach(thing, file)
            reached |= reach.nodes
            texts[workload.name, name] = "\n".join([*_declared(thing, file.parent), reach.bare(), *reach.made()])
    texts[PROCESS] = _acting_text(file, reached)
    return {key: hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest() for key, text in texts.items()}


def _reach(thing: Variant | Workload, file: Path) -> Reach:
    """The user's code that a variant runs, or the inputs and the reference of a workload."""
    reach = Reach(str(file))
    for each in (*_values(thing).values(), *getattr(thing, "functions", ())):
        if callable(each):
            reach.take(each)
    if (at := getattr(thing, "declared_at", None)) and (text := parsed(at[0])) and (statement := text.at(at[1])):
        reach.take_statement(text, statement, _namespace(text))
    return reach


def _declared(thing: Variant | Workload, folder: Path) -> list[str]:
    """The declaration of a variant or a workload, apart from its functions with a text, and the code of its kernels."""
    values = {name: value for name, value in _values(thing).items() if name not in _NOT_MEASURED and not callable(value)}
    plain = (neighbours.as_written(_ADDRESS.sub("", f"{name}={value!r}")) for name, value in values.items())
    told = [type(thing).__name__, *(each.replace(str(folder), ".") for each in plain)]
    if isinstance(thing, CudaVariant):
        told.append(of_cpp(thing.source_text))
    elif isinstance(thing, FunctionVariant) and not source_file_of(thing.function):
        told.append(thing.source_text)  # of a compiled function
    return told


def _values(thing: Variant | Workload) -> dict[str, Any]:
    return {each.name: getattr(thing, each.name) for each in fields(thing)}


def _namespace(file: ParsedFile) -> Mapping[str, Any]:
    module = neighbours.loaded().get(Path(file.name))
    return vars(module) if module else {}


def _acting_text(file: Path, reached: Set[ast.AST]) -> str:
    """The statements that act on the process when the file and the modules beside it are loaded, and what they call.

    Args:
        reached: what variants and workloads reach, which does not count, but where it sets something for all.
    """
    reach, setting = Reach(str(file)), set[ast.AST]()
    modules = neighbours.loaded()
    package = modules[file].__name__.partition(".")[0]
    for path, module in modules.items():
        if not module.__name__.startswith(f"{package}.") or not (text := parsed(str(path))):
            continue
        for statement in text.statements:
            if _sets(text, statement):
                setting.add(statement)
            elif statement in reached or not isinstance(statement, ast.Expr) or _declares(statement, vars(module)):
                continue
            reach.take_statement(text, statement, vars(module))
    return reach.bare(reached - setting)


def _sets(file: ParsedFile, statement: ast.stmt) -> bool:
    """Whether a statement changes what is imported, as `torch.backends.cuda.matmul.allow_tf32 = True` does, or registers a function."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    names = {getattr(node, "attr", "") for each in getattr(statement, "decorator_list", ()) for node in ast.walk(each)}
    return bool(names & _REGISTERING) or any(statement in file.bindings.get(name, ()) for name in file.imports)


def _declares(statement: ast.stmt, namespace: Mapping[str, Any]) -> bool:
    """Whether a call declares workloads or variants, which count by themselves."""
    values = [namespace.get(each.name) for each in names_read(statement)]
    flat = [inner for each in values for inner in (each if isinstance(each, tuple | list) else [each])]
    return any(isinstance(each, Workload | Variant | Benchmark) for each in flat)
