"""Compiles CUDA sources with NVRTC. Needs no GPU and no driver, so that tests compile what a GPU will run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cuda.bindings import nvrtc

from workloads.api import CudaVariant

_ENTRY = re.compile(r"Compiling entry function '(\S+)'")
_SPILL = re.compile(r"(\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class CompileError(Exception):
    """A source that NVRTC refuses; the message holds its log."""


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel of a compiled module and what a thread or block of it takes."""

    symbol: str
    registers: int
    static_shared_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class CompiledModule:
    """Machine code and its kernels, by the name expression that asked for them."""

    cubin: bytes
    kernels: dict[str, CompiledKernel]
    constants: dict[str, str]


def compile_variant(variant: CudaVariant, kernels: Sequence[str], arch: str) -> CompiledModule:
    """Compile the named kernels of a variant.

    Args:
        variant: its source and options.
        kernels: name expressions, e.g. `transpose<2, 1, 0>`.
        arch: real architecture, e.g. `sm_90`; of a variant for one architecture only, that one is taken instead.

    Raises:
        CompileError: NVRTC refuses the source or the options.
    """
    where = variant.source_path or variant.name
    target = variant.only_architecture or arch
    return _compile(variant.source_text, where, tuple(kernels), tuple(variant.constants), target, variant.options)


@cache
def _compile(
    source: str, where: str, kernels: tuple[str, ...], constants: tuple[str, ...], arch: str, extra_options: tuple[str, ...]
) -> CompiledModule:
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), where.encode(), 0, [], []))
    try:
        addresses = {name: f"&{name}" for name in constants}
        for expression in (*kernels, *addresses.values()):
            _checked(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
        # Without --no-cache a second compilation of a source reports no resources.
        options = [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v", "--no-cache", *extra_options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        text = log.decode(errors="replace").rstrip("\0 \n")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{where} does not compile for {arch}: {text or status.name}")
        cubin = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
        _checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        return CompiledModule(
            cubin,
            {expression: _resources(_lowered(program, expression), text) for expression in kernels},
            {name: _lowered(program, expression) for name, expression in addresses.items()},
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *rest = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC: {status.name}; is nvidia-cuda-nvrtc installed?")
    return rest[0] if rest else None


def _lowered(program: object, expression: str) -> str:
    name = _checked(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
    assert isinstance(name, bytes)
    return name.decode()


def _resources(symbol: str, log: str) -> CompiledKernel:
    """Registers, static shared memory and spills out of ptxas's report, which has a paragraph a kernel."""
    _, *paragraphs = _ENTRY.split(log)
    for entry, paragraph in zip(paragraphs[::2], paragraphs[1::2], strict=True):
        if entry == symbol:
            return CompiledKernel(symbol, *(_number(pattern, paragraph) for pattern in (_USED, _SHARED, _SPILL)))
    raise CompileError(f"{symbol}: ptxas reported nothing on it")


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0
