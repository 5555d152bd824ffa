"""Facts about the machine of a capture, as columns of table `run`. No host, user or process names, no environment."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from warpladder.collectors.core.environment import NO_GPU, host_facts
from warpladder.collectors.trace.report import Report

#: The only entries of TARGET_INFO_SYSTEM_ENV that are read -> column of `run`.
_SYSTEM_COLUMNS: Final = {"NvDriverVersion": "driver_version", "CpuDescription": "cpu_name", "OsDescription": "os"}
_MB: Final = 1 << 20
#: A driver version without dots: branch (three digits), release (two or three), and optionally patch (two).
_PACKED_VERSION: Final = re.compile(r"(\d{3})(\d{2,3})(\d{2})?")
_GPU_INTEGERS: Final = ("id", "cuDevice", "deviceId", "totalMemory", "l2CacheSize", "smCount", "computeMajor", "computeMinor")
_CUDA_GPU_INTEGERS: Final = (
    *("deviceId", "globalMemorySize", "l2CacheSize", "numMultiprocessors"),
    *("computeCapabilityMajor", "computeCapabilityMinor"),
)


def run_facts(
    report: Report, started: datetime, devices: Mapping[tuple[int, int], int], arguments: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of `run` except run_id, schema_version and label.

    Args:
        report: the open report.
        started: start of the capture, UTC.
        devices: (process, CUDA ordinal) -> rows of device work.
        arguments: command line of the import.
    """
    system = dict.fromkeys(_SYSTEM_COLUMNS.values(), "")
    for row in report.rows("TARGET_INFO_SYSTEM_ENV", [], ["name", "value"]):
        if row["name"] in _SYSTEM_COLUMNS:
            system[_SYSTEM_COLUMNS[row["name"]]] = row["value"]
    system["driver_version"] = driver_version(system["driver_version"])
    return {
        **host_facts(arguments),
        **NO_GPU,
        "cpu_threads": None,
        **device_facts(report, devices),
        **system,
        "packages": "{}",
        "kind": "import",
        "started_at": started,
        "collector": "nsight_systems",
        "collector_version": product_version(report),
        "source": report.name,
    }


def product_version(report: Report) -> str:
    """Return the version of the exporter; a report holds no other version. "" before 2022."""
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        for row in report.rows(table, [], ["name", "value"]):
            if row["name"] == "EXPORT_PRODUCT_VERSION":
                return str(row["value"])
    return ""


def started_at(report: Report) -> datetime | None:
    """Return the start of the capture in UTC; None if the report does not hold it."""
    for row in report.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], ["utcTime"], limit=1):
        try:
            if row["utcEpochNs"]:
                return datetime.fromtimestamp(row["utcEpochNs"] / 1e9, UTC)
            return datetime.fromisoformat(row["utcTime"].removesuffix("Z")).replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


def driver_version(text: str) -> str:
    """Insert the dots that some reports omit in driver versions: `52510517` is 525.105.17, and `51601` (Windows) is 516.01."""
    packed = _PACKED_VERSION.fullmatch(text)
    return ".".join(filter(None, packed.groups())) if packed else text


def device_facts(report: Report, devices: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    """Return the facts about the GPU with the most work, and the number of GPUs with any."""
    gpu_of = {
        (row["pid"], row["cudaId"]): row["gpuId"] for row in report.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"])
    }
    rows_by_gpu: dict[tuple[str, int], int] = {}
    for (process, ordinal), rows in devices.items():
        gpu = gpu_of.get((process, ordinal))
        key = ("cuda", ordinal) if gpu is None else ("gpu", gpu)
        rows_by_gpu[key] = rows_by_gpu.get(key, 0) + rows
    busiest = max(rows_by_gpu, key=lambda key: rows_by_gpu[key], default=("cuda", 0))
    described = _described(report, *busiest)
    if described is None:
        return {"device_count": min(len(rows_by_gpu), 1 << 14)}
    return {**described, "device_count": min(max(len(rows_by_gpu), 1), 1 << 14)}


def _described(report: Report, by: str, number: int) -> dict[str, Any] | None:
    """Describe a GPU from TARGET_INFO_GPU, or from the older TARGET_INFO_CUDA_GPU if the first has only a name."""
    gpus = report.rows("TARGET_INFO_GPU", _GPU_INTEGERS, ["name"])
    # On Windows, adapters of other vendors are listed with cuDevice 0 and no compute capability.
    able = [row for row in gpus if row["computeMajor"]] or [row for row in gpus if row["computeMajor"] is None]
    columns = ("id",) if by == "gpu" else ("cuDevice", "deviceId")
    gpu = _row_of(able, columns, number)
    cuda_gpus = report.rows("TARGET_INFO_CUDA_GPU", _CUDA_GPU_INTEGERS, ["name"])
    if gpu is None:
        cuda_gpu = _row_of(cuda_gpus, ("deviceId",), number)
        return cuda_gpu and _facts_of_cuda_gpu(cuda_gpu)
    facts = _facts(
        gpu["name"], gpu["computeMajor"], gpu["computeMinor"], gpu["smCount"], gpu["l2CacheSize"], gpu["totalMemory"]
    )
    same = next((row for row in cuda_gpus if row["deviceId"] is not None and row["deviceId"] == gpu["deviceId"]), None)
    further = _facts_of_cuda_gpu(same) if same else {}
    return {name: value or further.get(name, value) for name, value in facts.items()}


def _row_of(rows: Sequence[dict[str, Any]], columns: Sequence[str], number: int) -> dict[str, Any] | None:
    """Return the row with this number in one of the columns, else the first row; None if there are no rows."""
    return next((row for row in rows if number in [row[column] for column in columns]), rows[0] if rows else None)


def _facts_of_cuda_gpu(row: Mapping[str, Any]) -> dict[str, Any]:
    memory = None if row["globalMemorySize"] is None else min(row["globalMemorySize"], 1 << 40) * _MB
    return _facts(row["name"], row["computeCapabilityMajor"], row["computeCapabilityMinor"], row["numMultiprocessors"],
                  row["l2CacheSize"], memory)  # fmt: skip


def _facts(
    name: str, major: int | None, minor: int | None, sms: int | None, l2: int | None, memory: int | None
) -> dict[str, Any]:
    return {
        "device_name": name,
        "compute_capability": f"{major}.{minor or 0}" if major else "",
        "sm_count": sms if sms and 0 < sms < 1 << 31 else None,
        "l2_bytes": l2 or None,
        "memory_bytes": memory or None,
    }
