"""Plants faults in a copy of the source, and runs tests of `make test` until one fails: python -m benchmarks.mutations [NUMBER]...

A fault that no test sees is printed as `missed`, and the command ends with exit code 1.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_LEFT_OUT: Final = shutil.ignore_patterns(".git", ".venv", "__pycache__", "local", ".mypy_cache", ".ruff_cache", ".hypothesis")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        what: what it breaks.
        room: folder that holds the text.
        right, wrong: the text, which stands once in the room, and what replaces it.
        tests: folders of the tests that are run.
    """

    what: str
    room: str
    right: str
    wrong: str
    tests: Sequence[str]


_CORE: Final = ("tests/collectors", "tests/specimens")
_COMPARE: Final = ("tests/dashboard/core", "tests/dashboard", "tests/benchmarks", "tests/recomputed")
_IMPORT: Final = ("tests/collectors/trace", "tests/collectors/nsight_systems")
FAULTS: Final = (
    Fault("elements that are not finite pass", "collectors", "if each.not_finite or each.finite]:", "if False]:", _CORE),
    Fault(
        "a tile's error is not judged", "collectors", "= error / reference.clip(self._least(least_rms))", "= error * 0", _CORE
    ),
    Fault(
        "the largest error is not judged",
        "collectors",
        "return self.largest_error / (",
        "return 0 * self.largest_error / (",
        _CORE,
    ),
    Fault(
        "outputs are not poisoned with NaN",
        "collectors",
        "np.finfo(dtype).max if again else math.nan",
        "np.finfo(dtype).max if again else 0.0",
        _CORE,
    ),
    Fault("outputs may lie over inputs", "collectors", "if start < other_end and other_start < end:", "if False:", _CORE),
    Fault(
        "rounds are not shuffled",
        "collectors",
        "for index in rng.permutation(len(entries))]",
        "for index in range(len(entries))]",
        _CORE,
    ),
    Fault(
        "throttled samples are kept",
        "collectors",
        "if not (reading.throttled or reading.interrupted) or",
        "if not reading.interrupted or",
        _CORE,
    ),
    Fault(
        "one converged variant ends the rounds",
        "collectors",
        "converged = all(width <= limits.target",
        "converged = any(width <= limits.target",
        _CORE,
    ),
    Fault(
        "a call that waits inside is not told",
        "collectors",
        "if 2 * count >= self.sample_counts[cell]",
        "if count > self.sample_counts[cell]",
        _CORE,
    ),
    Fault("skipped repeats are not found", "collectors", "- limits.COLD_START_NS > cells", "* 0 > cells", _CORE),
    Fault("times that do not grow are not found", "collectors", "duration < TIME_GROWS and", "duration < 0 and", _CORE),
    Fault(
        "samples of a wrong cell are kept",
        "collectors",
        "_without(samples, [*wrong, *self._withdrawn])",
        "_without(samples, [])",
        _CORE,
    ),
    Fault(
        "a later process's wrong result is lost",
        "collectors",
        '_together(before, row) if row["status"] == "ok" else row',
        "_together(before, row)",
        _CORE,
    ),
    Fault(
        "a run may take another's place",
        "data",
        "staging is None and self.path.exists()",
        "False",
        ("tests/data", "tests/collectors/core"),
    ),
    Fault(
        "pages of parquet have no checksum",
        "data",
        "write_page_checksum=True,\n",
        "write_page_checksum=False,\n",
        ("tests/data",),
    ),
    Fault("rounds are not paired", "dashboard", "_SEED if paired else _SEED + 1", "_SEED + 1", _COMPARE),
    Fault(
        "ties within the noise are wins",
        "dashboard",
        "if ratio.low <= 1 <= ratio.high or 1 / noise <= ratio.value <= noise:",
        "if ratio.low <= 1 <= ratio.high:",
        _COMPARE,
    ),
    Fault(
        "what is lost passes the gate",
        "dashboard",
        "fails = status not in (LOST, _SKIPPED) or not (",
        "fails = False and (",
        _COMPARE,
    ),
    Fault(
        "launches of several threads are attributed",
        "collectors",
        "alone = self._count[place] == 1",
        "alone = self._count[place] >= 1",
        _IMPORT,
    ),
    Fault(
        "a range that ends with its parent has none",
        "data",
        "_latest_above(_maxima(end), np.arange(len(end)), end - 1)",
        "_latest_above(_maxima(end), np.arange(len(end)), end)",
        ("tests/data",),
    ),
)


def files_with(fault: Fault, root: Path) -> list[Path]:
    """The files of a fault's room that have the right text."""
    return [file for file in sorted((root / fault.room).rglob("*.py")) if fault.right in file.read_text()]


def plant(fault: Fault, root: Path) -> None:
    """Replace the right text below a folder. Raises ValueError where it does not stand there once."""
    files = files_with(fault, root)
    if len(files) != 1 or files[0].read_text().count(fault.right) != 1:
        raise ValueError(f"{fault.right!r}: stands in {len(files)} files of {fault.room}; it has to stand once")
    files[0].write_text(files[0].read_text().replace(fault.right, fault.wrong))


def first_failure(fault: Fault) -> str:
    """The first test that fails with the fault; empty if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "warpladder"
        shutil.copytree(ROOT, root, symlinks=True, ignore=_LEFT_OUT)
        plant(fault, root)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "loadgroup"]
        marks = ["-m", "not thorough and not browser"]
        done = subprocess.run([*command, *marks, *fault.tests], cwd=root, capture_output=True, text=True, check=False)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else ("" if done.returncode == 0 else f"exit code {done.returncode}")


def main() -> None:
    missed = 0
    chosen = [int(word) for word in sys.argv[1:]] or range(1, len(FAULTS) + 1)
    for number in chosen:
        fault, began = FAULTS[number - 1], time.monotonic()
        seen = first_failure(fault)
        missed += not seen
        print(f"{number:2} {fault.what}: {seen or 'missed'} ({time.monotonic() - began:.0f} s)", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
