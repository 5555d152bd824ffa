"""Which variant of a GPU kernel wins, where, by how much, why, and how far it is from what the hardware can do.

The rooms `workloads`, `collectors`, `data` and `dashboard` are subpackages. In a checkout they are links to the folders at its top level.
`ideas`, a link to docs/kernels, has the pages about ideas that the dashboard shows.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from warpladder import compare
    from warpladder.api import open_run, record, runs
    from warpladder.benchmark import Benchmark
    from warpladder.comparing import compare_functions
    from warpladder.dashboard.run.run import Job, Run
    from warpladder.errors import Error

__all__ = ["Benchmark", "Error", "Job", "Run", "compare", "compare_functions", "open_run", "record", "runs"]
__version__ = "0.1.0"

#: What is imported when it is first used, and its module: commands that need none of it start fast.
_LATER: Final = {
    "Benchmark": "warpladder.benchmark",
    "compare": "warpladder",
    "compare_functions": "warpladder.comparing",
    "Error": "warpladder.errors",
    "Job": "warpladder.dashboard.run.run",
    "Run": "warpladder.dashboard.run.run",
    **dict.fromkeys(("open_run", "record", "runs"), "warpladder.api"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}") if _LATER[name] == __name__ else getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
