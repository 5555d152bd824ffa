"""Shuffled, interleaved rounds. Each round runs every variant of a case once, so that drift affects all variants alike.

The baseline runs twice in every round. The difference between its two copies is the noise floor of the case.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from warpladder.collectors.core.bench import Ended, Pass, Reading
from warpladder.collectors.core.cells import Cell
from warpladder.data.names import Source
from warpladder.data.statistics import median_ranks

#: A throttled or interrupted sample is repeated at most this often, and not where so many would take longer than the rounds may; then it is
#: kept, with its throttle reasons.
RETRIES: Final = 3
#: A cell with so many samples that stayed throttled reaches the power limit by itself, and one of which half of the samples, and so many,
#: stayed interrupted is longer than the system's slices of time: no more of its samples are repeated.
STEADY: Final = 2
#: Rounds between two looks at the intervals, and the part of all rounds, which may be more: a look takes as long as all samples together.
_CHECK_EVERY: Final = 5
_CHECK_AFTER: Final = 8
#: The fewest rounds of a further process: the median of three samples withstands a bad one.
_FEWEST_OF_PROCESS: Final = 3
#: Rounds of a scope where a budget leaves time for more than the set asks for.
_MOST_ROUNDS: Final = 400


@dataclass(frozen=True)
class Limits:
    """When sampling of a case stops.

    Attributes:
        target: a variant has converged when half of the median's 95 % interval is at most this fraction of the median.
        min_rounds: least number of rounds; a 95 % interval of the median needs at least 6.
        max_rounds: largest number of rounds of one scope and cache.
        seconds: time limit for the rounds of one scope and cache; applies once min_rounds are done.
        cell_timeout_s: a cell that makes no progress for this many seconds is ended.
        budget_s: time limit for measuring, in seconds, applied to each number of GPUs. Cases that it does not reach are left
            out of the run. None for no limit.
        processes: most processes that take the rounds, one after another. A kernel's time differs from one process to the
            next, all variants alike, by about 1 % where it takes 5 to 20 us; see docs/measurement.md.
        ceilings_by_size: memory is measured by size too before the first case, which takes seconds.
        passes: scopes and caches of a case, among which the rounds share what the first process leaves of the budget; 0 where they do not
            take it.
    """

    target: float = 0.005
    min_rounds: int = 6
    max_rounds: int = 200
    seconds: float = 3.0
    cell_timeout_s: float = 120.0
    budget_s: float | None = None
    processes: int = 1
    ceilings_by_size: bool = False
    passes: int = 0

    def of_process(self, process: int) -> "Limits":
        """The limits of a process, which all together give at most as many rounds, and about as narrow an interval, as one alone.

        The first process may be the only one, where the time is up or the run is interrupted. So it takes `min_rounds` at least, and with
        a budget it has all the seconds of one alone.
        """
        first = max(math.ceil(self.max_rounds / self.processes), min(self.min_rounds, self.max_rounds))
        if process == 0:
            least, most = self.min_rounds, first
        else:
            each, more = divmod(self.max_rounds - first, self.processes - 1)
            least = max(math.ceil(self.min_rounds / self.processes), _FEWEST_OF_PROCESS)
            most = each + (process <= more)
        return replace(
            self,
            target=self.target * math.sqrt(self.processes),
            min_rounds=min(least, most),
            max_rounds=most,
            seconds=self.seconds if process == 0 and self.budget_s is not None else self.seconds / self.processes,
        )

    def spread_over(self, passes: int, share: float) -> "Limits":
        """The limits where few cases leave time of the budget: the uncertainty is in the samples.

        Args:
            passes: scopes and caches of all cases.
            share: of the budget that the rounds of the first process may take. The other processes take about two thirds of it more.
        """
        seconds = min(max(share * (self.budget_s or 0.0) / passes, self.seconds), Limits.seconds)
        more = replace(self, seconds=seconds, max_rounds=max(self.max_rounds, _MOST_ROUNDS))
        return more if seconds > self.seconds else self

    def with_more(self, seconds: float) -> "Limits":
        """The limits where so many more seconds are left for a case."""
        longer = min(self.seconds + seconds / self.passes, Limits.seconds) if self.passes else self.seconds
        if longer <= self.seconds:
            return self
        return replace(self, seconds=longer, max_rounds=math.ceil(self.max_rounds * longer / self.seconds))

    @property
    def most_processes(self) -> int:
        """The number of processes that have a round to take: the first takes `min_rounds`, and each of the others one at least."""
        return 1 + max(self.max_rounds - self.min_rounds, 0)


@dataclass(frozen=True)
class Turn:
    """One process's turn at the rounds of a case.

    Attributes:
        process: number of the process, from 0.
        first_round: number of its first round; rounds count over all processes.
    """

    process: int
    first_round: int
    limits: Limits


@dataclass(frozen=True)
class Entry:
    """A cell's entry in each round; the baseline has a second entry, its twin."""

    cell: Cell
    twin: int = 0


