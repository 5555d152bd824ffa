"""Makes small reports with the tables of several versions of Nsight Systems."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

PROCESS, THREAD, OTHER_THREAD = 70, 71, 72
GLOBAL_PID = PROCESS << 24 | 1 << 48
TID = GLOBAL_PID | THREAD
OTHER_TID = GLOBAL_PID | OTHER_THREAD

RowDicts = Sequence[Mapping[str, Any]]
Tables = dict[str, list[dict[str, Any]]]

STRINGS = {
    1: "gemm",
    2: "void gemm<float>(float *)",
    3: "copy",
    4: "cudaLaunchKernel_v7000",
    5: "cudaMemcpyAsync_ptsz_v7000",
    6: "from a table",
    7: "cuMemAlloc_v2",
    8: "cudaGraphLaunch_v10000",
}


def call(correlation: int, start: int, end: int, name: int = 4, tid: int = TID, kind: int = 0) -> dict[str, Any]:
    return {"start": start, "end": end, "eventClass": kind, "globalTid": tid, "correlationId": correlation, "nameId": name}


def kernel(correlation: int, start: int, end: int, pid: int = GLOBAL_PID, **more: Any) -> dict[str, Any]:
    sizes = {f"{what}{axis}": 1 for what in ("grid", "block") for axis in "XYZ"}
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation, "globalPid": pid}
    names = {"demangledName": 2, "shortName": 1}
    memory = {"registersPerThread": 16, "staticSharedMemory": 0, "dynamicSharedMemory": 64}
    return {"start": start, "end": end, **place, **names, **sizes, **memory, **more}


def copy(correlation: int, start: int, end: int, kind: int, size: int, src: int = 1, dst: int = 2) -> dict[str, Any]:
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation, "globalPid": GLOBAL_PID}
    return {"start": start, "end": end, **place, "bytes": size, "copyKind": kind, "srcKind": src, "dstKind": dst}


def nvtx(text: str | None, start: int | None, end: int | None, kind: int = 59, tid: int = TID, **more: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "eventType": kind,
        "text": text,
        "globalTid": tid,
        "textId": None,
        "domainId": 0,
        **more,
    }


def small() -> Tables:
    """Three kernels of 10, 20 and 40 ns, two copies, a migration and a set, launched in two nested ranges and outside any."""
    return {
        "StringIds": [{"id": number, "value": text} for number, text in STRINGS.items()],
        "NVTX_EVENTS": [
            nvtx("mine", 0, None, 75, domainId=3),
            nvtx("outer", 100, 200),
            nvtx(None, 120, 160, textId=6, domainId=3),
            nvtx("left open", 300, None),
            nvtx("elsewhere", 100, 400, 60, OTHER_TID),
            nvtx("a mark", 130, None, 34),
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(1, 110, 112),
            call(2, 130, 132),
            call(2, 130, 133, kind=67),  # the same call again, with its backtrace
            call(3, 140, 142, 5),
            call(4, 250, 252),
            call(5, 310, 312, 5),
            call(6, 320, 322, 7, kind=1),
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(1, 1000, 1010),
            kernel(2, 1005, 1025, streamId=8),
            kernel(4, 2000, 2040),
            kernel(2, 5000, 5001, pid=GLOBAL_PID + (1 << 24)),  # another process: no launch of it is in the report
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            copy(3, 1030, 1035, 1, 4096, src=0),
            copy(5, 3000, 3009, 2, 100, src=2, dst=1),
            copy(0, 4000, 4001, 11, 65536, src=4, dst=4),
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [
            {"start": 3010, "end": 3012, "deviceId": 0, "streamId": 7, "correlationId": 6, "globalPid": GLOBAL_PID,
             "bytes": 256, "memKind": 2},
        ],
        "TARGET_INFO_SYSTEM_ENV": [
            {"name": "NvDriverVersion", "value": "550.54"},
            {"name": "Hostname", "value": "secret-host"},
            {"name": "DeviceEnvironment", "value": "USER=secret-user"},
        ],
    }  # fmt: skip


GPU = {
    "id": 0,
    "cuDevice": 0,
    "name": "Tesla T4",
    "totalMemory": 16_000_000_000,
    "l2CacheSize": 4 << 20,
    "smCount": 40,
    "computeMajor": 7,
    "computeMinor": 5,
}
VERSION = {"name": "EXPORT_PRODUCT_VERSION", "value": "2025.3.1.90"}


def schema_2020() -> Tables:
    """No metadata, and the GPU in MB."""
    gpu = {"name": "Quadro RTX 8000", "deviceId": 0, "globalMemorySize": 1000, "l2CacheSize": 6 << 20, "numMultiprocessors": 72}
    return {**small(), "TARGET_INFO_CUDA_GPU": [{**gpu, "computeCapabilityMajor": 7, "computeCapabilityMinor": 5}]}


def schema_2_9() -> Tables:
    """Metadata in one table; another maker's adapter listed first as device 0, as on Windows."""
    other = {**GPU, "id": 1, "name": "Display adapter", "computeMajor": 0, "computeMinor": 0}
    return {**small(), "EXPORT_META_DATA": [{**VERSION, "value": "2022.1.3.3"}], "TARGET_INFO_GPU": [other, GPU]}


def schema_3_20() -> Tables:
    """Metadata in two tables, the time of the capture, and devices told by process."""
    return {
        **small(),
        "META_DATA_EXPORT": [VERSION],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_750_000_000_000_000_000, "utcTime": "2025-06-15T15:06:40"}],
        "TARGET_INFO_GPU": [{**GPU, "id": 4, "cuDevice": 1, "name": "idle"}, {**GPU, "id": 5, "cuDevice": 0}],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 5, "cudaId": 0, "pid": PROCESS}, {"gpuId": 5, "cudaId": 0, "pid": PROCESS + 1}],
    }


def without_a_warning() -> Tables:
    """`schema_3_20` without the kernel that has no launch and the range that was never closed."""
    tables = schema_3_20()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"].pop()
    tables["NVTX_EVENTS"] = [row for row in tables["NVTX_EVENTS"] if row["text"] != "left open"]
    return tables


def write(path: Path, tables: Mapping[str, RowDicts]) -> Path:
    """A SQLite file of those tables; a column's place follows the first row."""
    with closing(sqlite3.connect(path)) as database:
        for table, rows in tables.items():
            columns = list(dict.fromkeys(column for row in rows for column in row)) or ["nothing"]
            quoted = ", ".join(f'"{column}"' for column in columns)
            database.execute(f'create table "{table}" ({quoted})')
            marks = ", ".join("?" * len(columns))
            database.executemany(
                f'insert into "{table}" values ({marks})', [[row.get(name) for name in columns] for row in rows]
            )
        database.commit()
    return path
