"""`warpladder capture`: kernels of a program that runs, with their real arguments, as benchmarks."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from warpladder.errors import Error


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
    from warpladder.collectors.capture.child import ANSWER

    if not program.is_file():
        raise Error(f"{program}: no such file; give the path of a Python program")
    if out.exists():
        raise Error(f"{out}: exists, and nothing is overwritten; remove it, or give --out another folder")
    out.mkdir(parents=True)
    request = {"folder": str(out), "kernel": kernel, "launch": launch, "most_bytes": most_bytes}
    ran = [sys.executable, "-m", "warpladder.collectors.capture.child", json.dumps(request), str(program), *arguments]
    code = subprocess.run(ran).returncode
    answer = out / ANSWER
    found = json.loads(answer.read_text()) if answer.exists() else []
    answer.unlink(missing_ok=True)
    if code != 0:
        screen.say(f"{program} ended with exit code {code}")
    if not found:
        shutil.rmtree(out)
        raise Error(
            f"{program}: no kernel of CuPy's RawKernel or RawModule, of Triton or of Numba, and no operator of an extension that PyTorch "
            f"builds, {f'matches {kernel}' if kernel else 'was launched'}"
        )
    for each in found:
        what = f"warpladder record {out / each['folder'] / 'bench.py'}" if each["folder"] else f"not kept: {each['why']}"
        screen.print_text(f"{each['kernel']}  {each['launches']} launches  {what}\n")
