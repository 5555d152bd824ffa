"""The classes that a workload is written with: `Workload`, `Case`, and the three kinds of variant.

A workload says what is computed and how each variant is launched, as data. It never launches, times or copies anything
itself, so that the same description runs on a GPU through CuPy, on the CPU through the test emulator, and compiles with
NVRTC where there is no GPU. `docs/own-workload.md` has a complete example of 40 lines.
"""

import hashlib
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from warpladder.installation import ROOT
from warpladder.workloads.declare.cases import (
    LARGEST,
    Array,
    Axis,
    AxisError,
    Buffer,
    Buffers,
    Case,
    CaseSet,
    NotShareable,
    Params,
    Part,
    WorkloadError,
    describe,
    format_params,
    parse_params,
    split_evenly,
    up_to,
)
from warpladder.workloads.declare.launches import (
    ALIGNMENT_BYTES,
    ALONE,
    MULTIPROCESSORS,
    WARPGROUP_THREADS,
    AllReduce,
    Communicator,
    EndToEnd,
    Launch,
    Overlapped,
    Pageable,
    Pinned,
    RowsOf,
    Step,
    TensorMap,
    ceil_div,
    kernels_of,
)
from warpladder.workloads.declare.sources import Constants, parse_header, read_source

__all__ = [
    "ALIGNMENT_BYTES",
    "ALONE",
    "LARGEST",
    "MULTIPROCESSORS",
    "PRECISION_OF_TYPE",
    "TOLERANCE",
    "WARPGROUP_THREADS",
    "AllReduce",
    "Array",
    "Axis",
    "AxisError",
    "Buffer",
    "Buffers",
    "Case",
    "CaseSet",
    "Communicator",
    "Compared",
    "Constants",
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
    "Repacked",
    "Role",
    "RowsOf",
    "Step",
    "TensorMap",
    "Variant",
    "Workload",
    "WorkloadError",
    "WrongOutput",
    "ceil_div",
    "format_params",
    "kernels_of",
    "parse_header",
    "read_source",
    "split_evenly",
    "up_to",
]

Role = Literal["ceiling", "rung", "peer", "host", "specimen"]
Precision = Literal["fp32", "tf32", "3xtf32", "fp64", "fp16", "bf16", "fp8", "int8", "int", "mixed"]

#: Largest relative L2 error against float64 that passes, by precision. A workload may ask for less (exact copies: 0). Outputs of
#: whole numbers must be equal in any precision. Rounding an output once costs about 2e-4 in fp16, 2e-3 in bf16, 3e-2 in fp8.
TOLERANCE: Final[Mapping[str, float]] = {
    "fp64": 1e-12,
    "fp32": 2e-6,
    "3xtf32": 5e-6,
    "tf32": 1e-3,
    "fp16": 2e-3,
    "bf16": 1.6e-2,
    "fp8": 1e-1,
    "int8": 0.0,
    "int": 0.0,
    "mixed": 0.0,
}


