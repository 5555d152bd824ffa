"""Short names of kernels: without namespaces, template arguments and parameters, and told apart where that leaves two alike."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

#: Brackets and separators of a demangled name. Texts in which brackets are part of a name stand first.
_TOKEN: Final = re.compile(
    r"operator\s*(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?|,) | \(anonymous\ namespace\) | <unnamed> | :: | -> | [<>()\[\]{},]",
    re.VERBOSE,
)
_CAST: Final = re.compile(r"\((?:unsigned |signed )?(?:int|long|long long|short|char|bool|[A-Za-z_]\w*_t)\)(?=-?\d)")
_BOOL: Final = re.compile(r"\(bool\)([01])")
_QUALIFIER: Final = re.compile(r"(?:(?:\w+|<unnamed>|\(anonymous namespace\))::)+")
_OPEN: Final = {"<": ">", "(": ")", "[": "]", "{": "}"}
#: A longer name is not taken apart further than this, because a report may hold thousands of names of many kilobytes.
_MOST_CHARACTERS: Final = 1_500
_ARGUMENT_CHARACTERS: Final = 60
_OMITTED: Final = "…"


@dataclass(frozen=True)
class _Name:
    """The parts of a kernel's name: `scope::base<arguments>`."""

    base: str
    scope: str = ""
    arguments: tuple[str, ...] = ()


def short_names(names: Sequence[str]) -> dict[str, str]:
    """A short name for each kernel, in which no two of these kernels are alike.

    `void cub::detail::Reduce<float, (int)4>(float *)` becomes `Reduce`. Where several names would be `Reduce`, each shows the
    template arguments in which they differ, or else its innermost namespace, or else a number. A name that is not C++ stays as
    it is.
    """
    parts = {name: _parse(name) for name in dict.fromkeys(names)}
    alike: dict[str, list[str]] = {}
    for name, part in parts.items():
        alike.setdefault(part.base, []).append(name)
    found: dict[str, str] = {}
    for base, group in alike.items():
        found.update({group[0]: base} if len(group) == 1 else _told_apart([(name, parts[name]) for name in group]))
    # A number or arguments may make a name that another kernel has.
    seen = Counter(found.values())
    return {name: short if seen[short] == 1 else name for name, short in found.items()}


def _told_apart(group: Sequence[tuple[str, _Name]]) -> dict[str, str]:
    """Names of kernels with one base."""
    arguments = _differing([part.arguments for _, part in group])
    scopes = [f"{part.scope}::{part.base}" if part.scope else part.base for _, part in group]
    with_arguments = [part.base + shown for (_, part), shown in zip(group, arguments, strict=True)]
    both = [scope + shown for scope, shown in zip(scopes, arguments, strict=True)]
    for labels in (with_arguments, scopes, both):
        if len(set(labels)) == len(labels):
            return {name: label for (name, _), label in zip(group, labels, strict=True)}
    found, used = {}, Counter(with_arguments)
    number: Counter[str] = Counter()
    for (name, _), label in zip(group, with_arguments, strict=True):
        number[label] += 1
        found[name] = f"{label} #{number[label]}" if used[label] > 1 else label
    return found


def _differing(arguments: Sequence[tuple[str, ...]]) -> list[str]:
    """`<128, …, true>`: the arguments at as few places as it takes to tell these lists apart.

    Short arguments come first, and last those that some lists do not have.
    """
    width = max(map(len, arguments))
    columns = list(zip(*([*map(_simple, each), *[""] * (width - len(each))] for each in arguments), strict=True))
    chosen: list[int] = []
    distinct = 1
    for place in sorted(range(width), key=lambda each: ("" in columns[each], max(map(len, columns[each])), each)):
        more = len(set(zip(*(columns[each] for each in (*chosen, place)), strict=True)))
        if more > distinct:
            chosen.append(place)
            distinct = more
    found = []
    for row, each in enumerate(arguments):
        shown: list[str] = []
        for place in range(len(each)):
            if place in chosen or shown[-1:] != [_OMITTED]:
                shown.append(columns[place][row] if place in chosen else _OMITTED)
        found.append(f"<{', '.join(shown)}>" if chosen and shown else "")
    return found


def _simple(argument: str) -> str:
    """A template argument without casts, namespaces and the parameters of functions."""
    argument = _BOOL.sub(lambda match: "true" if match[1] == "1" else "false", argument).removeprefix("void ")
    argument = _QUALIFIER.sub("", _CAST.sub("", argument)).split("(")[0].strip()
    return argument if len(argument) <= _ARGUMENT_CHARACTERS else f"{argument[: _ARGUMENT_CHARACTERS - 1]}{_OMITTED}"


def _parse(name: str) -> _Name:
    """The parts of a name; the whole name as its base where it does not look like C++."""
    whole = " ".join(name.split()).removeprefix("void ")
    text = whole[:_MOST_CHARACTERS]
    head = _Head(text)
    end = len(text)
    for match in _TOKEN.finditer(text):
        if match[0] == "(" and not head.open:
            end = match.start()
            break
        if not head.take(match):
            return _Name(whole)
    else:
        if len(whole) > len(text):
            # Cut within its brackets: the base is known, the arguments are not.
            end = head.arguments_from if head.arguments_from >= 0 else end
        elif head.open:
            return _Name(whole)
    base = text[head.component : head.arguments_from if head.arguments_from >= 0 else end].strip()
    base = base if base.startswith(("operator", "[", "<", "(")) else base.split(" ")[-1]
    return _Name(base, _scope(text[: head.component]), tuple(head.arguments)) if base else _Name(whole)


def _scope(before: str) -> str:
    """The innermost namespace of `a::b<c>::`."""
    inner = before.removesuffix("::").removeprefix("void ")
    place = _last(inner, lambda match: match[0] == "::")
    inner = inner[place:]
    return inner if inner in ("<unnamed>", "(anonymous namespace)") else inner.split("<")[0]


def _last(text: str, wanted: Callable[[re.Match[str]], bool]) -> int:
    """Where the last wanted token outside of brackets ends; 0 for none."""
    depth, found = 0, 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in _OPEN) - (match[0] in _OPEN.values())
        if depth == 0 and wanted(match):
            found = match.end()
    return found


class _Head:
    """Where the last component of a name begins, and its template arguments."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[str] = []
        self.component = 0
        self.arguments_from = -1
        self.arguments: list[str] = []
        self._argument = 0

    def take(self, match: re.Match[str]) -> bool:
        """Go on to a token; False where it closes a bracket that is not open."""
        token = match[0]
        if token in _OPEN:
            if not self.open and token == "<":
                self.arguments_from, self.arguments, self._argument = match.start(), [], match.end()
            self.open.append(_OPEN[token])
        elif token in _OPEN.values():
            if not self.open or self.open.pop() != token:
                return False
            if not self.open and token == ">":
                self._end_argument(match.start())
        elif token == "," and self.open == [">"]:
            self._end_argument(match.start())
            self._argument = match.end()
        elif token == "::" and not self.open:
            self.component, self.arguments_from, self.arguments = match.end(), -1, []
        return True

    def _end_argument(self, end: int) -> None:
        self.arguments.append(self.text[self._argument : end].strip())
