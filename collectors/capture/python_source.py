"""The source of a kernel that is written in Python, with all that it names, as a module."""

import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np


@dataclass(frozen=True)
class Language:
    """What kernels in Python are written in.

    Attributes:
        function: the attribute of a compiled function with the Python function.
        imports: names that every module has -> how they are imported.
    """

    function: str
    header: str
    imports: Mapping[str, str]


TRITON: Final = Language("fn", "@triton.jit", {"triton": "import triton", "tl": "import triton.language as tl"})
NUMBA: Final = Language("py_func", "@cuda.jit", {"cuda": "from numba import cuda"})


def module_of(function: Any, language: Language, options: str = "") -> str:
    """The source of a kernel, and of the functions and constants that it names.

    Args:
        options: what the kernel's header takes, such as `(fastmath=True)`.
    """
    text = _Text(language)
    text.add(function, options)
    return "\n".join([*text.imports.values(), "", "", *text.parts])


def plain(value: Any) -> str:
    """A value as source."""
    value = getattr(value, "value", value)
    return repr(value.item() if isinstance(value, np.generic) else value)


@dataclass
class _Text:
    language: Language
    parts: list[str] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def add(self, function: FunctionType, options: str = "") -> None:
        """Add a function behind what it names."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        named = inspect.getclosurevars(function)
        for name, value in {**named.globals, **named.nonlocals}.items():
            self._add_named(name, value)
        self.imports |= self.language.imports
        source = textwrap.dedent(inspect.getsource(function))
        self.parts.append(f"{self.language.header}{options}\n{source[source.index('def ') :]}\n")

    def _add_named(self, name: str, value: Any) -> None:
        inner = getattr(value, self.language.function, None)
        if isinstance(value, ModuleType):
            self.imports[name] = f"import {value.__name__} as {name}"
        elif isinstance(inner, FunctionType):
            self.add(inner)
        elif type(value).__name__ == "constexpr":
            self.parts.append(f"{name} = tl.constexpr({plain(value)})\n")
        elif isinstance(value, int | float | str | tuple | np.generic):
            self.parts.append(f"{name} = {plain(value)}\n")
        elif hasattr(value, "__name__"):
            self.imports[name] = f"from {value.__module__} import {value.__name__} as {name}"
        elif type(value).__module__.startswith("numba.") and str(value).isidentifier():
            self.imports[name] = f"from numba import {value} as {name}"  # a type, such as `float32`
