"""Finds variants that keep results, which makes their samples faster than an execution on inputs that they have not seen.

Timed executions read a few input sets over and over. A variant may recognise a set, by a few of its elements or by all, and give the
outputs that it kept. They are right, so that only its time tells. It is compared with the times of executions whose inputs are altered (see
`verify.altered`), and of executions on new inputs.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

import numpy as np

from warpladder.collectors.core.bench import Bench, Operation, Pass
from warpladder.collectors.core.cells import Cell

#: A cell keeps results if it takes so many times as long with altered inputs.
FACTOR: Final = 1.15
#: Standard deviations of the rank sum: of the samples, for a suspicion, and of `PAIRS` further pairs of executions, for proof.
_SUSPICIOUS: Final = 1.5
_PROVEN: Final = 3.3
PAIRS: Final = 12


@dataclass
class Durations:
    """Durations of a cell in one pass, in ns, with the inputs of the sets and with altered ones."""

    usual: list[int] = field(default_factory=list)
    altered: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times as long it takes with altered inputs; NaN where this is not known."""
        return median(self.altered) / max(median(self.usual), 1) if self.altered and self.usual else math.nan

    def is_longer(self, deviations: float, others: Sequence[float]) -> bool:
        """Whether it takes longer with altered inputs, and by more than all of the others do.

        Args:
            deviations: standard deviations of the rank sum beyond which the difference is not by chance.
            others: ratios of the other cells of the case.
        """
        least = max(1.0, min((each for each in others if not math.isnan(each)), default=1.0))
        return self.ratio >= FACTOR * least and _deviations(self.altered, self.usual) >= deviations

    @property
    def is_suspicious(self) -> bool:
        return self.is_longer(_SUSPICIOUS, ())

    def proves(self, others: Sequence[float]) -> bool:
        """Whether these pairs prove what the samples made suspicious."""
        return self.is_longer(_PROVEN, others)

    def text(self, timing: str) -> str:
        """The finding."""
        new, usual = (f"{float(f'{median(each) / 1e3:.3g}'):,g} us" for each in (self.altered, self.usual))
        return (
            f"{timing}: takes {new} where the inputs differ in their last digits from those that other code has seen, and {usual} for "
            "those: it keeps results, or finds kept ones"
        )


def _deviations(larger: Sequence[int], others: Sequence[int]) -> float:
    """Mann and Whitney's statistic: by how many standard deviations the first numbers rank above the others."""
    counts = np.sign(np.subtract.outer(np.asarray(larger, float), np.asarray(others, float)))
    m, n = counts.shape
    return float(counts.sum() / 2 / math.sqrt(m * n * (m + n + 1) / 12))


# -- new inputs -----------------------------------------------------------------------------------------------------------------

#: A cell keeps results if it is slower with so many new input sets, before it is not slower with more than so many.
HITS: Final = 4
MISSES: Final = 1
#: So many times the machine may be slower right before the new inputs, or right after, too; then the cell is left alone.
SLOW_SPELLS: Final = 6
#: It is slower if it takes so many times as long as the samples, and so many nanoseconds more: single executions scatter.
_FACTOR: Final = 2.0
_LEAST_NS: Final = 5_000
#: A cell keeps a part of its results if many new input sets take a little longer than the slowest one that it has seen. Shorter cells are left
#: alone: a processor learns the branches that a few small sets take. Of nine functions that sort, search and select in NumPy and Python, new
#: numbers took up to 1.4 times as long below 0.1 ms, and at most 1.06 times above 0.3 ms.
_LEAST_FOR_A_PART_NS: Final = 500_000
#: Pairs after which a cell that is not slower is left alone.
_FEW_PAIRS: Final = 3


