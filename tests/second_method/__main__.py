"""Recomputes the totals of pages of traces by a second method: python -m tests.second_method [--all] TRACE...

Each trace of PyTorch's profiler is imported by itself and as a job of one rank; a folder is a job. What Transfers, API & kernels,
Operators, Ranks and Critical path print is compared with `second_method`. The table has the totals of each trace and what differs;
with `--all` every figure. The exit code is 1 if any differs.
"""

import argparse
import math
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
from click.testing import CliRunner

from tests import second_method as second
from tests.second_method import Totals
from warpladder.__main__ import command
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.time.calls import query as calls
from warpladder.data import store

#: Table of `nsys stats` on API & kernels -> columns that are compared, with their words in `second_method`, and the column of the name.
_OF_STATS: Final = {
    "cuda_gpu_kern_sum": ({"Total Time (ns)": "ns", "Instances": "count"}, "Name"),
    "cuda_api_sum": ({"Total Time (ns)": "ns", "Num Calls": "count"}, "Name"),
    "cuda_gpu_mem_time_sum": ({"Total Time (ns)": "ns", "Count": "count"}, "Operation"),
    "cuda_gpu_mem_size_sum": ({"Total (MB)": "MB"}, "Operation"),
    "nvtx_sum": ({"Total Time (ns)": "ns", "Instances": "count"}, "Range"),
    "nvtx_gpu_proj_sum": ({"Total Proj Time (ns)": "ns"}, "Range"),
}
#: Table of `export` -> the columns whose texts name a row. All columns that `second_method` knows are compared.
_EXPORTED: Final = {
    "transfers": ("kind", "host_memory"),
    "transfer-stages": ("variant",),
    "operators-name": ("operator",),
    "ranks-breakdown": ("rank",),
    "ranks-over-iterations": ("rank", "iteration"),
    "job-kernels-all-iterations": ("name",),
}
_KINDS: Final = {text: kind for kind, text in calls.OPERATIONS.items()}
#: Shares are float64; times are whole nanoseconds.
_RELATIVE: Final = 1e-12


class Row(NamedTuple):
    """A figure of a page: what the page prints, and what the second method gives. None where there is no such row, or no figure.

    `why` is the reason for a difference that is right.
    """

    trace: str
    page: str
    row: str
    column: str
    ours: float | None
    second: float | None
    why: str = ""

    @property
    def difference(self) -> float:
        """Ours less the second method's; NaN where only one of them has a figure."""
        if self.ours is None or self.second is None:
            return 0.0 if self.ours is self.second else math.nan
        return self.ours - self.second

    @property
    def differs(self) -> bool:
        return not self.why and not abs(self.difference) <= _RELATIVE * abs(self.second or 0)


def rows_of(path: Path, folder: Path) -> Iterator[Row]:
    """Every figure of a trace or of a folder of traces, imported into a folder."""
    files = sorted(each for each in path.rglob("*.json*") if each.is_file()) if path.is_dir() else [path]
    read = [second.read(file) for file in files]
    traces = {place if trace.rank is None else trace.rank: trace for place, trace in enumerate(read)}
    if not path.is_dir():
        (trace,) = traces.values()
        ours = _of_trace(path, folder)
        yield from _compared(path.name, ours, {**second.transfers(trace), **second.sums(trace), **second.operators(trace)})
        averaged = path.with_name(f"{path.name.split('.json')[0]}.sums.json")
        if averaged.exists():
            theirs, why = second.averages(averaged, ours)
            ours = {("key_averages", *key[1:]): value for key, value in ours.items() if key[0] == "operators-name"}
            yield from (row._replace(why=why.get(row[1:4], "")) for row in _compared(path.name, ours, theirs))
    job = folder / "job"
    job.mkdir()
    for rank, file in zip(traces, files, strict=True):
        shutil.copy(file, job / f"rank-{rank}{''.join(file.suffixes[-2 if file.suffix == '.gz' else -1 :])}")
    yield from _compared(path.name, _of_job(job, folder), second.job(traces))


def _compared(trace: str, ours: Totals, theirs: Totals) -> Iterator[Row]:
    """Figures side by side: all columns that the second method knows, of each row that either has."""
    known = {(page, column) for page, _, column in theirs}
    ours, theirs = _with_symbols_together(ours, theirs)
    for page, row, column in sorted(ours.keys() | theirs.keys()):
        if (page, column) in known:
            yield Row(trace, page, row, column, ours.get((page, row, column)), theirs.get((page, row, column)))


