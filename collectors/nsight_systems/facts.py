"""What a report says about where it was captured, as columns of table `run`. No host, user or process names, no environment."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from collectors.environment import NO_GPU, host_facts
from collectors.trace.report import Report

#: The only entries of TARGET_INFO_SYSTEM_ENV that are looked at -> column of `run`.
_TAKEN: Final = {"NvDriverVersion": "driver_version", "CpuDescription": "cpu_name", "OsDescription": "os"}
_MB: Final = 1 << 20


def run_facts(report: Report, path: Path, devices: Mapping[tuple[int, int], int], arguments: Sequence[str]) -> dict[str, Any]:
    """Columns of `run`, but for run_id, schema_version and label.

    Args:
        report: the open report.
        path: its file, whose modification time stands in where the report does not say when it was captured.
        devices: (process, CUDA ordinal) -> rows of device work.
        arguments: command line of the import.
    """
    found = dict.fromkeys(_TAKEN.values(), "")
    for row in report.rows("TARGET_INFO_SYSTEM_ENV", [], ["name", "value"]):
        if row["name"] in _TAKEN:
            found[_TAKEN[row["name"]]] = row["value"]
    return {
        **host_facts(arguments),
        **NO_GPU,
        **_device_facts(report, devices),
        **found,
        "packages": "{}",
        "kind": "import",
        "started_at": started_at(report) or modified_at(path),
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


def modified_at(path: Path) -> datetime:
    """When the file was last written, in UTC."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


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
    integers = ("id", "cuDevice", "totalMemory", "l2CacheSize", "smCount", "computeMajor", "computeMinor")
    gpus = report.rows("TARGET_INFO_GPU", integers, ["name"])
    # Windows lists other makers' adapters with cuDevice 0 and no compute capability.
    able = [row for row in gpus if row["computeMajor"]] or [row for row in gpus if row["computeMajor"] is None]
    column = "id" if by == "gpu" else "cuDevice"
    for row in [row for row in able if row[column] == number] or able[:1]:
        return _gpu(
            row["name"], row["computeMajor"], row["computeMinor"], row["smCount"], row["l2CacheSize"], row["totalMemory"]
        )
    older_integers = (
        *("deviceId", "globalMemorySize", "l2CacheSize", "numMultiprocessors"),
        *("computeCapabilityMajor", "computeCapabilityMinor"),
    )
    older = report.rows("TARGET_INFO_CUDA_GPU", older_integers, ["name"])
    for row in [row for row in older if row["deviceId"] == number] or older[:1]:
        memory = None if row["globalMemorySize"] is None else min(row["globalMemorySize"], 1 << 40) * _MB
        return _gpu(row["name"], row["computeCapabilityMajor"], row["computeCapabilityMinor"], row["numMultiprocessors"],
                    row["l2CacheSize"], memory)  # fmt: skip
    return None


def _gpu(
    name: str, major: int | None, minor: int | None, sms: int | None, l2: int | None, memory: int | None
) -> dict[str, Any]:
    return {
        "device_name": name,
        "compute_capability": f"{major}.{minor or 0}" if major else "",
        "sm_count": sms if sms and 0 < sms < 1 << 31 else None,
        "l2_bytes": l2 or None,
        "memory_bytes": memory or None,
    }
