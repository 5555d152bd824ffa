"""Changes between two recordings, and the exit code that `warpladder compare` owes to each."""

from dataclasses import dataclass
from typing import Final

_FILE: Final = """
import numpy as np

import warpladder

bench = warpladder.Benchmark("planted", n=[400, 4000, 20000]{options})


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32){inputs}


@bench.reference
def reference(x):
    return {reference}


def work(x, out, times):
    for _ in range(times):
        np.multiply(x, x, out=out)
    out += np.float32(1)
    np.sqrt(out, out=out)


@bench.variant(baseline=True)
def base(x, out):
    work(x, out, 200)


@bench.variant
def other(x, out):
    work(x, out, 180)


@bench.variant
def third(x, out):
    work(x, out, 160)


{mine}
"""
_MINE: Final = "@bench.variant\ndef mine(x, out):\n    {}\n"
_EQUAL: Final = "work(x, out, 100 + 100)"


@dataclass(frozen=True)
class Gate:
    """A change of the variant `mine`, or of what is around it.

    Attributes:
        code: exit code that is owed, of `compare --fail-above 2%` and further arguments.
        mine: body of the variant after the change; None if it is gone.
        inputs, reference, options: after the change.
        rounds: most rounds of both recordings; None for the usual ones.
        arguments: further arguments of `compare`.
    """

    code: int
    mine: str | None = _EQUAL
    inputs: str = ""
    reference: str = "np.sqrt(x * x + 1)"
    options: str = ""
    rounds: int | None = None
    arguments: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        mine = _MINE.format(self.mine) if self.mine else ""
        return _FILE.format(mine=mine, inputs=self.inputs, reference=self.reference, options=self.options)


#: What every change is compared with.
BEFORE: Final = Gate(0, "work(x, out, 200)")
GATES: Final = {
    "same": BEFORE,
    "equal": Gate(0),
    "faster": Gate(0, "work(x, out, 120)"),
    "5 % slower": Gate(1, "work(x, out, 210)"),
    "10 % slower": Gate(1, "work(x, out, 220)"),
    "15 % slower at one size": Gate(1, "work(x, out, 230 if len(x) == 4000 else 200)"),
    "30 % slower": Gate(1, "work(x, out, 260)"),
    "wrong": Gate(1, "work(x, out, 200); out[7] += 1"),
    "raises": Gate(1, "raise ValueError('no')"),
    "removed": Gate(1, None),
    "other reference": Gate(1, reference="np.sqrt(x * x + 1) + 0 * x"),
    "other tolerance": Gate(1, options=", tolerance=0.2"),
    "other tolerance, allowed": Gate(0, options=", tolerance=0.2", arguments=("--allow", "tolerance")),
    "other inputs": Gate(0, inputs=" + 1"),
    "few rounds": Gate(3, rounds=4),
    "cannot show 0.01 %": Gate(3, arguments=("--detect", "0.01%")),
}
