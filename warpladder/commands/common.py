"""Parts that the commands share: exit codes, the group, and options."""

import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from warpladder.dashboard.text.formats import FORMS
from warpladder.dashboard.ui.text import ANY_LENGTH
from warpladder.data.files import LOCAL, one_line
from warpladder.errors import Error
from warpladder.installation import IS_CHECKOUT, what_is_missing
from warpladder.screen import FULL, leave_stdout, not_written

if TYPE_CHECKING:
    from warpladder.dashboard.core.run_data import RunData


_F = TypeVar("_F", bound=Callable[..., Any])


class ExitCode(IntEnum):
    """How a command ends that is not done; docs/reference.md has the table. A signal ends it with 128 and the signal's number."""

    WRONG = 1
    REFUSED = 2
    UNSEEN = 3


class Commands(click.Group):
    """Commands in groups. It prints a user's mistake as one line on stderr.

    Args:
        groups: title -> commands, in the order of the help.
    """

    def __init__(self, groups: Mapping[str, Sequence[click.Command]], *, help: str) -> None:
        settings: dict[str, Any] = {
            "no_args_is_help": True,
            "context_settings": {"show_default": True, "help_option_names": ["-h", "--help"]},
        }
        commands = {command.name or "": command for group in groups.values() for command in group}
        super().__init__("warpladder", commands, help=help, **settings)
        self._groups = groups

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group."""
        longest = max(map(len, self.commands))
        for title, commands in self._groups.items():
            with formatter.section(title):
                rows = [(f"{command.name:{longest}}", command.get_short_help_str(formatter.width)) for command in commands]
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout:  # None where it was closed before the start
                sys.stdout.flush()
            return result
        except ImportError as error:
            if not (line := what_is_missing(error)):
                raise
            return _refuse([f"{ctx.command_path} {ctx.invoked_subcommand}: {line}"], error)
        except Error as error:
            return _refuse(error.lines(), error)
        except OSError as error:
            if error.errno not in FULL:
                raise
            leave_stdout()
            return _refuse([not_written(error)], error)


def _refuse(lines: Sequence[str], error: Exception) -> None:
    print(*map(one_line, lines), sep="\n", file=sys.stderr)
    raise click.exceptions.Exit(ExitCode.REFUSED) from error


# -- options -----------------------------------------------------------------------------------------------------------


def split(values: Sequence[str]) -> list[str]:
    """The names of an option that may be given again, and whose values may have commas."""
    return [name.strip() for text in values for name in text.split(",") if name.strip()]


def format_option(of: str, forms: Sequence[str] = FORMS) -> Callable[[_F], _F]:
    """The options `--format` and `--wide` of a command.

    Args:
        of: what is written in the format.
        forms: the formats that the command has.
    """

    def check_format(ctx: click.Context, param: click.Parameter, form: str) -> str:
        if form not in forms:
            raise Error(f"--format {form}: no such format; choose {', '.join(forms)}")
        return form

    def widen(ctx: click.Context, param: click.Parameter, wide: bool) -> None:
        if wide:
            os.environ["COLUMNS"] = str(ANY_LENGTH)

    text = f"Format of the {of}: {', '.join(forms)}."
    format_of = click.option("--format", "form", default="table", callback=check_format, help=text)
    width = click.option(
        "--wide", is_flag=True, expose_value=False, callback=widen, help="Let lines be wider than the terminal."
    )
    return lambda command: format_of(width(command))


def folder(text: str) -> Path:
    """The folder of `--data-dir`. Raises StoreError."""
    from warpladder.data import store

    return store.folder(text)


def regex_of_kernels(text: str) -> str:
    """The text of `--kernel` itself. Raises Error if it is no regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise Error(f"--kernel {text}: no regular expression ({error}); give one such as gemm|conv") from error
    return text


def cases_of(values: Sequence[str]) -> list[str]:
    """The names of `--case`. A comma stands between the axes of a case, and a case ends where one of its axes comes again."""
    cases: list[dict[str, str]] = []
    for text in values:
        case: dict[str, str] = {}
        for part in text.split(","):
            axis = part.partition("=")[0].strip()
            if not case or axis in case:
                cases.append(case := {})
            case[axis] = part
    return [",".join(case.values()) for case in cases]


def axes_of(values: Sequence[str]) -> list[str]:
    """The axes of `--axis`, each as `n=1000,2000`. An axis that is given again has all of its values."""
    axes: dict[str, list[str]] = {}
    for text in values:
        name = ""
        for part in text.split(","):
            before, equals, value = part.partition("=")
            if not equals and not name:
                return list(values)  # refused as a sweep
            name = before.strip() if equals else name
            axes.setdefault(name, []).append(value if equals else part)
    return [f"{name}={','.join(each)}" for name, each in axes.items()]


class _AboveZero(click.FloatRange):
    """Numbers above 0, without infinity and NaN, which the range of click takes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a number above 0.", param, ctx)
        return number


ABOVE_ZERO: Final = _AboveZero(min=0, min_open=True)
FILE: Final = click.Path(path_type=Path)

workloads_argument = click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
run_argument = click.argument("run", metavar="RUN")
data_dir_option = click.option(
    "--data-dir",
    type=folder,
    metavar="FOLDER",
    default=LOCAL,
    show_default="data/local" if IS_CHECKOUT else str(LOCAL),
    help="Folder that runs are written to.",
)
data_dirs_option = click.option(
    "--data-dir", "data_dirs", multiple=True, metavar="FOLDER", help="A further folder to look for runs in; may be given again."
)
label_option = click.option("--label", default="", show_default=False, help="Your name for the run.")
variant_from_option = click.option(
    "--variant-from",
    default="",
    show_default=False,
    metavar="nvtx:REGEX",
    help="nvtx:REGEX with groups variant, workload, config, case.",
)


def names_and_files(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """The workloads of the project among the arguments, and the user's files, which have a dot or a slash in their names."""
    files = [word for word in words if "." in word or "/" in word]
    return [word for word in words if word not in files], list(dict.fromkeys(map(Path, files)))


# -- runs --------------------------------------------------------------------------------------------------------------


def folders(data_dirs: Sequence[str | Path]) -> list[Path]:
    """The folders to look for runs in, after `take_up`. Raises StoreError."""
    from warpladder.data import store

    own = [*map(store.folder, data_dirs), store.LOCAL]
    take_up(*own)
    return [*own, store.RECORDED]


def take_up(*data_dirs: Path) -> None:
    """Make runs of the recordings in data folders whose process was killed, and print a line about each on stderr."""
    from warpladder.collectors.core.salvage import salvage
    from warpladder.screen import say

    for data_dir in data_dirs:
        for line in salvage(data_dir):
            say(line)


def load(run: str, data_dirs: Sequence[str]) -> "RunData":
    """A run by its id, label or folder. Raises StoreError."""
    from warpladder.dashboard.core import run_data
    from warpladder.data import store

    opened = store.find_run(run, folders(data_dirs))
    for reason in opened.left_out.values():
        print(f"left out: {reason}", file=sys.stderr)
    return run_data.load(opened)
