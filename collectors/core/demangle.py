"""The names of C++ functions, from the symbols that compilers make of them."""

import ctypes
from functools import cache
from typing import Any, Final

from warpladder.data.kernel_names import function_name

#: Types that demanglers before GCC 13 do not know; and types that no kernel has, with what demanglers and we print for them.
_NEW_TYPES: Final = (("DF16b", "Di", "char32_t", "__bf16"), ("DF16_", "Ds", "char16_t", "_Float16"))
_DESCRIPTOR: Final = ".kd"


@cache
def _library() -> Any:
    """The demangler of the C++ library; None on a machine without it."""
    try:
        return ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None


def demangled(name: str) -> str:
    """Demangle a C++ name; return other names unchanged."""
    if not name.startswith("_Z"):
        return name
    symbol = name.removesuffix(_DESCRIPTOR)
    text = _demangled(symbol)
    if text:
        return text
    known = [each for each in _NEW_TYPES if each[1] not in symbol]
    for new, placeholder, _, _ in known:
        symbol = symbol.replace(new, placeholder)
    text = _demangled(symbol)
    for _, _, printed, wanted in known:
        text = text.replace(printed, wanted)
    return text or name


def _demangled(symbol: str) -> str:
    """The same; empty where the symbol cannot be demangled."""
    demangle = _library()
    if demangle is None:
        return ""
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    buffer = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not buffer:
        return ""
    text = ctypes.cast(buffer, ctypes.c_char_p).value or b""
    ctypes.CDLL(None).free(ctypes.c_void_p(buffer))
    return text.decode("utf-8", "replace")


def without_parameters(name: str) -> str:
    """A demangled name such as `void transpose<2, 1>(float*)` without its result and its parameters: `transpose<2, 1>`."""
    if not name.endswith(")"):
        return name
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            return name[:place].removeprefix("void ")
    return name


def short_name(name: str) -> str:
    """The function of a kernel's name or symbol, without its namespaces: `gemm` of `void a::gemm<2>(float*)`, as Nsight Systems has it."""
    return function_name(demangled(name)).rsplit("::", 1)[-1]