#: Name of a type of real or complex numbers -> precision of arithmetic in it.
PRECISION_OF_TYPE: Final[Mapping[str, Precision]] = {
    "float64": "fp64",
    "complex128": "fp64",
    "float32": "fp32",
    "complex64": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


#: Unit roundoff of the type that sums are accumulated in, by precision: fp32 unless it is fp64.
_ROUNDOFF: Final[Mapping[str, float]] = {
    **dict.fromkeys(TOLERANCE, 2.0**-24),
    "fp64": 2.0**-53,
    **dict.fromkeys(("int8", "int", "mixed"), 0.0),
}
#: Unit roundoff of types that are coarser.
_COARSEST: Final[Mapping[str, float]] = {
    "3xtf32": 2.0**-21,
    "tf32": 2.0**-11,
    "fp16": 2.0**-11,
    "bf16": 2.0**-8,
    "fp8": 2.0**-4,
}


class NotInstalled(Exception):
    """A library that a variant calls is not installed. The variant is skipped, and the message says how to install it."""


class WrongOutput(Exception):
    """A variant gave something else than the declared outputs. The message says what, and what to do."""


#: Compares an output with its reference, both in host memory. It gives the fault, empty where they agree, or the two as they are to be
#: compared within the tolerance.
Compared = Callable[[np.ndarray, np.ndarray], str | tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Variant(ABC):
    """The fields that every kind of variant has.

    Attributes:
        name: `v03_shared_tile` for a rung, or a plain name; the number is its rung, unless `place` gives another.
        title: a few words for charts.
        role: what it is compared as. Only rungs can be the best rung, and only peers the best peer. A `ceiling` shows what can
            be reached. A `specimen` is a known pitfall that the checks must catch.
        precision: arithmetic of the products.
        configs: the tunables to try, each a mapping such as `{"block": 16}`.
        skip: gives the reason why a case cannot run with a config, or None if it can.
        reference: computes its right outputs, if they differ from the workload's, as for the copy that serves as a
            ceiling.
        place: its rung, for a variant whose name has no number.
        of_case: gives the arithmetic at a case. A variant whose cases differ in it has the precision `mixed`.
        declared_at: file and line of the statement that declares it, if it has its own statement.
        draft: it is measured only where it is named. A rung of the project is a draft until a shipped run has it: it is compiled and
            emulated, but nobody has measured it.
    """

    name: str
    title: str
    role: Role
    precision: Precision = "fp32"
    configs: tuple[Params, ...] = ({},)
    skip: Callable[[Case, Params], str | None] = lambda case, config: None
    reference: Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None
    place: int | None = None
    of_case: Callable[[Case], Precision] | None = None
    declared_at: tuple[str, int] | None = None
    draft: bool = False

    @property
    def rung(self) -> int | None:
        number = re.match(r"v(\d+)_", self.name)
        return int(number.group(1)) if number else self.place

    def precision_at(self, case: Case) -> Precision:
        """The arithmetic whose tolerance holds at a case."""
        return self.of_case(case) if self.of_case else self.precision

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
        """Idea, bottleneck, next and source, from the comment or docstring at the top of the source text."""
        return parse_header(self.source_text)

    @property
    def source_path(self) -> str:
        """The source file within the project; empty for a file outside it."""
        file = self.source_file and self.source_file.resolve()
        return file.relative_to(ROOT).as_posix() if file and file.is_relative_to(ROOT) else ""

    @property
    def source_sha256(self) -> str:
        return hashlib.sha256(self.source_text.encode()).hexdigest()


@dataclass(frozen=True)
class CudaVariant(Variant):
    """Kernels of a `.cu` file, or of a string, compiled by NVRTC as C++17.

    Attributes:
        source: the `.cu` file, or the code itself. In a file, `#include "name.cuh"` is replaced by the text of that file; the path
            is relative to the source, or to a folder of the options. Headers of CUDA and of C++ are found where they are installed.
        launches: the kernels of one operation, in order. If ranks share the operation, its `AllReduce`s stand among them.
        scratch: further device memory, by name. It holds NaN before the first operation, or 0 if `zeroed`.
        constants: `__constant__` symbol -> input that it holds. It is filled before the operation: outside the timed window of
            the scopes `device` and `operation`, inside that of `end_to_end`.
        min_compute_capability: least compute capability that it runs on, major and minor.
        only_architecture: the one architecture that it is compiled for and runs on, e.g. `sm_90a` for wgmma.
        options: further NVRTC options. A folder after `-I` is relative to the source.
        nvrtc: path of the library of NVRTC that compiles it; empty for the installed one.
        graph: its launches are captured in a CUDA graph once. An operation is one launch of that graph. An overlapped
            `end_to_end` is one launch too, with its copies.
        end_to_end: how the scope `end_to_end` copies inputs and outputs: `Pageable()`, `Pinned()` or `Overlapped(...)`.
    """

    source: Path | str = ""
    launches: Callable[[Case, Params], Sequence[Step]] = lambda case, config: ()
    scratch: Callable[[Case, Params], Mapping[str, Buffer]] = lambda case, config: {}
    constants: Mapping[str, str] = field(default_factory=dict)
    min_compute_capability: tuple[int, int] = (7, 5)
    only_architecture: str = ""
    options: tuple[str, ...] = ()
    nvrtc: str = ""
    graph: bool = False
    end_to_end: EndToEnd = field(default_factory=Pageable)

    @property
    def kind(self) -> str:
        return "cuda"

    @cached_property
    def source_text(self) -> str:
        return read_source(self.source, self.options) if isinstance(self.source, Path) else self.source

    @property
    def source_file(self) -> Path | None:
        return self.source if isinstance(self.source, Path) else None


@dataclass(frozen=True)
class Repacked:
    """A call whose library needs an input in another layout, such as a reversed filter.

    Attributes:
        run: enqueues one operation. It returns None or the outputs by name, as the function of `prepare` does.
        repack: enqueues the copy into that layout. It is called whenever the inputs change: as part of the scope `end_to_end`, and outside
            of the device time, as the copy of an input into constants of a kernel is.
    """

    run: Callable[[], Buffers | None]
    repack: Callable[[], object]

    def __call__(self) -> Any:
        return self.run()


@dataclass(frozen=True)
class LibraryVariant(Variant):
    """A call into a GPU library.

    Attributes:
        requires: modules that must be importable.
        prepare: called once with the case, the device inputs and the device outputs (CuPy arrays), and the values of the config as
            keyword arguments. It gives a function without arguments that enqueues one operation on the current CuPy stream. That
            function returns None if it wrote the outputs, or the outputs by name if the library allocates them. It may be a
            `Repacked`. `prepare` may raise NotInstalled.
        communicates: `prepare` also takes the `Communicator` of the ranks that share the case. All ranks prepare at the same
            time.
        synchronizes: False for a specimen whose host timing must not wait for the device.
        device_only: False for a program that starts and ends in host memory, makes its own copies and also computes on the
            host. `prepare` gets NumPy arrays, which the program reads and writes. Its scopes are `end_to_end` and `operation`,
            which are the same for it; it has no device time.
        graph: after one run its work is captured in a CUDA graph. An operation is one launch of that graph. It must free
            everything that it allocates before it returns, and wait for nothing.
        first_use: the cases at which the steps of a first use are timed in fresh processes, which find the workload by its name.
            `prepare` is then a class of `warpladder.workloads.declare.stepwise.Stepwise`.
    """

    requires: tuple[str, ...] = ()
    prepare: Callable[..., Callable[[], Buffers | None]] = lambda case, inputs, outputs: lambda: None
    communicates: bool = False
    synchronizes: bool = True
    device_only: bool = True
    graph: bool = False
    first_use: Callable[[Case], bool] = lambda case: False

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
        run: called with the case, the inputs and the outputs (NumPy arrays). It writes the outputs, or returns them by name.
        requires: modules that must be importable.
        communicates: `run` also takes a `Communicator`, `ALONE` by default. It receives the communicator of the ranks that share
            the case.
        writes_inputs: `run` changes its inputs. It gets its own copies, which are made before each execution, outside the timed
            window. For other variants inputs are read-only, and a variant that writes to one is wrong.
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
        buffers: inputs and outputs of a case, by name, in the order of the end-to-end copies. For a case without `min_bytes`
            it is asked once the inputs and the reference have been made.
        make_inputs: gives fresh random inputs by name. They must not be constant.
        reference: computes the outputs from the inputs, by name, in float64 or an exact type.
        baseline: the rung or host variant that speedups are counted from, on the GPU.
        host_baseline: the same for a machine without a GPU.
        tolerance: largest relative L2 error that passes, by precision.
        axes: axes of its cases, for `--case n=3000` and `--axis n=1000,2000`. Without axes only the declared cases can be
            measured.
        make_case: makes a case from parameters, in the order of the axes.
        draft: it is measured only where it is named, as a draft of a variant.
        functions: the user's own functions that `make_inputs` and `reference` call, where those two are not the user's.
        in_single: computes the outputs as `reference` does, in float32 (or in float64, where `reference` computes in float32): the differences
            show the rounding errors of this computation. None if it cannot.
        comparisons: gives, for a case and its inputs, how outputs are compared that are not compared within the tolerance, by name.
        shares: divides a case among a number of ranks. It gives the part of each rank, in order; the parts follow one another
            and cover the case. It raises NotShareable for too many ranks. None for a workload of one process.
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
    functions: tuple[Callable[..., object], ...] = ()
    draft: bool = False
    in_single: Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None
    comparisons: Callable[[Case, Mapping[str, np.ndarray]], Mapping[str, Compared]] | None = None

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

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}: cases {len(self.cases)}, variants {', '.join(each.name for each in self.variants)}>"

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises KeyError."""
        return {variant.name: variant for variant in self.variants}[name]

    def tolerance_at(self, variant: Variant, case: Case, dtype: str = "") -> float:
        """The largest relative L2 error of an output that passes at a case.

        Args:
            variant: whose precision counts.
            dtype: type of the output. A default of `TOLERANCE` is at least the one of this type: an output of float32 that is computed
                from whole numbers or in float64 is rounded to float32.

        A default of `TOLERANCE` grows with the length n of the sums that make an output, to u √n at least, where u is the unit roundoff
        of the accumulator. Rounding errors of n terms grow like u √n with high probability (Higham and Mary, A new approach to
        probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019), and sums in order reach 0.41 u √n.
        """
        precision = variant.precision_at(case)
        of_type = PRECISION_OF_TYPE.get(dtype, precision)
        precision = of_type if precision in ("int", "int8") else precision
        tolerance = self.tolerance[precision]
        if tolerance != TOLERANCE[precision]:
            return tolerance  # of the workload's own
        tolerance = max(tolerance, self.tolerance.get(of_type, 0.0))
        return max(tolerance, _ROUNDOFF[precision] * math.sqrt(self.terms_at(case)))

    def terms_at(self, case: Case) -> float:
        """The length of the sums that make an output: flops / 2 or the number of inputs, whichever is larger, for each element of the outputs,
        and at most the number of inputs."""
        inputs, outputs = (sum(math.prod(buffer.shape) for buffer in each.values()) for each in self.buffers(case))
        return min(max(case.flops / 2, inputs) / max(outputs, 1), inputs)

    def roundoffs_at(self, variant: Variant, case: Case) -> tuple[float, float]:
        """Unit roundoff of the type that a variant accumulates in, and of the coarsest type of its inputs, outputs and products."""
        precision = variant.precision_at(case)
        types = [buffer.dtype for each in self.buffers(case) for buffer in each.values()]
        used = [precision, *(PRECISION_OF_TYPE[dtype] for dtype in types if dtype in PRECISION_OF_TYPE)]
        return _ROUNDOFF[precision], max(_COARSEST.get(each, _ROUNDOFF[each]) for each in used)

    def case(self, name: str) -> Case:
        """The declared case of that name, or the case that the axes make from it.

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
