"""Where the package lies, and how to install more of it."""

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
#: Folder that holds the rooms: the checkout, or the installed package.
ROOT: Final = (_HERE / "data").resolve().parent
#: Folder that `import warpladder` finds the package in. Child processes start there.
IMPORT_ROOT: Final = _HERE.parent
#: Whether this is a checkout, and not an installed package.
IS_CHECKOUT: Final = ROOT != _HERE


#: Module -> the extra of the package that brings it, of modules that a command stops without.
_EXTRAS: Final = {
    **dict.fromkeys(("choreographer", "plotly", "streamlit"), "dashboard"),
    **dict.fromkeys(("cuda", "cupy"), "gpu"),
    "duckdb": "sql",
    "mcp": "mcp",
}
#: Module -> the package that has it, where their names differ.
_PACKAGES: Final = {"cuda": "cuda-bindings"}


def how_to_install(extra: str) -> str:
    """The pip command for an extra of the package, such as `gpu`. In a checkout, too, it adds to what is installed."""
    return f"pip install 'warpladder[{extra}]'"


def what_is_missing(error: ImportError) -> str:
    """The line about a package that is not there, or that another does not suit, with the command that installs it; else empty."""
    if str(error).startswith("pyarrow requires NumPy"):  # from 26 on, which no metadata of it tells
        return f"{error}; pip install 'pyarrow<26', or a newer NumPy"
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return ""
    return f"{_PACKAGES.get(module, module)} is not installed; {how_to_install(_EXTRAS[module])}"
