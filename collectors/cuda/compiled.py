"""The result of a compilation: machine code, and the resources of its kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel of a compiled module, and its registers, shared memory and spills.

    Attributes:
        serialized: ptxas waits for each product of a warpgroup (wgmma) before it starts the next one.
    """

    symbol: str
    registers: int
    static_shared_bytes: int
    spill_bytes: int
    serialized: bool = False


@dataclass(frozen=True)
class CompiledModule:
    """Machine code, its kernels by name expression, and the intermediate code (PTX) that it was made from."""

    cubin: bytes
    kernels: dict[str, CompiledKernel]
    constants: dict[str, str]
    ptx: str = ""