@dataclass
class Suspect:
    """A cell whose samples are compared with executions on new inputs.

    Attributes:
        is_doubted: whether an execution on new inputs was slower than the samples. From then on each is compared with one before and one after.
        new_ns: durations of the executions on new inputs that were slower than these too.
        misses_ns: durations of the executions on new inputs that were not slower.
        slow_spells: number of those in which the machine itself may have been slower.
    """

    cell: Cell
    operation: Operation
    how: Pass
    seen_ns: Sequence[int]
    is_doubted: bool = False
    new_ns: list[int] = field(default_factory=list)
    misses_ns: list[int] = field(default_factory=list)
    slow_spells: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether no more executions are needed."""
        return len(self.misses_ns) > MISSES or self.slow_spells >= SLOW_SPELLS or self.keeps_results

    @property
    def keeps_results(self) -> bool:
        """Whether enough executions were slower."""
        return len(self.new_ns) >= HITS

    @property
    def may_keep_a_part(self) -> bool:
        """Whether all executions on new inputs were slower, though not by that much."""
        seen_ns = median(self.seen_ns)
        return (
            not self.keeps_results
            and seen_ns >= _LEAST_FOR_A_PART_NS
            and min(self.misses_ns, default=math.inf) >= FACTOR * seen_ns
        )

    @property
    def text(self) -> str:
        """The finding."""
        new, usual = (f"{float(f'{median(each) / 1e3:.3g}'):,g} us" for each in (self.new_ns, self.seen_ns))
        scope, cache = self.how.scope, self.how.cache
        return (
            f"{scope} {cache}: takes {new} for inputs that it has not seen, and {usual} for those that it has: it keeps results"
        )


@dataclass
class Pairs:
    """A cell's durations with input sets that it has seen, by their number, and with new ones, in turn.

    A set may be slow because of its numbers. So each new one is compared with the slowest of those that were seen.
    """

    suspect: Suspect
    seen_ns: defaultdict[int | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    new_ns: list[int] = field(default_factory=list)

    @property
    def is_settled(self) -> bool:
        """Whether no more pairs are needed."""
        return len(self.new_ns) >= PAIRS or (len(self.new_ns) >= _FEW_PAIRS and not self._of_all().ratio >= FACTOR)

    @property
    def cell(self) -> Cell:
        return self.suspect.cell

    @property
    def keeps_results(self) -> bool:
        """Whether new sets take longer."""
        slowest = max(self.seen_ns.values(), key=median, default=[])
        return len(self.new_ns) >= PAIRS and self._of_all().proves([]) and Durations(slowest, self.new_ns).ratio >= FACTOR

    @property
    def text(self) -> str:
        """The finding."""
        return replace(self.suspect, new_ns=self.new_ns, seen_ns=self._of_all().usual).text

    def _of_all(self) -> Durations:
        return Durations(list(itertools.chain(*self.seen_ns.values())), self.new_ns)


def time_new(suspect: Suspect, bench: Bench, inputs: Mapping[str, np.ndarray], seed: int) -> None:
    """Execute a cell once on new inputs, and note whether that is slower.

    It is slower if it takes longer than the cell's samples, and if it does so again on other new inputs, where it also takes longer than
    a sample right before and the faster one of two right after, so that a machine that is slower for a while does not count. Making the
    inputs slows what follows: its threads wait spinning, and its memory is in the caches. A sample that does not count takes the first
    of that.

    Args:
        inputs: that no variant has seen.
        seed: chooses the input sets of the samples.
    """
    if suspect.is_doubted:
        _sampled(suspect, bench, seed)
        before_ns = _sampled(suspect, bench, seed + 1)
    new_ns = time_once(suspect, bench, inputs)
    if not _is_slower(new_ns, median(suspect.seen_ns)):
        suspect.misses_ns.append(new_ns)
    elif not suspect.is_doubted:
        suspect.is_doubted = True
    elif _is_slower(new_ns, before_ns) and any(_is_slower(new_ns, _sampled(suspect, bench, seed + each)) for each in (2, 3)):
        suspect.new_ns.append(new_ns)
    else:
        suspect.slow_spells += 1


def time_once(suspect: Suspect, bench: Bench, inputs: Mapping[str, np.ndarray]) -> int:
    """Duration of one execution on these inputs."""
    bench.load(inputs)
    bench.draw(suspect.operation, None)
    return _sampled(suspect, bench, None)


def _sampled(suspect: Suspect, bench: Bench, seed: int | None) -> int:
    """Duration of one more sample; without a seed, of one execution on what is loaded."""
    if seed is not None:
        bench.draw(suspect.operation, seed)
    own_ns = bench.sample(suspect.operation, suspect.how, seed).own_ns
    bench.release()
    return own_ns


def _is_slower(duration_ns: float, other_ns: float) -> bool:
    return duration_ns > max(_FACTOR * other_ns, other_ns + _LEAST_NS)
