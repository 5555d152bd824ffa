"""The words a workload is written in: `Workload`, `Case`, and the three kinds of variant.

A workload says what is computed and how each variant is launched, as data. It never launches, times or copies anything
itself, so that the same description runs on a GPU through CuPy, on the CPU through the test emulator, and compiles with
NVRTC where there is no GPU. `docs/own-workload.md` has a complete example of 40 lines.
"""

import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np

from warpladder.workloads.axes import Axis, AxisError, describe, parse_params
from warpladder.workloads.cases import (
    LARGEST,
    Array,
    Buffer,
    Buffers,
    Case,
    CaseSet,
    NotShareable,
    Params,
    Part,
    WorkloadError,
    format_params,
    split_evenly,
)
from warpladder.workloads.end_to_end import EndToEnd, Overlapped, Pageable, Pinned
from warpladder.workloads.launches import Launch, Step, TensorMap, ceil_div, kernels_of
from warpladder.workloads.sources import parse_header, read_source

__all__ = [
    "LARGEST",
    "TOLERANCE",
    "Array",
    "Buffer",
    "Buffers",
    "Case",
    "CaseSet",
    "CudaVariant",
    "EndToEnd",
    "HostVariant",
    "Launch",
    "LibraryVariant",
    "NotInstalled",
    "NotShareable",
    "Overlapped",
    "Pageable",
    "Params",
    "Part",
    "Pinned",
    "Precision",
    "Role",
    "Step",
    "TensorMap",
    "Variant",
    "Workload",
    "WorkloadError",
    "ceil_div",
    "format_params",
    "kernels_of",
    "parse_header",
    "read_source",
    "split_evenly",
]

Role = Literal["ceiling", "rung", "peer", "host", "specimen"]
Precision = Literal["fp32", "tf32", "3xtf32", "fp64"]

#: Largest relative L2 error against float64 that passes, by precision. A workload may ask for less (exact copies: 0).
TOLERANCE: Final[Mapping[str, float]] = {"fp64": 1e-12, "fp32": 2e-6, "3xtf32": 5e-6, "tf32": 1e-3}

_PROJECT: Final = Path(__file__).resolve().parent.parent


class NotInstalled(Exception):
    """A library that a variant calls is not there. The message says how to get it; the variant is skipped."""


def _always(case: Case, config: Params) -> str | None:
    return None


def _none(case: Case, config: Params) -> Mapping[str, Buffer]:
    return {}


@dataclass(frozen=True)
class Variant(ABC):
    """What every kind of variant has.

    Attributes:
        name: `v03_shared_tile` for a rung, or a plain name; the number is its rung.
        title: a few words for charts.
        role: what it is compared as. Only rungs can be the best rung, and only peers the best peer; a `ceiling` is
            shown as what can be reached, and a `specimen` is a known pitfall that the checks must catch.
        precision: arithmetic of the products.
        configs: the tunables to try, each a mapping such as `{"block": 16}`.
        skip: why this case cannot run with this config, or None where it can.
        reference: what it computes, if not the workload's definition, e.g. the copy that serves as a ceiling.
    """

    name: str
    title: str
    role: Role
    precision: Precision = "fp32"
    configs: tuple[Params, ...] = ({},)
    skip: Callable[[Case, Params], str | None] = _always
    reference: Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None

    @property
    def rung(self) -> int | None:
        number = re.match(r"v(\d+)_", self.name)
        return int(number.group(1)) if number else None

    @property
    @abstractmethod
    def kind(self) -> str: ...

    @property
    @abstractmethod
    def source_text(self) -> str: ...

    @property
    @abstractmethod
    def source_file(self) -> Path | None: ...

    @cached_property
    def header(self) -> Mapping[str, str]:
        """Idea, bottleneck, next and source, out of the comment or docstring that opens the source text."""
        return parse_header(self.source_text)

    @property
    def source_path(self) -> str:
        """The source file within the project; empty for a file outside it."""
        file = self.source_file
        return file.relative_to(_PROJECT).as_posix() if file and file.is_relative_to(_PROJECT) else ""

    @property
    def source_sha256(self) -> str:
        return hashlib.sha256(self.source_text.encode()).hexdigest()


