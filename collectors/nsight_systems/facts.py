"""What a report says about where it was captured, as columns of table `run`. No host, user or process names, no environment."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from warpladder.collectors.core.environment import NO_GPU, host_facts
from warpladder.collectors.trace.report import Report

#: The only entries of TARGET_INFO_SYSTEM_ENV that are looked at -> column of `run`.
_TAKEN: Final = {"NvDriverVersion": "driver_version", "CpuDescription": "cpu_name", "OsDescription": "os"}
_MB: Final = 1 << 20
#: A driver's version without its dots: a branch of three digits, a release of two or three, and where there is one a patch of two.
_PACKED_VERSION: Final = re.compile(r"(\d{3})(\d{2,3})(\d{2})?")
_GPU_INTEGERS: Final = ("id", "cuDevice", "deviceId", "totalMemory", "l2CacheSize", "smCount", "computeMajor", "computeMinor")
_CUDA_GPU_INTEGERS: Final = (
    *("deviceId", "globalMemorySize", "l2CacheSize", "numMultiprocessors"),
    *("computeCapabilityMajor", "computeCapabilityMinor"),
)


def run_facts(
    report: Report, started: datetime, devices: Mapping[tuple[int, int], int], arguments: Sequence[str]
) -> dict[str, Any]:
    """Columns of `run`, but for run_id, schema_version and label.

    Args:
        report: the open report.
        started: when it was captured.
        devices: (process, CUDA ordinal) -> rows of device work.
        arguments: command line of the import.
    """
    found = dict.fromkeys(_TAKEN.values(), "")
    for row in report.rows("TARGET_INFO_SYSTEM_ENV", [], ["name", "value"]):
        if row["name"] in _TAKEN:
            found[_TAKEN[row["name"]]] = row["value"]
    found["driver_version"] = driver_version(found["driver_version"])
    return {
        **host_facts(arguments),
        **NO_GPU,
        **_device_facts(report, devices),
        **found,
        "packages": "{}",
        "kind": "import",
        "started_at": started,
        "collector": "nsight_systems",
        "collector_version": product_version(report),
        "source": report.name,
    }


def product_version(report: Report) -> str:
    """The exporter's version, which is all that a report tells; "" before 2022."""
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        for row in report.rows(table, [], ["name", "value"]):
            if row["name"] == "EXPORT_PRODUCT_VERSION":
                return str(row["value"])
    return ""


def started_at(report: Report) -> datetime | None:
    """Start of the capture in UTC, where the report has it."""
    for row in report.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], ["utcTime"], limit=1):
        try:
            if row["utcEpochNs"]:
                return datetime.fromtimestamp(row["utcEpochNs"] / 1e9, UTC)
            return datetime.fromisoformat(row["utcTime"].removesuffix("Z")).replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None


def driver_version(text: str) -> str:
    """A driver's version with its dots, which some reports lack: `52510517` is 525.105.17, and Windows' `51601` is 516.01."""
    packed = _PACKED_VERSION.fullmatch(text)
    return ".".join(filter(None, packed.groups())) if packed else text


def _device_facts(report: Report, devices: Mapping[tuple[int, int], int]) -> dict[str, Any]:
    """The GPU that did most of the work, and how many did any."""
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
    """A GPU: what TARGET_INFO_GPU says of it, and where that has no more than a name, what the older TARGET_INFO_CUDA_GPU says."""
    gpus = report.rows("TARGET_INFO_GPU", _GPU_INTEGERS, ["name"])
    # Windows lists other makers' adapters with cuDevice 0 and no compute capability.
    able = [row for row in gpus if row["computeMajor"]] or [row for row in gpus if row["computeMajor"] is None]
    columns = ("id",) if by == "gpu" else ("cuDevice", "deviceId")
    gpu = _row_of(able, columns, number)
    cuda_gpus = report.rows("TARGET_INFO_CUDA_GPU", _CUDA_GPU_INTEGERS, ["name"])
    if gpu is None:
        cuda_gpu = _row_of(cuda_gpus, ("deviceId",), number)
        return cuda_gpu and _facts_of_cuda_gpu(cuda_gpu)
    known = _facts(
        gpu["name"], gpu["computeMajor"], gpu["computeMinor"], gpu["smCount"], gpu["l2CacheSize"], gpu["totalMemory"]
    )
    same = next((row for row in cuda_gpus if row["deviceId"] is not None and row["deviceId"] == gpu["deviceId"]), None)
    further = _facts_of_cuda_gpu(same) if same else {}
    return {name: value or further.get(name, value) for name, value in known.items()}


def _row_of(rows: Sequence[dict[str, Any]], columns: Sequence[str], number: int) -> dict[str, Any] | None:
    """The row with that number in one of the columns, else the first; None where there is none."""
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
