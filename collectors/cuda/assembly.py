"""Assembles PTX: with `ptxas` of a toolkit, else with nvJitLink, which comes with CuPy's libraries. Needs no GPU.

NVRTC makes the same machine code as `ptxas` of its version. nvJitLink makes code that could be linked with more, which may be slower.
"""

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.cuda.disassembly import program_path
from warpladder.errors import Error
from warpladder.installation import how_to_install

_SECONDS: Final = 300


class AssemblyError(Error):
    """There is no assembler, or it rejects the PTX."""


def problem() -> str | None:
    """Why PTX cannot be assembled here, and how to fix it; None if it can."""
    if program_path("ptxas") is None and _nvjitlink() is None:
        return f"there is neither nvJitLink nor ptxas to assemble PTX with; install nvidia-nvjitlink: {how_to_install('gpu')}"
    return None


def assemble(ptx: str, architecture: str) -> bytes:
    """The cubin of a module. Raises AssemblyError."""
    return assembled(ptx, architecture)[0]


def assembled(ptx: str, architecture: str) -> tuple[bytes, str]:
    """The cubin of a module, and what `ptxas` tells of its kernels. Both are kept in the cache on disk. Raises AssemblyError."""
    key = kernel_cache.key_of("assembled", "2", ptx, architecture, program_path("ptxas") or "")
    if (entry := kernel_cache.read(key)) is not None:
        return entry[1], str(entry[0]["log"])
    if why := problem():
        raise AssemblyError(why)
    cubin, log = _by_ptxas(ptx, architecture) if program_path("ptxas") else _linked(_nvjitlink(), ptx, architecture)
    kernel_cache.write(key, {"log": log}, cubin)
    return cubin, log


def _nvjitlink() -> Any:
    """The bindings of nvJitLink; None where the library is not installed."""
    with suppress(ImportError, RuntimeError, OSError):
        from cuda.bindings import nvjitlink

        nvjitlink.version()
        return nvjitlink
    return None


def _linked(linker: Any, ptx: str, architecture: str) -> tuple[bytes, str]:
    handle = linker.create(2, [f"-arch={architecture}", "-verbose"])
    try:
        text = ptx.encode()
        linker.add_data(handle, linker.InputType.PTX, text, len(text), "altered.ptx")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
        log = bytearray(linker.get_info_log_size(handle))
        linker.get_info_log(handle, log)
        return bytes(cubin), log.decode(errors="replace").rstrip("\0")
    except linker.nvJitLinkError as error:
        log = bytearray(linker.get_error_log_size(handle))
        linker.get_error_log(handle, log)
        raise AssemblyError(f"nvJitLink: {' '.join(log.decode(errors='replace').split())[:300] or error}") from error
    finally:
        linker.destroy(handle)


def _by_ptxas(ptx: str, architecture: str) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "altered.ptx", Path(folder) / "altered.cubin"
        source.write_text(ptx)
        command = [str(program_path("ptxas")), "-v", f"-arch={architecture}", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS)
        if done.returncode != 0:
            raise AssemblyError(f"ptxas: {' '.join(done.stderr.split())[:300]}")
        return cubin.read_bytes(), done.stderr
