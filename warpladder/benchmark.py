"""The public `Benchmark`: the one of the workloads, which can also be recorded. No room imports this module."""

from typing import TYPE_CHECKING, Any

from warpladder.workloads.functions import benchmark

if TYPE_CHECKING:
    from warpladder.dashboard.run.run import Run


class Benchmark(benchmark.Benchmark):
    __doc__ = benchmark.Benchmark.__doc__

    def record(self, **options: Any) -> "Run":
        """Verify and measure every variant, and open the run. Options and exceptions are the same as for `warpladder.record`."""
        from warpladder.api import record

        return record(self, **options)
