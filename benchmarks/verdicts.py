"""Counts how often intervals hold the truth, and identical code is called different: python -m benchmarks.verdicts [TRIALS | FOLDER RUNS]

With a folder, it records equal code that often beside a busy processor, or takes the runs that are there, and judges neighbouring runs:
as they are, and with a variant whose times are made longer. 30 runs take about fifteen minutes.

Else it simulates samples of code that is the same on both sides, so that every verdict but `tied` is false. The first table is of two
runs, as on Compare: one cell whose source changed, and other cells of equal code. The second is of two variants of one run, as on the
Ladder. Of an interval without a verdict nothing is counted. 2,000 trials take about ten minutes.
"""

import functools
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.compare.between_runs import (
    SMALLEST_EFFECT,
    Machine,
    Pair,
    Spread,
    judge,
    noise_between,
    ratio_and_noise,
)
from warpladder.dashboard.compare.levels import Medians, levels, medians, moved, several_processes, timing_group
from warpladder.dashboard.compare.within_run import CaseTimes, verdict
from warpladder.dashboard.core.cell import Entry
from warpladder.dashboard.core.intervals import paired_ratio
from warpladder.data import store
from warpladder.data.arrays import Floats
from warpladder.data.names import PHASE

#: The scatter of samples within a process, a fraction, and the drift from the first round to the last.
_WITHIN: Final = 0.02
_DRIFT: Final = 0.1
SHAPES: Final = ("normal", "Student t3", "lognormal", "drift")
ROUNDS: Final = (1, 5, 6, 8, 10, 20, 50)
PROCESSES: Final = (1, 3, 5)
EQUAL: Final = (1, 3, 8, 30)
#: The standard deviations from one process to the next, and of a load that slows all cells of a run alike; fractions.
BETWEEN: Final = ((0.0, 0.0), (0.03, 0.0), (0.03, 0.1))


@dataclass(frozen=True)
class Counts:
    """What became of the trials of one setting.

    Attributes:
        judged: trials with a verdict.
        held: intervals of these that hold the true ratio.
        false: verdicts of these that call identical code different.
    """

    trials: int
    judged: int
    held: int
    false: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.trials + other.trials, self.judged + other.judged, self.held + other.held, self.false + other.false)

    @property
    def text(self) -> str:
        """Verdicts given, intervals that held and false verdicts, in percent."""
        if not self.judged:
            return "no verdict"
        given, held, false = (
            100 * a / b for a, b in ((self.judged, self.trials), (self.held, self.judged), (self.false, self.judged))
        )
        return f"verdict in {given:.0f} %, interval holds {held:.1f} %, false {false:.1f} %"