def _with_symbols_together(ours: Totals, theirs: Totals) -> tuple[Totals, Totals]:
    """The figures with kernels whose names the trace has as symbols, such as `_ZN7ck_tile…`, in one row, since pages have their C++ names."""
    together: tuple[Totals, Totals] = dict(ours), dict(theirs)
    symbols = [key for key in theirs.keys() - ours.keys() if "_Z" in key[1]]
    pages = {key[0] for key in symbols}
    for side, keys in zip(together, ([key for key in ours.keys() - theirs.keys() if key[0] in pages], symbols), strict=True):
        for key in keys:
            row = key[0], "all kernels with symbols for names", key[2]
            side[row] = (side.get(row) or 0) + (side.pop(key) or 0)
    return together


def _of_trace(path: Path, folder: Path) -> Totals:
    """What the pages of a trace print."""
    run = store.open_run(folder / "runs" / _run("import", str(path), "--data-dir", str(folder / "runs")).split()[-1])
    data = run_data.load(run)
    return {**_exported(data), **_of_stats(data)}


def _of_job(job: Path, folder: Path) -> Totals:
    """What the pages of a job print."""
    words = ("import", "--job", str(job), "--workers", "1", "--data-dir", str(folder / "jobs"))
    data = run_data.load(store.open_run(folder / "jobs" / _run(*words).split()[-1]))
    found = _exported(data)
    for row in ranks.idle_by_stream(data).to_dict("records"):
        where = " ".join(str(row[name]) for name in ("device", "stream") if not pd.isna(row.get(name)))
        found |= {("idle-by-stream", where, str(column)): _number(value) for column, value in row.items()}
    return found


def _exported(data: RunData) -> Totals:
    """The figures of the tables that `export` writes."""
    found: Totals = {}
    for chart in charts_of(data):
        frame = chart.data
        if chart.name == "critical-path":
            found[chart.name, "all segments", "ns"] = int((frame["end_ns"] - frame["start_ns"]).sum())
            found[chart.name, "from start to end", "ns"] = int(frame["end_ns"].max() - frame["start_ns"].min())
        for row in frame.to_dict("records") if chart.name in _EXPORTED else []:
            keys = _EXPORTED[chart.name]
            text = " ".join(str(row[key]) for key in keys if not pd.isna(row[key]))
            found |= {(chart.name, text.strip(), str(column)): _number(row[column]) for column in row if column not in keys}
    return found


def _of_stats(data: RunData) -> Totals:
    """The tables of `nsys stats`, whole."""
    found: Totals = {}
    for name in set(calls.available(data)) & _OF_STATS.keys():
        columns, key = _OF_STATS[name]
        for row in calls.summary(data, name).to_dict("records"):
            for column, word in columns.items():
                found[name, _KINDS.get(row[key], row[key]), word] = _number(row[column])
    if "nvtx_kern_sum" in calls.available(data):
        for row in calls.summary(data, "nvtx_kern_sum").to_dict("records"):
            text = f"{'' if pd.isna(row['NVTX Range']) else row['NVTX Range']} > {row['Kernel Name']}".strip()
            found["nvtx_kern_sum", text, "ns"] = (found.get(("nvtx_kern_sum", text, "ns")) or 0) + row["Total Time (ns)"]
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, str) or pd.isna(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def _run(*words: str) -> str:
    """Run a command of the product, and return its output."""
    done = CliRunner().invoke(command(), list(words))
    if done.exit_code:
        raise SystemExit(f"warpladder {' '.join(words)}: {done.output}")
    return done.stdout


def totals(rows: Sequence[Row]) -> Iterator[Row]:
    """The sums of each page's columns, and each figure of the pages with few rows."""
    sums: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        sums[row.trace, row.page, row.column].append(row)
    for (trace, page, column), every in sums.items():
        ours, theirs = (
            sum(value for value in side if value is not None) for side in zip(*(each[4:6] for each in every), strict=True)
        )
        yield Row(trace, page, f"sum of {len(every)}", column, ours, theirs)


def main() -> int:
    """Print the table. Returns 1 if a figure differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="+", help="a trace, .json or .json.gz, or the folder of a job")
    parser.add_argument("--all", action="store_true", help="print every figure")
    arguments = parser.parse_args()
    differing = 0
    print(f"{'trace':24} {'page':22} {'row':28} {'column':16} {'ours':>16} {'second method':>16} {'difference':>12}")
    for path in arguments.trace:
        with tempfile.TemporaryDirectory() as folder:
            rows = list(rows_of(path, Path(folder)))
        differ = [row for row in rows if row.differs or row.why]
        differing += sum(row.differs for row in rows)
        for row in rows if arguments.all else [*totals(rows), *differ]:
            ours, theirs = ("-" if value is None else f"{value:.16g}" for value in (row.ours, row.second))
            print(
                f"{row.trace[:24]:24} {row.page:22} {row.row[:28]:28} {row.column:16} {ours:>16} {theirs:>16} {row.difference:>12.6g} {row.why}"
            )
        print(f"{path.name}: {len(rows)} figures, {sum(row.differs for row in rows)} differ", flush=True)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
