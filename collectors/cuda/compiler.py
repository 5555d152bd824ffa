"""Compiles CUDA sources with NVRTC, and assembles sources that are PTX. Needs no GPU and no driver, so that tests can compile every kernel."""

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Final

from warpladder.collectors.core.kernel_cache import key_of, read, write
from warpladder.collectors.cuda import assembly, headers
from warpladder.collectors.cuda.nvrtc import NvrtcError, Output, nvrtc
from warpladder.workloads.api import CudaVariant
from warpladder.workloads.declare.sources import with_full_paths

#: Version of the cache's entries; raised when they hold something else.
_FORMAT: Final = "3"
#: Line information does not change the machine code.
_OPTIONS: Final = ("--std=c++17", "--ptxas-options=-v", "--generate-line-info")
_ENTRY = re.compile(r"Compiling entry function '(\S+)'")
_STACK = re.compile(r"(\d+) bytes stack frame")
_SPILL = re.compile(r"(\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_VERSION_OF_PTX = re.compile(r"(?:\s|//[^\n]*\n)*\.version\s")
_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
_LINE_OF_PTX = re.compile(r"\s*\.(loc|file)\s")
_SERIALIZED = re.compile(r"wgmma\S* instructions are serialized .* in the function '(\S+)'")


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel of a compiled module, and its registers, shared memory, spills and stack. `serialized`: ptxas waits for each
    product of a warpgroup (wgmma) before it starts the next one."""

    symbol: str
    registers: int
    static_shared_bytes: int
    spill_bytes: int
    stack_bytes: int
    serialized: bool = False


@dataclass(frozen=True)
class CompiledModule:
    """Machine code, its kernels by name expression, and the intermediate code (PTX) that it was made from."""

    cubin: bytes
    kernels: dict[str, CompiledKernel]
    constants: dict[str, str]
    ptx: str = ""


class CompileError(Exception):
    """NVRTC rejects a source. The message holds NVRTC's log."""


@dataclass(frozen=True)
class Compilation:
    """Everything that machine code depends on, except the compiler's version.

    Attributes:
        where: the source file, for messages.
        kernels, constants: name expressions of kernels, and names of `__constant__` symbols.
        arch: such as `sm_90`.
        options: further NVRTC options.
        nvrtc: path of the compiler; empty for the installed one.
    """

    source: str
    where: str
    kernels: tuple[str, ...]
    constants: tuple[str, ...]
    arch: str
    options: tuple[str, ...]
    nvrtc: str = ""

    @property
    def key(self) -> str:
        """Name of the compilation's entry in the cache."""
        included = headers.state_of(self.source, self.options, self.nvrtc)
        fixed = (
            _FORMAT,
            version(self.nvrtc),
            self.nvrtc,
            _OPTIONS,
            self.source,
            self.where,
            self.kernels,
            self.constants,
            self.arch,
        )
        return key_of(*fixed, self.options, *included)


def compilation_of(variant: CudaVariant, kernels: Sequence[str], arch: str) -> Compilation:
    """Return the compilation of the named kernels of a variant.

    Args:
        variant: gives the source and the options.
        kernels: name expressions, e.g. `transpose<2, 1, 0>`.
        arch: real architecture, e.g. `sm_90`; ignored for a variant that supports only one architecture.
    """
    file = variant.source_file
    where = variant.source_path or (file.name if file else variant.name)
    target = variant.only_architecture or arch
    options = with_full_paths(variant.options, file)
    return Compilation(variant.source_text, where, tuple(kernels), tuple(variant.constants), target, options, variant.nvrtc)


def compile_variant(variant: CudaVariant, kernels: Sequence[str], arch: str) -> CompiledModule:
    """Compile the named kernels of a variant, or load them from the cache. The arguments are the same as for
    `compilation_of`. Raises CompileError: NVRTC rejects the source or the options."""
    return compiled(compilation_of(variant, kernels, arch))


@cache
def compiled(what: Compilation) -> CompiledModule:
    """Load machine code from the cache on disk, or compile it and store it there. Raises CompileError."""
    key = what.key
    if (entry := read(key)) is not None:
        facts, cubin = entry
        kernels = {name: CompiledKernel(*resources) for name, resources in facts["kernels"].items()}
        return CompiledModule(cubin, kernels, facts["constants"], facts["ptx"])
    module = compile_uncached(what)
    kernels_facts = {name: astuple(kernel) for name, kernel in module.kernels.items()}
    write(key, {"kernels": kernels_facts, "constants": module.constants, "ptx": module.ptx}, module.cubin)
    return module


def compile_uncached(what: Compilation) -> CompiledModule:
    """Compile without the cache. Raises CompileError."""
    if is_ptx(what.source):
        return _of_ptx(what)
    output = _output(what)
    names = {name: output.symbols[f"&{name}"] for name in what.constants}
    kernels = {expression: _resources(output.symbols[expression], output.log) for expression in what.kernels}
    return CompiledModule(output.cubin, kernels, names, _without_lines(output.ptx))


def altered(original: CompiledModule, ptx: str, arch: str, symbols: Sequence[str]) -> CompiledModule:
    """A module with other code for its kernels. `symbols`: what the code declares besides. Raises AssemblyError."""
    constants = {**original.constants, **{name: name for name in symbols}}
    return replace(original, cubin=assembly.assemble(ptx, arch), constants=constants, ptx=ptx)


def is_ptx(source: str) -> bool:
    """Whether a source is PTX and no C++."""
    return _VERSION_OF_PTX.match(source) is not None


def _of_ptx(what: Compilation) -> CompiledModule:
    """Kernels of PTX have their symbols as names."""
    own = _TARGET.search(what.source)
    try:
        cubin, log = assembly.assembled(what.source, own[1] if own and own[1].endswith(("a", "f")) else what.arch)
    except assembly.AssemblyError as error:
        raise CompileError(f"{what.where} does not assemble for {what.arch}: {error}") from error
    kernels = {name: _resources(name, log) for name in what.kernels}
    return CompiledModule(cubin, kernels, {name: name for name in what.constants}, _without_lines(what.source))


def ptx_with_lines(what: Compilation) -> str:
    """The PTX with the files and lines of its instructions. Raises CompileError."""
    if is_ptx(what.source):
        return what.source.partition("\n\t.section\t.debug")[0]
    virtual = replace(what, arch=what.arch.replace("sm_", "compute_"))
    return _output(virtual).ptx.partition("\n\t.section\t.debug")[0]


def _output(what: Compilation) -> Output:
    header_options, embedded = headers.headers_for(what.source, what.nvrtc)
    options = [f"--gpu-architecture={what.arch}", *_OPTIONS, *what.options, *header_options]
    expressions = [*what.kernels, *(f"&{name}" for name in what.constants)]
    try:
        return nvrtc(what.nvrtc).compile(what.source, what.where, embedded, expressions, options)
    except NvrtcError as error:
        why = headers.explain(str(error), version(what.nvrtc)) or str(error)
        raise CompileError(f"{what.where} does not compile for {what.arch}: {why}") from error


def _without_lines(ptx: str) -> str:
    """The PTX without its line information, which names files of this machine."""
    code, *_ = ptx.partition("\n\t.section\t.debug")
    return "\n".join(line for line in code.splitlines() if not _LINE_OF_PTX.match(line))


def version(path: str = "") -> str:
    """The version of the installed compiler, or of the one at a path, such as `13.0`. Raises CompileError."""
    try:
        return nvrtc(path).version
    except NvrtcError as error:
        raise CompileError(str(error)) from error


def _resources(symbol: str, log: str) -> CompiledKernel:
    """Parse registers, static shared memory, spills and stack from ptxas's log, which has one paragraph per kernel, and its warning."""
    _, *paragraphs = _ENTRY.split(log)
    for entry, paragraph in zip(paragraphs[::2], paragraphs[1::2], strict=True):
        if entry == symbol:
            used, shared, spilled, stack = (_number(pattern, paragraph) for pattern in (_USED, _SHARED, _SPILL, _STACK))
            return CompiledKernel(symbol, used, shared, spilled, stack, symbol in _SERIALIZED.findall(log))
    raise CompileError(f"{symbol}: ptxas reported nothing on it")


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0
