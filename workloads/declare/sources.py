"""The source of a variant: its text, the integer constants that it declares, and the labelled comment that opens it."""

import ast
import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from warpladder.data import source_text
from warpladder.workloads.declare.cases import WorkloadError

_HEADER_FIELDS: Final = ("Idea", "Bottleneck", "Next", "Source")
_COMMENT: Final = re.compile(r"//[^\n]*")
_CONSTANTS: Final = re.compile(r"^([ \t]*)(?:static )?constexpr int ([^;{}]+);", re.MULTILINE)
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b),  # as C++ divides whole numbers
    ast.Mod: lambda a, b: a - int(a / b) * b,
}


def read_source(file: Path, options: Sequence[str] = ()) -> str:
    """The text of a CUDA source, each `#include "name"` in it replaced by the text of that file. Raises WorkloadError:
    an included file is not there, or a folder.

    This one text is compiled, recorded and hashed. With `#line`, the places in a compiler's messages are places in the files.

    Args:
        file: the source.
        options: options of the compiler; `-I` names folders to search for included files.
    """
    folders = [Path(folder) for folder in include_folders(options, file)]
    try:
        return source_text.read(file, folders=folders)
    except source_text.MissingInclude as missing:
        where = (
            "beside it or in the folders of its options"
            if folders
            else 'beside it; mend the path, or give options=("-IFOLDER",)'
        )
        raise WorkloadError(f"{missing}: no such file {where}") from None


def include_folders(options: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """The folders that options name with `-I` or `--include-path`, by their full paths. Raises WorkloadError: there is
    no such folder.

    Args:
        options: of the compiler.
        file: the source that relative folders count from; None for code in a string, whose folders count from the current one.
    """
    folders = [folder for option, folder in _folders_in(options) if folder]
    base = file.parent if file else Path.cwd()
    for folder in folders:
        if not (base / folder).is_dir():
            raise WorkloadError(f"{file.name if file else 'options'}: -I{folder}: no such folder in {base}; mend the path")
    return tuple(str((base / folder).resolve()) for folder in folders)


def with_full_paths(options: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """The options with the full paths of the folders to include from. Arguments and errors are the same as for
    `include_folders`."""
    others = [option for option, folder in _folders_in(options) if not folder]
    return (*others, *(f"-I{folder}" for folder in include_folders(options, file)))


def _folders_in(options: Sequence[str]) -> list[tuple[str, str]]:
    """Each option, with the folder that it names; empty for other options."""
    folders: list[tuple[str, str]] = []
    rest = iter(options)
    for option in rest:
        match = re.fullmatch(r"(?:-I|--include-path)=?(.*)", option)
        folders.append((option, (match[1] or next(rest, "")) if match else ""))
    return folders


def parse_header(text: str) -> dict[str, str]:
    """The labelled paragraphs `Idea:`, `Bottleneck:`, `Next:` and `Source:` of the comment or docstring that opens a source.

    Returns:
        Lower-case label -> text on one line; the empty string for a label that is not there.
    """
    parts = re.split(rf"^\s*({'|'.join(_HEADER_FIELDS)}):", _opening_comment(text), flags=re.MULTILINE)
    paragraphs = {label.lower(): " ".join(words.split()) for label, words in zip(parts[1::2], parts[2::2], strict=True)}
    return {label.lower(): paragraphs.get(label.lower(), "") for label in _HEADER_FIELDS}


def _opening_comment(text: str) -> str:
    """The first `//` block of a CUDA source, or the first docstring of Python code, without its marks."""
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("//"):
        return "\n".join(line[2:] for line in itertools.takewhile(lambda line: line.startswith("//"), lines))
    docstring = re.search(r'"""(.*?)"""', text, flags=re.DOTALL)
    return docstring.group(1) if docstring else ""


@dataclass(frozen=True)
class Constants:
    """The `constexpr int` constants of a CUDA source, for the launches of its kernels: `Constants(file)["kTile"]`.

    The source stays the one place where a number stands that the kernel and its launch both need. It is read at the first use.

    Attributes:
        file: the `.cu` or `.cuh` file; constants of the files that it includes count as its own.
        function: a kernel or struct whose constants are included; by default only the constants outside of all functions.
    """

    file: Path
    function: str = ""

    def within(self, function: str) -> "Constants":
        """The constants of the same file, including the constants of one of its kernels or structs."""
        return Constants(self.file, function)

    def __getitem__(self, name: str) -> int:
        """The value of a constant: a literal, or sums, differences, products and quotients of literals and other
        constants. Raises WorkloadError: the source has no such constant, or its value is something else."""
        expressions = _expressions(self.file, self.function)
        if name not in expressions:
            where = f" or in {self.function}" if self.function else ""
            raise WorkloadError(
                f"{self.file.name}: no `constexpr int {name}` at the top level{where}; its launch reads it: declare it there"
            )
        try:
            return self._value(ast.parse(expressions[name], mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError) as error:
            raise WorkloadError(
                f"{self.file.name}: constant {name} is `{expressions[name]}`; its launch reads it: "
                "write a number, or sums and products of numbers and other constants"
            ) from error

    def _value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name):
                return self[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](self._value(left), self._value(right))
        raise ValueError(ast.dump(node))


@cache
def _expressions(file: Path, function: str) -> dict[str, str]:
    """Name of each constant -> its expression, as the source has it."""
    text = _COMMENT.sub("", read_source(file))
    expressions: dict[str, str] = {}
    for indent, declarations in _CONSTANTS.findall(text):
        if not indent:
            expressions |= _declared(declarations)
    if function and (opened := re.search(rf"\b{re.escape(function)}\s*[({{]", text)):
        body = text[opened.start() :].partition("\n}")[0]
        for _, declarations in _CONSTANTS.findall(body):
            expressions |= _declared(declarations)
    return expressions


def _declared(declarations: str) -> dict[str, str]:
    """The names and expressions of `kRows = 64, kColumns = 128`."""
    pairs = (each.partition("=") for each in declarations.split(","))
    return {name.strip(): expression.strip().replace("'", "") for name, _, expression in pairs}
