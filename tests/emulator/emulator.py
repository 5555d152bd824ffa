"""Runs the kernels of a `CudaVariant` on the CPU, so that every rung is checked where there is no GPU.

The variant's source is compiled with the headers beside this file into a program of its own; functions of inline PTX that the
headers have are taken out of it. The program runs the launches on buffers between inaccessible pages. What a GPU would let pass
or hang on becomes an `EmulationError` that names the line, the block and the thread: accesses outside a buffer, an array or the
dynamic shared memory, misaligned vectors, writes to an input, threads that part at a barrier, waits that never end, arguments of
another type than the parameter's. Shared memory holds NaN when a block starts, so that what was never written shows in the
output.

It checks what a kernel computes, not how fast, and it cannot see every race: `Order` runs threads and blocks from first to
last or from last to first, and a missing barrier shows in at least one of the two. Of Hopper it has copies by the TMA, barriers
that count, products of warpgroups and clusters (`hopper.h`, `hopper_clusters.h`). Copies and products are done at once in one
order, and as late as waits allow in the other, so that a missing wait shows too. Fences are not checked.

Blocks, or clusters, run one after another, in either order: a kernel must not wait for another block but those of its cluster.
A persistent kernel whose blocks take tiles from a counter runs, its first block taking all.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pytest

from tests.emulator.tensor_maps import argument_of_tensor_map
from tests.emulator.translation import INCLUDES, EmulationError, translation_unit
from warpladder.workloads.api import CudaVariant, Launch, TensorMap
from warpladder.workloads.declare.launches import PeerMemory, RowsOf

Order = Literal["forward", "backward"]

COMPILER: Final = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler; install g++, or set CXX")
TIMEOUT_S: Final = 120

_HERE: Final = Path(__file__).resolve().parent
# Fortified longjmp takes a change of fibers for an error.
_FLAGS: Final = (
    *("-std=c++17", "-O1", "-g1", "-w", "-fno-pie", "-no-pie", "-gdwarf-4", "-fno-strict-aliasing", "-ffp-contract=off"),
    *("-fsanitize=bounds,alignment,shift,signed-integer-overflow,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error"),
    "-U_FORTIFY_SOURCE",
    "-pthread",
)
_MAX_THREADS: Final = 1024
_MAX_BLOCK: Final = (1024, 1024, 64)
_MAX_GRID: Final = (2**31 - 1, 65535, 65535)
_MAX_SHARED_BYTES: Final = 227 * 1024
_PEER_MEMORY_BYTES: Final = 72  # of the kernel's parameter


@dataclass(frozen=True)
class Program:
    """A variant compiled for the host, with the kernels that it can launch."""

    variant: CudaVariant
    kernels: tuple[str, ...]
    executable: Path

    def run(
        self,
        launches: Sequence[Launch],
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        order: Order = "forward",
        rank: int = 0,
    ) -> None:
        """Run launches in turn; the outputs are overwritten in place.

        Args:
            launches: as the variant's `launches` gives them.
            inputs: by name, C-contiguous; read-only to the kernels.
            outputs: by name, C-contiguous; what they hold is what the kernels find in them.
            order: in which order threads and blocks run.
            rank: of the ranks that share the case, if there are several: the memory of rank r by which they exchange is then an output named
                after the scratch and `@r`.

        Raises:
            EmulationError: a launch that a GPU would refuse, or a fault.
        """
        buffers = {**inputs, **outputs}
        with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
            memory = Path(folder, "buffers.bin")
            with memory.open("wb") as file:
                for array in buffers.values():
                    file.write(np.ascontiguousarray(array).tobytes())
            self._execute(memory, self._job(launches, inputs, buffers, rank), order)
            offset = sum(array.nbytes for array in inputs.values())
            for name, array in outputs.items():
                array[...] = np.fromfile(memory, array.dtype, array.size, offset=offset).reshape(array.shape)
                offset += buffers[name].nbytes

    def _job(
        self, launches: Sequence[Launch], inputs: Mapping[str, np.ndarray], buffers: Mapping[str, np.ndarray], rank: int
    ) -> str:
        number = {name: index for index, name in enumerate(buffers)}
        lines = [f"buffer {name} {int(name in inputs)} {array.nbytes}" for name, array in buffers.items()]
        lines += [f"constant {index} {number[name]}" for index, name in enumerate(self.variant.constants.values())]
        for launch in launches:
            _check_limits(launch)
            if launch.kernel not in self.kernels:
                raise EmulationError(f"{launch.kernel}: not among the kernels of this program; build it with them all")
            lines.append(
                " ".join(
                    str(word)
                    for word in (
                        *("launch", self.kernels.index(launch.kernel), *launch.grid, *launch.block),
                        *(launch.dynamic_shared_bytes, len(launch.args)),
                        *(_argument(launch, value, number, buffers, rank) for value in launch.args),
                    )
                )
            )
        return "\n".join(lines)

    def _execute(self, memory: Path, job: str, order: Order) -> None:
        command = [str(self.executable), str(memory), order]
        try:
            done = subprocess.run(command, input=job, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise EmulationError(
                f"{self.variant.name}: not done after {TIMEOUT_S} s; does a loop wait for another thread, or for a later block?"
            ) from None
        if done.returncode:
            counter, _, what = done.stderr.strip().rpartition("\n")[2].partition("\t")
            raise EmulationError(f"{self._line_of(counter)}: {what or f'ended by signal {-done.returncode}'}")

    def _line_of(self, counter: str) -> str:
        """`v06_shared.cu:42` for a program counter, or the variant's name where none is to blame."""
        own = f"{self.variant.name}.cu"
        if counter not in {"", "0"} and (tool := shutil.which("addr2line")):
            found = subprocess.run([tool, "-i", "-e", self.executable, counter], capture_output=True, text=True, check=False)
            for line in found.stdout.splitlines():
                file, _, number = line.partition(" ")[0].rpartition(":")
                if Path(file).name == own:
                    return f"{own}:{number}"
        return own


