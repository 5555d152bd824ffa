"""The function of a kernel's name: without the result, templates and parameters of C++, and without what other compilers add."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

#: Brackets and separators of a demangled name. Texts in which brackets are part of a name, a comparison or a shift stand first.
_TOKEN: Final = re.compile(
    r"\boperator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?|,) | \(anonymous\ namespace\) | <unnamed> | :: | -> | << | <= | [<>()\[\]{},]",
    re.VERBOSE,
)
CLOSED_BY: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}
#: The end of a name of AMD's runtime: what the symbol is.
_DESCRIPTOR: Final = re.compile(r"\.kd\Z|\s*\[clone [^\]]*\]\Z")
#: A longer name is not searched further: a report may hold thousands of names of many kilobytes.
_MOST_CHARACTERS: Final = 2_000
_CPP: Final = re.compile(r"[<(]|::")
#: An identifier of a symbol: its length, and what may stand before it.
_IDENTIFIER: Final = re.compile(r"(?:S[tabsiod]|[NLrVKRO])*(\d+)")
#: Triton before 3.0 wrote behind a name the number of each argument, and `d`, `e` or `c` for one that is divisible or constant.
_TRITON_ARGUMENTS: Final = re.compile(r"(?<=[A-Za-z0-9])_(?=\d*[cde])0[cde]*1[cde]*(?:\d+[cde]*)*\Z")
#: CuTe DSL writes `kernel_cutlass_`, the function, and its arguments: an object by its class, and tensors, atoms and numbers by their types.
_CUTE: Final = "kernel_cutlass_"
_CUTE_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*(?=_object_at_)")
_CUTE_ARGUMENTS: Final = re.compile(
    r"_(?:tensor|ptr|coord|layout|shape|CopyAtom|MMAAtom|Tiled|Composed|Swizzle|Float|BFloat|Int|Uint|Boolean|None|True|False|_*\d).*\Z"
)


def tokens(name: str) -> Iterator[re.Match[str]]:
    """Yield the brackets and separators of a demangled name. A `<` or `>` that compares, as in `((8)>(0))`, is none."""
    opened: list[str] = []
    bracket = -1  # the end of the last round bracket, which is no `operator()`
    for match in _TOKEN.finditer(name):
        token = match[0]
        if token == "<" and match.start() == bracket:
            continue
        if token == ">" and opened and opened[-1] != ">":
            continue
        if token in CLOSED_BY:
            opened.append(CLOSED_BY[token])
        elif opened and opened[-1] == token:
            opened.pop()
        bracket = match.end() if token == ")" else bracket
        yield match


def is_cpp(name: str) -> bool:
    """Whether a name is one of C++, with templates, parameters or namespaces."""
    return bool(_CPP.search(name))


@lru_cache(maxsize=1 << 14)
def function_name(name: str) -> str:
    """The function with its namespaces: `a::gemm` of `void a::gemm<2>(float*)`, also of a symbol.

    Names that Triton and CuTe DSL make lose the types of their arguments. Any other name stays as it is.
    """
    plain = _DESCRIPTOR.sub("", name)
    if plain.startswith("_Z"):
        return _of_symbol(plain) or name
    if not is_cpp(plain):
        return _of_python(plain) or name
    words = _outside_brackets(plain).split()
    return "::".join(part for part in words[-1].split("::") if part) if words else name


def _outside_brackets(name: str) -> str:
    """A name up to its parameters, without brackets and what is in them."""
    kept: list[str] = []
    opened: list[str] = []
    place = 0
    for match in tokens(name[:_MOST_CHARACTERS]):
        token = match[0]
        if not opened:
            kept.append(name[place : match.start()])
            if token == "(" and "".join(kept).rstrip() != "decltype":
                return "".join(kept)
            kept.append(token if token == "::" or token.startswith("operator") else "")
        if token in CLOSED_BY:
            opened.append(CLOSED_BY[token])
        elif opened and opened[-1] == token:
            opened.pop()
        place = match.end()
    return "".join(kept) + ("" if opened else name[place:])


def _of_symbol(symbol: str) -> str:
    """The function of a symbol that could not be demangled, such as a part of one; empty where it has none."""
    parts, place = [], len("_Z")
    while found := _IDENTIFIER.match(symbol, place):
        place = found.end() + int(found[1])
        part = symbol[found.end() : place]
        if not part.startswith("_GLOBAL__N"):
            parts.append(part)
    return "::".join(parts)


def _of_python(name: str) -> str:
    if not name.startswith(_CUTE):
        return _TRITON_ARGUMENTS.sub("", name)
    function = name.removeprefix(_CUTE)
    found = _CUTE_CLASS.search(function)
    return found[0] if found else _CUTE_ARGUMENTS.sub("", function)
