"""Reads PTX into instructions, and writes it again with other instructions. Covers what NVRTC, Numba and Triton write.

PTX has statements that end with a semicolon, labels, nested blocks in braces, and line directives (`.loc`, `.file`).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Final

from warpladder.errors import Error

Place = tuple[str, int]
#: Directives that end with their line and not with a semicolon.
_OF_LINE: Final = (".version ", ".target ", ".address_size ", ".file ", ".loc ")
#: A string, a comment, or what begins one that does not end.
_COMMENT: Final = re.compile(r'("[^"]*")|//[^\n]*|/\*.*?\*/|("|/\*)', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9_$%.]+")
_LABEL: Final = re.compile(r"([A-Za-z0-9_$%.]+)\s*:(?!:)")
_BLANKS: Final = re.compile(r"\s*")


class PtxError(Error):
    """The text is not PTX that this module reads."""


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
        predicate: such as `%p1` or `!%p1`; empty without one.
        opcode: with its modifiers, such as `ld.global.v2.f32`.
        operands: as written; a vector in braces and an address in brackets is one operand.
        place: file and line of the source; None where the compiler gives none.
    """

    predicate: str
    opcode: str
    operands: tuple[str, ...]
    place: Place | None = None

    @property
    def name(self) -> str:
        """The opcode without modifiers, such as `ld`."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Such as `global`, `v2` and `f32`."""
        return tuple(self.opcode.split(".")[1:])

    @property
    def results(self) -> tuple[str, ...]:
        """The registers of the first operand."""
        return registers(self.operands[0]) if self.operands else ()

    @property
    def address(self) -> str:
        """The first operand in brackets, without them and blanks; empty without one."""
        return next(("".join(each[1:-1].split()) for each in self.operands if each.startswith("[")), "")

    def __str__(self) -> str:
        guard = f"@{self.predicate} " if self.predicate else ""
        return f"\t{guard}{self.opcode} {', '.join(self.operands)};"


@dataclass(frozen=True)
class Label:
    """A place that branches name."""

    name: str

    def __str__(self) -> str:
        return f"{self.name}:"


@dataclass(frozen=True)
class Directive:
    """A declaration, a pragma, or a brace."""

    text: str

    def __str__(self) -> str:
        return f"\t{self.text}"


Statement = Instruction | Label | Directive


@dataclass(frozen=True)
class Function:
    """A kernel, or a function that kernels call.

    Attributes:
        head: all before the opening brace.
        body: the statements between the braces.
    """

    head: str
    body: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """Its symbol."""
        words = self.head.partition("(")[0].split() if self.is_kernel else self.head.replace("(", " ( ").split()
        return words[words.index(".entry") + 1] if self.is_kernel else words[-1]

    @property
    def is_kernel(self) -> bool:
        """Whether it is launched."""
        return ".entry" in self.head.split("(")[0].split()

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Its instructions in order."""
        return (each for each in self.body if isinstance(each, Instruction))

    @property
    def register_types(self) -> Mapping[str, str]:
        """The type of each declared register, such as `f32`, by its name, or by its stem for a numbered one."""
        types = dict[str, str]()
        for each in self.body:
            if isinstance(each, Directive) and each.text.startswith(".reg"):
                _, kind, *names = each.text.rstrip(";").replace(",", " ").split()
                types |= {name.partition("<")[0]: kind.removeprefix(".") for name in names}
        return types

    def __str__(self) -> str:
        return "\n".join([self.head, "{", *map(str, self.body), "}"])


@dataclass(frozen=True)
class Module:
    """The text of a module between its functions, and the functions.

    Attributes:
        parts: declarations as text, and functions with a body, in order.
    """

    parts: tuple[str | Function, ...]
    files: Mapping[int, str] = field(default_factory=dict)

    @property
    def functions(self) -> Iterator[Function]:
        """The functions in order."""
        return (each for each in self.parts if isinstance(each, Function))

    @property
    def target(self) -> str:
        """The architecture, such as `sm_90a`."""
        for part in self.parts:
            if isinstance(part, str) and part.startswith(".target "):
                return part.replace(",", " ").split()[1]
        raise PtxError("PTX without .target: give the text that the compiler wrote")

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts)) + "\n"

    def with_kernels(self, names: Collection[str]) -> "Module":
        """The module without the kernels that are not named."""
        parts = (each for each in self.parts if isinstance(each, str) or not each.is_kernel or each.name in names)
        return replace(self, parts=tuple(parts))

    def altered(self, change: Callable[[Function], Function], declarations: Sequence[str] = ()) -> "Module":
        """The module with every function changed, and further declarations before the first."""
        parts = [change(each) if isinstance(each, Function) else each for each in self.parts]
        declares = (isinstance(each, Function) or not each.startswith(_OF_LINE) for each in self.parts)
        first = next((place for place, does in enumerate(declares) if does), len(parts))
        return replace(self, parts=(*parts[:first], *declarations, *parts[first:]))


def registers(operand: str) -> tuple[str, ...]:
    """The registers that an operand names, in order."""
    return tuple(word for word in _NAME.findall(operand) if word.startswith("%") and "." not in word)


def stem(register: str) -> str:
    """The name that a numbered register is declared with: `%rd` of `%rd17`."""
    return register.rstrip("0123456789")


def type_of(register: str, types: Mapping[str, str]) -> str:
    """The declared type of a register, such as `b32`. Raises PtxError."""
    found = types.get(register) or types.get(stem(register))
    if found is None:
        raise PtxError(f"PTX: register {register} is not declared")
    return found


# -- reading -------------------------------------------------------------------------------------------------------------------


def parse(text: str) -> Module:
    """Read a module. Raises PtxError."""
    source = _without_comments(text.expandtabs(1))
    files, parts = dict[int, str](), list[str | Function]()
    for head, body in _top_level(source):
        if head.startswith(".file"):
            _, number, name = head.split(maxsplit=2)
            files[int(number)] = PurePosixPath(name.split('"')[1]).name
        elif body is None:
            parts.append(head)
        elif not head.startswith(".section"):
            parts.append(Function(head, ()) if not body.strip() else Function(head, tuple(_statements(body))))
    # Files may be named after the functions that use them.
    return _with_files(Module(tuple(parts), files))


def _with_files(module: Module) -> Module:
    def named(statement: Statement) -> Statement:
        if isinstance(statement, Instruction) and statement.place:
            number, line = statement.place
            return replace(statement, place=(module.files.get(int(number), number), line))
        return statement

    return module.altered(lambda function: replace(function, body=tuple(map(named, function.body))))


def _without_comments(text: str) -> str:
    """The text with blanks in place of comments. Strings stay."""

    def blank(found: re.Match[str]) -> str:
        if found[2]:
            raise PtxError(f"PTX: {'*/' if found[2] == '/*' else found[2]} is missing after character {found.end()}")
        return found[1] or " "

    return _COMMENT.sub(blank, text)


def _after(text: str, mark: str, start: int) -> int:
    end = text.find(mark, start)
    if end < 0:
        raise PtxError(f"PTX: {mark} is missing after character {start}")
    return end + len(mark)


def _top_level(text: str) -> Iterator[tuple[str, str | None]]:
    """The statements of a module: head and body, or the whole statement and None."""
    at = 0
    while (at := _next_word(text, at)) < len(text):
        if text.startswith(_OF_LINE, at):
            end = _end_of_line(text, at)
            yield text[at:end].strip(), None
        else:
            semicolon, brace = (place if (place := text.find(mark, at)) >= 0 else len(text) for mark in ";{")
            if min(semicolon, brace) == len(text):
                raise PtxError(f"PTX: {text[at : at + 40].strip()!r} does not end")
            if semicolon < brace or "=" in text[at:brace]:
                end = _after(text, ";", _matching(text, brace) if brace < semicolon else at)
                yield text[at:end].strip(), None
            else:
                end = _matching(text, brace) + 1
                yield text[at:brace].strip(), text[brace + 1 : end - 1]
        at = end


def _next_word(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found
    return found.end()


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _matching(text: str, opening: int) -> int:
    """The place of the brace that closes this one."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise PtxError(f"PTX: the brace at character {opening} is not closed")


