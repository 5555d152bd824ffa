"""What a specimen is: a variant that a benchmark can be deceived with, and what becomes of it here.

The files beside this one declare specimens among honest variants. `test_host.py` and `test_gpu.py` record them.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from warpladder import Benchmark

_F = TypeVar("_F", bound=Callable[..., Any])

KERNELBENCH: Final = "https://github.com/ScalingIntelligence/KernelBench"
PYGPUBENCH: Final = "https://github.com/gpu-mode/pygpubench"
REFERENCE_KERNELS: Final = "https://github.com/gpu-mode/reference-kernels"
KERNELBOT: Final = "https://github.com/gpu-mode/kernelbot"
FIELD_GUIDE: Final = "https://www.wafer.ai/blog/reward-hacks-field-guide"
DEEP_REINFORCE: Final = "https://deep-reinforce.com/defense_kernel_hack.html"
JAXBENCH: Final = "https://github.com/AI-Hypercomputer/accelerator-agents/pull/50"
OWN: Final = "Warpladder"

_ADVERSARIAL: Final = f"{KERNELBENCH}/blob/main/src/kernelbench/unit_tests/test_kernels"
RESULT_REUSE: Final = f"{_ADVERSARIAL}/result_reuse_kernel.py"
ZERO_OUT: Final = f"{_ADVERSARIAL}/zero_out_kernel.py"
NON_DEFAULT_STREAM: Final = f"{_ADVERSARIAL}/non_default_stream_kernel.py"
STATIC_CHECKER: Final = f"{KERNELBENCH}/blob/main/src/kernelbench/kernel_static_checker.py"
EXPLOITS: Final = f"{PYGPUBENCH}/tree/main/exploits"
EIGH: Final = f"{REFERENCE_KERNELS}/issues/162"


class Kind(StrEnum):
    """A class of specimens."""

    UNWRITTEN = "unwritten memory"
    KEPT = "kept results"
    SKIPPED = "skipped work"
    CONSTANT = "constant outputs"
    NUMBERS = "wrong numbers"
    ELSEWHERE = "work elsewhere or later"
    INPUTS = "inputs"
    SETTINGS = "process settings"
    CLOCK = "clock"
    HARNESS = "harness"


@dataclass(frozen=True)
class Wrong:
    """It fails verification.

    Attributes:
        detail: regular expression found in its detail.
        status: of its row in `results`.
        case: part of the name of the case in which it fails; empty for all.
    """

    detail: str
    status: str = "wrong_result"
    case: str = ""


@dataclass(frozen=True)
class Flagged:
    """It passes verification, and a warning keeps it from being the best.

    Attributes:
        source: of the diagnostic, about the variant or its case.
    """

    source: str


@dataclass(frozen=True)
class Restored:
    """It is right, and changes a setting of its process. The setting is restored and named.

    Attributes:
        setting: regular expression found in the diagnostic.
    """

    setting: str


@dataclass(frozen=True)
class Unmoved:
    """It is right, and gains nothing: its time is that of an honest variant or more.

    Attributes:
        than: the honest variant; the baseline by default.
    """

    than: str = ""


Outcome = Wrong | Flagged | Restored | Unmoved


@dataclass(frozen=True)
class Specimen:
    """A variant that a benchmark can be deceived with.

    Attributes:
        workload, variant: its names.
        kind: its class.
        idea: how it deceives, in a sentence.
        source: address of its description, or `OWN`.
        outcomes: what may become of it; one of them must.
    """

    workload: str
    variant: str
    kind: Kind
    idea: str
    source: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class OutOfScope:
    """A known deception that is not looked for.

    Attributes:
        kind: its class.
        idea: how it deceives, in a sentence.
        source: address of its description.
        reason: why it is not looked for.
    """

    name: str
    kind: Kind
    idea: str
    source: str
    reason: str


@dataclass(frozen=True)
class Honest:
    """A variant that is right, and that no diagnostic may name.

    Attributes:
        workload, variant: its names.
        library: what it is written with.
    """

    workload: str
    variant: str
    library: str


class Collection:
    """The specimens and the honest variants that a file declares."""

    def __init__(self) -> None:
        self.specimens: list[Specimen] = []
        self.honest: list[Honest] = []

    def specimen(self, bench: Benchmark, kind: Kind, source: str, *outcomes: Outcome, **options: Any) -> Callable[[_F], _F]:
        """Declare a variant of a benchmark that is a specimen. Its docstring is its idea.

        It is declared as a rung, as its author would, so that it can be called the best.

        Args:
            options: arguments of `Benchmark.variant`.
        """

        def declare(function: _F) -> _F:
            name = options.get("name") or function.__name__
            idea = " ".join((inspect.getdoc(function) or "").split())
            self.specimens.append(Specimen(bench.name, name, kind, idea, source, outcomes))
            bench.variant(function, **options)
            return function

        return declare

    def right(self, bench: Benchmark, library: str, **options: Any) -> Callable[[_F], _F]:
        """Declare a variant of a benchmark that is honest.

        Args:
            library: what it is written with.
            options: arguments of `Benchmark.variant`.
        """

        def declare(function: _F) -> _F:
            self.honest.append(Honest(bench.name, options.get("name") or function.__name__, library))
            bench.variant(function, **options)
            return function

        return declare


def joined(*collections: Collection) -> tuple[tuple[Specimen, ...], tuple[Honest, ...]]:
    """The specimens and the honest variants of several files."""
    specimens: Iterator[Specimen] = (each for found in collections for each in found.specimens)
    honest: Iterator[Honest] = (each for found in collections for each in found.honest)
    return tuple(specimens), tuple(honest)
