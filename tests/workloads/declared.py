"""What the workloads declare, as the generic tests go through it: a shipped or dropped-in workload needs no test of its own."""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from workloads import registry
from workloads.api import Case, CudaVariant, HostVariant, Launch, Params, Variant, Workload

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
    cases = importlib.import_module(f"workloads.{workload.name}.workload").emulation_cases()
    assert isinstance(cases, tuple)
    return cases


def cells(variant: CudaVariant, cases: Iterable[Case]) -> Iterator[tuple[Case, Params, Sequence[Launch]]]:
    """Cases and configs that the variant does not skip, with their launches."""
    for case in cases:
        for config in variant.configs:
            if variant.skip(case, config) is None:
                yield case, config, variant.launches(case, config)


def kernels(variant: CudaVariant, cases: Iterable[Case]) -> list[str]:
    """Every specialisation that those cases and the variant's configs reach."""
    return sorted({launch.kernel for _, _, launches in cells(variant, cases) for launch in launches})


def inputs_and_outputs(workload: Workload, case: Case, seed: int = 5) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random inputs, and outputs that hold nothing yet."""
    inputs = workload.make_inputs(case, np.random.default_rng(seed))
    _, outputs = workload.buffers(case)
    return dict(inputs), {name: np.zeros(buffer.shape, buffer.dtype) for name, buffer in outputs.items()}
