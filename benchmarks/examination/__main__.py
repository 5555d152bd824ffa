"""python -m benchmarks.examination [PART ...]: records the programs, and prints what came out wrong.

A right program must be timed and trusted. The parts are `right` and `functions` (of `compare_functions`); `PART=NAME,NAME` is some of a part.
Without an argument both are examined. Programs whose libraries are not installed are left out.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import warpladder
from benchmarks.examination import functions, linear_algebra, networks, order_and_selection, plans, sciences

RIGHT: Final = linear_algebra.CASES | order_and_selection.CASES | networks.CASES | sciences.CASES | plans.CASES
#: Before and after the text of a right program.
_HEAD: Final = """import numpy as np

import warpladder

bench = warpladder.Benchmark("case", {axes})
"""
_TAIL: Final = """
bench.inputs(inputs)
bench.reference({options})(globals().get("reference", first))
bench.variant(first, name="first", baseline=True)
bench.variant(second, name="second")
if "third" in globals():
    bench.variant(third, name="third")
"""


def _recorded(file: Path, *options: str) -> "warpladder.Run | None":
    """The run of a file; None if there is none."""
    folder = file.parent / "runs"
    words = "record", str(file), "--data-dir", str(folder), *options
    subprocess.run([sys.executable, "-m", "warpladder", *words], capture_output=True, check=False)
    return _run_in(folder)


def _run_in(folder: Path) -> "warpladder.Run | None":
    return next(iter(warpladder.runs(data_dir=folder)), None) if folder.exists() else None


def _written(folder: Path, text: str) -> Path:
    """A file of benchmarks, or of a script, with this text."""
    folder.mkdir(parents=True)
    file = folder / "bench.py"
    file.write_text(text)
    return file


def _is_installed(text: str) -> bool:
    """Whether the libraries that a program imports are here."""
    return all(find_spec(name) for name in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))


def _refused(name: str, run: "warpladder.Run | None") -> Iterator[str]:
    """What is wrong of a run of right programs."""
    rows = run.table().to_dict("records") if run else []
    if not rows:
        yield f"{name}: no run"
    for row in rows:
        if row["status"] != "ok" or row["flags"]:
            yield f"{name} {row['workload']} {row['variant']}: {row['status']} {row['flags']} {row['detail'][:160]}"


def right(folder: Path, only: Sequence[str]) -> Iterator[str]:
    """Record each right program. Yields those that are refused or distrusted."""
    for name, (axes, options, body) in _chosen(RIGHT, only):
        text = _HEAD.format(axes=axes) + body + _TAIL.format(options=options)
        if _is_installed(text):
            run = _recorded(_written(folder / name, text), "--processes", "1", "--seconds", "0.15", "--no-limit")
            yield from _refused(name, run)


def of_functions(folder: Path, only: Sequence[str]) -> Iterator[str]:
    """Give right functions to `compare_functions`. Yields those that are refused or distrusted."""
    for name, (text, args) in _chosen(functions.RIGHT, only):
        if _is_installed(text):
            call = f"first, second, {f'args={args}, ' if args else ''}seconds=0.15"
            yield from _refused(name, _compared(folder / name, f"import numpy as np\nimport warpladder\n{text}", call))


def _chosen(cases: Mapping[str, Any], only: Sequence[str]) -> list[tuple[str, Any]]:
    return [(name, case) for name, case in cases.items() if not only or name in only]


def _compared(folder: Path, text: str, call: str) -> "warpladder.Run | None":
    """The run of a script that calls `compare_functions`; None if there is none."""
    file = _written(folder, f"{text}\nwarpladder.compare_functions({call}, data_dir={str(folder / 'runs')!r})\n")
    subprocess.run([sys.executable, str(file)], capture_output=True, check=False)
    return _run_in(folder / "runs")


def main(parts: Sequence[str]) -> None:
    """Examine the parts, and print what is wrong of each."""
    examined = {"right": right, "functions": of_functions}
    with tempfile.TemporaryDirectory() as root:
        for name, _, chosen in (part.partition("=") for part in parts or examined):
            wrong = list(examined[name](Path(root) / name, chosen.split(",") if chosen else []))
            print(f"{name}: {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
