"""The words a workload is written in: `Workload`, `Case`, and the three kinds of variant.

A workload says what is computed and how each variant is launched, as data. It never launches, times or copies anything
itself, so that the same description runs on a GPU through CuPy, on the CPU through the test emulator, and compiles with
NVRTC where there is no GPU. `docs/own-workload.md` has a complete example of 40 lines.
"""

import hashlib
import inspect
import itertools
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from workloads.axes import Axis, AxisError, describe, parse_params
from workloads.communication import AllReduce

Array = Any  # numpy.ndarray on the host, cupy.ndarray on a GPU
Params = Mapping[str, Any]
Buffers = Mapping[str, Array]
CaseSet = Literal["quick", "report", "full"]
Role = Literal["ceiling", "rung", "peer", "host", "specimen"]
Precision = Literal["fp32", "tf32", "3xtf32", "fp64"]
Transfer = Literal["pageable", "pinned", "overlapped"]

#: Largest relative L2 error against float64 that passes, by precision. A workload may ask for less (exact copies: 0).
TOLERANCE: Final[Mapping[str, float]] = {"fp64": 1e-12, "fp32": 2e-6, "3xtf32": 5e-6, "tf32": 1e-3}

#: Largest number that a column of a run holds.
LARGEST: Final = 2**63 - 1

_PROJECT: Final = Path(__file__).resolve().parent.parent
_HEADER_FIELDS: Final = ("Idea", "Bottleneck", "Next", "Source")
_INCLUDE: Final = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


class WorkloadError(Exception):
    """A workload that is not written as it should be. Its message says where, what, and what to do, in one line."""


@dataclass(frozen=True)
class Buffer:
    """Shape and type of an input, an output or scratch.

    Attributes:
        shape, dtype: as of a NumPy array.
        zeroed: scratch that holds 0 before the first operation, such as a counter; each operation leaves it so.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    zeroed: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(int(extent) for extent in self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Case:
    """One point of a workload's own axes.

    Attributes:
        params: the axes, e.g. `{"n": 512, "perm": "210"}`; the case is named after them.
        flops: operations of the definition, a multiply-add counted as two.
        min_bytes: each input read once and each output written once, in bytes.
        sets: which of `--cases quick|report|full` take it.
        size_rank: order on the size axis; None for a case that is verified but not charted.
    """

    params: Params
    flops: int
    min_bytes: int
    sets: tuple[CaseSet, ...] = ("full",)
    size_rank: int | None = 0

    def __post_init__(self) -> None:
        """Take NumPy's numbers as Python's, and whole numbers only where a run has them."""
        object.__setattr__(self, "params", {key: _plain(value) for key, value in self.params.items()})
        try:
            json.dumps(self.params)
            self.name.encode()
        except (TypeError, ValueError) as error:
            raise WorkloadError(f"case {self.name!a}: {error}; give params numbers and texts") from error
        for attribute in ("flops", "min_bytes", "size_rank"):
            number = _plain(getattr(self, attribute))
            if attribute == "size_rank" and number is None:
                continue
            if not (isinstance(number, int | float) and -LARGEST <= number <= LARGEST and int(number) == number):
                raise WorkloadError(f"case {self.name}: {attribute} is {number}; give a whole number of at most 2^63 - 1")
            object.__setattr__(self, attribute, int(number))

    @property
    def name(self) -> str:
        return format_params(self.params)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class TensorMap:
    """An argument by which a kernel copies boxes of a buffer to shared memory and back with Hopper's tensor memory accelerator (TMA).

    The kernel's parameter is `const __grid_constant__ TensorMap` of `workloads/hopper.cuh`, 128 bytes. What a box reaches
    beyond the buffer reads as zeros. Source: CUDA driver API, cuTensorMapEncodeTiled.

    Attributes:
        buffer: name of an input, an output or scratch of float32; its innermost rows take a multiple of 16 bytes.
        box: elements of a box along each axis, the innermost last; at most 256 along each.
        swizzle_bytes: 0, or 32, 64 or 128: the span within which 16-byte pieces are exchanged so that columns of the box meet
            different banks; the innermost row of a box is no longer than it.
        shape: axes, the innermost last, where they are not those of the buffer.
    """

    buffer: str
    box: tuple[int, ...]
    swizzle_bytes: Literal[0, 32, 64, 128] = 0
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        kernel: name expression of the kernel, e.g. `transpose<2, 1, 0>`, as NVRTC takes it.
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        args: names of inputs, outputs and scratch as `str`, `RowsOf` them, `TensorMap`s of them, and scalars as NumPy scalars of
            the parameter's type.
        dynamic_shared_bytes: dynamic shared memory a block.
        once: what it writes is the same for every `Part` of a case, so that of an overlapped operation only the first part launches it.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Any, ...]
    dynamic_shared_bytes: int = 0
    once: bool = False


#: One of the things that an operation does in order.
Step = Launch | AllReduce


def kernels_of(steps: Sequence[Step]) -> tuple[Launch, ...]:
    """The launches among the steps of an operation."""
    return tuple(step for step in steps if isinstance(step, Launch))


@dataclass(frozen=True)
class Part:
    """A share of a case: one of those whose copies overlap the kernels of others, or what one rank of several has.

    Attributes:
        case: the case that its kernels are launched for. A buffer that has fewer rows in it than in the whole case, along its first
            axis, is rows `first` and on of the whole one.
        first: the first of those rows.
    """

    case: Case
    first: int


class NotInstalled(Exception):
    """A library that a variant calls is not there. The message says how to get it; the variant is skipped."""


class NotShareable(Exception):
    """A case that cannot be shared among so many ranks. The message is the reason."""


def split_evenly(count: int, ranks: int, what: str) -> tuple[tuple[int, int], ...]:
    """First and number of each rank's share of `count` things, called `what`, that follow one another; the first have one more where some remain.

    Raises:
        NotShareable: a rank would have none.
    """
    if count < ranks:
        raise NotShareable(f"{count} {what} cannot be shared among {ranks} ranks")
    least, remaining = divmod(count, ranks)
    return tuple((rank * least + min(rank, remaining), least + (rank < remaining)) for rank in range(ranks))


def _always(case: Case, config: Params) -> str | None:
    return None


def _no_parts(case: Case, config: Params) -> Sequence[Part]:
    return ()


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
        transfer: how `end_to_end` copies. `pageable`: from and to ordinary host memory; `pinned`: page-locked host memory, which the
            device reads and writes by itself; `overlapped`: pinned, in streams of their own, each kernel waiting only for the inputs
            that it names and each part's outputs leaving when its kernels are done.
        parts: shares of a case to overlap, in order; none for the case as a whole. Each uses the beginning of the scratch of the
            whole case, in the shape that its own case asks for.
        part_streams: streams of kernels that parts take in turn. With 2, kernels of one part fill the multiprocessors that the last
            blocks of another's leave idle. Each stream has scratch of its own, but for what launches with `once` take and is not `zeroed`.
        gathered: inputs, the same on all ranks that share the case. Of an overlapped copy each rank brings a piece from its host, and
            NCCL gathers the others': links between GPUs are wider than those to the host.
    """

    source: Path | str = ""
    launches: Callable[[Case, Params], Sequence[Step]] = lambda case, config: ()
    scratch: Callable[[Case, Params], Mapping[str, Buffer]] = _none
    constants: Mapping[str, str] = field(default_factory=dict)
    min_compute_capability: tuple[int, int] = (7, 5)
    only_architecture: str = ""
    options: tuple[str, ...] = ()
    graph: bool = False
    transfer: Transfer = "pageable"
    parts: Callable[[Case, Params], Sequence[Part]] = _no_parts
    part_streams: int = 1
    gathered: tuple[str, ...] = ()

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


