"""What the workloads declare, as the generic tests go through it: a shipped or dropped-in workload needs no test of its own."""

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

from tests.emulator.emulator import Order, Program, build
from warpladder.collectors.core.agreement import Agreement, compare
from warpladder.collectors.core.verify import poison, widened_outputs
from warpladder.workloads import registry
from warpladder.workloads.api import Case, CudaVariant, HostVariant, Launch, Params, Variant, Workload, kernels_of

WORKLOADS = registry.load_all([], [])

V = TypeVar("V", bound=Variant)


def declared(kind: type[V]) -> list[tuple[Workload, V]]:
    """Every variant of a kind, with its workload."""
    return [(workload, variant) for workload in WORKLOADS for variant in workload.variants if isinstance(variant, kind)]


CUDA = declared(CudaVariant)
HOST = declared(HostVariant)


def name_of(value: object) -> str | None:
    """Test id of a workload, a variant or a case."""
    return value.name if isinstance(value, Workload | Variant | Case) else None


def emulation_cases(workload: Workload) -> tuple[Case, ...]:
    """Small cases, from the function `emulation_cases` that every `workload.py` has."""
    cases = importlib.import_module(f"warpladder.workloads.{workload.name}.workload").emulation_cases()
    assert isinstance(cases, tuple)
    return cases


def cells(variant: CudaVariant, cases: Iterable[Case]) -> Iterator[tuple[Case, Params, Sequence[Launch]]]:
    """Cases and configs that the variant does not skip, with their launches: of one process, which averages nothing."""
    for case in cases:
        for config in variant.configs:
            if variant.skip(case, config) is None:
                yield case, config, kernels_of(variant.launches(case, config))


def same_as(variant: CudaVariant, asked: Callable[[Workload, CudaVariant], object]) -> str:
    """The variant whose code another one includes and asks the same of it, so that testing both would be testing one twice.

    Args:
        variant: of which it is asked.
        asked: of the code, e.g. which kernels.

    Returns:
        Its workload and name; empty for a variant whose code is its own.
    """
    code = _code_of(variant.source_text)
    same = [(workload, other) for workload, other in CUDA if _code_of(other.source_text) == code]
    owner, first = min(same, key=lambda found: len(found[1].source_text))
    mine = next(workload for workload, other in same if other is variant)
    return f"{owner.name} {first.name}" if first is not variant and asked(owner, first) == asked(mine, variant) else ""


@cache
def _code_of(text: str) -> str:
    """A source without what says where a line stands, and without lines that are empty or comment."""
    return "\n".join(line for line in text.splitlines() if line and not line.lstrip().startswith(("//", "#line")))


def kernels(variant: CudaVariant, cases: Iterable[Case]) -> list[str]:
    """Every specialisation that those cases and the variant's configs reach."""
    return sorted({launch.kernel for _, _, launches in cells(variant, cases) for launch in launches})


def inputs_and_outputs(workload: Workload, case: Case, seed: int = 5) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random inputs, and outputs that hold nothing yet."""
    inputs = workload.make_inputs(case, np.random.default_rng(seed))
    _, outputs = workload.buffers(case)
    return dict(inputs), {name: np.zeros(buffer.shape, buffer.storage) for name, buffer in outputs.items()}


def agreements(
    workload: Workload,
    variant: CudaVariant,
    case: Case,
    config: Params,
    orders: Sequence[Order] = ("forward",),
    *,
    seed: int = 5,
    program: Program | None = None,
) -> Iterator[Agreement]:
    """How the outputs of a rung in emulation agree with the reference, for each order of threads; by a program that has its kernels."""
    launches = kernels_of(variant.launches(case, config))
    program = program or build(variant, sorted({launch.kernel for launch in launches}))
    inputs, outputs = inputs_and_outputs(workload, case, seed)
    references = (variant.reference or workload.reference)(case, inputs)
    scratch = variant.scratch(case, config)
    written = {**outputs, **{name: np.zeros(buffer.shape, buffer.storage) for name, buffer in scratch.items()}}
    for order in orders:
        poison({name: array for name, array in written.items() if name not in scratch or not scratch[name].zeroed})
        program.run(launches, inputs, written, order)
        given = widened_outputs(outputs, workload.buffers(case)[1])
        yield compare(given, references, workload.tolerance[variant.precision])
