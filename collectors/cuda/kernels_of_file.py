"""The machine code of every kernel in a file: a CUDA source, a Python file with workloads, a cubin, or a program. Uses no GPU."""

import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.code_rows import Instruction, code_row
from warpladder.collectors.core.demangle import demangled, without_parameters
from warpladder.collectors.core.plan import Plan, Request, make_plan
from warpladder.collectors.cuda import compiler
from warpladder.collectors.cuda.compiler import CompiledModule
from warpladder.collectors.cuda.disassembly import DisassemblyError, cubins_of, disassemble
from warpladder.collectors.cuda.machine_code import ptx_of, rows_of
from warpladder.collectors.cuda.nvrtc import nvrtc
from warpladder.data import source_text
from warpladder.errors import Error
from warpladder.workloads.api import CudaVariant

#: The architecture that sources are compiled for where none is named.
DEFAULT: Final = "sm_90"
_ARCHITECTURE: Final = re.compile(r"sm_(\d+)([af]?)")
_SUFFIXED_FROM: Final = 90  # the first architecture that has variants such as sm_90a
_NO_CODE: Final = "does not contain device code"  # cuobjdump, of a program without kernels
#: A template of a kernel up to its parameters; its own parameters may hold one level of `<>`.
_TEMPLATE: Final = re.compile(
    r"\btemplate\s*<(?:[^<>;{}]|<[^<>;{}]*>)*>\s*(?:[\w:]+\s+)*?__global__\s+"
    r"(?:\w+\s+|__launch_bounds__\s*\([^()]*\)\s*)*?\b(?!__launch_bounds__\b)(\w+)\s*\("
)
_PROGRAMS: Final = (b"\x7fELF", b"!<arch>\n", b"\x50\xed\x55\xba")


class CubinError(Exception):
    """The file is not a cubin, or it is damaged."""


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel."""

    registers: int
    static_shared_bytes: int


@dataclass(frozen=True)
class Cubin:
    """The architecture of a cubin, such as `sm_90`, and its kernels by symbol."""

    architecture: str
    kernels: dict[str, Resources]


@dataclass(frozen=True)
class KernelCode:
    """The code of one kernel.

    Attributes:
        variant: `workload/variant`; empty for a kernel that no workload declares.
        row: its row of the table `machine_code`.
        places: where each instruction comes from: a line of the source with its number, or a file and a line; empty where it is not known.
    """

    variant: str
    row: Mapping[str, Any]
    places: tuple[str, ...]


def read(file: Path, architectures: Sequence[str], names: Sequence[str]) -> list[KernelCode]:
    """The kernels of a file, by architecture. Raises Error: the file, an architecture or a kernel does not exist, or
    the file does not compile or cannot be disassembled.

    Args:
        file: a `.cu`, a `.py`, a `.cubin`, a program, an object file or a shared library.
        architectures: such as `sm_90`. Where none is named, sources are compiled for `DEFAULT`, and every architecture of a program is read.
        names: the kernels to return, all when empty. For a `.cu`, a name expression such as `transpose<2, 1>` too.
    """
    if file.is_dir() or not file.exists():
        problem = "a folder" if file.is_dir() else "no such file"
        raise Error(f"{file}: {problem}; give a .cu, a .py that declares a Benchmark, a .cubin, a program or a library")
    if file.suffix in (".cu", ".py"):
        _check(architectures)
        of_source = _of_source if file.suffix == ".cu" else _of_workloads
        return [code for each in architectures or (DEFAULT,) for code in of_source(file, each, names)]
    return _of_binary(file, architectures, names)


def templates_of(file: Path) -> list[str]:
    """The kernels of a `.cu` that are templates, of which the compiler makes none by itself."""
    if file.suffix != ".cu":
        return []
    return list(dict.fromkeys(_TEMPLATE.findall(" ".join(source_text.code(source_text.read(file))))))


def known_architectures() -> list[str]:
    """The architectures that the compiler knows."""
    return nvrtc().architectures


def _check(architectures: Sequence[str]) -> None:
    known = known_architectures()
    for name in architectures:
        match = _ARCHITECTURE.fullmatch(name)
        if not match or f"sm_{match[1]}" not in known or (match[2] and int(match[1]) < _SUFFIXED_FROM):
            raise Error(f"--arch {name}: NVRTC {compiler.version()} has no such architecture; choose {', '.join(known)}")


# -- a CUDA source -------------------------------------------------------------------------------------------------------------


def _of_source(file: Path, architecture: str, names: Sequence[str]) -> Iterator[KernelCode]:
    variant = CudaVariant(file.stem, file.stem, "rung", source=file)
    plain = _compiled(file, variant, (), architecture)
    symbols = _names(read_cubin(plain.cubin).kernels)
    expressions = [name for name in names if name not in symbols]
    _check_expressions(file, variant, expressions, symbols, architecture)
    selected = names or list(symbols)
    if not selected:
        raise Error(f"{file}: has no kernel that is no template; name one, such as --kernel 'my_kernel<float, 4>'")
    module = _with_spills(variant, selected, plain, symbols, architecture)
    instructions = disassemble(module.cubin)
    resources = read_cubin(module.cubin).kernels
    for name in selected:
        kernel = module.kernels.get(name)
        symbol = kernel.symbol if kernel else symbols[name]
        row = code_row(
            name,
            architecture,
            f"NVRTC {compiler.version()}",
            instructions[symbol],
            source_text.places(variant.source_text, file.name),
            registers=resources[symbol].registers,
            static_shared_bytes=resources[symbol].static_shared_bytes,
            spill_bytes=kernel.spill_bytes if kernel else None,
            stack_bytes=kernel.stack_bytes if kernel else None,
            ptx=ptx_of(module.ptx, symbol),
        )
        yield KernelCode("", row, _lines(row, variant.source_text))


def _compiled(file: Path, variant: CudaVariant, names: Sequence[str], architecture: str) -> CompiledModule:
    try:
        return compiler.compile_variant(variant, names, architecture)
    except compiler.CompileError as error:
        hint = "; nvcc -cubin compiles sources with code of the host, and this command reads its .cubin"
        raise Error(f"{file}: does not compile: {_first_error(file, str(error))}{hint}") from error


def _first_error(file: Path, message: str) -> str:
    """The first line of the compiler's log that has an error."""
    lines = message.removeprefix(f"{file.name} does not compile for ").splitlines()
    lines[0] = lines[0].partition(": ")[2]
    return next((line for line in lines if "error" in line), lines[0]).strip()


