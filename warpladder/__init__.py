"""Which variant of a GPU kernel wins, where, by how much, why, and how far it is from what the hardware can do.

The rooms `workloads`, `collectors`, `data` and `dashboard` are its subpackages. In a checkout they are links to the folders at its top level.
`ideas`, a link to docs/kernels, has the pages about ideas that the dashboard shows.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from warpladder.comparing import compare_functions as compare_functions
    from warpladder.dashboard.session.run import Run as Run
    from warpladder.session import open_run as open_run
    from warpladder.session import record as record
    from warpladder.session import runs as runs
    from warpladder.workloads.functions.benchmark import Benchmark as Benchmark

__version__ = "0.1.0"

_HERE: Final = Path(__file__).resolve().parent
#: Folder that holds the rooms: the checkout, or the installed package.
ROOT: Final = (_HERE / "data").resolve().parent
#: Folder that `import warpladder` finds the package in. Child processes start there.
IMPORT_ROOT: Final = _HERE.parent
#: Whether this is a checkout, and not an installed package.
IS_CHECKOUT: Final = ROOT != _HERE


def how_to_install(extra: str) -> str:
    """The pip command for an extra of the package, such as `gpu`. A checkout has a requirement file for each."""
    return f"pip install -r requirements-{extra}.txt" if IS_CHECKOUT else f"pip install 'warpladder[{extra}]'"


#: What Python finds here at its first use, in the module named: commands that need none of it stay fast.
_LATER: Final = {
    "Benchmark": "warpladder.workloads.functions.benchmark",
    "compare_functions": "warpladder.comparing",
    "Run": "warpladder.dashboard.session.run",
    **dict.fromkeys(("open_run", "record", "runs"), "warpladder.session"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
