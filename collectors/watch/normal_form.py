"""Sources without what cannot change a measurement: comments, docstrings and layout."""

import ast
import hashlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: The fewest characters of a text on one line that is taken for a part of a kernel's source.
_LONG_TEXT: Final = 40
#: Texts and characters of C++ come first, so that `//` within a text is no comment.
_CPP: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//(?:\\\n|[^\n])*|/\*.*?\*/)', re.DOTALL)


def digest(*texts: str) -> str:
    """A hash of texts, which tells `("ab", "c")` from `("a", "bc")`."""
    return hashlib.sha256(repr(texts).encode(errors="surrogateescape")).hexdigest()


def of_python(node: Any, left_out: Collection[ast.AST] = (), kernels: Collection[str] = ()) -> str:
    """A syntax tree as text, without docstrings; it has neither comments nor places.

    Args:
        left_out: nodes within it that do not count.
        kernels: sources of kernels; a text of the tree that is a part of one does not count.
    """
    if isinstance(node, list):
        return f"[{', '.join(of_python(each, left_out, kernels) for each in node if each not in left_out)}]"
    if not isinstance(node, ast.AST):
        is_text = isinstance(node, str) and ("\n" in node or (" " in node and len(node) >= _LONG_TEXT))  # and no name
        return "a kernel" if is_text and any(node in kernel for kernel in kernels) else repr(node)
    found = {name: each for name, each in ast.iter_fields(node) if isinstance(each, list) or each not in left_out}
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        found["body"] = node.body[1:]
    return f"{type(node).__name__}({', '.join(f'{name}={of_python(each, left_out, kernels)}' for name, each in found.items())})"


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
        return digest(of_python(ast.parse(text)) if file.suffix == ".py" else of_cpp(text))
    except OSError:
        return ""
    except (ValueError, SyntaxError):  # ValueError: no UTF-8, or a null character
        return hashlib.sha256(content).hexdigest()
