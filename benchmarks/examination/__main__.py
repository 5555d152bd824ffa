"""python -m benchmarks.examination [PART ...]: records the programs, and prints what came out wrong.

A cheat must not be shown as faster and trusted, an honest program must be timed and trusted, and a gate must end with the code that is owed.
The parts are `cheats`, `honest`, and a second examination, written later by someone else: `second_cheats`, `second_honest`,
`second_functions` (of `compare_functions`) and `gates`. Without an argument all are examined, which takes about two hours on two idle
processors. `EXAMINED=NAME` records one benchmark of the first, `PART=NAME,NAME` some of the second. Programs whose libraries are not
installed are left out.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import warpladder
from benchmarks.examination import second
from benchmarks.examination.second import functions, problems
from benchmarks.examination.second.gates import GATES

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
        yield from _faster(name, run)


def honest(folder: Path) -> Iterator[str]:
    """Record the honest programs. Yields those that are refused or distrusted."""
    run = _recorded(_HERE / "honest.py", folder, "--processes", "1", "--seconds", "0.15", "--no-limit")
    yield from _refused("honest", run)


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


def second_cheats(folder: Path, only: Sequence[str] = ()) -> Iterator[str]:
    """Record each cheat of the second examination, and compare some as functions. Yields those that are shown faster and trusted."""
    for name, (problem, out_of_reach, cheat) in _chosen(second.CHEATS, only):
        if not _is_installed(cheat):
            continue
        file = _written(folder / name, problems.HEAD + problems.PROBLEMS[problem] + cheat)
        why = f" (out of reach: {out_of_reach})" if out_of_reach else ""
        yield from (line + why for line in _faster(name, _recorded(file, file.parent / "runs", *_FEW)))
    for name, (text, args, *why) in _chosen(functions.CHEATS, only):
        run = _compared(folder / f"functions_{name}", problems.HEAD + text, f"honest, cheat, args={args}")
        yield from (line + "".join(f" (out of reach: {each})" for each in why) for line in _faster(f"functions {name}", run))


def second_honest(folder: Path, only: Sequence[str] = ()) -> Iterator[str]:
    """Record each right program of the second examination. Yields those that are refused or distrusted."""
    for name, (axes, options, body) in _chosen(second.RIGHT, only):
        text = second.HEAD.format(axes=axes) + body + second.TAIL.format(options=options)
        if _is_installed(text):
            file = _written(folder / name, text)
            run = _recorded(file, file.parent / "runs", "--processes", "1", "--seconds", "0.15", "--no-limit")
            yield from _refused(name, run)


def second_functions(folder: Path, only: Sequence[str] = ()) -> Iterator[str]:
    """Give right functions to `compare_functions`. Yields those that are refused or distrusted."""
    for name, (text, args) in _chosen(functions.RIGHT, only):
        if _is_installed(text):
            call = f"first, second, {f'args={args}, ' if args else ''}seconds=0.15"
            yield from _refused(name, _compared(folder / name, f"import numpy as np\nimport warpladder\n{text}", call))


def gates(folder: Path, only: Sequence[str] = ()) -> Iterator[str]:
    """Record what each gate compares, beside a busy processor. Yields those that end with another code."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for number, (name, (*texts, few, arguments, owed)) in enumerate(_chosen(GATES, only)):
            folders = [folder / f"{number}_{label}" for label in ("main", "change")]
            for each, text, label in zip(folders, texts, ("main", "change"), strict=True):
                _recorded(_written(each, text), each / "runs", "--processes", "5", "--label", label, *few)
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
    return next(iter(warpladder.runs(data_dir=folder / "runs")), None) if (folder / "runs").exists() else None


def main(parts: Sequence[str]) -> None:
    """Examine the parts, and print what is wrong of each."""
    chosen = {part.partition("=")[0]: part.partition("=")[2].split(",") if "=" in part else [] for part in parts}
    with tempfile.TemporaryDirectory() as root:
        for examine in (cheats, honest, second_cheats, second_honest, second_functions, gates):
            if not parts or examine.__name__ in chosen:
                only = chosen.get(examine.__name__)
                wrong = list(examine(Path(root) / examine.__name__, *([only] if only else [])))
                print(f"{examine.__name__}: {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
