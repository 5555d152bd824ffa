"""The public `Benchmark`: the one of the workloads, which can also be recorded. No room imports this module."""

from warpladder import api
from warpladder.workloads.declare.functions import benchmark


class Benchmark(benchmark.Benchmark):
    __doc__ = benchmark.Benchmark.__doc__

    record = api.record
