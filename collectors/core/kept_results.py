"""Finds variants that keep results: their samples are faster than an execution on inputs that they have not seen.

Timed executions read a few input sets over and over. A variant may recognise a set, by a few of its elements or by all, and give the
outputs that it kept. They are right, so that only its time tells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import numpy as np

from warpladder.collectors.core.bench import Bench, Operation, Pass
from warpladder.collectors.core.verdicts import Cell

#: A cell keeps results if it is slower with so many new input sets, before it is not slower with more than so many.
HITS: Final = 4
MISSES: Final = 1
#: So many times the machine may be slower before the new inputs and while they are read, but not after; then the cell is left alone.
SLOW_SPELLS: Final = 6
#: It is slower if it takes so many times as long as the samples, and so many nanoseconds more: single executions scatter.
_FACTOR: Final = 2.0
_LEAST_NS: Final = 5_000


@dataclass
class Suspect:
    """A cell whose samples are compared with executions on new inputs.

    Attributes:
        how: the pass of the samples.
        seen_ns: durations of its samples.
        new_ns: durations of its executions on new inputs that were slower.
        misses: number of those that were not.
        slow_spells: number of those in which the machine itself may have been slower.
    """

    cell: Cell
    operation: Operation
    how: Pass
    seen_ns: Sequence[int]
    new_ns: list[int] = field(default_factory=list)
    misses: int = 0
    slow_spells: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether no more executions are needed."""
        return self.misses > MISSES or self.slow_spells >= SLOW_SPELLS or self.keeps_results

    @property
    def keeps_results(self) -> bool:
        """Whether enough executions were slower."""
        return len(self.new_ns) >= HITS

    @property
    def text(self) -> str:
        """The finding."""
        new, seen = (f"{float(f'{median(each) / 1e3:.3g}'):,g} us" for each in (self.new_ns, self.seen_ns))
        scope, cache = self.how.scope, self.how.cache
        return (
            f"{scope} {cache}: takes {new} for inputs that it has not seen, and {seen} for those that it has: it keeps results"
        )


def time_new(suspect: Suspect, bench: Bench, inputs: Mapping[str, np.ndarray], seed: int) -> None:
    """Execute a cell once on new inputs, between samples on inputs that it has seen, and note whether that is slower.

    It is slower if it takes longer than the cell's samples, than one right before and than one right after, so that a machine that is slower
    for a while does not count. Making the inputs slows what follows: its threads wait spinning, and its memory is in the caches. A sample
    that does not count takes the first of that.

    Args:
        inputs: that no variant has seen.
        seed: chooses the input sets of the samples.
    """
    _sampled(suspect, bench, seed)
    before_ns = _sampled(suspect, bench, seed + 1)
    bench.load(inputs)
    bench.draw(suspect.operation, None)
    new_ns = _sampled(suspect, bench, None)
    if not _is_slower(new_ns, median(suspect.seen_ns)) or not _is_slower(new_ns, _sampled(suspect, bench, seed + 2)):
        suspect.misses += 1
    elif _is_slower(new_ns, before_ns):
        suspect.new_ns.append(new_ns)
    else:
        suspect.slow_spells += 1


def _sampled(suspect: Suspect, bench: Bench, seed: int | None) -> int:
    """Duration of one more sample; without a seed, of one execution on what is loaded."""
    if seed is not None:
        bench.draw(suspect.operation, seed)
    duration_ns = bench.sample(suspect.operation, suspect.how, seed).duration_ns
    bench.release()
    return duration_ns


def _is_slower(duration_ns: float, other_ns: float) -> bool:
    return duration_ns > max(_FACTOR * other_ns, other_ns + _LEAST_NS)
