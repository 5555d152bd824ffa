"""The public `Benchmark`: the one of the workloads, which can also be recorded. No room imports this module."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpladder.workloads.declare.functions import benchmark

if TYPE_CHECKING:
    from warpladder.dashboard.run.run import Run


class Benchmark(benchmark.Benchmark):
    __doc__ = benchmark.Benchmark.__doc__

    def record(
        self,
        *,
        cases: str | Sequence[str] = "quick",
        axis: Mapping[str, Any] | None = None,
        variants: str | Sequence[str] = (),
        collector: str = "auto",
        label: str = "",
        data_dir: str | Path | None = None,
        seed: int = 0,
        max_rounds: int | None = None,
        seconds: float | None = None,
        processes: int | None = None,
        no_limit: bool = False,
    ) -> "Run":
        """Verify and measure every variant, and open the run. Arguments and exceptions are the same as for `warpladder.record`."""
        from warpladder.api import record

        return record(
            self,
            cases=cases,
            axis=axis,
            variants=variants,
            collector=collector,
            label=label,
            data_dir=data_dir,
            seed=seed,
            max_rounds=max_rounds,
            seconds=seconds,
            processes=processes,
            no_limit=no_limit,
        )
