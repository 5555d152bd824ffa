"""The command that records a workload once more as a run did."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from warpladder.data import store

#: The options of `record` that say what is measured and how. `--if-none`, `--label` and `--format` are of one recording alone.
_KEPT: Final = (
    "--set",
    "--case",
    "--axis",
    "--variants",
    "--collector",
    "--gpus",
    "--ranks",
    "--launcher",
    "--launcher-args",
)
#: Options of older versions, and what they are now: `--workload FILE` is the file alone.
_NOW: Final = {"--cases": "--set"}
_FILE: Final = "--workload"
_KEPT_TOO: Final = ("--seed", "--max-rounds", "--seconds", "--processes")


def record_again(info: Mapping[str, Any], workload: str, folder: Path) -> str:
    """The command line that records the same cells into the folder of the run, or of a shipped run into the folder of one's own runs.

    Args:
        info: the row of table `run`.
        folder: of the run.
    """
    try:
        words = shlex.split(str(info["command"]))
    except ValueError:
        words = []
    start = words.index("record") + 1 if "record" in words else len(words)
    options = [place for place in range(start, len(words)) if words[place].startswith("--")]
    named = words[start : options[0] if options else len(words)]
    named += [words[place + 1] for place in options if words[place] == _FILE and place + 1 < len(words)]
    words = [_NOW.get(word, word) for word in words]
    kept = [word for place in options if words[place] in (*_KEPT, *_KEPT_TOO) for word in words[place : place + 2]]
    parent = folder.parent.resolve()
    where = [] if parent in (store.LOCAL.resolve(), store.RECORDED.resolve()) else ["--data-dir", str(parent)]
    return shlex.join(["warpladder", "record", *(named or [workload]), *kept, *where])
