"""What compiling gives: machine code, and what its kernels take."""

from dataclasses import dataclass


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