def scattered(shape: str, random: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Logarithms of samples around 0, whose last axis is the rounds of a run."""
    if shape == "Student t3":
        return _WITHIN * random.standard_t(3, size)
    if shape == "lognormal":
        return _WITHIN * random.lognormal(0, 1, size)
    found = random.normal(0, _WITHIN, size)
    return found + np.linspace(0, _DRIFT, size[-1]) if shape == "drift" else found


def two_runs(
    shape: str,
    rounds: int,
    processes: int,
    equal: int,
    between: float,
    load: float = 0.0,
    *,
    trials: int,
    seed: int = 1,
) -> Counts:
    """One cell of two runs with `equal` other cells. The rounds of a run are shared among its processes."""
    random = np.random.default_rng(seed)
    cells = equal + 1
    process = np.arange(rounds) * min(processes, rounds) // rounds
    runs = []
    for _ in range(2):
        logs = scattered(shape, random, (trials, cells, rounds))
        logs += random.normal(0, between, (trials, cells, process[-1] + 1))[:, :, process]
        logs += random.normal(0, load, (trials, 1, 1))
        count = np.full(trials * cells, rounds)
        alike = np.repeat(np.arange(trials), cells).tolist()
        of_rounds = (np.tile(each, trials * cells) for each in (process, np.arange(rounds)))
        runs.append(levels(1e4 * np.exp(logs.reshape(-1)), count, *of_rounds, alike, alike))
    others = moved(runs[0].logs, runs[1].logs).reshape(trials, cells)[:, 1:]
    judged = held = false = 0
    for trial in range(trials):
        before, after = (run.at(trial * cells) for run in runs)
        if equal:
            after = after.moved(-float(np.median(others[trial])))
        spread = noise_between(
            Spread.of(_apart(others[trial])), lambda: Spread(0.0, 0), several_processes=several_processes(before, after)
        )
        ratio, noise = ratio_and_noise(before, after, spread)
        told = judge(ratio, noise, SMALLEST_EFFECT, n=min(before.n, after.n), equal=False)
        judged += told != "unknown"
        held += told != "unknown" and ratio.low <= 1 <= ratio.high
        false += told in ("slower", "faster")
    return Counts(trials, judged, held, false)


def _apart(moved: Floats) -> Floats:
    """How far each cell is from the median of the others; of a cell without another, how far it moved."""
    others = [np.median(np.delete(moved, place)) if len(moved) > 1 else 0.0 for place in range(len(moved))]
    return np.abs(moved - others)


def one_run(shape: str, rounds: int, trials: int, seed: int = 1) -> Counts:
    """Two variants of one process with common drift, and the baseline's second entry; each with samples of its own."""
    random = np.random.default_rng(seed)
    logs = scattered(shape, random, (trials, 3, rounds)) + random.normal(0, _DRIFT, (trials, 1, rounds))
    judged = held = false = 0
    for samples in 1e4 * np.exp(logs):
        base, twin, other = map(pd.Series, samples)
        found = paired_ratio(base, other)
        noise = CaseTimes({Entry("a", "", 1, 0): base, Entry("a", "", 1, 1): twin}, frozenset()).noise("a")
        told = verdict(found.estimate, rounds, noise) if rounds >= 6 else ""
        judged += bool(told)
        held += bool(told) and found.low <= 1 <= found.high
        false += told in ("slower", "faster")
    return Counts(trials, judged, held, false)


def settings() -> Iterator[tuple[str, int, int, int, float, float]]:
    """Every setting of `two_runs`."""
    for shape, rounds, processes, equal, noises in product(SHAPES, ROUNDS, PROCESSES, EQUAL, BETWEEN):
        yield shape, rounds, processes, equal, *noises


def tables(trials: int, say: Callable[[str], None]) -> Mapping[tuple[int, int], Counts]:
    """Print both tables, and the settings in which an interval holds less than 93 % or more than 5 % of verdicts are false.

    Returns:
        The counts by processes and cells of equal code, over all shapes and rounds.
    """
    total: dict[tuple[int, int], Counts] = {}
    for shape, rounds, processes, equal, between, load in settings():
        found = two_runs(shape, rounds, processes, equal, between, load, trials=trials)
        total[processes, equal] = total.get((processes, equal), Counts(0, 0, 0, 0)) + found
        if is_bad(found):
            where = f"{shape}, {rounds} rounds, {processes} processes, {equal} cells"
            say(f"  {where}, {between:.0%} between processes, {load:.0%} load: {found.text}")
    for (processes, equal), found in total.items():
        say(f"{processes} processes, {equal} cells of equal code: {found.text}")
    for rounds in ROUNDS:
        every = [one_run(shape, rounds, trials // 4) for shape in SHAPES]
        for shape, found in zip(SHAPES, every, strict=True):
            if is_bad(found):
                say(f"  one run, {shape}, {rounds} rounds: {found.text}")
        say(f"one run, {rounds} rounds: {sum(every, Counts(0, 0, 0, 0)).text}")
    return total


def is_bad(found: Counts) -> bool:
    """Whether fewer than 93 % of intervals hold the truth or more than 5 % of verdicts are false, by more than chance.

    Chance is two standard deviations of a count.
    """
    if not found.judged:
        return False
    held, false = found.held / found.judged, found.false / found.judged
    spread = [2 * (share * (1 - share) / found.judged) ** 0.5 for share in (0.93, 0.05)]
    return held < 0.93 - spread[0] or false > 0.05 + spread[1]


#: Seven ways to the same result, in three sizes.
_FILE: Final = """import numpy as np

import warpladder

bench = warpladder.Benchmark("equal", rows=[100, 400, 1600])
bench.inputs(lambda rows, rng: rng.standard_normal((rows, 256), np.float32))
bench.reference(np.tanh)


@bench.variant(baseline=True)
def plain(x):
    return np.tanh(x)


@bench.variant
def by_rows(x):
    y = np.empty_like(x)
    for i in range(0, len(x), 50):
        np.tanh(x[i : i + 50], out=y[i : i + 50])
    return y


@bench.variant
def by_columns(x):
    y = np.empty_like(x)
    for i in range(0, 256, 64):
        y[:, i : i + 64] = np.tanh(x[:, i : i + 64])
    return y


@bench.variant
def by_exp(x):
    return 1 - 2 / (np.exp(2 * x) + 1)


@bench.variant
def by_double(x):
    return np.tanh(x.astype(np.float64)).astype(np.float32)


@bench.variant
def by_ratio(x):
    return np.sinh(x) / np.cosh(x)


@bench.variant
def by_half(x):
    return np.concatenate([np.tanh(x[: len(x) // 2]), np.tanh(x[len(x) // 2 :])])
"""
_PLANTED: Final = (1.0, 1.05, 1.1, 1.3, 1.57)
#: A run is compared with so many that follow it.
_NEIGHBOURS: Final = 3


def record(folder: Path, runs: int) -> None:
    """Record equal code that often, as in CI, beside a busy processor."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "equal.py"
    file.write_text(_FILE)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for _ in range(runs):
            words = ("record", str(file), "--processes", "5", "--data-dir", str(folder), "--quiet")
            subprocess.run([sys.executable, "-m", "warpladder", *words], check=True, capture_output=True)
    finally:
        busy.kill()


def of_recorded(folder: Path, say: Callable[[str], None]) -> None:
    """Print the verdicts about equal cells of neighbouring runs, and about cells of a variant that is planted slower."""
    runs = [(workload, medians(run, workload)) for run in store.list_runs([folder])[0] for workload in run.timed]
    equal, planted = Counter[str](), {by: Counter[str]() for by in _PLANTED}
    for place, (workload, a) in enumerate(runs):
        for other, b in runs[place + 1 : place + 1 + _NEIGHBOURS]:
            if other == workload:
                equal.update(_told(a, b, ""))
                same = [each for each in b.sources if a.sources.get(each) == b.sources[each]]
                for variant, by in product(same, _PLANTED):
                    planted[by].update(_told(a, b, variant, by))
    say(f"{len(runs)} runs, equal cells: {_share(equal, 'drifted')} drifted")
    for by, found in planted.items():
        say(f"changed source, {by - 1:+.0%}: {_share(found, 'slower')} slower, {_share(found, 'faster')} faster")


def _share(counts: Counter[str], verdict: str) -> str:
    return f"{counts[verdict]} of {counts.total()} ({counts[verdict] / max(counts.total(), 1):.2%})"


def _told(a: Medians, b: Medians, changed: str, by: float = 1.0) -> Sequence[str]:
    """The verdicts about the cells of equal source; or about a variant, with another source, of which B takes `by` times as long."""
    longer = np.where([cell.variant == changed for cell in b.cells], math.log(by), 0.0)
    b = replace(
        b,
        levels=b.levels.moved(longer),
        sources={**b.sources, **({changed: "changed"} if changed else {})},
    )
    rows = {cell: row for row, cell in enumerate(a.cells)}
    pairs: dict[object, Pair] = {}
    told = []
    for row, cell in enumerate(b.cells):
        equal = a.sources.get(cell.variant) == b.sources.get(cell.variant)
        if cell in rows and not cell.scope.startswith(PHASE) and (cell.variant == changed if changed else equal):
            timing, gpus = key = timing_group(cell)
            if key not in pairs:
                pairs[key] = Pair(a, b, timing, gpus, lambda key=key: Machine([], *key))  # type: ignore[misc]
            judged = pairs[key].judge(a.levels.at(rows[cell]), b.levels.at(row), cell, SMALLEST_EFFECT, equal=equal)
            told.append(judged.verdict)
    return told


if __name__ == "__main__":
    told = functools.partial(print, flush=True)
    if sys.argv[1:] and not sys.argv[1].isdecimal():
        if not store.list_runs([Path(sys.argv[1])])[0]:
            record(Path(sys.argv[1]), int(sys.argv[2]))
        of_recorded(Path(sys.argv[1]), told)
    else:
        tables(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, told)
