"""What CUPTI captured, read as a report; no GPU and no CUPTI needed."""

from pathlib import Path
from typing import Any

from tests.synthetic.made_runs import run_row
from warpladder.collectors.cupti.report import CapturedReport
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.tables import write_tables
from warpladder.data.store import RunWriter, open_run

TID = 70 << 24 | 71


def batch(first: int, domain_number: int, dropped: int) -> dict[str, dict[str, list[Any]]]:
    """One kernel, launched in a range of domain `ours`, with names as texts; the domain's number differs by batch."""
    dims = {f"{what}{axis}": [1] for what in ("grid", "block") for axis in "XYZ"}
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": {
            "start": [first + 100], "end": [first + 150], "deviceId": [0], "contextId": [1], "streamId": [7],
            "correlationId": [first], "globalPid": [70 << 24], "demangledName": ["void k<float>(float*)"], "shortName": ["k"],
            **dims, "registersPerThread": [16], "staticSharedMemory": [0], "dynamicSharedMemory": [0], "graphId": [None],
        },
        "CUPTI_ACTIVITY_KIND_MEMCPY": {},
        "CUPTI_ACTIVITY_KIND_RUNTIME": {
            "start": [first + 10], "end": [first + 12], "eventClass": [0], "globalTid": [TID], "correlationId": [first],
            "nameId": ["cudaLaunchKernel_v7000"],
        },
        "NVTX_EVENTS": {
            "start": [first + 5, 0], "end": [first + 20, None], "eventType": [59, 75], "globalTid": [TID, 70 << 24],
            "text": ["work", "ours"], "domainId": [domain_number, domain_number],
        },
        "DROPPED": {"records": [dropped]},
    }  # fmt: skip


def test_batches_become_one_trace_with_names_domains_and_launches(tmp_path: Path) -> None:
    report = CapturedReport([batch(1_000, 1, 0), batch(2_000, 2, 3)])
    with RunWriter(tmp_path, "run") as writer:
        writer.append("run", [run_row("run", "")])
        write_tables(report, writer, None, "", Notes())
        writer.commit()
    run = open_run(tmp_path / "run")
    kernels = run.table("kernels")
    assert kernels["name"].tolist() == ["k", "k"]
    assert kernels["full_name"].unique().tolist() == ["void k<float>(float*)"]
    assert kernels["launch_start_ns"].tolist() == [1_010, 2_010]
    assert kernels["range_id"].tolist() == [0, 1]
    assert run.table("ranges")["domain"].tolist() == ["ours", "ours"]
    assert run.table("ranges")["gpu_busy_ns"].tolist() == [50, 50]
    assert run.table("api_calls")["name"].tolist() == ["cudaLaunchKernel", "cudaLaunchKernel"]
    assert report.dropped == 3
