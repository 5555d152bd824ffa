"""Sources without what cannot change a measurement: comments, docstrings and layout."""

import ast
import hashlib
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from warpladder.data import files

_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: The fewest characters of a text on one line that is taken for a part of a kernel's source.
_LONG_TEXT: Final = 40
#: Texts and characters of C++ come first, so that `//` within a text is no comment.
_CPP: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//(?:\\\n|[^\n])*|/\*.*?\*/)', re.DOTALL)


def digest(*texts: str) -> str:
    """A hash of texts, which tells `("ab", "c")` from `("a", "bc")`."""
    return hashlib.sha256(repr(texts).encode(errors="surrogateescape")).hexdigest()


class _Piece(str):
    """A piece of the text itself, among values that are still to be written."""


def of_python(node: Any, left_out: Collection[ast.AST] = (), kernels: Collection[str] = ()) -> str:
    """A syntax tree as text, without docstrings; it has neither comments nor places. The tree may be of any depth.

    Args:
        left_out: nodes within it that do not count.
        kernels: sources of kernels; a text of the tree that is a part of one does not count.
    """
    pieces: list[str] = []
    todo: list[Any] = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, _Piece):
            pieces.append(each)
        elif isinstance(each, list):
            inner = [part for item in each if item not in left_out for part in (item, _Piece(", "))]
            todo += [_Piece("]"), *reversed(inner), _Piece("[")]
        elif isinstance(each, ast.AST):
            parts = [part for name, value in _fields(each, left_out) for part in (_Piece(f"{name}="), value, _Piece(", "))]
            todo += [_Piece(")"), *reversed(parts), _Piece(f"{type(each).__name__}(")]
        else:
            is_text = isinstance(each, str) and ("\n" in each or (" " in each and len(each) >= _LONG_TEXT))  # and no name
            pieces.append("a kernel" if is_text and any(each in kernel for kernel in kernels) else repr(each))
    return "".join(pieces)


def _fields(node: ast.AST, left_out: Collection[ast.AST]) -> Iterator[tuple[str, Any]]:
    """The names and values of a node's fields, without its docstring."""
    documented = isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    for name, value in ast.iter_fields(node):
        if name == "body" and documented:
            yield name, value[1:]
        elif isinstance(value, list) or value not in left_out:
            yield name, value


def of_cpp(text: str) -> str:
    """CUDA or C++ code without comments, empty lines and repeated spaces. A text with raw strings stays as it is."""
    if 'R"' in text:
        return text
    bare = _CPP.sub(lambda match: " " if match[1] else match[0], text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)


def of_file(file: Path) -> str:
    """A hash of what a file says to the compiler; empty for a file that cannot be read."""
    try:
        content = files.read_bytes(file)
        text = content.decode()
        return digest(of_python(ast.parse(text)) if file.suffix == ".py" else of_cpp(text))
    except OSError:
        return ""
    except (ValueError, SyntaxError):  # ValueError: no UTF-8, or a null character
        return hashlib.sha256(content).hexdigest()
