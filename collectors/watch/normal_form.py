"""Sources without what cannot change a measurement: comments, docstrings and layout."""

import ast
import hashlib
import re
from pathlib import Path
from typing import Final, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Texts and characters of C++ come first, so that `//` within a text is no comment.
_CPP: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//(?:\\\n|[^\n])*|/\*.*?\*/)', re.DOTALL)


def digest(*texts: str) -> str:
    """A hash of texts, which tells `("ab", "c")` from `("a", "bc")`."""
    return hashlib.sha256(repr(texts).encode(errors="surrogateescape")).hexdigest()


def of_python(node: ast.AST) -> str:
    """The syntax tree as text. It has neither comments nor places; `without_docstrings` takes out the docstrings."""
    return ast.dump(node)


def without_docstrings(tree: _Node) -> _Node:
    """The same tree, with `pass` in place of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
    return tree


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
        content = file.read_bytes()
        text = content.decode()
        if file.suffix == ".py":
            return digest(of_python(without_docstrings(ast.parse(text))))
        return digest(of_cpp(text))
    except OSError:
        return ""
    except (ValueError, SyntaxError):  # ValueError: no UTF-8, or a null character
        return hashlib.sha256(content).hexdigest()
