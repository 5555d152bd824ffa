"""Functions of shared libraries with a C interface as variants: the arrays reach them as pointers.

A library that nvcc built is called so: `extern "C" int softmax(const float* x, float* out, int n, cudaStream_t stream)` is
`c_function("libsoftmax.so", "softmax", ("x", "out", "n", "stream"))`. Extensions that Python can import, such as extensions made
with pybind11 and nanobind, need nothing of this: their functions are variants as they are.
"""

import ctypes
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from warpladder.workloads.declare import locate
from warpladder.workloads.declare.functions.wrapped import digest_of
from warpladder.workloads.declare.workloads import WorkloadError

#: Names of arguments that are given the outputs, one or several, and the stream that is timed.
_OUT: Final = "out"
_OUTS: Final = re.compile(r"out(\d+)")
_STREAM: Final = "stream"
#: CUDA's errors after which a process can do nothing more on the GPU (`cudaError_t`: an illegal address, a failed assertion, and so on).
_LASTING: Final = frozenset({700, 702, *range(709, 720), 721})
_MOST_KEPT: Final = 100
_UNDECLARED: Final = (ctypes.c_int32, ctypes.c_float)


class CallFailed(Exception):
    """A function of a shared library returned an error.

    Attributes:
        code: what it returned.
        lasting: it is an error of CUDA that leaves the process's context unusable.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code, self.lasting = code, code in _LASTING


def c_function(
    library: str | Path,
    symbol: str,
    args: Sequence[Any],
    *,
    types: Mapping[str, Any] | None = None,
    returns: Literal["int", "void"] = "int",
    source: str | Path = "",
    beside: Path | None = None,
) -> "CFunction":
    """A function of a shared library that takes arrays, for a variant of a benchmark. Raises WorkloadError: the file is
    not there, or an argument is wrong.

    Args:
        library: its file, by its path from `beside`; or the name of a library that the system finds, such as `libm.so.6`.
        symbol: name of the function, which is declared `extern "C"` in C++.
        args: its arguments in order. A text names an array, an axis or a config's value; `out` is the output, `out0`, `out1` and so
            on are several, and `stream` is the stream that is timed, as a `cudaStream_t`. Anything else is passed as it is: a NumPy
            scalar, a ctypes object, a number, or None for a null pointer.
        types: name of an argument -> its type: NumPy's or ctypes' for a scalar, NumPy's for the elements of an array, which are then
            checked. Without it an `int` is passed as int32, a `float` as float32, and a NumPy scalar as its own type.
        returns: `int` if it returns an error code, in which all but 0 is a failure, or `void`.
        source: file of its source, shown beside the figures.
        beside: the folder that paths count from; by default the current one.
    """
    folder = beside or Path.cwd()
    file = _file_of(str(library), folder)
    source_file = folder / source if source else None
    if source_file is not None and not locate.is_file(source_file):
        raise WorkloadError(f"{source_file}: no such file; give the path of the source of {symbol}, or leave it out")
    if returns not in ("int", "void"):
        raise WorkloadError(f"{symbol}: returns={returns!r}: choose one of int, void")
    names = [each for each in args if isinstance(each, str)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise WorkloadError(f"{symbol}: args has {twice[0]} twice; name each once")
    if wrong := [name for name in names if not name.isidentifier()]:
        raise WorkloadError(f"{symbol}: args has {wrong[0]!r}; name an array, an axis, a config's value, `out` or `stream`")
    outputs = sorted(name for name in names if _OUTS.fullmatch(name))
    if outputs and (_OUT in names or outputs != sorted(f"{_OUT}{at}" for at in range(len(outputs)))):
        raise WorkloadError(f"{symbol}: args names the outputs {', '.join(outputs)}; name one `out`, or out0, out1 and so on")
    if unknown := [name for name in types or {} if name not in names]:
        raise WorkloadError(f"{symbol}: types names {unknown[0]!r}, and args has {', '.join(names) or 'no names'}")
    declared_types = {name: _type_of(symbol, name, declared) for name, declared in (types or {}).items()}
    return CFunction(file, symbol, tuple(args), declared_types,
                     returns == "int", source_file)  # fmt: skip


class CFunction:
    """A function of a shared library. It takes arrays of any library by position or by name, and returns None.
    `library`: the file, or the name of a library of the system."""

    def __init__(
        self, library: Path, symbol: str, args: tuple[Any, ...], types: Mapping[str, Any], gives_code: bool, source: Path | None
    ) -> None:
        self.library, self.__name__, self.__doc__ = library, symbol, None
        self._args, self._types, self._gives_code, self._source = args, types, gives_code, source
        outputs = [_OUTS.fullmatch(each) if isinstance(each, str) else None for each in args]
        #: Each argument's name, or its value, with the parameter that holds it and its place among several outputs.
        self._slots = [
            (arg, _OUT if match else arg, int(match[1]) if match else -1) for arg, match in zip(args, outputs, strict=True)
        ]
        self._names = tuple(dict.fromkeys(holder for arg, holder, _ in self._slots if isinstance(arg, str)))
        self._outs = sum(match is not None for match in outputs)
        self._numbers: dict[tuple[str, type, Any], Any] = {}
        self._ways: dict[tuple[Any, ...], tuple[str, ...]] = {}
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self._names]
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *positional: Any, **by_name: Any) -> None:
        """Call it. Names that are not given by name are given by position, in their order in `args`.

        Raises:
            WorkloadError: an argument is missing, or is no array or number that it can take.
            CallFailed: it returned an error.
        """
        self._check(self._function(*self._prepared(positional, by_name)))

    def with_arguments(self, *positional: Any, **by_name: Any) -> Callable[[], None]:
        """A function without arguments that calls it with these, which are turned into C's once. It keeps the arrays. Raises as a call
        does.
        """
        arguments, call, check = self._prepared(positional, by_name), self._function, self._check

        def run(references: object = (positional, by_name)) -> None:
            check(call(*arguments))

        return run

    def _check(self, code: int | None) -> None:
        if code:
            raise CallFailed(
                f"{self.__name__} of {self.library.name} returned {code}; if it returns nothing, say returns='void'", code
            )

    def _prepared(self, positional: tuple[Any, ...], by_name: dict[str, Any]) -> list[Any]:
        values = self._bound(positional, by_name)
        on_gpu: dict[bool, str] = {}
        arguments = []
        for arg, holder, place in self._slots:
            if isinstance(arg, str):
                value = values[holder]
                arguments.append(self._argument(arg, value if place < 0 else self._output(value, place), on_gpu))
            else:
                arguments.append(self._number("args", arg))
        if len(on_gpu) > 1:
            raise WorkloadError(
                f"{self.__name__}: {on_gpu[True]} is on the GPU and {on_gpu[False]} on the host; give both on one"
            )
        return arguments

    @property
    def source_text(self) -> str:
        """The call, the library with its SHA-256, and the source."""
        arguments = ", ".join(each if isinstance(each, str) else repr(each) for each in self._args)
        library = digest_of(self.library) if self.library.is_absolute() else self.library.name
        text = self._source.read_text(errors="replace") if self._source else ""
        return f"# {self.__name__}({arguments}) of {library}\n{text}".rstrip("\n") + "\n"

    @property
    def source_file(self) -> Path | None:
        """The file of its source."""
        return self._source

    def _bound(self, positional: tuple[Any, ...], by_name: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, in a dict that may be changed."""
        way = (len(positional), *by_name)
        free = self._ways.get(way)
        if free is None:
            free = self._ways[way] = self._by_position(positional, by_name)
        by_name.update(zip(free, positional, strict=True))
        return by_name

    def _by_position(self, positional: tuple[Any, ...], by_name: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the arguments that are given by position."""
        free = tuple(name for name in self._names if name not in by_name)
        if len(positional) == len(free) and len(by_name) == len(self._names) - len(free):
            return free
        if unknown := [name for name in by_name if name not in self._names]:
            raise WorkloadError(f"{self.__name__}: has no argument {unknown[0]!r}; it has {', '.join(self._names)}")
        if len(positional) < len(free):
            raise WorkloadError(
                f"{self.__name__}: argument {free[len(positional)]!r} is missing; it takes {', '.join(self._names)}"
            )
        raise WorkloadError(f"{self.__name__}: takes {len(free)} arguments by position, and got {len(positional)}")

    def _output(self, value: Any, place: int) -> Any:
        if not isinstance(value, tuple | list) or len(value) != self._outs:
            raise WorkloadError(f"{self.__name__}: takes {self._outs} outputs as `out`, and got {_described(value)}")
        return value[place]

    def _argument(self, name: str, value: Any, on_gpu: dict[bool, str]) -> Any:
        kind: Any = type(value)
        if kind is int or kind is float:
            return ctypes.c_void_p(value) if name == _STREAM else self._number(name, value)
        if name == _STREAM:
            return ctypes.c_void_p(_address_of_stream(value))
        find = _pointer_of(kind)
        if find is None:
            return self._number(name, value)
        dtype = self._types.get(name)
        if dtype is not None and str(value.dtype).removeprefix("torch.") != np.dtype(dtype).name:
            raise WorkloadError(f"{self.__name__}: {name} holds {value.dtype}, and is declared to hold {np.dtype(dtype).name}")
        address, is_on_gpu = find(value)
        if not (kind is np.ndarray and value.flags.forc) and not _has_no_gaps(value):
            raise WorkloadError(f"{self.__name__}: {name} has gaps in memory; give a contiguous array")
        on_gpu[is_on_gpu] = name
        return ctypes.c_void_p(address)

    def _number(self, name: str, value: Any) -> Any:
        """A number as C takes it. It is kept, since a benchmark passes the same ones again."""
        kind = type(value)
        if kind not in (int, float):
            return self._scalar(name, value)
        scalar = self._numbers.get((name, kind, value))
        if scalar is None:
            scalar = self._numbers[name, kind, value] = self._scalar(name, value)
            if len(self._numbers) > _MOST_KEPT:
                self._numbers.clear()
        return scalar

    def _scalar(self, name: str, value: Any) -> Any:
        declared: Any = self._types.get(name)
        if value is None or isinstance(value, ctypes._SimpleCData | ctypes.Structure | ctypes._Pointer):
            return value
        if isinstance(value, bool | np.bool_) and declared is None:
            return ctypes.c_bool(bool(value))
        if not isinstance(value, int | float | np.number):
            raise WorkloadError(f"{self.__name__}: {name} is {_described(value)}; give an array, a number, or a ctypes object")
        if declared is None:
            of_numpy = isinstance(value, np.number)
            declared = _ctype(np.dtype(type(value))) if of_numpy else _UNDECLARED[isinstance(value, float)]
        plain = value.item() if isinstance(value, np.number) else value
        try:
            scalar = declared(plain)
        except TypeError:
            raise WorkloadError(f"{self.__name__}: {name} is {plain!r}, and is declared as {declared.__name__}") from None
        if isinstance(plain, int) and scalar.value != plain:
            raise WorkloadError(f"{self.__name__}: {name} is {plain}, which {declared.__name__} cannot hold; "
                                f"declare its type: types={{{name!r}: np.int64}}")  # fmt: skip
        return scalar

    @cached_property
    def _function(self) -> Callable[..., Any]:
        try:
            loaded = ctypes.CDLL(str(self.library))
        except OSError as error:
            raise WorkloadError(f"{self.library.name}: cannot be loaded ({error}); build it for this machine") from None
        try:
            function = loaded[self.__name__]
        except AttributeError:
            raise WorkloadError(f"{self.library.name}: has no function {self.__name__}; {self._cure()}") from None
        function.restype = ctypes.c_int if self._gives_code else None
        return function

    def _cure(self) -> str:
        """Tell what to do where the library lacks the function; it may have it under a name of C++."""
        content = self.library.read_bytes() if locate.is_file(self.library) else b""
        symbol = self.__name__.encode()
        mangled = re.search(rb"_Z(?:N\w+?)?%d%b\w*" % (len(symbol), re.escape(symbol)), content)
        if mangled:
            return f'it has {mangled[0].decode()}: declare the function extern "C"'
        return f"`nm -D {self.library.name}` lists those that it has"


def _file_of(library: str, folder: Path) -> Path:
    file = folder / library
    if locate.is_file(file):
        return file.resolve()
    if "/" in library:
        raise WorkloadError(f"{file}: no such file; build the library first, or mend the path")
    try:
        ctypes.CDLL(library)
    except OSError:
        raise WorkloadError(
            f"{library}: no such file in {folder}, and no library of the system; build it first, or mend the path"
        ) from None
    return Path(library)


def _type_of(symbol: str, name: str, declared: Any) -> Any:
    """A declared type as ctypes' for a scalar; the elements' of an array are compared by NumPy."""
    if isinstance(declared, type) and issubclass(declared, ctypes._SimpleCData):
        return declared
    try:
        return _ctype(np.dtype(declared))
    except (TypeError, NotImplementedError):
        raise WorkloadError(
            f"{symbol}: types[{name!r}] is {declared!r}; give a type of NumPy or ctypes, such as np.int64"
        ) from None


def _ctype(dtype: "np.dtype[Any]") -> Any:
    return np.ctypeslib.as_ctypes_type(dtype)


@cache
def _pointer_of(kind: type) -> Callable[[Any], tuple[int, bool]] | None:
    """The function that gives the address of an array's first element, and whether it is on the GPU; None for a type that is no array's."""
    if issubclass(kind, np.ndarray):
        return _pointer_of_numpy
    if issubclass(kind, np.generic):
        return None
    if hasattr(kind, "data_ptr"):  # PyTorch
        return lambda array: (array.data_ptr(), array.is_cuda)
    if hasattr(kind, "__cuda_array_interface__"):
        if kind.__module__.partition(".")[0] == "cupy":
            return lambda array: (array.data.ptr, True)
        return lambda array: (array.__cuda_array_interface__["data"][0], True)
    if hasattr(kind, "__array_interface__"):
        return lambda array: (array.__array_interface__["data"][0], False)
    return None


def _pointer_of_numpy(array: Any) -> tuple[int, bool]:
    flags = array.flags
    if flags.writeable and flags.c_contiguous and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array)), False  # takes a quarter of the time
    return array.__array_interface__["data"][0], False


def _has_no_gaps(array: Any) -> bool:
    """Whether an array's elements follow one another in memory, in any order of its axes."""
    flags = getattr(array, "flags", None)
    if flags is not None and (flags.c_contiguous or flags.f_contiguous):
        return True
    if flags is None and hasattr(array, "is_contiguous") and array.is_contiguous():
        return True
    strides = array.stride() if hasattr(array, "data_ptr") else getattr(array, "strides", None)
    if strides is None:
        return True
    unit = 1 if hasattr(array, "data_ptr") else array.dtype.itemsize
    expected = unit
    for stride, extent in sorted(pair for pair in zip(strides, array.shape, strict=True) if pair[1] != 1):
        if stride != expected:
            return False
        expected *= extent
    return True


def _address_of_stream(stream: Any) -> int:
    """The address of a stream of CuPy, PyTorch, Numba or CUDA's own packages, or an address itself; 0 for None."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    handle = getattr(stream, "handle", None)
    if handle is None:
        raise WorkloadError(f"stream is {_described(stream)}; give a stream of CuPy, PyTorch or Numba, or its address")
    return int(getattr(handle, "value", handle) or 0)


def _described(value: Any) -> str:
    return "None" if value is None else f"{value!r}" if isinstance(value, str) else f"a {type(value).__name__}"
