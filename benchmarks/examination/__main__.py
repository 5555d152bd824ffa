"""python -m benchmarks.examination [cheats] [honest] [gates]: records the programs, and prints what came out wrong.

A cheat must not be shown as faster and trusted, an honest program must be timed and trusted, and a gate must end with the code that is owed.
Without an argument all three parts are examined, which takes about half an hour on two processors. `EXAMINED=NAME` records one benchmark.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import warpladder
from benchmarks.examination.gates import BEFORE, GATES, Gate

_HERE: Final = Path(__file__).parent
#: Smaller gains may be of the machine.
_GAIN: Final = 1.15
_FEW: Final = ("--processes", "2", "--seconds", "0.4", "--no-limit")


def _command(*words: str, examined: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"EXAMINED": examined} if examined else {})
    return subprocess.run(
        [sys.executable, "-m", "warpladder", *words], env=environment, capture_output=True, text=True, check=False
    )


def _recorded(file: Path, folder: Path, *options: str, examined: str = "") -> "warpladder.Run | None":
    """The run of a file; None if there is none."""
    _command("record", str(file), "--data-dir", str(folder), *options, examined=examined)
    return next(iter(warpladder.runs(data_dir=folder)), None) if folder.exists() else None


def cheats(folder: Path) -> Iterator[str]:
    """Record each benchmark of cheats in processes of its own. Yields those that are shown faster and trusted."""
    from benchmarks.examination import cheats as programs

    for name in [each.removeprefix("bench_") for each in vars(programs) if each.startswith("bench_")]:
        run = _recorded(_HERE / "cheats.py", folder / name, *_FEW, examined=name)
        if run is None:
            yield f"{name}: no run"
            continue
        for row in run.table().to_dict("records"):
            if row["variant"] == "honest" and row["status"] != "ok":
                yield f"{name}: honest is {row['status']}: {row['detail']}"
            if row["variant"] != "honest" and row["verdict"] == "faster" and row["speedup"] >= _GAIN:
                yield f"{name}: {row['variant']} is shown {row['speedup']:.2f}x as fast"


def honest(folder: Path) -> Iterator[str]:
    """Record the honest programs. Yields those that are refused or distrusted."""
    run = _recorded(_HERE / "honest.py", folder, "--processes", "1", "--seconds", "0.15", "--no-limit")
    for row in run.table().to_dict("records") if run else []:
        if row["status"] != "ok" or row["flags"]:
            yield f"{row['workload']} {row['variant']}: {row['status']} {row['flags']} {row['detail'][:160]}"


def gates(folder: Path) -> Iterator[str]:
    """Record what each gate compares, and yield the gates that end with another code."""

    def record(name: str, gate: Gate) -> None:
        file = folder / name / "bench.py"
        file.parent.mkdir(parents=True)
        file.write_text(gate.file)
        few = ("--max-rounds", str(gate.rounds)) if gate.rounds else ()
        _recorded(file, folder / name / "runs", "--processes", "5", "--label", name, *few)

    record("before", BEFORE)
    for number, (name, gate) in enumerate(GATES.items()):
        record(f"after{number}", gate)
        folders = [str(folder / each / "runs") for each in ("before", f"after{number}")]
        ended = _command(
            "compare", "before", f"after{number}", "--fail-above", "2%", *gate.arguments,
            *(word for each in folders for word in ("--data-dir", each)),
        )  # fmt: skip
        if ended.returncode != gate.code:
            yield f"{name}: {ended.returncode}, not {gate.code}: {' / '.join(ended.stdout.splitlines()[-4:])} {ended.stderr[-200:]}"


def main(parts: Sequence[str]) -> None:
    """Examine the parts, and print what is wrong of each."""
    with tempfile.TemporaryDirectory() as root:
        for examine in (cheats, honest, gates):
            if not parts or examine.__name__ in parts:
                wrong = list(examine(Path(root) / examine.__name__))
                print(f"{examine.__name__}: {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
