"""The syntax trees of files, each of which is parsed once for all tests of the group `trees`."""

import ast
from functools import cache
from pathlib import Path


@cache
def nodes(file: Path) -> list[ast.AST]:
    """All nodes of a file; the first is its module."""
    return [*ast.walk(ast.parse(file.read_text()))]
