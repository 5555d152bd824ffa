"""Commands in processes of their own, forked from one that has imported what they need: to import it takes longer than most commands do."""

import atexit
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_TIMEOUT_S: Final = 120.0
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["warpladder.__main__", "warpladder.recording", "warpladder.commands.ending"])


def warpladder(*words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """What `python -m warpladder` with these words does in a folder: its exit code, stdout and stderr. `env`: in place of the environment."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _FORKS.Process(target=_run, args=(words, str(cwd), dict(os.environ if env is None else env), out, err))
        process.start()
        process.join(_TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(words, _TIMEOUT_S, out.read_bytes(), err.read_bytes())
        return subprocess.CompletedProcess(words, process.exitcode, out.read_text(), err.read_text())


def _run(words: tuple[str, ...], cwd: str, env: Mapping[str, str], out: Path, err: Path) -> None:
    """In the new process."""
    for number, file in ((1, out), (2, err)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:] = [cwd, *(each for each in sys.path if each not in ("", str(ROOT))), str(ROOT)]
    sys.argv[:] = ["warpladder", *words]
    from warpladder.__main__ import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()
