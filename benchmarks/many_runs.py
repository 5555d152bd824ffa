"""How long a page of the dashboard takes beside thousands of runs: `python -m benchmarks.many_runs [RUNS]`.

It makes a folder of small runs of two workloads on three devices, and prints seconds: of the first list of them, of a list that
nothing has changed, of `warpladder runs`, which has the index that the first list wrote, of the first draw of a page, and of the clicks
after it. The seconds of this process's processor tell more than those of the clock where other work shares the machine.
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import lead
from tests.synthetic import made_runs
from warpladder.dashboard import server
from warpladder.data import store

PAGES = ("home", "ladder", "sizes", "trends", "compare", "trust")


def make(folder: Path, runs: int) -> None:
    """Write that many runs. Their tables but `run` are links to those of a few."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        first = [
            made_runs.write(Path(beside), f"{workload}{number}", rounds=8, workloads=(workload,))
            for workload in ("conv2d", "tensor_transpose")
            for number in range(2)
        ]
        rows = [pq.read_table(run / "run.parquet") for run in first]
        for number in range(runs):
            model, row = first[number % len(first)], rows[number % len(first)]
            path = folder / f"r{number:05}"
            path.mkdir()
            for file in model.glob("*.parquet"):
                if file.name != "run.parquet":
                    os.link(file, path / file.name)
            started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
            for name, value in (
                ("run_id", path.name),
                ("label", f"run {number}"),
                ("started_at", started),
                ("device_name", f"GPU {number % 3}"),
            ):
                place = row.column_names.index(name)
                row = row.set_column(place, row.schema.field(place), pa.array([value], row.schema.field(place).type))
            pq.write_table(row, path / "run.parquet")


def main(runs: int = 10_000) -> None:
    """Make the runs, and print what each step takes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        folder.mkdir()
        make(folder, runs)
        measure(folder)


def measure(folder: Path) -> None:
    """Print what each step takes with the runs of a folder."""
    store.LOCAL = store.RECORDED = folder.parent / "none"  # type: ignore[misc]
    os.environ["WARPLADDER_DATA_DIR"] = str(folder)
    told("first list", lambda: store.list_runs([folder]))
    told("list again", lambda: store.list_runs([folder]))
    command = [sys.executable, "-m", "warpladder", "runs", "--data-dir", str(folder)]
    told("warpladder runs", lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    for page in PAGES:
        app = AppTest.from_file(str(server.APP), default_timeout=600)
        if page != "home":
            lead(app, page)
        told(f"{page}: first draw", app.run)
        for _ in range(2):
            told(f"{page}: click", app.run)


def told(name: str, step: object) -> None:
    begin, used = time.perf_counter(), processor_s()
    step()  # type: ignore[operator]
    print(f"{name:24} {time.perf_counter() - begin:8.3f} s, {processor_s() - used:8.3f} s of the processor", flush=True)


def processor_s() -> float:
    """Seconds of the processor that this process and its children have used."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