def _check_expressions(
    file: Path, variant: CudaVariant, expressions: Sequence[str], known: Mapping[str, str], architecture: str
) -> None:
    for expression in expressions:
        try:
            compiler.compile_variant(variant, [expression], architecture)
        except compiler.CompileError as error:
            if _PLACE_OF_NAMES not in str(error):
                raise Error(f"{file}: {expression} does not compile: {_first_error(file, str(error))}") from error
            raise Error(f"{file}: no kernel {expression}; {_known(known)}, and templates with their arguments") from error


#: Where NVRTC's log places errors of a name expression, and not of what it names.
_PLACE_OF_NAMES: Final = "__nv_name_map"


def _known(names: Collection[str]) -> str:
    return f"its kernels: {', '.join(names) or 'none'}"


def _with_spills(
    variant: CudaVariant, names: Sequence[str], plain: CompiledModule, symbols: Mapping[str, str], architecture: str
) -> CompiledModule:
    """The module with the spills of the named kernels, where the names are expressions that the compiler can tell apart."""
    try:
        return compiler.compile_variant(variant, names, architecture)
    except compiler.CompileError:
        if any(name not in symbols for name in names):
            raise
        return plain


def _names(symbols: Collection[str]) -> dict[str, str]:
    """The symbol of each kernel by its name: without parameters where no other kernel has that name."""
    full = {symbol: demangled(symbol) for symbol in symbols}
    short = {symbol: without_parameters(name) for symbol, name in full.items()}
    counts = list(short.values())
    return {short[symbol] if counts.count(short[symbol]) == 1 else full[symbol]: symbol for symbol in symbols}


def _lines(row: Mapping[str, Any], text: str) -> tuple[str, ...]:
    source = text.split("\n")
    numbers = map(int, row["lines"].split("\n")) if row["lines"] else ()
    return tuple(f"{number}: {source[number - 1].strip()}" if number else "" for number in numbers)


