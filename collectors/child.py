"""Where child processes begin. Each is told the name of its collector, and hands down what belongs to it.

`python -m warpladder.collectors.child rank COLLECTOR` is one rank; `python -m warpladder.collectors.child compile COUNT` compiles in so many processes.
"""

import sys
from collections.abc import Sequence


def measure(connection: int, progress: int, collector: str, modules: Sequence[str] = ()) -> None:
    """Measure what the recorder asks for; see `warpladder.collectors.core.worker.main`."""
    from warpladder.collectors.core import worker
    from warpladder.collectors.wiring import collector_of

    worker.main(connection, progress, collector_of(collector), modules)


def rank(collector: str) -> None:
    """Be one of the ranks that share cases; see `warpladder.collectors.ranks.ranks`."""
    from warpladder.collectors.ranks import ranks
    from warpladder.collectors.wiring import collector_of

    ranks.main(collector_of(collector))
    ranks.end()


def compile_ahead(workers: str) -> None:
    """Compile what is told on the input; see `warpladder.collectors.cuda.compile_ahead`."""
    from warpladder.collectors.cuda import compile_ahead
    from warpladder.collectors.wiring import benches

    compile_ahead.main(int(workers), benches)


if __name__ == "__main__":
    {"rank": rank, "compile": compile_ahead}[sys.argv[1]](sys.argv[2])