class SampleFailed(Exception):
    """Sampling `cell` raised an exception, which is chained as the cause."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(str(cell))
        self.cell = cell


@dataclass
class RoundsResult:
    """Result of the rounds of one pass.

    Attributes:
        rows: rows of `samples`.
        stopped: cell -> why its sampling stopped.
        discarded: number of throttled samples that were repeated.
        sample_counts: cell -> number of samples that were kept.
        kept_throttled: cell -> number of those that stayed throttled.
        kept_interrupted: cell -> number of those that stayed interrupted.
        pending: cells whose clock stopped before the device was done.
        not_held: cell -> number of its samples whose work was not all queued before the clock started.
        energy: rows of `energy`.
        starved: cell -> number of its loops in which the device ran out of work.
        beside: other processes that used the device during a loop.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: dict[Cell, str] = field(default_factory=dict)
    discarded: int = 0
    sample_counts: Counter[Cell] = field(default_factory=Counter)
    kept_throttled: Counter[Cell] = field(default_factory=Counter)
    kept_interrupted: Counter[Cell] = field(default_factory=Counter)
    pending: set[Cell] = field(default_factory=set)
    not_held: Counter[Cell] = field(default_factory=Counter)
    energy: list[dict[str, Any]] = field(default_factory=list)
    starved: Counter[Cell] = field(default_factory=Counter)
    beside: set[str] = field(default_factory=set)

    def take_energy(self, entry: Entry, number: int, reading: Reading) -> None:
        """Keep the energy of a reading that has one, as a row of `energy`."""
        if reading.energy is None:
            return
        self.energy.append({**entry.cell.key, "twin": entry.twin, "round": number, **reading.energy.columns, **reading.state})
        self.starved[entry.cell] += reading.energy.starved
        self.beside |= {*reading.energy.beside}

    def doubts(self, where: str, how: Pass) -> Iterator[tuple[str, str, str, Cell | None]]:
        """Severity, source, text and cell of each diagnostic about the rounds."""
        if self.discarded:
            text = f"{where}: samples taken under throttling, and taken again: {self.discarded}"
            yield "info", Source.THROTTLING, text, None
        if throttled := self.kept_throttled.total():
            of_all = self.sample_counts.total()
            text = f"{where}: samples that stayed throttled, and were kept: {throttled} of {of_all}; see throttle_reasons"
            yield "warning", Source.THROTTLING, text, None
        for cell in sorted(self.pending, key=str):
            text = f"the {how.scope} clock was stopped while the device was still at work: the call was never synchronised"
            yield "warning", Source.NEVER_SYNCHRONIZED, text, cell
        if late := self.not_held.total():
            of_all = self.sample_counts.total()
            text = f"{where}: samples that include time of the host, for their work was queued late: {late} of {of_all}"
            yield "info", Source.WAITS_INSIDE, text, None
        for cell in self._mostly(self.not_held):
            text = (
                f"its {how.scope} {how.cache} time may include time of the host, for its work was not all queued when the clock started: "
                "it waits for the device inside, or has more launches than the driver queues, about 1,000"
            )
            yield "warning", Source.WAITS_INSIDE, text, cell
        if self.beside:
            names = ", ".join(sorted(self.beside))
            text = (
                f"{where}: the counter of energy is of the whole GPU, which others used too: {names}; end them and record again"
            )
            yield "warning", Source.ENERGY, text, None
        if starved := self._mostly(Counter({cell: count for cell, count in self.starved.items() if count})):
            names = ", ".join(map(str, starved))
            text = (
                f"{where}: the host launches too slowly to keep the GPU at work, so the energy is of a GPU that waits: {names}"
            )
            yield "warning", Source.ENERGY, text, None

    def _mostly(self, samples: Counter[Cell]) -> list[Cell]:
        """Cells of whose samples at least half are among these: the median is then one of them, or next to one."""
        return sorted((cell for cell, count in samples.items() if 2 * count >= self.sample_counts[cell]), key=str)


