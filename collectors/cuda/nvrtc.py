"""NVRTC, NVIDIA's compiler as a library: the installed one, or one of another version at a path.

NVIDIA's bindings know one version only. A second one is loaded beside it under its full path, with the library of built-in functions that
stands in the same folder.
"""

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from cuda import pathfinder

from warpladder.errors import Error

_SUCCESS: Final = 0
_BUILTINS: Final = "libnvrtc-builtins.so.*"
#: The first version that keeps machine code of its own, and knows the option that makes it compile again.
_CACHES_FROM: Final = (12, 9)
_VERSION: Final = re.compile(r"\d+\.\d+")
#: Where versions are looked for, and where the library stands in a toolkit, in NVIDIA's packages, and in an environment.
_ROOTS: Final = (
    Path(sys.prefix),
    *(Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)),
    *sorted(Path("/usr/local").glob("cuda-*")),
)
_FOLDERS: Final = ("", "lib64/", "lib/", "nvidia/*/lib/", "lib/python3*/site-packages/nvidia/*/lib/")


class NvrtcError(Exception):
    """NVRTC is not there, or one of its functions fails."""


@dataclass(frozen=True)
class Output:
    """What NVRTC makes of a source: machine code, which is empty for a virtual architecture, intermediate code, its log, and the symbol of each
    expression."""

    cubin: bytes
    ptx: str
    log: str
    symbols: Mapping[str, str]


class Nvrtc:
    """One version of NVRTC.

    Attributes:
        path: its library.
    """

    def __init__(self, path: str) -> None:
        try:
            self._builtins = [ctypes.CDLL(str(each)) for each in sorted(Path(path).parent.glob(_BUILTINS))]
            self._library = ctypes.CDLL(path)
            self._text_of_error = self._library.nvrtcGetErrorString
        except (OSError, AttributeError) as error:
            raise NvrtcError(f"{path}: no NVRTC ({error})") from error
        self._text_of_error.restype = c_char_p
        self.path = path

    @cached_property
    def release(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = c_int(), c_int()
        self._call("Version", byref(major), byref(minor))
        return major.value, minor.value

    @cached_property
    def version(self) -> str:
        """Such as `13.0`."""
        return "{}.{}".format(*self.release)

    @cached_property
    def architectures(self) -> list[str]:
        """The architectures that it compiles for, such as `sm_90`."""
        count = c_int()
        self._call("GetNumSupportedArchs", byref(count))
        numbers = (c_int * count.value)()
        self._call("GetSupportedArchs", numbers)
        return [f"sm_{number}" for number in numbers]

    def compile(
        self, source: str, name: str, headers: Mapping[str, str], expressions: Sequence[str], options: Sequence[str]
    ) -> Output:
        """Compile a source.

        Args:
            source, name: the source, and its name in messages.
            headers: text of further headers by the name that the source includes them by.
            expressions: names of kernels and addresses of constants, whose symbols are asked for.

        Raises:
            NvrtcError: it refuses the source or the options; the message is the compiler's log.
        """
        program, library = c_void_p(), self._library
        texts, names = _texts([*headers.values()]), _texts([*headers])
        self._call("CreateProgram", byref(program), source.encode(), name.encode(), len(headers), texts, names)
        try:
            for each in expressions:
                self._call("AddNameExpression", program, each.encode())
            if self.release >= _CACHES_FROM:
                options = ["--no-cache", *options]
            status = library.nvrtcCompileProgram(program, len(options), _texts(options))
            log = self._content("ProgramLog", program).decode(errors="replace").rstrip("\0 \n")
            if status != _SUCCESS:
                raise NvrtcError(log or self._text_of_error(status).decode())
            symbols = {each: self._symbol(program, each) for each in expressions}
            ptx = self._content("PTX", program).decode(errors="replace").rstrip("\0 \n")
            return Output(self._content("CUBIN", program), ptx, log, symbols)
        finally:
            library.nvrtcDestroyProgram(byref(program))

    def _symbol(self, program: c_void_p, expression: str) -> str:
        name = c_char_p()
        self._call("GetLoweredName", program, expression.encode(), byref(name))
        return (name.value or b"").decode()

    def _content(self, what: str, program: c_void_p) -> bytes:
        size = c_size_t()
        self._call(f"Get{what}Size", program, byref(size))
        content = ctypes.create_string_buffer(size.value)
        if size.value:
            self._call(f"Get{what}", program, content)
        return content.raw

    def _call(self, function: str, *arguments: Any) -> None:
        if status := getattr(self._library, f"nvrtc{function}")(*arguments):
            raise NvrtcError(f"NVRTC: {self._text_of_error(status).decode()}")


def _texts(texts: Sequence[str]) -> Any:
    return (c_char_p * len(texts))(*(text.encode() for text in texts))


@cache
def nvrtc(path: str = "") -> Nvrtc:
    """The NVRTC at a path, or the installed one. Raises NvrtcError."""
    try:
        installed = _installed()  # first, since NVIDIA's finder takes whichever is loaded
    except NvrtcError:
        if not path:
            raise
        installed = ""
    return Nvrtc(path or installed)


def find(name: str) -> Nvrtc:
    """An NVRTC by its version, such as `12.4`, which is looked for in this environment and in toolkits, or by its library, or by a folder
    that has it: of a toolkit, of an environment, or of `pip install --target`.

    Raises:
        Error: there is none.
    """
    if _VERSION.fullmatch(name):
        for path in _libraries(*_ROOTS):
            with suppress(NvrtcError):
                if (found := nvrtc(str(path))).version == name:
                    return found
        package = f"nvidia-cuda-nvrtc{'-cu12' if name.startswith('12.') else ''}=={name}.*"
        raise Error(
            f"{name}: no such NVRTC here; pip install --no-deps --target nvrtc-{name} '{package}', and name that folder"
        )
    path = Path(name).expanduser()
    library = next(_libraries(path), None) if path.is_dir() else path if path.is_file() else None
    if library is None:
        problem = "no NVRTC in it" if path.is_dir() else "no such file"
        raise Error(
            f"{name}: {problem}; give a version, such as 12.4, or a folder of a toolkit or an environment with libnvrtc.so"
        )
    try:
        return nvrtc(str(library.absolute()))
    except NvrtcError as error:
        raise Error(f"{error}; give libnvrtc.so of CUDA 12 or later") from error


def _libraries(*roots: Path) -> Iterator[Path]:
    """The libraries of NVRTC below folders."""
    for root in roots:
        for pattern in _FOLDERS:
            yield from sorted(root.glob(f"{pattern}libnvrtc.so*"))


@cache
def _installed() -> str:
    try:
        return str(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path)
    except pathfinder.DynamicLibNotFoundError as error:
        raise NvrtcError("there is no NVRTC; is nvidia-cuda-nvrtc installed?") from error
