"""Find the code inside the objects that libraries make of Python functions, and words for what has no Python text.

Objects are known by their attributes, so that no library is imported here.
"""

import ast
import functools
import hashlib
import inspect
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from warpladder.workloads.declare import neighbours

#: Attributes that hold the function that an object was made of: PyTorch's compiled functions and modules, Numba's dispatchers, Triton's
#: JITFunction, Autotuner and Heuristics, CuPy's fused functions and kernels written in Python, numpy.vectorize, and functools.wraps.
_WITHIN: Final = ("_torchdynamo_orig_callable", "_orig_mod", "py_func", "fn", "func", "_func", "pyfunc", "__wrapped__")
_MOST_LAYERS: Final = 32
_LONGEST: Final = 200
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(...), slice, range)
#: PyTorch's settings that differ between the modes of torch.compile.
_MODES: Final = ("max_autotune", "coordinate_descent_tuning", "triton.cudagraphs")


def layers(function: object) -> list[object]:
    """The object and what it was made of, the innermost last: for most a Python function."""
    stack = [function]
    while (
        len(stack) < _MOST_LAYERS and (within := _within(stack[-1])) is not None and not any(within is each for each in stack)
    ):
        stack.append(within)
    return stack


def code_of(function: object) -> CodeType | None:
    """The code of the innermost Python function; None if there is none."""
    inner = layers(function)[-1]
    return inner.__code__ if type(inner) is FunctionType else None


def attribute(thing: object, name: str) -> Any:
    """An attribute that the object or its class really has, or None. Attributes made up on request do not count."""
    try:
        inspect.getattr_static(thing, name)
        return getattr(thing, name)
    except Exception:  # a property of a foreign class may raise anything
        return None


def describe(layer: object, inner: str) -> str:
    """How a layer was made of a function of this name, as a call."""
    if type(layer) is functools.partial:
        arguments = [shown(value) for value in layer.args]
        arguments += [f"{name}={shown(value)}" for name, value in layer.keywords.items()]
        return f"functools.partial({', '.join([inner, *arguments])})"
    if type(layer) is MethodType:
        return f"{_name_of(layer.__self__ if isinstance(layer.__self__, type) else type(layer.__self__))}.{inner}"
    if attribute(layer, "_torchdynamo_orig_callable") is not None:
        return f"torch.compile({', '.join([inner, *_settings(layer)])})"
    return f"{_full_name(type(layer))}({inner})"


def shown(value: object) -> str:
    """A value as Python writes it if it is a short number, text or container of them; else what it is."""
    written = plain(value)
    if written is not None:
        return written
    if isinstance(value, type | FunctionType):
        return _full_name(value)
    return f"<{_full_name(type(value))}>"


def plain(value: object, deep: int = 4) -> str | None:
    """`repr` of a number, a text, or a container of them; None for other objects, and for a text of more than 200 characters."""
    kind = type(value)
    if kind in _PLAIN or (
        kind.__module__ in ("numpy", "torch")
        and (
            kind.__name__ == "dtype"
            or any(each.__name__ == "generic" and each.__module__ == "numpy" for each in type(value).__mro__)
        )
    ):
        written = repr(value)
    elif deep and isinstance(value, tuple | list) and kind in (tuple, list):
        parts = [plain(each, deep - 1) for each in value[:_LONGEST]]
        if None in parts or len(value) > _LONGEST:
            return None
        inside = ", ".join(map(str, parts))
        written = f"[{inside}]" if kind is list else f"({inside}{',' * (len(value) == 1)})"
    elif deep and isinstance(value, dict) and kind is dict and len(value) <= _LONGEST:
        pairs = [(plain(key, deep - 1), plain(each, deep - 1)) for key, each in value.items()]
        if any(None in pair for pair in pairs):
            return None
        written = "{" + ", ".join(f"{key}: {each}" for key, each in pairs) + "}"
    else:
        return None
    return written if len(written) <= _LONGEST else None


def cuda_code(thing: object) -> str | None:
    """The CUDA C++ of CuPy's RawKernel or RawModule, or the digest of the compiled file that it was loaded from; else None."""
    kind = type(thing)
    if not kind.__name__.endswith(("RawKernel", "RawModule")):  # or an object of another library that holds its text alike
        return None
    if isinstance(code := attribute(thing, "code"), str):
        return code
    is_of_cupy = kind.__name__ in ("RawKernel", "RawModule") and kind.__module__.partition(".")[0] == "cupy"
    file = attribute(thing, "file_path") if is_of_cupy else None
    return f"// {digest_of(Path(file))}" if isinstance(file, str) else None


def library_of(thing: object) -> Path | None:
    """The file of a shared library: of a module written in C or C++, of a function in one, or of a `ctypes.CDLL`; else None."""
    if isinstance(thing, ModuleType):
        file = attribute(thing, "__file__")
        return Path(file) if isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES)) else None
    if any(each.__module__ == "ctypes" and each.__name__ == "CDLL" for each in type(thing).__mro__):
        name = attribute(thing, "_name")
        return Path(name) if isinstance(name, str) and Path(name).is_file() else None
    if type(thing) is FunctionType or isinstance(thing, type):
        return None
    return next((file for module in _modules_with(thing) if (file := library_of(module))), None)