def run(
    variant: CudaVariant,
    launches: Sequence[Launch],
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    order: Order = "forward",
) -> None:
    """Compile what the launches need, and run them. See `Program.run`."""
    build(variant, [launch.kernel for launch in launches]).run(launches, inputs, outputs, order)


def build(variant: CudaVariant, kernels: Sequence[str]) -> Program:
    """Compile a variant with the kernels of all its launches; a program is kept and found again by its content.

    Args:
        variant: its source, constants and least compute capability, which becomes `__CUDA_ARCH__`.
        kernels: name expressions, e.g. `transpose<2, 1, 0>`.

    Raises:
        EmulationError: there is no compiler, or it refuses the source.
    """
    if COMPILER is None:
        raise EmulationError("no C++ compiler; install g++, or set CXX")
    names = tuple(dict.fromkeys(kernels))
    major, minor = variant.min_compute_capability
    runtime = [_made(file.stem, ".o", (*_FLAGS, "-c"), file.read_text(), ()) for file in sorted(_HERE.glob("*.cpp"))]
    code = f"#define __CUDA_ARCH__ {major * 100 + minor * 10}\n{translation_unit(variant, names)}"
    return Program(variant, names, _made(variant.name, "", (*_FLAGS, "-include", str(_headers())), code, runtime))


def _headers() -> Path:
    """A header that includes ours. It stands compiled beside itself: reading ours takes a quarter of a second."""
    compiled = _made("headers", ".h.gch", (*_FLAGS, "-x", "c++-header"), INCLUDES, ())
    header = compiled.with_suffix("")
    if not header.exists():  # what a compiler reads that has no use for the compiled one
        partial = header.with_name(f"{header.name}.{os.getpid()}")
        partial.write_text(INCLUDES)
        partial.replace(header)
    return header


def _made(name: str, suffix: str, flags: Sequence[str], code: str, objects: Sequence[Path]) -> Path:
    """What the compiler makes of the code: kept under a hash of all that goes in."""
    headers = [file.read_text() for file in sorted(_HERE.glob("*.h"))]
    key = "\0".join([str(COMPILER), *flags, code, *headers, *(file.name for file in objects)])
    target = _cache_folder() / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}{suffix}"
    if not target.exists():
        with target.with_name(f"{target.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another worker compiles the same
            if not target.exists():
                _compile(name, [*flags, f"-I{_HERE}"], code, objects, target)
    return target


def _compile(name: str, flags: Sequence[str], code: str, objects: Sequence[Path], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="warpladder-") as folder:
        source, made = Path(folder, f"{name}-unit.cpp"), Path(folder, "made")
        source.write_text(code)
        command = [str(COMPILER), *flags, str(source), *map(str, objects), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            raise EmulationError(f"{name} does not compile for the emulator: {first.strip()}")
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copy(made, partial)
        partial.replace(target)


def _argument(launch: Launch, value: object, number: Mapping[str, int], buffers: Mapping[str, np.ndarray], rank: int) -> str:
    if isinstance(value, str | RowsOf):
        name, first = (value, 0) if isinstance(value, str) else (value.buffer, value.first)
        if name not in number:
            raise EmulationError(f"{launch.kernel}: argument {name} is no buffer; known: {', '.join(number)}")
        return f"p 8 {number[name]}+{first * buffers[name][:1].nbytes}"
    if isinstance(value, TensorMap):
        if value.buffer not in number:
            raise EmulationError(
                f"{launch.kernel}: tensor map of {value.buffer}, which is no buffer; known: {', '.join(number)}"
            )
        return argument_of_tensor_map(value, buffers[value.buffer], number[value.buffer])
    if isinstance(value, PeerMemory):
        of_ranks = [number[name] for name in buffers if name.startswith(f"{value.buffer}@")] or [number[value.buffer]]
        return f"m {_PEER_MEMORY_BYTES} {'+'.join(map(str, (rank, *of_ranks)))}"
    if not isinstance(value, np.generic):
        raise EmulationError(
            f"{launch.kernel}: argument {value!r} is not a NumPy scalar; give it the parameter's type, e.g. np.int32"
        )
    kind = {"b": "i", "i": "i", "u": "i", "f": "f"}.get(value.dtype.kind, "s")
    return f"{kind} {value.nbytes} {value.tobytes().hex()}"


def _check_limits(launch: Launch) -> None:
    """What every CUDA device refuses."""
    for what, sizes, most in (("grid", launch.grid, _MAX_GRID), ("block", launch.block, _MAX_BLOCK)):
        if any(not 1 <= size <= limit for size, limit in zip(sizes, most, strict=True)):
            raise EmulationError(f"{launch.kernel}: {what} {sizes} is outside 1 to {most}")
    if int(np.prod(launch.block)) > _MAX_THREADS:
        raise EmulationError(f"{launch.kernel}: block {launch.block} has more than {_MAX_THREADS} threads")
    if launch.dynamic_shared_bytes > _MAX_SHARED_BYTES:
        raise EmulationError(
            f"{launch.kernel}: {launch.dynamic_shared_bytes} bytes of dynamic shared memory; a block has {_MAX_SHARED_BYTES}"
        )


def _cache_folder() -> Path:
    folder = Path(tempfile.gettempdir(), f"warpladder-emulator-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise EmulationError(f"{folder}: belongs to another user; set TMPDIR to a folder of your own")
    return folder
