"""python -m benchmarks.examination [PART ...]: records the programs, and prints what came out wrong.

A cheat must not be shown as faster and trusted, a right program must be timed and trusted, and a gate must end with the code that is owed.
The parts are `cheats`, `right`, `functions` (of `compare_functions`) and `gates`; `PART=NAME,NAME` is some of a part. Without an argument all
are examined, which takes about two hours on two idle processors. Programs whose libraries are not installed are left out.
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
from benchmarks.examination import (
    clocks,
    functions,
    kept_results,
    late_results,
    linear_algebra,
    networks,
    order_and_selection,
    parts_of_work,
    plans,
    problems,
    sciences,
    slowed_neighbours,
)
from benchmarks.examination.gates import GATES

CHEATS: Final = late_results.CASES | kept_results.CASES | parts_of_work.CASES | slowed_neighbours.CASES | clocks.CASES
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
#: Smaller gains may be of the machine.
_GAIN: Final = 1.15


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "warpladder", *words], capture_output=True, text=True, check=False)


def _recorded(file: Path, *options: str) -> "warpladder.Run | None":
    """The run of a file; None if there is none."""
    folder = file.parent / "runs"
    _command("record", str(file), "--data-dir", str(folder), *options)
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


def _faster(name: str, run: "warpladder.Run | None") -> Iterator[str]:
    """What is wrong of a run in which `honest` comes first, and a cheat beside it."""
    rows = run.table().to_dict("records") if run else []
    if not rows:
        yield f"{name}: no run"
    for row in rows:
        if row["variant"] == "honest" and row["status"] != "ok":
            yield f"{name}: honest is {row['status']}: {row['detail']}"
        if row["variant"] != "honest" and row["verdict"] == "faster" and row["speedup"] >= _GAIN:
            yield f"{name}: {row['variant']} is shown {row['speedup']:.2f}x as fast"


def _refused(name: str, run: "warpladder.Run | None") -> Iterator[str]:
    """What is wrong of a run of right programs."""
    rows = run.table().to_dict("records") if run else []
    if not rows:
        yield f"{name}: no run"
    for row in rows:
        if row["status"] != "ok" or row["flags"]:
            yield f"{name} {row['workload']} {row['variant']}: {row['status']} {row['flags']} {row['detail'][:160]}"


def cheats(folder: Path, only: Sequence[str]) -> Iterator[str]:
    """Record each cheat, and compare some as functions. Yields those that are shown faster and trusted."""
    for name, (problem, out_of_reach, cheat) in _chosen(CHEATS, only):
        if not _is_installed(cheat):
            continue
        file = _written(folder / name, problems.HEAD + problems.PROBLEMS[problem] + cheat)
        why = f" (out of reach: {out_of_reach})" if out_of_reach else ""
        yield from (line + why for line in _faster(name, _recorded(file, "--processes", "2", "--seconds", "0.4", "--no-limit")))
    for name, (text, args, *why) in _chosen(functions.CHEATS, only):
        run = _compared(folder / f"functions_{name}", problems.HEAD + text, f"honest, cheat, args={args}")
        yield from (line + "".join(f" (out of reach: {each})" for each in why) for line in _faster(f"functions {name}", run))


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


def gates(folder: Path, only: Sequence[str]) -> Iterator[str]:
    """Record what each gate compares, beside a busy processor. Yields those that end with another code."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for number, (name, (*texts, few, arguments, owed)) in enumerate(_chosen(GATES, only)):
            folders = [folder / f"{number}_{label}" for label in ("main", "change")]
            for each, text, label in zip(folders, texts, ("main", "change"), strict=True):
                _recorded(_written(each, text), "--processes", "5", "--label", label, *few)
            data = (word for each in folders for word in ("--data-dir", str(each / "runs")))
            recipe = ("--fail-above", "2%", *(() if "--detect" in arguments else ("--detect", "10%")))
            ended = _command("compare", "main", "change", *recipe, *arguments, *data)
            if ended.returncode not in owed:
                yield f"{name}: {ended.returncode}, not {owed}: {' / '.join(ended.stdout.splitlines()[-4:])} {ended.stderr[-200:]}"
    finally:
        busy.kill()


def _chosen(cases: Mapping[str, Any], only: Sequence[str]) -> list[tuple[str, Any]]:
    return [(name, case) for name, case in cases.items() if not only or name in only]


def _compared(folder: Path, text: str, call: str) -> "warpladder.Run | None":
    """The run of a script that calls `compare_functions`; None if there is none."""
    file = _written(folder, f"{text}\nwarpladder.compare_functions({call}, data_dir={str(folder / 'runs')!r})\n")
    subprocess.run([sys.executable, str(file)], capture_output=True, check=False)
    return _run_in(folder / "runs")


def main(parts: Sequence[str]) -> None:
    """Examine the parts, and print what is wrong of each."""
    examined = {"cheats": cheats, "right": right, "functions": of_functions, "gates": gates}
    with tempfile.TemporaryDirectory() as root:
        for name, _, chosen in (part.partition("=") for part in parts or examined):
            wrong = list(examined[name](Path(root) / name, chosen.split(",") if chosen else []))
            print(f"{name}: {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
