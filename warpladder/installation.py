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


def how_to_install(extra: str) -> str:
    """The pip command for an extra of the package, such as `gpu`. A checkout has a requirement file for each."""
    return f"pip install -r requirements-{extra}.txt" if IS_CHECKOUT else f"pip install 'warpladder[{extra}]'"