def read_source(file: Path) -> str:
    """The text of a CUDA source, each `#include "name"` in it replaced by the text of that file.

    What is compiled, recorded and hashed is this one text; `#line` keeps the places that a compiler names those of the files.

    Raises:
        WorkloadError: an included file is not there.
    """
    text = file.read_text()

    def included(match: re.Match[str]) -> str:
        other = file.parent / match[1]
        line = text.count("\n", 0, match.start()) + 1
        if not other.is_file():
            raise WorkloadError(f'{file.name}:{line}: #include "{match[1]}": no such file beside it; mend the path')
        return f'#line 1 "{other.name}"\n{read_source(other)}#line {line + 1} "{file.name}"\n'

    return _INCLUDE.sub(included, text)


def format_params(params: Params) -> str:
    """`n=512,perm=210` for `{"n": 512, "perm": "210"}`."""
    return ",".join(f"{key}={value}" for key, value in params.items())


def parse_header(text: str) -> dict[str, str]:
    """The labelled paragraphs `Idea:`, `Bottleneck:`, `Next:` and `Source:` of the comment or docstring that opens a source.

    Returns:
        Lower-case label -> text on one line; the empty string for a label that is not there.
    """
    parts = re.split(rf"^\s*({'|'.join(_HEADER_FIELDS)}):", _opening_comment(text), flags=re.MULTILINE)
    found = {label.lower(): " ".join(words.split()) for label, words in zip(parts[1::2], parts[2::2], strict=True)}
    return {label.lower(): found.get(label.lower(), "") for label in _HEADER_FIELDS}


def _opening_comment(text: str) -> str:
    """The first `//` block of a CUDA source, or the first docstring of Python code, without its marks."""
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("//"):
        return "\n".join(line[2:] for line in itertools.takewhile(lambda line: line.startswith("//"), lines))
    docstring = re.search(r'"""(.*?)"""', text, flags=re.DOTALL)
    return docstring.group(1) if docstring else ""


def ceil_div(a: int, b: int) -> int:
    """Blocks of b that cover a."""
    return -(-a // b)
