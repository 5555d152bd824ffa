"""Opens and exports runs that are damaged at random: `python -m tests.fuzz.damaged_runs [RUNS] [SEED]`.

`tests.damage` has the damages that a reader could think of; these are bytes that change, files that end early, and files that are
replaced. A run passes when it is refused with one line that names it, or opens and is drawn, within 60 seconds, and the good run beside
it stays in the list.
"""

import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tests import damage
from tests.open_damaged import draw, found

_HANGS_S: Final = 60.0


def hurt(run: Path, seed: int) -> str:
    """Damage a run. Returns what was done."""
    draws = random.Random(seed)
    files = sorted(run.glob("*.parquet"))
    done = []
    for _ in range(draws.choice([1, 1, 1, 2, 5])):
        file = draws.choice(files)
        how = draws.choice(["bytes", "bytes", "footer", "cut", "grown", "swapped", "empty", "fifo", "link", "folder", "gone"])
        done.append(f"{how} {file.stem}")
        data = bytearray(file.read_bytes()) if file.is_file() else bytearray()
        if how == "bytes":
            for _ in range(draws.choice([1, 3, 30, 300])):
                if data:
                    data[draws.randrange(len(data))] = draws.randrange(256)
        elif how == "footer":
            for _ in range(draws.choice([1, 3, 30])):
                if len(data) > 8:
                    data[-draws.randrange(5, min(len(data), 2000))] = draws.randrange(256)
        elif how == "cut":
            data = data[: draws.randrange(len(data) + 1)]
        elif how == "grown":
            data += draws.randbytes(draws.randrange(1, 5000))
        elif how == "swapped":
            other = draws.choice(files)
            data = bytearray(other.read_bytes()) if other.is_file() else data
        elif how == "empty":
            data.clear()
        shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
        if how == "fifo":
            os.mkfifo(file)
        elif how == "link":
            file.symlink_to(draws.choice([file.name, "/dev/zero", "/dev/null", "absent"]))
        elif how == "folder":
            file.mkdir()
        elif how != "gone":
            file.write_bytes(data)
    return ", ".join(done)


def attempt(folder: Path, said: Connection) -> None:
    """Try the run `bad`, and send what was wrong, or nothing."""
    warnings.simplefilter("ignore")
    try:
        run = found(folder, damage.Damage("at random", "", lambda _: None, refused=False))
        if run is not None:
            draw(run)
        said.send("drawn" if run is not None else "refused")
    except Exception:
        said.send(f"wrong: {traceback.format_exc()[-600:]}")


def main(runs: float = 200, seed: float = 0) -> int:
    """Try that many runs, and print what is wrong with any. Returns 1 where something is."""
    begin, count = time.monotonic(), {"drawn": 0, "refused": 0, "wrong": 0}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.open_damaged"])  # which takes seconds to import
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        damage.write_whole(folder, "good")
        for number in range(int(runs)):
            shutil.rmtree(folder / "bad", ignore_errors=True)
            what = hurt(damage.copy_of(folder / "good", "bad"), int(seed) * 1_000_000 + number)
            here, there = context.Pipe()
            process = context.Process(target=attempt, args=(folder, there))
            process.start()
            there.close()
            try:
                said = str(here.recv()) if here.poll(_HANGS_S) else "wrong: hangs"
            except EOFError:
                said = f"wrong: the process died ({process.exitcode})"
            process.kill()
            process.join()
            count[said.partition(":")[0]] += 1
            if said.startswith("wrong"):
                print(f"{number} {what}: {said}", flush=True)
    told = ", ".join(f"{each} {name}" for name, each in count.items())
    print(f"{int(runs)} damaged runs in {time.monotonic() - begin:.0f} s: {told}")
    return int(count["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