# -- a file with workloads -----------------------------------------------------------------------------------------------------


def _of_workloads(file: Path, architecture: str, names: Sequence[str]) -> Iterator[KernelCode]:
    plan = make_plan(Request(files=[file], case_set="full", no_limit=True))
    cells = cuda_cells(plan, architecture)
    try:
        rows = rows_of(plan, cells, architecture)
    except compiler.CompileError as error:
        raise Error(_first_error(file, str(error))) from error
    codes = {row["code"]: row for row in rows["machine_code"]}
    known = dict.fromkeys(row["kernel"] for row in codes.values())
    if not known:
        others = "its variants are Python, whose code a recording with --counters keeps"
        if any(variant.kind == "cuda" for workload in plan.workloads for variant in workload.variants):
            others = "name another with --arch"
        raise Error(f"{file}: has no variant in CUDA C++ for {architecture}; {others}")
    if missing := [name for name in names if name not in known]:
        raise Error(f"{file}: no kernel {missing[0]}; {_known(known)}")
    first = {row["code"]: row for row in reversed(rows["cell_launches"])}
    for code, row in codes.items():
        if not names or row["kernel"] in names:
            workload, name = first[code]["workload"], first[code]["variant"]
            variant = _variant(plan, workload, name)
            assert isinstance(variant, CudaVariant)
            yield KernelCode(f"{workload}/{name}", row, _lines(row, variant.source_text))


def cuda_cells(plan: Plan, architecture: str) -> list[Cell]:
    """The cells of a plan whose variants are CUDA C++ that the architecture can run."""
    return list(
        dict.fromkeys(
            cell
            for job in plan.jobs
            for cell in job.cells
            if runs_on(_variant(plan, cell.workload, cell.variant), architecture)
        )
    )


def runs_on(variant: object, architecture: str) -> bool:
    """Whether a variant is CUDA C++ for an architecture."""
    match = _ARCHITECTURE.fullmatch(architecture)
    if not isinstance(variant, CudaVariant) or not match:
        return False
    least = variant.min_compute_capability[0] * 10 + variant.min_compute_capability[1]
    return int(match[1]) >= least and variant.only_architecture.rstrip("af") in ("", f"sm_{match[1]}")


def _variant(plan: Plan, workload: str, variant: str) -> object:
    return next(each for each in plan.workloads if each.name == workload).variant(variant)


# -- a cubin, and what has cubins inside ---------------------------------------------------------------------------------------


def _of_binary(file: Path, architectures: Sequence[str], names: Sequence[str]) -> list[KernelCode]:
    headers = [(content, header) for content in _contents(file) if (header := _header(file, content)).kernels]
    present = list(dict.fromkeys(header.architecture for _, header in headers))
    if not present:
        raise Error(f"{file}: has no machine code of a GPU; build it with nvcc, for a real architecture such as -arch=sm_90")
    for name in architectures:
        if name not in present:
            raise Error(f"--arch {name}: {file} has no code for it; choose {', '.join(present)}")
    known = dict.fromkeys(name for _, header in headers for name in _names(header.kernels))
    if missing := [name for name in names if name not in known]:
        raise Error(f"{file}: no kernel {missing[0]}; {_known(known)}")
    wanted = architectures or present
    chosen = sorted((each for each in headers if each[1].architecture in wanted), key=lambda e: wanted.index(e[1].architecture))
    return [code for content, header in chosen for code in _of_cubin(content, header, names)]


def _contents(file: Path) -> list[bytes]:
    data = file.read_bytes()
    if file.suffix == ".cubin":
        return [data]
    if not data.startswith(_PROGRAMS):
        raise Error(f"{file}: is neither source, cubin nor program; give a .cu, a .py, a .cubin, a program or a library")
    try:
        return list(cubins_of(file).values())
    except DisassemblyError as error:
        if _NO_CODE in str(error):
            return []
        raise Error(f"{file}: {error}") from error


def _header(file: Path, content: bytes) -> Cubin:
    try:
        return read_cubin(content)
    except CubinError as error:
        raise Error(f"{file}: {error}; give a .cubin that nvcc or ptxas wrote") from error


