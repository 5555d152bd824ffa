"""What the user's files say at one moment, and what has to be measured again because it changed."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from warpladder.collectors.watch.normal_form import digest, of_cpp, of_file
from warpladder.collectors.watch.parts import Code
from warpladder.collectors.watch.statements import Sources, dedented
from warpladder.data import source_text
from warpladder.workloads import neighbours
from warpladder.workloads.api import CudaVariant, Variant, Workload
from warpladder.workloads.sources import include_folders

#: Attributes of some kinds of variant that change what is measured.
_MEASURED: Final = (
    "requires", "writes_inputs", "library", "on_gpu", "communicates", "device_only", "graph", "options", "constants",
    "min_compute_capability", "only_architecture",
)  # fmt: skip
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
#: The most names of a list that a message tells.
_MOST_NAMES: Final = 3


@dataclass(frozen=True)
class Snapshot:
    """The files at one moment. It holds hashes of what they say without comments, docstrings and layout.

    Attributes:
        files: every file whose save matters -> its hash; empty where it is not there.
        variants: workload and variant -> hash of what it alone depends on.
        rest: name of each other part -> its hash.
        baselines: workload -> its baselines on a GPU and on a machine without one.
    """

    files: Mapping[Path, str] = field(default_factory=dict)
    variants: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rest: Mapping[str, str] = field(default_factory=dict)
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """What differs between two snapshots.

    Attributes:
        variants: workload and variant of those to measure again.
        rest: names of the other parts that differ. Where there is one, everything is measured again.
        gone: workload and variant of those that are no more.
    """

    variants: tuple[tuple[str, str], ...]
    rest: tuple[str, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the variants to measure again."""
        return list(dict.fromkeys(variant for _, variant in self.variants))


def files_now(files: Sequence[Path]) -> dict[Path, str]:
    """The hash of each file as it is now."""
    return {file: of_file(file) for file in files}


def files_of(files: Sequence[Path]) -> set[Path]:
    """The user's files and the modules beside them, whether or not they are there. Nothing is imported."""
    code = Code(files, strict=False)
    return {*files, *code.files, *code.candidates}


def take(files: Sequence[Path], workloads: Sequence[Workload]) -> Snapshot:
    """The snapshot of files that this process has loaded.

    Args:
        files: the user's files.
        workloads: those that they declare.

    Raises:
        OSError, SyntaxError, ValueError: a file cannot be read any more.
    """
    variants = {(workload.name, variant.name): variant for workload in workloads for variant in workload.variants}
    code = Code(files, _sources(workloads, variants))
    parts = code.parts()
    loaded = {file for file in neighbours.loaded() if {each.parent for each in files} & set(file.parents)}
    watched = {*files, *code.files, *code.candidates, *loaded, *kernel_files(workloads)}
    unseen = {file.name: of_file(file) for file in loaded - code.files}  # imported by way of a text
    return Snapshot(
        files_now(sorted(watched)),
        {key: digest(*_declared(variant), *parts.variants.get(_name(*key), ())) for key, variant in variants.items()},
        {**parts.rest, **unseen, **_problems(workloads)},
        {workload.name: (workload.baseline, workload.host_baseline) for workload in workloads},
    )


def kernel_files(workloads: Sequence[Workload]) -> set[Path]:
    """The kernel sources of the variants, and what they include, whether or not they are there."""
    variants = [variant for workload in workloads for variant in workload.variants if isinstance(variant, CudaVariant)]
    found: set[Path] = set()
    for each in variants:
        if each.source_file:
            folders = [Path(folder) for folder in include_folders(each.options, each.source_file)]
            found |= source_text.files_of(each.source_file.resolve(), folders)
    return found


def changed(before: Snapshot, now: Snapshot) -> Change:
    """What differs. New variants count as changed."""
    rest = [name for name in {**before.rest, **now.rest} if before.rest.get(name) != now.rest.get(name)]
    variants = [key for key, found in now.variants.items() if before.variants.get(key) != found]
    return Change(tuple(variants), tuple(rest), tuple(key for key in before.variants if key not in now.variants))


def _name(workload: str, variant: str) -> str:
    return f"{workload}/{variant}"


def _sources(workloads: Sequence[Workload], variants: Mapping[tuple[str, str], Variant]) -> Sources:
    functions: dict[str, set[str]] = defaultdict(set)
    names: dict[str, set[str]] = defaultdict(set)
    texts = set()
    for key, variant in variants.items():
        names[variant.name].add(_name(*key))
        text = variant.source_text
        if isinstance(variant, CudaVariant):
            texts.add(text)
        else:
            functions[dedented(text)].add(_name(*key))
    return Sources(_frozen(functions), texts, _frozen(names))


def _frozen(sets: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(found) for name, found in sets.items()}


def _declared(variant: Variant) -> list[str]:
    """What a variant says of itself and its kernels. The source of a function is among the statements of its file."""
    told = [variant.kind, variant.role, variant.precision, repr(variant.configs)]
    told += [repr(getattr(variant, name)) for name in _MEASURED if hasattr(variant, name)]
    if isinstance(variant, CudaVariant):
        told.append(of_cpp(variant.source_text))
    return [_ADDRESS.sub("", text) for text in told]


def _problems(workloads: Sequence[Workload]) -> dict[str, str]:
    """What a workload says of itself, apart from its functions."""
    found = {}
    for workload in workloads:
        found[f"the cases of {workload.name}"] = digest(
            *(_ADDRESS.sub("", repr(each)) for each in (workload.cases, workload.axes))
        )
        found[f"the tolerance of {workload.name}"] = digest(repr(sorted(workload.tolerance.items())))
        found[f"the baseline of {workload.name}"] = digest(workload.baseline, workload.host_baseline)
    return found


def listed(names: Sequence[str]) -> str:
    """`a and b`, or `a, b, c and 2 more`."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    *first, last = [*names[:_MOST_NAMES], *more]
    return f"{', '.join(first)} and {last}" if first else last
