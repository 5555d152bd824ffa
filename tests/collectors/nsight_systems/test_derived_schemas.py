"""A capture of our own as older versions of Nsight Systems would have exported it: what it says must not depend on that.

Each older schema is made of `graph_traced_by_node` by SQL, after the differences that reports of 2019.6 to 2026.2 show. What it still has
tables for is compared with what `nsys stats` printed of the capture, and with the ranges that its own import gives each kernel.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pytest

from tests.collectors.nsight_systems.test_nsys_stats import (
    FIXTURES,
    RANGE_HEADINGS,
    SUMMARIES,
    Row,
    as_printed,
    sorted_by,
    stored,
)
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.views.time.calls import query as trace_sums
from warpladder.data.store import Run, open_run

pytestmark = pytest.mark.slow

CAPTURE: Final = FIXTURES / "nsight-systems-2025.3" / "graph_traced_by_node"
API: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
NO_CALLS: Final = "the profile has no launches"
NO_RANGES: Final = "the report has no NVTX ranges"
#: Bytes of the H200's memory as the capture has them, in whole MB of 2^20.
MEMORY_MB: Final = 150_109_880_320 >> 20


@dataclass(frozen=True)
class Older:
    """An older schema.

    Attributes:
        sql: what makes it of the capture.
        lost: summaries that it has no tables for.
        says: how the diagnostics start that tell so, and nothing else.
        version: what it says of who exported it.
    """

    sql: tuple[str, ...]
    lost: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    version: str = "2025.3.2.0"

    @property
    def attributes(self) -> bool:
        """Whether it has the tables by which a kernel is attributed to a range."""
        return NO_CALLS not in self.says


def without(table: str, *columns: str) -> tuple[str, ...]:
    return tuple(f'alter table {table} drop column "{column}"' for column in columns)


NAMES_INLINE: Final = (
    "update NVTX_EVENTS set text = (select value from StringIds where id = textId) where textId is not null",
    "update NVTX_EVENTS set textId = null",
)
OF_2020: Final = (
    "drop table META_DATA_EXPORT",
    "drop table TARGET_INFO_CUDA_DEVICE",
    "create table TARGET_INFO_CUDA_GPU as select name, cuDevice as deviceId, totalMemory >> 20 as globalMemorySize, l2CacheSize, "
    "smCount as numMultiprocessors, computeMajor as computeCapabilityMajor, computeMinor as computeCapabilityMinor from TARGET_INFO_GPU",
    "drop table TARGET_INFO_GPU",
    *without(KERNEL, "mangledName", "greenContextId", "graphNodeId"),
    *without("CUPTI_ACTIVITY_KIND_MEMCPY", "greenContextId", "graphNodeId", "copyCount"),
    *NAMES_INLINE,
    *without("NVTX_EVENTS", "textId", "jsonTextId"),
)
SCHEMAS: Final = {
    "2020": Older(OF_2020, version=""),
    "2022": Older(
        (
            "alter table META_DATA_EXPORT rename to EXPORT_META_DATA",
            "update EXPORT_META_DATA set value = '2022.1.3.3' where name = 'EXPORT_PRODUCT_VERSION'",
            "drop table TARGET_INFO_CUDA_DEVICE",
            *without(KERNEL, "greenContextId"),
            *without("CUPTI_ACTIVITY_KIND_MEMCPY", "greenContextId"),
        ),
        version="2022.1.3.3",
    ),
    "names inline": Older(NAMES_INLINE),
    "some names inline": Older((NAMES_INLINE[0] + " and textId % 2", "update NVTX_EVENTS set textId = null where text is not null")),
    "calls of a stream per thread, with their backtraces": Older(
        (
            "update StringIds set value = replace(value, '_v3020', '_ptsz_v7000') where value like 'cudaMemcpy%'",
            f'insert into {API} (start, "end", eventClass, globalTid, correlationId, nameId, returnValue) '
            f'select start, "end" + 1, 67, globalTid, correlationId, nameId, returnValue from {API}',
        )
    ),
    "with tables of enums": Older(
        (
            "create table ENUM_CUDA_MEMCPY_OPER (id integer primary key, name text, label text)",
            "insert into ENUM_CUDA_MEMCPY_OPER values (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), "
            "(2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device')",
            "create table ENUM_CUDA_KRENEL_LAUNCH_TYPE (id integer primary key, name text)",
        )
    ),
    "no calls": Older(
        (f"drop table {API}",), ("cuda_api_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum"), (NO_CALLS,)
    ),
    "kernels alone": Older(
        tuple(
            f"drop table {table}"
            for table in (
                API, "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "META_DATA_EXPORT",
                "TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_SESSION_START_TIME",
            )
        ),
        tuple(name for name in SUMMARIES if name != "cuda_gpu_kern_sum"),
        (NO_CALLS, NO_RANGES),
        version="",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Imports the capture in a schema, once; in its own where the name is empty."""
    runs: dict[str, Run] = {}

    def get(schema: str) -> Run:
        if schema not in runs:
            folder = tmp_path_factory.mktemp("derived")
            report = folder / "report.sqlite"
            shutil.copyfile(CAPTURE / "report.sqlite", report)
            with closing(sqlite3.connect(report)) as database:
                for statement in SCHEMAS[schema].sql if schema else ():
                    database.execute(statement)
                database.commit()
            report.chmod(0o444)
            before = report.read_bytes()
            runs[schema] = open_run(folder / "runs" / import_report(report, folder / "runs", "", None, []))
            assert report.read_bytes() == before
        return runs[schema]

    return get


