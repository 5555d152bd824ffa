"""The names of C++ functions, from the symbols that compilers make of them."""

import ctypes


def demangled(name: str) -> str:
    """Demangle a C++ name; return other names unchanged."""
    library = ctypes.CDLL("libstdc++.so.6")
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    buffer = demangle(name.encode(), None, None, ctypes.byref(status))
    if not buffer:
        return name
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
    """The function of a demangled name, without its namespaces, templates and parameters: `gemm` of `void a::gemm<2>(float*)`."""
    if not name.endswith((")", ">")) and "::" not in name:
        return name
    plain = without_parameters(name.replace("(anonymous namespace)", ""))
    kept, depth = [], 0
    for letter in plain:
        depth += letter == "<"
        if depth == 0:
            kept.append(letter)
        depth -= letter == ">" and depth > 0
    return "".join(kept).split("::")[-1].split(" ")[-1] or name
