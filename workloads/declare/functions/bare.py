"""Code without what cannot change a measurement: comments, docstrings and layout."""

import ast
import re
from typing import Final

#: A text of Python with one of these words is CUDA C++.
_OF_KERNELS: Final = ("__global__", "__device__")
#: Texts and characters of C++ come first, so that `//` within a text is no comment.
_CPP: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//(?:\\\n|[^\n])*|/\*.*?\*/)', re.DOTALL)


def of_python(text: str) -> str:
    """Python code as its syntax tree. A text stays as it is where it is no statement by itself, as the head of a loop, or too deep."""
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                body[:] = (each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)))
            match node:
                case ast.Constant(str(value)) if any(word in value for word in _OF_KERNELS):
                    node.value = of_cpp(value)
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def of_cpp(text: str) -> str:
    """CUDA or C++ code without comments, empty lines and repeated spaces. A text with raw strings stays as it is."""
    if 'R"' in text:
        return text
    bare = _CPP.sub(lambda match: " " if match[1] else match[0], text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