def attributed(run: Run) -> list[tuple[Any, ...]]:
    """Name, start and launch of each kernel, and the text of its innermost range."""
    names = run.table("ranges").set_index("range_id")["text"] if "ranges" in run.tables else pd.Series(dtype=str)
    rows = run.table("kernels").fillna({"launch_start_ns": -1})
    inside = [names.get(number) for number in rows["range_id"]]
    return sorted(zip(rows["start_ns"], rows["full_name"], rows["launch_start_ns"], inside, strict=True))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_an_older_schema_has_tables_for_sums_up_as_in_the_capture(
    schema: str, summary: str, imported: Callable[[str], Run]
) -> None:
    data = load(imported(schema))
    if summary in SCHEMAS[schema].lost:
        ranges = "ranges" in data.traces.tables and summary != "cuda_api_sum"
        assert (summary in trace_sums.available(data)) == ranges
        if ranges:
            heading = next(name for name in RANGE_HEADINGS if name in trace_sums.summary(data, summary))
            assert trace_sums.summary(data, summary)[heading].isna().all(), "no kernel is said to be of a range"
        return
    headings, expected = stored(CAPTURE, summary)
    found: list[Row] = [
        tuple(as_printed(*cell).replace("_ptsz", "") for cell in zip(headings, row, strict=True))
        for row in trace_sums.summary(data, summary).astype(object).itertuples(index=False, name=None)
    ]
    order = sorted_by(summary, headings)
    assert sorted(found, key=lambda row: (order(row), row)) == sorted(expected, key=lambda row: (order(row), row))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_kernels_keep_their_launch_and_range_where_the_tables_for_it_are_there(
    schema: str, imported: Callable[[str], Run]
) -> None:
    whole, found = attributed(imported("")), attributed(imported(schema))
    assert sum(row[3] is not None for row in whole) > len(whole) / 2
    if SCHEMAS[schema].attributes:
        assert found == whole
    else:
        assert found == [(*row[:2], -1, None) for row in whole]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_diagnostic_tells_what_is_missing_and_none_what_is_not(schema: str, imported: Callable[[str], Run]) -> None:
    whole = set(imported("").table("diagnostics")["text"])
    more = [text for text in imported(schema).table("diagnostics")["text"] if text not in whole]
    for start in SCHEMAS[schema].says:
        assert any(text.startswith(start) for text in more)
    if SCHEMAS[schema].attributes:
        assert not more


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_device_and_the_exporter_are_found_in_each_schema(schema: str, imported: Callable[[str], Run]) -> None:
    info = imported(schema).info
    assert (info["device_name"], info["compute_capability"], info["sm_count"]) == ("NVIDIA H200", "9.0", 132)
    assert info["memory_bytes"] == (MEMORY_MB << 20 if schema == "2020" else 150_109_880_320)
    assert (info["collector_version"], info["device_count"]) == (SCHEMAS[schema].version, 1)


def test_the_capture_itself_has_no_tables_of_enums() -> None:
    with closing(sqlite3.connect(f"file:{CAPTURE / 'report.sqlite'}?mode=ro", uri=True)) as database:
        assert database.execute("select count(*) from sqlite_master where name like 'ENUM%'").fetchone() == (0,)