@dataclass(frozen=True)
class CudaVariant(Variant):
    """Kernels of a `.cu` file, or of a string, compiled by NVRTC as C++17.

    Attributes:
        source: the `.cu` file, or the code itself. In a file, `#include "name.cuh"` on a line of its own, relative to the file, is
            replaced by that text.
        launches: the kernels of one operation, in order; among them the `AllReduce`s of one that ranks share.
        scratch: device memory that they use besides inputs and outputs, by name; it holds NaN before the first operation, or 0 if `zeroed`.
        constants: `__constant__` symbol -> input that it holds. Filled before the operation, outside the timed window
            of the scopes `device` and `operation`, inside that of `end_to_end`.
        min_compute_capability: least device it runs on, major and minor.
        only_architecture: e.g. `sm_90a` for instructions such as wgmma that one architecture alone has; it is compiled for that
            one and runs on no other.
        options: further NVRTC options.
        graph: its launches are captured in a CUDA graph once; an operation is one launch of that graph, and so is an overlapped
            `end_to_end`, copies and all.
        end_to_end: how the scope `end_to_end` copies inputs and outputs: `Pageable()`, `Pinned()` or `Overlapped(...)`.
    """

    source: Path | str = ""
    launches: Callable[[Case, Params], Sequence[Step]] = lambda case, config: ()
    scratch: Callable[[Case, Params], Mapping[str, Buffer]] = _none
    constants: Mapping[str, str] = field(default_factory=dict)
    min_compute_capability: tuple[int, int] = (7, 5)
    only_architecture: str = ""
    options: tuple[str, ...] = ()
    graph: bool = False
    end_to_end: EndToEnd = field(default_factory=Pageable)

    @property
    def kind(self) -> str:
        return "cuda"

    @cached_property
    def source_text(self) -> str:
        return read_source(self.source) if isinstance(self.source, Path) else self.source

    @property
    def source_file(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None


@dataclass(frozen=True)
class LibraryVariant(Variant):
    """A call into a GPU library.

    Attributes:
        requires: modules that must be importable.
        prepare: called once with the case, the device inputs and the device outputs (CuPy arrays); gives a function of
            no arguments that enqueues one operation on the current CuPy stream and returns None when it wrote the
            outputs, or the outputs themselves, by name, when the library allocates them. It may raise NotInstalled.
        communicates: `prepare` takes a `Communicator` besides, that of the ranks that share the case; every rank prepares at once.
        synchronizes: False for a specimen whose host timing must not wait for the device.
        device_only: False for a program that starts and ends in host memory, copies what it needs and computes on the host in
            between. `prepare` gets NumPy arrays for it, which it reads and writes; it is sampled from end to end and as an
            operation, which are the same to it, and has no device time of its own.
        graph: what it enqueues is captured in a CUDA graph, after it has run once; an operation is one launch of that graph. It must
            allocate nothing but what it gives back before it returns, and wait for nothing.
    """

    requires: tuple[str, ...] = ()
    prepare: Callable[..., Callable[[], Buffers | None]] = lambda case, inputs, outputs: lambda: None
    communicates: bool = False
    synchronizes: bool = True
    device_only: bool = True
    graph: bool = False

    @property
    def kind(self) -> str:
        return "library"

    @cached_property
    def source_text(self) -> str:
        return inspect.getsource(self.prepare)

    @property
    def source_file(self) -> Path | None:
        return Path(inspect.getfile(self.prepare))


@dataclass(frozen=True)
class HostVariant(Variant):
    """A function on the host.

    Attributes:
        run: called with the case, the inputs and the outputs (NumPy arrays); writes the outputs, or returns them by name.
        requires: modules that must be importable.
        communicates: `run` takes a `Communicator` besides, `ALONE` by default, and is given that of the ranks that share the case.
        writes_inputs: `run` changes its inputs. It is given copies of its own, made anew before each execution, outside of the time.
            Otherwise inputs are read-only, and a variant that writes to one is wrong.
    """

    run: Callable[..., Buffers | None] = lambda case, inputs, outputs: None
    requires: tuple[str, ...] = ()
    communicates: bool = False
    writes_inputs: bool = False

    @property
    def kind(self) -> str:
        return "host"

    @cached_property
    def source_text(self) -> str:
        return inspect.getsource(self.run)

    @property
    def source_file(self) -> Path | None:
        return Path(inspect.getfile(inspect.unwrap(self.run)))  # as getsource does


@dataclass(frozen=True)
class Workload:
    """A problem, its cases, its reference and its variants.

    Attributes:
        name: as in the data, e.g. `tensor_transpose`.
        title: a few words for pages.
        cases: every case.
        variants: every variant, rungs in the order of the ladder.
        buffers: inputs and outputs of a case, by name, in the order of the end-to-end copies.
        make_inputs: fresh random inputs by name; never constant.
        reference: the outputs in float64 (or an exact type), by name, from the inputs.
        baseline: the rung or host variant that speedups are counted from, on the GPU.
        host_baseline: likewise where there is no GPU.
        tolerance: largest relative L2 error that passes, by precision.
        axes: of its cases, for `--case n=3000` and `--axis n=1000,2000`; none where only the cases declared can be taken.
        make_case: the case of such parameters, in the order of the axes.
        shares: what each of so many ranks does of a case, in the order of the ranks: parts that follow one another and cover it. It raises
            NotShareable where they are too many. None for a workload that one process does alone.
    """

    name: str
    title: str
    cases: tuple[Case, ...]
    variants: tuple[Variant, ...]
    buffers: Callable[[Case], tuple[Mapping[str, Buffer], Mapping[str, Buffer]]]
    make_inputs: Callable[[Case, np.random.Generator], Mapping[str, np.ndarray]]
    reference: Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
    baseline: str = ""
    host_baseline: str = ""
    tolerance: Mapping[str, float] = field(default_factory=lambda: dict(TOLERANCE))
    shares: Callable[[Case, int], Sequence[Part]] | None = None
    axes: tuple[Axis, ...] = ()
    make_case: Callable[[Params], Case] | None = None

    def __post_init__(self) -> None:
        for name in (self.name, *(variant.name for variant in self.variants)):
            if not (isinstance(name, str) and name.encode(errors="replace").decode() == name):
                raise WorkloadError(f"{name!a}: not a name; give text that UTF-8 can hold")
        for what, names in (("variant", [v.name for v in self.variants]), ("case", [c.name for c in self.cases])):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise WorkloadError(f"{self.name}: {what} {twice[0]} is declared twice; give each its own name")
        for attribute in ("baseline", "host_baseline"):
            name = getattr(self, attribute)
            if name and name not in {v.name for v in self.variants}:
                raise WorkloadError(f"{self.name}: {attribute} {name} is not a variant; name one of its variants")
        for precision, tolerance in self.tolerance.items():
            if not 0 <= tolerance < 1:  # outputs of zeros have an error of 1
                raise WorkloadError(f"{self.name}: tolerance of {precision} is {tolerance}; give one from 0 to below 1")

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises KeyError."""
        return {variant.name: variant for variant in self.variants}[name]

    def case(self, name: str) -> Case:
        """The case of that name, or that the axes have there.

        Raises:
            WorkloadError: there is none; the message lists the axes.
        """
        for case in self.cases:
            if case.name == name:
                return case
        if self.make_case is None or not self.axes:
            raise WorkloadError(f"{name}: no such case in {self.name}, which has {', '.join(case.name for case in self.cases)}")
        try:
            return self.make_case(parse_params(name, self.axes))
        except AxisError as error:
            raise WorkloadError(f"{name}: no case of {self.name}: {error}; its axes are {describe(self.axes)}") from error
