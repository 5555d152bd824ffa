"""Entry points of child processes. Each gets the name of its collector.

`python -m warpladder.collectors.child rank COLLECTOR` runs one rank.
`python -m warpladder.collectors.child compile COUNT` compiles kernels in COUNT processes.
"""

import sys
from collections.abc import Sequence


def measure(connection: int, progress: int, collector: str, modules: Sequence[str] = ()) -> None:
    """Answer the recorder's questions; see `warpladder.collectors.core.worker.main`."""
    from warpladder.collectors.core import worker
    from warpladder.collectors.wiring import collector_of

    worker.main(connection, progress, collector_of(collector), modules)


def fork(requests: int, collector: str, modules: Sequence[str]) -> None:
    """Fork processes that measure; see `warpladder.collectors.core.zygote.main`."""
    from warpladder.collectors.core import children, worker, zygote
    from warpladder.collectors.wiring import collector_of

    def measuring(connection: int, progress: int) -> None:
        worker.main(connection, progress, collector_of(collector))

    def command(connection: int, progress: int) -> Sequence[str]:
        return children.measuring_command(connection, progress, collector, modules, sys.argv)

    zygote.main(requests, measuring, command)


def rank(collector: str) -> None:
    """Run one of the ranks that share cases; see `warpladder.collectors.ranks.ranks`."""
    from warpladder.collectors.ranks import ranks
    from warpladder.collectors.wiring import collector_of

    ranks.main(collector_of(collector))
    ranks.end()


def compile_ahead(workers: str) -> None:
    """Compile the jobs read from stdin; see `warpladder.collectors.cuda.compile_ahead`."""
    from warpladder.collectors.cuda import compile_ahead
    from warpladder.collectors.wiring import benches

    compile_ahead.main(int(workers), benches)


if __name__ == "__main__":
    {"rank": rank, "compile": compile_ahead}[sys.argv[1]](sys.argv[2])
