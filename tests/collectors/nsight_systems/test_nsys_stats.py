"""The seven summaries of `nsys stats`, cell by cell as it prints them, of every capture that is stored with them.

A capture is a folder `tests/fixtures/nsight-systems-<version>/<capture>/` with `report.sqlite`, what `nsys stats --format csv` printed of
it as `<summary>.csv`, and `parquetdir/`, which is made of the first where it is not there.

2025.3 prints ranges of the default domain as `:text` and 2023.4 as `text`, and so do we; nothing else differs between their columns.
Their order decides between rows of one total by chance, so rows are compared in the order of what `nsys stats` sorts by, then of all.
"""

import csv
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.data.store import open_run

pytestmark = pytest.mark.slow

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
CAPTURES: Final = sorted(path.parent for path in FIXTURES.glob("nsight-systems-*/*/report.sqlite"))
SUMMARIES: Final = (
    *("cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum"),
    *("nvtx_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum"),
)
#: Columns that a newer version prints beside those of 2023.4, by version.
ADDED: Final[dict[str, set[str]]] = {"nsight-systems-2023.4": set(), "nsight-systems-2025.3": set()}
#: Columns that the page leaves out.
LEFT_OUT: Final = ("Avg Range Lvl", "Avg Num Child")
RANGE_HEADINGS: Final = ("Range", "NVTX Range")

Row = tuple[str, ...]


def parquet_of(report: Path, folder: Path) -> Path:
    """The tables of a SQLite report as `nsys export --type parquetdir` lays them out."""
    folder.mkdir()
    with closing(sqlite3.connect(f"file:{report}?mode=ro", uri=True)) as database:
        for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
            cursor = database.execute(f'select * from "{table}"')
            columns = list(zip(*cursor.fetchall(), strict=True))
            names = [column[0] for column in cursor.description]
            if columns:
                pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), folder / f"{table}.parquet")
    return folder


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], RunData]:
    """Imports a capture from one of its forms, once."""
    runs: dict[tuple[Path, str], RunData] = {}

    def get(capture: Path, form: str) -> RunData:
        if (capture, form) not in runs:
            folder = tmp_path_factory.mktemp("import")
            source = capture / "report.sqlite"
            if form == "parquetdir":
                source = capture / form if (capture / form).is_dir() else parquet_of(source, folder / form)
            runs[capture, form] = load(open_run(folder / import_report(source, folder, "", None, [])))
        return runs[capture, form]

    return get


def as_printed(heading: str, value: Any) -> str:
    """A cell as `nsys stats --format csv` prints it: sizes with three decimals, statistics with one, nothing for null."""
    if pd.isna(value):
        return ""
    if heading.endswith("(MB)"):
        return f"{value:.3f}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def sorted_by(summary: str, headings: list[str]) -> Callable[[Row], tuple[Any, ...]]:
    """What `nsys stats` sorts the rows of a summary by."""
    if summary == "nvtx_kern_sum":
        place = [headings.index(name) for name in ("NVTX Range", "PID", "TID", "Total Time (ns)")]
        return lambda row: (row[place[0]], *(int(row[each] or -1) for each in place[1:3]), -int(row[place[3]]))
    total = next(place for place, name in enumerate(headings) if name.startswith("Total"))
    return lambda row: (-float(row[total]),)


def stored(capture: Path, summary: str) -> tuple[list[str], list[Row]]:
    with (capture / f"{summary}.csv").open(newline="", encoding="utf-8") as file:
        headings, *rows = csv.reader(file)
    kept = [name for name in headings if name not in (*ADDED[capture.parent.name], *LEFT_OUT)]
    cells = [dict(zip(headings, row, strict=True)) for row in rows]
    if capture.parent.name == "nsight-systems-2025.3":
        cells = [
            {name: text.removeprefix(":") if name in RANGE_HEADINGS else text for name, text in row.items()} for row in cells
        ]
    return kept, [tuple(row[name] for name in kept) for row in cells]


def test_there_are_captures_of_both_versions() -> None:
    assert {capture.parent.name for capture in CAPTURES} == set(ADDED)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("form", ["sqlite", "parquetdir"])
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_summary_is_what_nsys_stats_prints(
    capture: Path, form: str, summary: str, imported: Callable[[Path, str], RunData]
) -> None:
    headings, expected = stored(capture, summary)
    frame = trace_sums.summary(imported(capture, form), summary)
    assert list(frame.columns) == headings
    found = [
        tuple(as_printed(*cell) for cell in zip(headings, row, strict=True))
        for row in frame.astype(object).itertuples(index=False, name=None)
    ]
    order = sorted_by(summary, headings)
    assert [order(row) for row in found] == sorted(order(row) for row in found)
    assert sorted(found, key=lambda row: (order(row), row)) == sorted(expected, key=lambda row: (order(row), row))
