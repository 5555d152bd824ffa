"""The instructions of compiled kernels, by NVIDIA's own disassembler. It needs neither a GPU nor the CUDA toolkit.

`nvdisasm` comes with the package `nvidia-cuda-nvdisasm`, and `cuobjdump`, which takes kernels out of programs and libraries, with
`nvidia-cuda-cuobjdump`. Both are part of the CUDA toolkit too.
"""

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import sched_getaffinity
from pathlib import Path, PurePosixPath
from typing import Final

from warpladder.collectors.core import kernel_cache
from warpladder.collectors.core.code_rows import Instruction, Place
from warpladder.errors import Error
from warpladder.installation import how_to_install

_SECONDS: Final = 120
_FUNCTION: Final = re.compile(r"^\.text\.(\S+):$")
_LABEL: Final = re.compile(r"^(\.L_\S+):$")
_INSTRUCTION: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PLACE: Final = re.compile(r'File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_TARGET: Final = re.compile(r"`\((\.L_\S+?)\)")
_BLANKS: Final = re.compile(r"\s+")
_PATTERNS: Final = ("nvidia/cu*/bin/{}", "nvidia/cuda_{}/bin/{}")
_TOOLKITS: Final = ("/usr/local/cuda/bin/{}", "/usr/local/cuda-*/bin/{}", "/opt/cuda/bin/{}")


class DisassemblyError(Error):
    """The disassembler is not there, or does not read a file."""


def disassemble(cubin: bytes) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each function of a cubin, by its symbol. The result is kept in the cache on disk. Raises
    DisassemblyError: there is no disassembler, or it cannot read the cubin."""
    key = kernel_cache.key_of("sass", hashlib.sha256(cubin).hexdigest(), version())
    if (entry := kernel_cache.read(key)) is not None:
        return {name: tuple(map(_from_json, rows)) for name, rows in json.loads(entry[1]).items()}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        functions = dict(parse(_run("nvdisasm", "-c", "-gi", file.name)))
    content = {name: [(each.text, each.places) for each in function] for name, function in functions.items()}
    kernel_cache.write(key, {}, json.dumps(content).encode())
    return functions


def disassemble_all(cubins: Sequence[bytes]) -> list[dict[str, tuple[Instruction, ...]]]:
    """`disassemble` of several cubins, with one process for each core."""
    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        return list(pool.map(disassemble, cubins))


def cubins_of(file: Path) -> dict[str, bytes]:
    """The cubins inside a program, an object file or a shared library, by name. Raises DisassemblyError: there is no
    `cuobjdump`, or it cannot read the file."""
    with tempfile.TemporaryDirectory() as folder:
        _run("cuobjdump", "-xelf", "all", str(file.resolve()), cwd=folder)
        return {each.name: each.read_bytes() for each in sorted(Path(folder).glob("*.cubin"))}


def _from_json(row: Sequence[object]) -> Instruction:
    text, places = row
    assert isinstance(text, str) and isinstance(places, list)
    return Instruction(text, tuple((file, line) for file, line in places))


def parse(listing: str) -> Iterator[tuple[str, tuple[Instruction, ...]]]:
    """Read what `nvdisasm -c -gi` prints. Yields the symbol and the instructions of each function."""
    symbol, rows, labels = "", list[tuple[str, tuple[Place, ...]]](), dict[str, int]()
    places: list[Place] = []
    continued = False  # whether the line before was about a place too
    for line in listing.splitlines():
        if match := _FUNCTION.match(line):
            if symbol:
                yield symbol, _resolved(rows, labels)
            symbol, rows, labels, places = match[1], [], {}, []
        elif match := _LABEL.match(line):
            labels[match[1]] = 16 * len(rows)
        elif line.lstrip().startswith("//##"):
            places = [*(places if continued else ()), *_places_of(line)]
            continued = True
            continue
        elif match := _INSTRUCTION.match(line):
            rows.append((_BLANKS.sub(" ", match[2]), tuple(dict.fromkeys(places))))
        continued = False
    if symbol:
        yield symbol, _resolved(rows, labels)


def _places_of(line: str) -> Iterator[Place]:
    for file, number, outer, outer_number in _PLACE.findall(line):
        yield PurePosixPath(file).name, int(number)
        if outer:
            yield PurePosixPath(outer).name, int(outer_number)


def _resolved(rows: Sequence[tuple[str, tuple[Place, ...]]], labels: Mapping[str, int]) -> tuple[Instruction, ...]:
    """The instructions with offsets in place of labels. A label of another function stays."""
    return tuple(
        Instruction(_TARGET.sub(lambda match: f"{labels[match[1]]:#x}" if match[1] in labels else match[1], text), places)
        for text, places in rows
    )


# -- the programs --------------------------------------------------------------------------------------------------------------


def problem() -> str | None:
    """Why kernels cannot be disassembled here, and how to fix it; None if they can."""
    if program_path("nvdisasm") is None:
        return f"there is no nvdisasm; install nvidia-cuda-nvdisasm: {how_to_install('gpu')}"
    return None


@cache
def program_path(program: str) -> str | None:
    """The program of the package, else the one on PATH or of a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in _PATTERNS:
            for path in sorted(Path(folder).parent.glob(pattern.format(*[program] * pattern.count("{}"))), reverse=True):
                return str(path)
    if on_path := shutil.which(program):
        return on_path
    toolkits = (path for place in _TOOLKITS for path in sorted(Path("/").glob(place.format(program)[1:]), reverse=True))
    return next(map(str, toolkits), None)


@cache
def version() -> str:
    """The version of the disassembler, such as `13.5`."""
    match = re.search(r"release (\S+),", _run("nvdisasm", "--version"))
    return match[1] if match else ""


def _run(program: str, *arguments: str, cwd: str | None = None) -> str:
    path = program_path(program)
    if path is None:
        raise DisassemblyError(f"there is no {program}; pip install nvidia-cuda-{program}")
    try:
        completed = subprocess.run(
            [path, *arguments], capture_output=True, text=True, errors="replace", timeout=_SECONDS, cwd=cwd
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DisassemblyError(f"{program}: does not run ({error}); install nvidia-cuda-{program} again") from error
    if completed.returncode != 0:
        last_words = " ".join(completed.stderr.split())[-200:]
        raise DisassemblyError(f"{program}: {last_words or f'exit code {completed.returncode}'}")
    return completed.stdout
