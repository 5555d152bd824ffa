"""Divides a user's Python files into what one variant alone depends on, and the rest, on which every measurement depends."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warpladder.collectors.watch.normal_form import digest
from warpladder.collectors.watch.statements import Imported, Modules, Sources, Statement, read


@dataclass(frozen=True)
class Parts:
    """What the files say, in parts.

    Attributes:
        variants: each variant -> its functions and the statements that only variants use, as texts without comments.
        rest: name of each other statement -> its hash.
    """

    variants: Mapping[str, tuple[str, ...]]
    rest: Mapping[str, str]


_NO_SOURCES: Final = Sources()


class Code:
    """The statements of files and of the modules beside them that they import.

    Args:
        files: the user's files.
        sources: the sources of their variants.
        strict: whether a file that cannot be parsed raises SyntaxError, ValueError or OSError; else it is left out.

    Attributes:
        files: every file that was read.
        candidates: files that would be read if they were there.
    """

    def __init__(self, files: Sequence[Path], sources: Sources = _NO_SOURCES, *, strict: bool = True) -> None:
        self._main = files[0]
        self._modules: dict[Path, list[Statement]] = {}
        self.candidates: set[Path] = set()
        for file in files:
            self._read(file, sources, Modules(file.parent), strict=strict)
        self._names = {file: _by_name(statements) for file, statements in self._modules.items()}

    @property
    def files(self) -> set[Path]:
        return set(self._modules)

    def _read(self, file: Path, sources: Sources, modules: Modules, *, strict: bool) -> None:
        todo = [file]
        while todo:
            each = todo.pop()
            if each in self._modules:
                continue
            try:
                self._modules[each] = read(each, sources, modules)
            except (OSError, SyntaxError, ValueError):
                self._modules[each] = []
                if strict:
                    raise
            for statement in self._modules[each]:
                self.candidates |= set(statement.candidates)
                todo += [*statement.files, *(found for imported in statement.imported.values() for found in imported.files)]

    def parts(self) -> Parts:
        """What each variant depends on, and the rest.

        A statement that acts, such as a call, belongs to the rest, and so does all that it uses, but for the functions of
        variants that it only declares. What it calls belongs to the rest, be it a variant, and so does what nothing uses.
        """
        every = [statement for statements in self._modules.values() for statement in statements]
        roots = [statement for statement in every if statement.acts]
        while True:
            rest = self._reached(roots, through_variants=False)
            own = {
                name: self._reached([each for each in every if name in each.variants], through_variants=True)
                for name in sorted({name for each in every for name in each.variants})
            }
            known = rest.union(*own.values())
            if unused := [statement for statement in every if statement not in known]:
                roots += unused
                continue
            break
        variants = {name: tuple(each.form for each in every if each in of and each not in rest) for name, of in own.items()}
        return Parts(variants, self._hashed(statement for statement in every if statement in rest))

    def _hashed(self, statements: Iterable[Statement]) -> dict[str, str]:
        forms: dict[str, list[str]] = defaultdict(list)
        for each in statements:
            where = "" if each.file == self._main else f"{each.file.name}: "
            forms[f"{where}{each.label}"].append(each.form)
        return {name: digest(*texts) for name, texts in forms.items()}

    def _reached(self, roots: Iterable[Statement], *, through_variants: bool) -> set[Statement]:
        """Statements, and all that they use.

        Args:
            through_variants: whether a variant's function counts as used where the variant is declared.
        """
        todo = list(roots)
        found = set(todo)
        while todo:
            for used, needed in self._used_by(todo.pop()):
                if used not in found and (through_variants or needed or not used.variants):
                    found.add(used)
                    todo.append(used)
        return found

    def _used_by(self, statement: Statement) -> Iterator[tuple[Statement, bool]]:
        """What a statement uses, and whether otherwise than by handing it on."""
        for use in statement.uses:
            for used in self._of_name(statement.file, use.name, use.attribute, set()):
                yield used, use not in statement.handed_on
        for file in statement.files:
            for used in self._modules.get(file, ()):
                yield used, True

    def _of_name(self, file: Path, name: str, attribute: str, seen: set[tuple[Path, str, str]]) -> Iterator[Statement]:
        """The statements that a name in a file stands for."""
        if (file, name, attribute) in seen:
            return
        seen.add((file, name, attribute))
        for statement in self._names[file].get(name, ()):
            yield statement
            if name in statement.imported:
                yield from self._of_import(statement.imported[name], attribute, seen)

    def _of_import(self, imported: Imported, attribute: str, seen: set[tuple[Path, str, str]]) -> Iterator[Statement]:
        member = imported.member or attribute
        holders = [file for file in imported.files if member in self._names.get(file, {})]
        if not holders:  # a module as a whole, or a name that its module makes while it runs
            yield from (statement for file in imported.files for statement in self._modules.get(file, ()))
        for file in holders:
            yield from self._of_name(file, member, attribute if imported.member else "", seen)


def _by_name(statements: Sequence[Statement]) -> dict[str, list[Statement]]:
    found: dict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.defines:
            found[name].append(statement)
    return found