def _statements(body: str) -> Iterator[Statement]:
    at, place = 0, None
    while (at := _next_word(body, at)) < len(body):
        if body[at] in "{}":
            yield Directive(body[at])
            at += 1
        elif body.startswith(_OF_LINE, at):
            end = _end_of_line(body, at)
            place = _place(body[at:end]) or place
            at = end
        elif label := _LABEL.match(body, at):
            yield Label(label[1])
            at = label.end()
        else:
            end = _after(body, ";", _after(body, '"', body.index('"', at) + 1) if body.startswith(".pragma", at) else at)
            yield _statement(body[at : end - 1].strip(), place)
            at = end


def _place(line: str) -> Place | None:
    words = line.replace(",", " ").split()
    return (words[1], int(words[2])) if words[0] == ".loc" and words[2] != "0" else None


def _statement(text: str, place: Place | None) -> Statement:
    if text.startswith("."):
        return Directive(f"{' '.join(text.split())};")
    predicate = ""
    if text.startswith("@"):
        guard, _, text = text[1:].strip().partition(" ")
        predicate, text = guard.strip(), text.strip()
    opcode, *rest = text.split(maxsplit=1)
    return Instruction(predicate, opcode, tuple(_operands(rest[0])) if rest else (), place)


def _operands(text: str) -> Iterator[str]:
    """The operands, which commas outside of brackets separate."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield " ".join(text[start:at].split())
            start = at + 1
    yield " ".join(text[start:].split())


# -- writing -------------------------------------------------------------------------------------------------------------------

#: Names of ours begin so, in PTX and on the device.
OURS: Final = "warpladder"


def with_prologue(function: Function, registers: Iterable[str], prologue: Sequence[Statement]) -> Function:
    """The function with further registers, and instructions before its first one.

    Args:
        registers: declarations, such as `.pred %p`.
    """
    first = next((at for at, each in enumerate(function.body) if not _is_declaration(each)), len(function.body))
    declared = [Directive(f".reg {each};") for each in registers]
    return replace(function, body=(*declared, *function.body[:first], *prologue, *function.body[first:]))


def with_parameter(function: Function, name: str) -> Function:
    """The kernel with a further parameter of 4 bytes after its own."""
    opening = function.head.index("(")
    closing = function.head.index(")", opening)
    comma = "," if function.head[opening + 1 : closing].strip() else ""
    return replace(function, head=f"{function.head[:closing].rstrip()}{comma}\n .param .b32 {name}\n{function.head[closing:]}")


def _is_declaration(statement: Statement) -> bool:
    return isinstance(statement, Directive) and statement.text not in "{}" and not statement.text.startswith(".pragma")


def lines(text: str) -> tuple[Statement, ...]:
    """Statements written as PTX."""
    return tuple(_statements(text))


def loop_heads(function: Function) -> list[str]:
    """The labels that a later branch goes back to."""
    seen, heads = set[str](), list[str]()
    for each in function.body:
        if isinstance(each, Label):
            seen.add(each.name)
        elif isinstance(each, Instruction) and each.name == "bra" and each.operands[0] in seen:
            heads.append(each.operands[0])
    return list(dict.fromkeys(heads))


def numbered() -> Iterator[str]:
    """Names of labels that no module has."""
    return (f"${OURS}_{number}" for number in count())