def run_rounds(
    entries: Sequence[Entry],
    how: Pass,
    take: Callable[[Entry, int], Reading],
    turn: Turn,
    rng: np.random.Generator,
    *,
    gpus: int,
    clock: Callable[[], float] = time.monotonic,
) -> RoundsResult:
    """Sample the entries in rounds until all have converged, or a limit of time or rounds is reached. Raises
    SampleFailed: `take` raised.

    Args:
        take: takes one sample of an entry, given the round's number.
        gpus: column `gpus` of the rows: number of GPUs, or of ranks, of each sample.
    """
    result = RoundsResult()
    durations: dict[Entry, list[int]] = {entry: [] for entry in entries}
    started = clock()
    limits = turn.limits
    rounds = 0
    while True:
        number = turn.first_round + rounds
        for position, entry in enumerate(shuffled(entries, rng)):
            interrupted = result.kept_interrupted[entry.cell]
            is_long = interrupted >= STEADY and 2 * interrupted >= result.sample_counts[entry.cell]
            is_steady = is_long or result.kept_throttled[entry.cell] >= STEADY
            longest_ns = 0.0 if is_steady else 1e9 * limits.seconds / RETRIES
            reading, retaken = _take_undisturbed(entry, number, take, longest_ns)
            result.discarded += retaken
            result.sample_counts[entry.cell] += 1
            if reading.throttled:
                result.kept_throttled[entry.cell] += 1
            if reading.interrupted:
                result.kept_interrupted[entry.cell] += 1
            if reading.pending:
                result.pending.add(entry.cell)
            if not reading.held:
                result.not_held[entry.cell] += 1
            durations[entry].append(reading.duration_ns)
            result.rows += sample_rows(entry, how, gpus, turn, number, position, reading)
            result.take_energy(entry, number, reading)
        rounds += 1
        if rounds < limits.min_rounds:
            continue
        out_of_rounds = rounds >= limits.max_rounds
        out_of_time = clock() - started >= limits.seconds
        if out_of_rounds or out_of_time or rounds % max(_CHECK_EVERY, rounds // _CHECK_AFTER) == 0:
            widths = {entry: relative_half_width(durations[entry]) for entry in entries}
            converged = all(width <= limits.target for width in widths.values())
            if converged or out_of_rounds or out_of_time:
                why = f"at the limit of {limits.seconds:g} s" if out_of_time else f"at the limit of {limits.max_rounds} rounds"
                for entry, width in widths.items():
                    reason = "converged" if width <= limits.target else why
                    result.stopped[entry.cell] = f"{how.scope} {how.cache}: {reason}, n={rounds}, ±{width:.2%}"
                return result


def shuffled(entries: Sequence[Entry], rng: np.random.Generator) -> list[Entry]:
    """The entries in a random order, in which versions of a variant, `NAME` and `NAME@VERSION`, follow one another: on a busy host, the times of
    neighbours have less of it between them."""
    order = [entries[index] for index in rng.permutation(len(entries))]
    places: dict[tuple[str, str, int], int] = {}
    for place, entry in enumerate(order):
        places.setdefault(_namesakes(entry), place)
    return sorted(order, key=lambda entry: places[_namesakes(entry)])


def _namesakes(entry: Entry) -> tuple[str, str, int]:
    return entry.cell.variant.partition("@")[0], entry.cell.config, entry.twin


def sample_rows(
    entry: Entry, how: Pass, gpus: int, turn: Turn, number: int, position: int, reading: Reading
) -> list[dict[str, Any]]:
    """Rows of `samples` for each rank: one for the whole repetition, and one for each phase."""
    return [
        {
            **entry.cell.key,
            "gpus": gpus,
            "rank": rank,
            "cache": how.cache,
            "scope": scope,
            "twin": entry.twin,
            "process": turn.process,
            "round": number,
            "position": position,
            "duration_ns": max(duration_ns, 1),  # 0 is below the clock's resolution
            **each.state,
        }
        for rank, each in enumerate(reading.ranks or (reading,))
        for scope, duration_ns in {how.scope: each.duration_ns, **each.phases_ns}.items()
    ]


def relative_half_width(durations_ns: Sequence[int]) -> float:
    """Half of the median's 95 % interval, divided by the median."""
    ordered = sorted(durations_ns)  # of so few values quicker than NumPy
    low, high = median_ranks(len(ordered))
    twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    return (ordered[high] - ordered[low]) / twice if twice else 0.0


def _take_undisturbed(
    entry: Entry, number: int, take: Callable[[Entry, int], Reading], longest_ns: float
) -> tuple[Reading, int]:
    """Take a reading, and repeat it while it is throttled or interrupted, unless it is longer than `longest_ns`.

    Returns it and the number of readings discarded under throttling.
    """
    taken = discarded = 0
    while True:
        try:
            reading = take(entry, number)
        except Ended:
            raise
        except BaseException as error:  # a variant may raise SystemExit
            raise SampleFailed(entry.cell) from error
        if not (reading.throttled or reading.interrupted) or taken == RETRIES or reading.duration_ns > longest_ns:
            return reading.without_others(), discarded
        taken, discarded = taken + 1, discarded + reading.throttled
