"""Ready comparisons, for `compare=` of `Benchmark.reference` and `compare_functions`: `warpladder.compare.order_of("x")`."""

from warpladder.workloads.declare.functions.comparisons import (
    Comparison,
    allclose,
    any_order,
    bins,
    off_by,
    order_of,
    up_to_sign,
)

__all__ = ["Comparison", "allclose", "any_order", "bins", "off_by", "order_of", "up_to_sign"]
