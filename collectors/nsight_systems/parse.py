"""Imports one report of Nsight Systems as a run: its tables, the facts about the machine, and the messages of the profiler.

A run has no host, user or process names, and no environment of the machine of the capture.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core.environment import import_facts
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.nsight_systems.report import Report
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.collectors.trace.parts import Part, PartOfTrace
from warpladder.collectors.trace.tables import write_tables
from warpladder.data import files, schema
from warpladder.data.names import Source
from warpladder.data.naming import Naming

_COMPRESSION_LEVEL: Final = 1


def import_report(
    path: Path, data_dir: Path, label: str, naming: Naming | None, arguments: Sequence[str], notes: Notes | None = None
) -> str:
    """Write a report as a run. Returns the run's id.

    Args:
        path: `.sqlite`, `.nsys-rep`, `.qdrep`, or a folder of parquet files.
        naming: finds the NVTX ranges that measure a variant; None for no such ranges.

    Raises:
        ReportError: the file is not a report, or cannot be read.
        NamingError: the naming's pattern takes too long.
        StoreError: the data folder cannot be written.
    """
    notes = Notes() if notes is None else notes
    with open_report(path) as report:
        return import_opened(report, None, path, data_dir, label, naming, arguments, notes, files.sha256(path))


def import_opened(
    report: Report,
    part: Part | None,
    path: Path,
    data_dir: Path,
    label: str,
    naming: Naming | None,
    arguments: Sequence[str],
    notes: Notes,
    digest: str | None = None,
) -> str:
    """The same for a report that is open.

    `part` is what is imported of it, None for all. `path` names it and has the date of one that lacks its own. `digest` is the SHA-256 of
    the file, which is kept with the run.
    """
    trace = NsightTrace(report)
    started = started_at(report) or date_of_file(path, notes)
    with open_writer(data_dir, started, label or path.stem, _COMPRESSION_LEVEL) as writer:
        take_over_messages(report, notes)
        tell_what_is_not_taken(report, notes)
        devices = write_tables(PartOfTrace(trace, part) if part else trace, writer, naming, path.stem, notes).devices
        row = {"run_id": writer.run_id, "schema_version": schema.SCHEMA_VERSION, "label": label, "source_sha256": digest}
        writer.append("run", [{**row, **run_facts(report, started, devices, arguments)}])
        writer.append("diagnostics", notes.finish())
        writer.commit()
    return writer.run_id


#: The only entries of TARGET_INFO_SYSTEM_ENV that are read -> column of `run`.
_SYSTEM_COLUMNS: Final = {"NvDriverVersion": "driver_version", "CpuDescription": "cpu_name", "OsDescription": "os"}
_MB: Final = 1 << 20
#: A driver version without dots: branch (three digits), release (two or three), and optionally patch (two).
_PACKED_VERSION: Final = re.compile(r"(\d{3})(\d{2,3})(\d{2})?")
#: Columns of TARGET_INFO_GPU and of the older TARGET_INFO_CUDA_GPU: capability, multiprocessors, L2 and memory.
_OF_GPU: Final = ("computeMajor", "computeMinor", "smCount", "l2CacheSize", "totalMemory")
_OF_CUDA_GPU: Final = (
    *("computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors", "l2CacheSize", "globalMemorySize"),
)


def run_facts(
    report: Report, started: datetime, devices: Mapping[tuple[int, int], int], arguments: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of `run` except run_id, schema_version and label.

    Args:
        started: start of the capture, UTC.
        devices: (process, CUDA ordinal) -> rows of device work.
    """
    system = dict.fromkeys(_SYSTEM_COLUMNS.values(), "")
    for row in report.rows("TARGET_INFO_SYSTEM_ENV", [], ["name", "value"]):
        if row["name"] in _SYSTEM_COLUMNS:
            system[_SYSTEM_COLUMNS[row["name"]]] = row["value"]
    system["driver_version"] = driver_version(system["driver_version"])
    return {
        **import_facts(arguments),
        **device_facts(report, devices),
        **system,
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
    gpus = report.rows("TARGET_INFO_GPU", ("id", "cuDevice", "deviceId", *_OF_GPU), ["name"])
    # On Windows, adapters of other vendors are listed with cuDevice 0 and no compute capability.
    able = [row for row in gpus if row["computeMajor"]] or [row for row in gpus if row["computeMajor"] is None]
    gpu = _row_of(able, ("id",) if by == "gpu" else ("cuDevice", "deviceId"), number)
    cuda_gpus = report.rows("TARGET_INFO_CUDA_GPU", ("deviceId", *_OF_CUDA_GPU), ["name"])
    for row in cuda_gpus:
        row["globalMemorySize"] = min(row["globalMemorySize"] or 0, 1 << 40) * _MB
    if gpu is None:
        cuda_gpu = _row_of(cuda_gpus, ("deviceId",), number)
        return cuda_gpu and _facts(cuda_gpu, _OF_CUDA_GPU)
    same = next((row for row in cuda_gpus if row["deviceId"] is not None and row["deviceId"] == gpu["deviceId"]), None)
    further = _facts(same, _OF_CUDA_GPU) if same else {}
    return {name: value or further.get(name, value) for name, value in _facts(gpu, _OF_GPU).items()}


def _row_of(rows: Sequence[dict[str, Any]], columns: Sequence[str], number: int) -> dict[str, Any] | None:
    """Return the row with this number in one of the columns, else the first row; None if there are no rows."""
    return next((row for row in rows if number in [row[column] for column in columns]), rows[0] if rows else None)


def _facts(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    major, minor, sms, l2, memory = (row[column] for column in columns)
    return {
        "device_name": row["name"],
        "compute_capability": f"{major}.{minor or 0}" if major else "",
        "sm_count": sms if sms and 0 < sms < 1 << 31 else None,
        "l2_bytes": l2 or None,
        "memory_bytes": memory or None,
    }


# -- messages, and tables that are not imported ----------------------------------------------------------------------------------

_SEVERITIES: Final = {2: "warning", 3: "error", 4: "error"}
_MOST: Final = 50
_LENGTH: Final = 500
#: Paths name the machine and often its user; only the last part is kept.
_FOLDERS: Final = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)*[\\/](?=[^\s\\/:'\"]+)")

#: What a run cannot hold -> the tables of these events.
_LEFT_OUT: Final = {
    "host functions in streams": "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH CUDA_HOST_CALLBACK",
    "overhead of CUDA": "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "compilation in the driver": "CUPTI_ACTIVITY_KIND_JIT",
    "blocks of kernels": "CUPTI_ACTIVITY_KIND_BLOCK_TRACE",
    "warps of kernels": "CUPTI_ACTIVITY_KIND_WARP_TRACE",
    "creation of CUDA graphs": "CUDA_GRAPH_EVENTS",
    "creation of CUDA graph nodes": "CUDA_GRAPH_NODE_EVENTS",
    "page faults of unified memory": "CUDA_UM_CPU_PAGE_FAULT_EVENTS CUDA_UM_GPU_PAGE_FAULT_EVENTS",
    "GPU memory pools": "CUDA_GPU_MEMORY_POOL_EVENTS",
    "backtraces of CUDA calls": "CUDA_CALLCHAINS",
    "GPU metrics": "GPU_METRICS",
    "GPU context switches": "GPU_CONTEXT_SWITCH_EVENTS",
    "GPU memory in use": "GPU_MEMORY_USAGE_EVENTS GPU_MEMORY_BUDGET_EVENTS TOTAL_BYTES_RESIDENT_IN_SEGMENT_EVENTS",
    "cuDNN calls": "CUDNN_EVENTS",
    "cuBLAS calls": "CUBLAS_EVENTS",
    "video encoder": "NVVIDEO_ENCODER_API",
    "video decoder": "NVVIDEO_DECODER_API",
    "MPI point to point": "MPI_P2P_EVENTS",
    "MPI collectives": "MPI_COLLECTIVES_EVENTS",
    "MPI waits": "MPI_START_WAIT_EVENTS",
    "other MPI calls": "MPI_OTHER_EVENTS",
    "UCX": "UCP_SUBMIT_EVENTS UCP_PROGRESS_EVENTS UCP_EVENTS",
    "network metrics": "NET_NIC_METRIC NET_IB_SWITCH_METRIC",
    "calls of the operating system's runtime": "OSRT_API",
    "file access": "OSRT_FILE_ACCESS_EVENTS",
    "OpenMP": "OPENMP_EVENT_KIND_PARALLEL",
    "OpenGL": "OPENGL_API OPENGL_WORKLOAD",
    "OpenACC": "OPENACC_LAUNCH_EVENTS OPENACC_DATA_EVENTS OPENACC_OTHER_EVENTS",
    "Vulkan": "VULKAN_API VULKAN_WORKLOAD",
    "Direct3D": "DX11_API DX12_API DX12_WORKLOAD",
    "scheduling of threads": "SCHED_EVENTS",
    "samples of the processor": "COMPOSITE_EVENTS SAMPLING_CALLCHAINS",
    "further events": "GENERIC_EVENTS",
    "Windows events": "ETW_EVENTS",
    "Windows GPU queues": "WDDM_QUEUE_PACKET_START_EVENTS",
}


def take_over_messages(report: Report, notes: Notes) -> None:
    """Add the remarks on the report, then the distinct messages of Nsight Systems in it, without paths."""
    for remark in report.remarks:
        notes.add(remark[0], Source.REPORT, remark[1])
    texts: set[str] = set()
    for row in report.rows("DIAGNOSTIC_EVENT", ["severity"], ["text"]):
        text = " ".join(_FOLDERS.sub("", row["text"]).split())[:_LENGTH]
        severity = _SEVERITIES.get(row["severity"])
        if severity and text and text not in texts and len(texts) < _MOST:
            texts.add(text)
            notes.add(severity, Source.NSYS, text)


def tell_what_is_not_taken(report: Report, notes: Notes) -> None:
    """Note the tables of events that the report has and a run cannot hold. Raises ReportError: the file is damaged."""
    tables = {what: [name for name in names.split() if report.has_rows(name)] for what, names in _LEFT_OUT.items()}
    listed = ", ".join(f"{what} ({', '.join(names)})" for what, names in tables.items() if names)
    if listed:
        text = f"these tables of the report are not taken over: {listed}; Nsight Systems itself shows them"
        notes.add("info", Source.TABLES, text)
