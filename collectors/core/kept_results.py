"""Finds variants that keep results: their samples are faster than an execution on inputs that they have not seen.

Timed executions read a few input sets over and over. A variant may recognise a set, by a few of its elements or by all, and give the
outputs that it kept. They are right, so that only its time tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from warpladder.collectors.core.bench import Bench, Operation, Pass
from warpladder.collectors.core.verdicts import Cell

#: A cell keeps results if it is slower with each of so many new input sets, and fewer if one is not slower.
TRIES: Final = 4
#: It is slower if it takes so many times as long as the samples, and so many nanoseconds more: single executions scatter.
_FACTOR: Final = 1.5
_LEAST_NS: Final = 5_000


@dataclass
class Suspect:
    """A cell whose samples are compared with executions on new inputs.

    Attributes:
        how: the pass of the samples.
        seen_ns: durations of its samples.
        new_ns: durations of its executions on new inputs.
    """

    cell: Cell
    operation: Operation
    how: Pass
    seen_ns: Sequence[int]
    new_ns: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The finding."""
        new_us, seen_us = (median(each) / 1e3 for each in (self.new_ns, self.seen_ns))
        return (
            f"{self.how.scope} {self.how.cache}: takes {new_us:.3g} us for inputs that it has not seen, and {seen_us:.3g} us for those "
            "that it has: it keeps results"
        )


def is_slower(suspect: Suspect, bench: Bench, seed: int) -> bool:
    """Execute a cell once on the inputs that the bench has loaded, and if that is slower than its samples, take one more sample.

    Args:
        seed: chooses the input set of the sample.

    Returns:
        whether the execution is slower than both. The sample is taken at the same time, so that a machine that became slower does not
        count.
    """
    bench.draw(suspect.operation, None)
    new_ns = bench.sample(suspect.operation, suspect.how, None).duration_ns
    bench.release()
    if not _is_slower(new_ns, median(suspect.seen_ns)):
        return False
    bench.draw(suspect.operation, seed)
    seen_ns = bench.sample(suspect.operation, suspect.how, seed).duration_ns
    bench.release()
    suspect.new_ns.append(new_ns)
    return _is_slower(new_ns, seen_ns)


def _is_slower(duration_ns: float, other_ns: float) -> bool:
    return duration_ns > max(_FACTOR * other_ns, other_ns + _LEAST_NS)
