"""`warpladder new NAME`: writes a file of one's own to start from, which is right and runs."""

import keyword
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Final, Literal, get_args

import click

from warpladder.collectors.choice import gpu_problem
from warpladder.collectors.core.environment import has_module
from warpladder.data.files import one_line
from warpladder.errors import Error
from warpladder.installation import how_to_install

Kind = Literal["functions", "cuda"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
ARRAYS: Final = ("numpy", "torch", "cupy", "triton")
_TEMPLATES: Final = Path(__file__).with_name("skeletons")
_CURES: Final[Mapping[str, str]] = {"torch": "pip install torch", "triton": "pip install torch triton"}
#: What the baseline of kind `cuda` imports, and its function.
_BASELINES: Final[Mapping[str, tuple[str, str]]] = {
    "numpy": (
        "",
        '@bench.variant(baseline=True)\ndef numpy(x):\n    """Idea: NumPy on the processor. Speedups are counted from this variant."""\n'
        "    e = np.exp(x - x.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
    ),
    "torch": (
        "import torch\n",
        '@bench.variant(baseline=True, arrays="torch")\ndef library(x):\n'
        '    """Idea: PyTorch\'s own softmax. Speedups are counted from this variant."""\n    return torch.softmax(x, dim=1)',
    ),
    "cupy": (
        "import cupy as cp\n",
        '@bench.variant(baseline=True, arrays="cupy")\ndef by_steps(x):\n'
        '    """Idea: A CuPy call for each step. Speedups are counted from this variant."""\n'
        "    e = cp.exp(x - x.max(axis=1, keepdims=True))\n    return e / e.sum(axis=1, keepdims=True)",
    ),
}


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option("--kind", default="functions", help="functions: NAME.py. cuda: NAME/bench.py and NAME/kernel.cu.")
@click.option(
    "--arrays", default="", help="Library of the arrays: numpy, torch, cupy or triton. Default: one that is installed."
)
@click.option("--folder", is_flag=True, help="Write NAME/bench.py in place of NAME.py.")
def command(name: str, kind: str, arrays: str, folder: bool) -> None:
    """Write a commented file of benchmarks to start from.

    It has axes, inputs, a reference and two variants. You can record it as it is.

    NAME: of the file and of the workload. No file is overwritten.
    """
    arrays = arrays or usual_arrays()
    files = texts(name, kind, arrays, folder=folder)
    write(files)
    if lacking := missing(arrays):
        print(lacking, file=sys.stderr)
    print(one_line(f"wrote {' and '.join(map(str, files))}; next:"))
    for line in next_commands(list(files)):
        print(one_line(line))


def texts(name: str, kind: str, arrays: str, folder: bool) -> dict[Path, str]:
    """The files of a skeleton, by their paths from the working directory. Raises Error: the name, the kind or the
    library is not valid, or they cannot be combined.

    Args:
        name: of the file and of the workload; a Python identifier.
        kind: variants as functions, or a function and a kernel of CUDA C++.
        arrays: library of the arrays, one of ARRAYS.
        folder: whether the files get a folder of that name; files of kind `cuda` always do.
    """
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        raise Error(f"{name}: not a name in Python; write letters, digits and _, such as my_kernel")
    if arrays not in ARRAYS:
        raise Error(f"--arrays {arrays}: no such library; choose {', '.join(ARRAYS)}")
    if kind not in KINDS:
        raise Error(f"--kind {kind}: no such kind; choose {' or '.join(KINDS)}")
    if kind == "cuda" and arrays not in _BASELINES:
        raise Error(f"--kind cuda --arrays {arrays}: the kernel is CUDA C++; choose {', '.join(_BASELINES)} for the baseline")
    if name in sys.stdlib_module_names or name in (*ARRAYS, "warpladder"):
        raise Error(f"{name}: a module of this name is there, which the file would hide; choose another name")
    inside = folder or kind == "cuda"
    bench = Path(name, "bench.py") if inside else Path(f"{name}.py")
    imports, baseline = _BASELINES.get(arrays, ("", ""))
    filled = Template(_template("cuda.py" if kind == "cuda" else f"{arrays}.py")).substitute(
        name=name, title=name.replace("_", " ").strip().capitalize() or name, file=bench, imports=imports, baseline=baseline
    )
    return {bench: filled, **({Path(name, "kernel.cu"): _template("kernel.cu")} if kind == "cuda" else {})}


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text()


def write(files: Mapping[Path, str]) -> None:
    """Write files that are not there yet. Raises Error: one of them is there, or cannot be written; then none is left."""
    for file in files:
        if file.exists() or file.is_symlink():
            raise Error(f"{file}: is there already, and is not overwritten; choose another name, or remove it")
    begun: list[Path] = []
    for file, text in files.items():
        try:
            if not file.parent.is_dir():
                file.parent.mkdir()
                begun.append(file.parent)
            with file.open("x") as opened:
                begun.append(file)
                opened.write(text)
        except OSError as error:
            for each in reversed(begun):
                each.rmdir() if each.is_dir() else each.unlink()
            raise Error(f"{file}: cannot be written ({error.strerror}); choose another folder") from error


def usual_arrays() -> str:
    """The library that a skeleton uses where none is asked for: one that is installed, and that this machine can run."""
    if has_module("torch"):
        return "torch"
    return "cupy" if has_module("cupy") and gpu_problem() is None else "numpy"


def missing(arrays: str) -> str:
    """Tell how to install a library that is not there; empty where nothing is missing."""
    if arrays == "numpy" or has_module(arrays):
        return ""
    return f"{arrays} is not installed here, and the file imports it; {_CURES.get(arrays) or how_to_install('gpu')}"


def next_commands(files: Sequence[Path]) -> tuple[str, str]:
    """The next two commands."""
    return f"warpladder record {files[0]}", f"warpladder record {files[0]} --watch"