def cells_of(function: FunctionType) -> dict[str, Any]:
    """Name -> value of the variables of the functions around a function that it reads."""
    variables = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return variables


def defaults_of(function: FunctionType, node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names and values of the defaults that the function's text does not give as a literal."""
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][-len(arguments.defaults) or None :]
    pairs = list(zip(names, arguments.defaults, function.__defaults__ or (), strict=False)) if arguments.defaults else []
    keywords = function.__kwdefaults__ or {}
    for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None and keyword.arg in keywords:
            pairs.append((keyword.arg, default, keywords[keyword.arg]))
    for name, default, value in pairs:
        if not isinstance(default, ast.Constant) and (written := plain(value)) is not None:
            yield name, written


def digest_of(file: Path) -> str:
    """Name and SHA-256 of a file, so that a rebuilt file counts as a change."""
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        return f"{file.name}, which cannot be read ({error.strerror})"
    return f"{file.name}, SHA-256 {digest}"


def comment_of(function: object) -> str:
    """A comment in Python for a function without Python text: its module and name, and what says that it changed.

    It is one line, and one more for a function that was made of another one.
    """
    around, inner = layers(function)[:-1], layers(function)[-1]
    if around:
        words = functools.reduce(lambda words, layer: describe(layer, words), reversed(around), _full_name(inner))
        return f"# {words}\n{comment_of(inner)}"
    name = f"{_module_of(function)}.{_name_of(function)}".lstrip(".")
    if library := library_of(function):
        return f"# {name}: compiled, in {digest_of(library)}"
    if (code := code_of(function)) is not None:
        return (
            f"# {name}: its text is not known; bytecode of Python {platform.python_version()}, SHA-256 {_digest_of_code(code)}"
        )
    package = _module_of(function).partition(".")[0]
    try:
        return f"# {name}: compiled, of {package} {metadata.version(package)}"
    except (metadata.PackageNotFoundError, ValueError):
        of_python = package in sys.builtin_module_names or package in sys.stdlib_module_names
        return f"# {name}: compiled, of Python {platform.python_version()}" if of_python else f"# {name}: compiled"


def _within(thing: object) -> object | None:
    if isinstance(thing, type | ModuleType | CodeType):
        return None
    if type(thing) is MethodType:
        return thing.__func__
    if type(thing) is FunctionType:
        names: tuple[str, ...] = ("_torchdynamo_orig_callable", "__wrapped__")
        return next((vars(thing)[name] for name in names if callable(vars(thing).get(name))), None)
    if type(thing) is functools.partial:
        return thing.func
    if type(thing).__module__.partition(".")[0] in ("numpy", "builtins") and not hasattr(thing, "pyfunc"):
        return None  # `np.sum` is made of a function of NumPy's own
    made_of = (attribute(thing, name) for name in _WITHIN)
    # Triton's autotuner can only be indexed, and run.
    return next((inner for inner in made_of if callable(inner) or callable(attribute(inner, "run"))), None)


def _settings(layer: object) -> list[str]:
    """The settings of torch.compile that its modes switch on."""
    config = attribute(layer, "get_compiler_config")
    try:
        options = config() if callable(config) else None
    except Exception:  # another backend's
        return []
    return [f"{name}=True" for name in _MODES if isinstance(options, dict) and options.get(name) is True]


def _modules_with(function: object) -> Iterator[ModuleType]:
    """The modules that a function without Python text may be of, the likeliest first."""
    own = attribute(function, "__self__")
    if isinstance(own, ModuleType):
        yield own
    name = attribute(function, "__module__")
    if not isinstance(name, str):
        return
    if name in sys.modules:
        yield sys.modules[name]
    last = name.rpartition(".")[2]
    for full, module in list(sys.modules.items()):  # a module beside a workload file has a longer name
        if full.rpartition(".")[2] == last and full != name and isinstance(module, ModuleType):
            yield module


def _module_of(function: object) -> str:
    name = attribute(function, "__module__")
    own = attribute(function, "__self__")
    if not isinstance(name, str):
        name = own.__name__ if isinstance(own, ModuleType) else type(function).__module__
    return neighbours.as_written(name)


def _name_of(function: object) -> str:
    for each in ("__qualname__", "__name__", "name"):
        if isinstance(name := attribute(function, each), str):
            return name
    return type(function).__qualname__


def _full_name(thing: Any) -> str:
    module = neighbours.as_written(str(attribute(thing, "__module__") or ""))
    name = _name_of(thing)
    return name if module in ("builtins", "__main__", "") else f"{module}.{name}"


def _digest_of_code(code: CodeType) -> str:
    digest = hashlib.sha256()

    def add(part: CodeType) -> None:
        constants = [each for each in part.co_consts if not isinstance(each, CodeType)]
        digest.update(repr((part.co_code, part.co_names, part.co_varnames, [plain(each) for each in constants])).encode())
        for each in part.co_consts:
            if isinstance(each, CodeType):
                add(each)

    add(code)
    return digest.hexdigest()
