"""`warpladder capture`: kernels of a program that runs, with their real arguments, as benchmarks."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from warpladder.commands.common import regex_of_kernels
from warpladder.errors import Error

if TYPE_CHECKING:
    from warpladder.collectors.core.signals import Stop

_A_WHILE_S: Final = 0.1


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("program", type=click.Path(path_type=Path), metavar="PROGRAM.py")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
@click.option("--kernel", default="", show_default=False, metavar="REGEX", help="Only kernels whose name has a match.")
@click.option("--launch", type=click.IntRange(1), default=1, help="Which launch of each kernel is kept.")
@click.option("--most-bytes", type=click.IntRange(1), default=1 << 28, help="The most bytes of a launch's arguments.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("captured"),
    help="The folder that is made, with one for each kernel.",
)
def command(program: Path, arguments: Sequence[str], kernel: str, launch: int, most_bytes: int, out: Path) -> None:
    """Run a program, and write its kernels as benchmarks.

    Each has the arguments of one launch. It watches CuPy, Triton, Numba, and the extensions that PyTorch builds while the program runs.

    PROGRAM.py: a Python program of yours; ARGUMENTS are given to it.
    """
    from warpladder import screen
    from warpladder.collectors.core.signals import Stop

    if not program.is_file():
        raise Error(f"{program}: no such file; give the path of a Python program")
    if out.exists():
        raise Error(f"{out}: exists, and nothing is overwritten; remove it, or give --out another folder")
    made = _first_missing(out)
    request = {"folder": str(out), "kernel": regex_of_kernels(kernel), "launch": launch, "most_bytes": most_bytes}
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise Error(f"--out {out}: cannot be written ({error.strerror}); choose another folder") from error
    found: list[dict[str, Any]] = []
    try:
        with Stop() as stop:
            found, code = _run(request, [str(program), *arguments], stop)
    finally:
        if not any(each["folder"] for each in found):
            shutil.rmtree(made)
    if code != 0:
        screen.say(f"{program} ended with {_ending(code)}")
    for each in found:
        what = f"warpladder record {out / each['folder'] / 'bench.py'}" if each["folder"] else f"not kept: {each['why']}"
        screen.print_text(f"{each['kernel']}  {each['launches']} launches  {what}\n")
    if not found:
        raise Error(
            f"{program}: no kernel of CuPy's RawKernel or RawModule, of Triton or of Numba, and no operator of an extension that PyTorch "
            f"builds, {f'matches {kernel}' if kernel else 'was launched'}"
        )
    if not out.exists():
        raise Error(f"{program}: nothing was kept; each line has the reason")
    if stop.exit_code:
        raise click.exceptions.Exit(stop.exit_code)


def _first_missing(folder: Path) -> Path:
    """The uppermost of the folders that have to be made for this one."""
    return [each for each in (folder, *folder.parents) if not each.exists()][-1]


def _run(request: Mapping[str, Any], program: Sequence[str], stop: "Stop") -> tuple[list[dict[str, Any]], int]:
    """Run the program with its launches watched. Returns what became of each kernel, and the program's exit code.

    Ctrl-C reaches the program directly, which then writes what it launched so far; other signals ask it to end in the same way, and a
    second one kills it.

    Raises:
        Error: the program ended without an answer.
    """
    with TemporaryDirectory(prefix="warpladder-") as folder:
        answer = Path(folder, "captured.json")
        asked = json.dumps({**request, "answer": str(answer)})
        process = subprocess.Popen([sys.executable, "-m", "warpladder.collectors.capture.child", asked, *program])
        told = False
        while (code := _ended(process)) is None:
            if stop.again:
                process.kill()
            elif stop.number not in (0, signal.SIGINT) and not told:
                process.send_signal(signal.SIGINT)
                told = True
        with suppress(OSError, ValueError):
            return json.loads(answer.read_text()), code
    raise Error(f"{program[0]} ended with {_ending(code)} before its kernels were written; let it return, or call sys.exit")


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _ended(process: "subprocess.Popen[bytes]") -> int | None:
    """The exit code of a process; None if it still runs after a while."""
    try:
        return process.wait(timeout=_A_WHILE_S)
    except subprocess.TimeoutExpired:
        return None
