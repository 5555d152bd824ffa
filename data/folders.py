"""The folders of runs. Importing this module loads nothing else."""

import os
from pathlib import Path
from typing import Final

from warpladder.installation import IS_CHECKOUT, ROOT


def _user_data() -> Path:
    """Folder of a user's own data by the XDG Base Directory Specification: `$XDG_DATA_HOME`, or `~/.local/share`."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".local" / "share"


#: The runs that ship with the project.
RECORDED: Final = ROOT / "data" / "recorded"
#: The runs of this machine, where no other folder is named.
LOCAL: Final = ROOT / "data" / "local" if IS_CHECKOUT else _user_data() / "warpladder" / "runs"
