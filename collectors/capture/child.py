"""Runs a program with its launches watched. The first argument says as JSON what is kept, and where; the others are the program's."""

import json
import re
import runpy
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpladder.collectors.capture import bench_file
from warpladder.collectors.capture.hooks import watch_all
from warpladder.collectors.capture.watch import Watch


def main() -> None:
    """Run the program, and write to the file `answer` what became of each kernel."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    program, folder = sys.argv[2], Path(request["folder"]).resolve()
    watch = Watch(re.compile(request["kernel"]), request["launch"], request["most_bytes"])
    watch_all(watch)
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(program).resolve().parent)
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # which may have ended the program
        answers = list(written(watch, folder, Path(program).name))
        Path(request["answer"]).write_text(json.dumps(answers))


def written(watch: Watch, folder: Path, program: str) -> Iterator[dict[str, Any]]:
    """Write each kernel into a folder of its own, and tell of each that was launched."""
    folders = dict[str, str]()
    for kernel in watch.kept:
        name = base = bench_file.folder_name(kernel.name)
        number = 1
        while name in folders.values():
            number += 1
            name = f"{base}_{number}"
        try:
            bench_file.write(kernel, folder / name, program)
        except OSError as error:
            shutil.rmtree(folder / name, ignore_errors=True)
            watch.refused[kernel.name] = f"{folder / name} cannot be written ({error.strerror})"
        else:
            folders[kernel.name] = name
    for name, launches in watch.counts.items():
        why = watch.refused.get(name, "" if name in folders else f"it was launched {launches} times, and not {watch.number}")
        yield {"kernel": name, "launches": launches, "folder": folders.get(name, ""), "why": why}


if __name__ == "__main__":
    main()