def _of_cubin(content: bytes, header: Cubin, names: Sequence[str]) -> Iterator[KernelCode]:
    functions = disassemble(content)
    for name, symbol in _names(header.kernels).items():
        if not names or name in names:
            resources = header.kernels[symbol]
            row = code_row(
                name,
                header.architecture,
                "",
                functions.get(symbol, ()),
                {},
                registers=resources.registers,
                static_shared_bytes=resources.static_shared_bytes,
                spill_bytes=None,
                ptx=None,
            )
            count = len(row["sass"].split("\n"))
            yield KernelCode("", row, tuple(map(_place, functions.get(symbol, ())[:count])))


def _place(instruction: Instruction) -> str:
    return "{}:{}".format(*instruction.places[0]) if instruction.places else ""


_MAGIC: Final = b"\x7fELF"
_CUDA: Final = 190  # the machine in the header of the file
_SYMBOLS: Final = 2  # the type of a section with symbols
_ENTRY: Final = 0x10  # of a symbol: a kernel, and not a function that kernels call
#: From this version of the format on, the architecture is in the second byte of the flags.
_SECOND_BYTE: Final = 8
#: An attribute of section `.nv.info`: format, attribute, size; then the number of a symbol and its registers.
_REGISTERS: Final = struct.Struct("<BBHII")
_WITH_SIZE: Final = 0x04  # a format; the value of the others is in the place of the size
_IS_REGISTERS: Final = (_WITH_SIZE, 0x2F, 8)
#: From compute capability 9.0 on, a section with shared memory begins with what the driver reserves.
_RESERVED_FROM: Final = 90
_RESERVED_BYTES: Final = 1024


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


_SECTION: Final = struct.Struct("<IIQQQQII")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


def read_cubin(cubin: bytes) -> Cubin:
    """Read the headers of a cubin. Raises CubinError."""
    if cubin[:4] != _MAGIC or len(cubin) < 64:
        raise CubinError("not an ELF file")
    try:
        (machine,) = struct.unpack_from("<H", cubin, 0x12)
        if machine != _CUDA:
            raise CubinError("an ELF file for a processor, not for a GPU")
        (flags,) = struct.unpack_from("<I", cubin, 0x30)
        capability = flags >> 8 & 0xFF if cubin[8] >= _SECOND_BYTE else flags & 0xFF
        return Cubin(f"sm_{capability}", dict(_kernels(cubin, _RESERVED_BYTES if capability >= _RESERVED_FROM else 0)))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CubinError("a damaged ELF file") from error


def _kernels(cubin: bytes, reserved: int) -> Iterator[tuple[str, Resources]]:
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [_Section(*_SECTION.unpack_from(cubin, start + size * place)) for place in range(count)]
    names = [_text(cubin, sections[names_at].offset + each.name) for each in sections]
    shared = {name.removeprefix(".nv.shared."): each.size for name, each in zip(names, sections, strict=True)}
    registers = dict(_registers(cubin, sections[names.index(".nv.info")])) if ".nv.info" in names else {}
    for table in (each for each in sections if each.type == _SYMBOLS):
        strings = sections[table.link].offset
        for number in range(table.size // _SYMBOL.size):
            name, _, other, place, _, _ = _SYMBOL.unpack_from(cubin, table.offset + number * _SYMBOL.size)
            if other & _ENTRY and place < count and names[place].startswith(".text."):
                symbol = _text(cubin, strings + name)
                used = registers.get(number, sections[place].info >> 24)
                yield symbol, Resources(used, max(0, shared.get(symbol, 0) - reserved))


def _registers(cubin: bytes, section: _Section) -> Iterator[tuple[int, int]]:
    """The registers of each function, by the number of its symbol."""
    place, end = section.offset, section.offset + section.size
    while place + 4 <= end:
        form, _, size = struct.unpack_from("<BBH", cubin, place)
        if struct.unpack_from("<BBH", cubin, place) == _IS_REGISTERS:
            yield _REGISTERS.unpack_from(cubin, place)[3:]
        place += 4 + (size if form == _WITH_SIZE else 0)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")
