"""The second examination: written from README.md and docs/ without a look at the checker.

A cheat: its problem (`problems.py`), why it is out of reach, if it is, and the text of `cheat`, which must not be faster than `honest`. A right
program: axes, options of the reference, and the text that defines `inputs`, `first` (also the reference unless `reference` is defined), `second` and
maybe `third`, each of which must be accepted.
"""

from benchmarks.examination.second import (
    clocks,
    kept_results,
    late_results,
    linear_algebra,
    networks,
    order_and_selection,
    parts_of_work,
    plans,
    sciences,
    slowed_neighbours,
)

CHEATS = late_results.CASES | kept_results.CASES | parts_of_work.CASES | slowed_neighbours.CASES | clocks.CASES
RIGHT = linear_algebra.CASES | order_and_selection.CASES | networks.CASES | sciences.CASES | plans.CASES
#: Before and after the text of a right program.
HEAD = """import numpy as np

import warpladder

bench = warpladder.Benchmark("case", {axes})
"""
TAIL = """
bench.inputs(inputs)
bench.reference({options})(globals().get("reference", first))
bench.variant(first, name="first", baseline=True)
bench.variant(second, name="second")
if "third" in globals():
    bench.variant(third, name="third")
"""
