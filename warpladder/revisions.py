"""The other version of files of benchmarks: a revision of their git repository, or another folder or file."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from warpladder.errors import Error
from warpladder.workloads.declare import locate
from warpladder.workloads.registry import Version

_TIMEOUT_S: Final = 600
_SHOWN_DIGITS: Final = 9
#: The usual folder of packages in a repository.
_SOURCES: Final = "src"


class RevisionError(Error):
    """There is no such version. The message is one line: what is missing, and what to do."""


class Pair(NamedTuple):
    """The user's own and the other version of a file, and which the other is: `main, 1a2b3c4d5`."""

    own: Version
    other: Version
    title: str


@contextmanager
def versions(files: Sequence[Path], reference: str) -> Iterator[list[Pair]]:
    """The user's own and the other version of each file. A revision is written to a temporary folder, which is removed at the end.

    Both look for modules below the top of their repository first: in the folders below it that `sys.path` has, in `src`, and in the top
    itself. So each imports its own version of a package, even if another one is installed.

    Args:
        reference: a git revision of the repository that has the files; or a folder or a file.

    Raises:
        RevisionError: there is none of the two, or it lacks a file. An error of a file of the revision in the block names it as git does.
    """
    with ExitStack() as opened:
        checked_out = functools.cache(lambda top, commit: opened.enter_context(_checked_out(top, commit, reference)))

        def pair(file: Path) -> Pair:
            file = file.resolve()
            found = _git(file.parent, "rev-parse", "--show-toplevel")
            top = Path(found) if found else file.parent
            commit = (
                _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}") if found else ""
            )
            tree = checked_out(top, commit) if commit else _place(reference, top if found else None)
            other = tree if tree.is_file() else _file_in(tree, file, top, reference, anywhere=not commit)
            tree = tree.parent if tree.is_file() else tree
            other_version = Version(other, _roots(tree, top), _name(reference, commit or ""))
            return Pair(
                Version(file, _roots(top, top)), other_version, f"{reference}{f', {commit[:_SHOWN_DIGITS]}' if commit else ''}"
            )

        yield list(map(pair, files))


def _name(reference: str, commit: str) -> str:
    """The name of a version in those of variants, which have no comma."""
    if commit and re.fullmatch("[0-9a-f]{40,}", reference):
        return reference[:_SHOWN_DIGITS]
    name = reference if commit else Path(reference).resolve().name
    return re.sub(r"[^\w./@{}~^+-]", "_", name)


def _place(reference: str, top: Path | None) -> Path:
    """The folder or the file of another version. Raises RevisionError."""
    place = Path(reference)
    if place.exists():
        return place.resolve()
    if top is None:
        raise RevisionError(
            f"--against {reference}: no such folder, and the files are in no git repository; give the folder of the other version"
        )
    raise RevisionError(
        f"--against {reference}: neither a revision of {top.name} nor a folder; name a branch, a tag or a commit that "
        "`git log` knows, perhaps after `git fetch`"
    )


def _file_in(tree: Path, file: Path, top: Path, reference: str, *, anywhere: bool) -> Path:
    """The other version of a file in a folder. Raises RevisionError.

    Args:
        anywhere: whether it may lie in the folder itself instead of at the same path below it.
    """
    below = file.relative_to(top)
    places = (tree / below, tree / file.name) if anywhere else (tree / below,)
    found = next((each for each in places if each.is_file()), None)
    if found is None:
        raise RevisionError(
            f"{below}: not in {reference}, so that there is nothing to compare it with; record it without --against, "
            "or give the folder or file of the other version"
        )
    if found == file:
        raise RevisionError(f"--against {reference}: has {below} itself; give the folder of another version")
    return found


def _roots(tree: Path, top: Path) -> tuple[Path, ...]:
    """The folders of a version in which modules are looked for first.

    Args:
        tree: its top.
        top: the top of the user's own version, to which `sys.path` belongs.
    """
    known = [Path(each).resolve() for each in sys.path if each]
    own = [each for each in known if each.is_relative_to(top) and not each.is_relative_to(sys.prefix)]
    below = [tree / each.relative_to(top) for each in own if locate.is_own(str(each / "module.py"))]
    return tuple(dict.fromkeys(folder for folder in (*below, tree / _SOURCES, tree) if folder.is_dir()))


@contextmanager
def _checked_out(top: Path, commit: str, reference: str) -> Iterator[Path]:
    """A folder with the files of a commit. It leaves no trace in the repository, as a worktree would after a crash; and, unlike an
    archive, it has the files that `export-ignore` names. Raises RevisionError."""
    with TemporaryDirectory(prefix="warpladder-") as folder:
        tree = Path(folder).resolve() / top.name
        tree.mkdir()
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        for command in (["read-tree", commit], ["checkout-index", "--all", f"--prefix={tree}/"]):
            if _git(top, *command, variables=index) is None:
                raise RevisionError(f"git {' '.join(command)}: failed in {top}; run it there to see why")
        try:
            yield tree
        except Error as error:
            if f"{tree}/" not in str(error):
                raise
            raise RevisionError(str(error).replace(f"{tree}/", f"{reference}:")) from error


def _git(folder: Path, *arguments: str, variables: dict[str, str] | None = None) -> str | None:
    """What git prints; None where it fails or is not installed."""
    environment = {**os.environ, **(variables or {})}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
