"""Diagnostics about a report: how it was opened, the profiler's own messages, and tables that are not imported."""

import re
from typing import Final

from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.report import Report
from warpladder.data.names import Source

_SEVERITIES: Final = {2: "warning", 3: "error", 4: "error"}
_MOST: Final = 50
_LENGTH: Final = 500
#: Paths name the machine and often its user; only the last part is kept.
_FOLDERS: Final = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'\"]+)*[\\/](?=[^\s\\/:'\"]+)")

#: Tables of events that a run cannot hold -> their content.
_TABLES_LEFT_OUT: Final = {
    "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH": "host functions in streams",
    "CUDA_HOST_CALLBACK": "host functions in streams",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "overhead of CUDA",
    "CUPTI_ACTIVITY_KIND_JIT": "compilation in the driver",
    "CUPTI_ACTIVITY_KIND_BLOCK_TRACE": "blocks of kernels",
    "CUPTI_ACTIVITY_KIND_WARP_TRACE": "warps of kernels",
    "CUDA_GRAPH_EVENTS": "creation of CUDA graphs",
    "CUDA_GRAPH_NODE_EVENTS": "creation of CUDA graph nodes",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "page faults of unified memory",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "page faults of unified memory",
    "CUDA_GPU_MEMORY_POOL_EVENTS": "GPU memory pools",
    "CUDA_CALLCHAINS": "backtraces of CUDA calls",
    "GPU_METRICS": "GPU metrics",
    "GPU_CONTEXT_SWITCH_EVENTS": "GPU context switches",
    "GPU_MEMORY_USAGE_EVENTS": "GPU memory in use",
    "GPU_MEMORY_BUDGET_EVENTS": "GPU memory in use",
    "TOTAL_BYTES_RESIDENT_IN_SEGMENT_EVENTS": "GPU memory in use",
    "CUDNN_EVENTS": "cuDNN calls",
    "CUBLAS_EVENTS": "cuBLAS calls",
    "NVVIDEO_ENCODER_API": "video encoder",
    "NVVIDEO_DECODER_API": "video decoder",
    "MPI_P2P_EVENTS": "MPI point to point",
    "MPI_COLLECTIVES_EVENTS": "MPI collectives",
    "MPI_START_WAIT_EVENTS": "MPI waits",
    "MPI_OTHER_EVENTS": "other MPI calls",
    "UCP_SUBMIT_EVENTS": "UCX",
    "UCP_PROGRESS_EVENTS": "UCX",
    "UCP_EVENTS": "UCX",
    "NET_NIC_METRIC": "network metrics",
    "NET_IB_SWITCH_METRIC": "network metrics",
    "OSRT_API": "calls of the operating system's runtime",
    "OSRT_FILE_ACCESS_EVENTS": "file access",
    "OPENMP_EVENT_KIND_PARALLEL": "OpenMP",
    "OPENGL_API": "OpenGL",
    "OPENGL_WORKLOAD": "OpenGL",
    "OPENACC_LAUNCH_EVENTS": "OpenACC",
    "OPENACC_DATA_EVENTS": "OpenACC",
    "OPENACC_OTHER_EVENTS": "OpenACC",
    "VULKAN_API": "Vulkan",
    "VULKAN_WORKLOAD": "Vulkan",
    "DX11_API": "Direct3D",
    "DX12_API": "Direct3D",
    "DX12_WORKLOAD": "Direct3D",
    "SCHED_EVENTS": "scheduling of threads",
    "COMPOSITE_EVENTS": "samples of the processor",
    "SAMPLING_CALLCHAINS": "samples of the processor",
    "GENERIC_EVENTS": "further events",
    "ETW_EVENTS": "Windows events",
    "WDDM_QUEUE_PACKET_START_EVENTS": "Windows GPU queues",
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
    """Note the tables of events that the report has and a run cannot hold.

    Raises:
        ReportError: the file is damaged.
    """
    tables: dict[str, list[str]] = {}
    for table, what in _TABLES_LEFT_OUT.items():
        if report.has_rows(table):
            tables.setdefault(what, []).append(table)
    if tables:
        listed = ", ".join(f"{what} ({', '.join(names)})" for what, names in tables.items())
        notes.add(
            "info", Source.TABLES, f"these tables of the report are not taken over: {listed}; Nsight Systems itself shows them"
        )
