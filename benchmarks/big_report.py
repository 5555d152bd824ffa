"""How long a report of millions of kernels takes to import, how much memory, and how long each summary of `nsys stats` takes afterwards.

    python -m benchmarks.big_report [SMALL.sqlite] [--kernels 5000000] [--folder FOLDER]

SMALL.sqlite is a SQLite export with kernels, calls and ranges, by default one of the fixtures; it is repeated, shifted in time and in
correlation id, until it has that many kernels. Each summary runs in fresh processes, which have imported their libraries and read
nothing yet: seconds are the median of three, from there to the finished table. About 1.5 GB of disk are used meanwhile in FOLDER, by
default the system's folder for temporary files, and freed.

Measured on two cores of an AMD EPYC, of a real report of 3,689 kernels, 7,417 calls and 786 ranges, 1,356 times over (5.0 million kernels,
10.1 million calls, 1.1 million ranges), first with the machine to itself, then while other programs kept both cores busy:

    import                  15.9 s, 1.24 GB    20.0 s at a load of 3, 74 s at a load of 9
    cuda_gpu_kern_sum        0.2 s             0.3 s
    cuda_api_sum             0.3 s             0.4 s
    cuda_gpu_mem_time_sum    0.02 s            0.02 s
    cuda_gpu_mem_size_sum    0.02 s            0.03 s
    nvtx_sum                 0.1 s             0.1 s
    nvtx_gpu_proj_sum        0.4 s, 0.6 GB     0.5 to 1.3 s
    nvtx_kern_sum            0.8 s, 0.6 GB     1.1 to 1.9 s
"""

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.data import store

ROOT: Final = Path(__file__).resolve().parent.parent
SMALL: Final = ROOT / "tests" / "fixtures" / "nsight-systems-2023.4" / "nested" / "report.sqlite"
KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
CALL: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
#: Columns that differ from copy to copy, and by what.
SHIFTS: Final = {"start": "period", "end": "period", "correlationId": "ids", "gridId": "ids"}
GAP_NS: Final = 1_000_000
REPEATS: Final = 3
GOAL_IMPORT_S, GOAL_IMPORT_GB, GOAL_SUMMARY_S = 20.0, 1.5, 1.0


class Measured(NamedTuple):
    """A process that has ended: wall time, CPU time, the most memory that it held, and what it printed."""

    seconds: float
    cpu_s: float
    gb: float
    output: str


def main(arguments: Sequence[str]) -> None:
    """Make the report, import it, and print what was measured beside what is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("small", nargs="?", type=Path, default=SMALL, help="a small SQLite export of Nsight Systems")
    parser.add_argument("--kernels", type=int, default=5_000_000, help="how many kernels the big report has at least")
    parser.add_argument("--folder", type=Path, help="where the big report and its run are written meanwhile")
    parser.add_argument("--summary", nargs=2, metavar=("RUN", "NAME"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.summary:
        print(seconds_of(Path(chosen.summary[0]), chosen.summary[1]))
        return
    with tempfile.TemporaryDirectory(prefix="warpladder-", dir=chosen.folder) as folder:
        big = Path(folder) / "big.sqlite"
        try:
            rows = enlarge(chosen.small, big, chosen.kernels)
        except (sqlite3.Error, ValueError) as error:
            parser.error(f"{chosen.small.name}: {error}; name a SQLite export with kernels and API calls")
        print(f"{rows[KERNEL]:,} kernels, {rows[CALL]:,} API calls, {rows.get('NVTX_EVENTS', 0):,} NVTX events, "
              f"{big.stat().st_size / 1e6:,.0f} MB")  # fmt: skip
        imported = measure("warpladder", "import", str(big), "--data-dir", folder)
        print(f"{'import':24}{imported.seconds:6.2f} s (goal {GOAL_IMPORT_S}), {imported.gb:.2f} GB (goal {GOAL_IMPORT_GB})")
        run = Path(folder) / imported.output.split()[-1]
        for name in trace_sums.available(load(store.open_run(run))):
            taken = [measure("benchmarks.big_report", "--summary", str(run), name) for _ in range(REPEATS)]
            seconds, gb = statistics.median(float(each.output) for each in taken), max(each.gb for each in taken)
            print(f"{name:24}{seconds:6.2f} s (goal {GOAL_SUMMARY_S}), {gb:.2f} GB")


def enlarge(small: Path, big: Path, kernels: int) -> dict[str, int]:
    """Repeats a report until it has so many kernels; each copy is later than the one before and has correlation ids of its own.

    Returns:
        Rows of each table that was repeated.

    Raises:
        sqlite3.Error: it is not a SQLite file, or lacks the tables of kernels or calls.
        ValueError: it has no kernels.
    """
    # The file is opened read-only; `attach` alone would make a missing one.
    with closing(sqlite3.connect(f"file:{big}", uri=True)) as database:
        database.executescript("pragma journal_mode = off; pragma synchronous = off")
        database.execute("attach ? as small", (f"file:{small}?mode=ro",))
        tables = dict(database.execute("select name, sql from small.sqlite_master where type = 'table'").fetchall())
        found = database.execute(f"select count(*) from small.{KERNEL}").fetchone()[0]
        if not found:
            raise ValueError("has no kernels")
        for sql in tables.values():
            database.execute(sql)
        columns = {table: [row[1] for row in database.execute(f'pragma small.table_info("{table}")')] for table in tables}
        repeated = [table for table in tables if {"start", "end"} <= set(columns[table])]
        for table in tables.keys() - set(repeated):
            database.execute(f'insert into main."{table}" select * from small."{table}"')
        ends = [f'select min(start) low, max(coalesce("end", start)) high from small."{table}"' for table in repeated]
        low, high = database.execute(f"select min(low), max(high) from ({' union all '.join(ends)})").fetchone()
        shift = {
            "period": high - low + GAP_NS,
            "ids": database.execute(f"select max(correlationId) + 1 from small.{CALL}").fetchone()[0],
            "copies": -(-kernels // found),
        }
        rows = {}
        for table in repeated:
            picked = ", ".join(
                f'"{name}" + copy * :{SHIFTS[name]}' if name in SHIFTS else f'"{name}"' for name in columns[table]
            )
            database.execute(
                "with recursive copies(copy) as (select 0 union all select copy + 1 from copies where copy + 1 < :copies) "
                f'insert into main."{table}" select {picked} from copies cross join small."{table}"',
                shift,
            )
            rows[table] = database.execute(f'select count(*) from main."{table}"').fetchone()[0]
        database.commit()
        return rows


def seconds_of(run: Path, name: str) -> float:
    """Seconds that a summary takes in this process, which has not read the run's trace yet."""
    data = load(store.open_run(run))
    begin = time.perf_counter()
    trace_sums.summary(data, name)
    return time.perf_counter() - begin


def measure(module: str, *arguments: str) -> Measured:
    """Runs a module of the project in a process of its own."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9, output)


if __name__ == "__main__":
    main(sys.argv[1:])
