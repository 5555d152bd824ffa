"""What CUPTI captured, read as a trace; no GPU and no CUPTI needed."""

from pathlib import Path
from typing import Any

from tests.synthetic.made_runs import run_row
from warpladder.collectors.cupti.trace import CapturedTrace
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.tables import write_tables
from warpladder.data.store import RunWriter, open_run

TID = 70 << 24 | 71


def batch(first: int, dropped: int) -> dict[str, dict[str, list[Any]]]:
    """One kernel, launched in a range of domain `ours`, and a copy."""
    dims = {f"{what}_{axis}": [1] for what in ("grid", "block") for axis in "xyz"}
    place = {"device": [0], "stream": [7], "correlation": [first], "process": [70]}
    return {
        "kernels": {
            "start_ns": [first + 100], "end_ns": [first + 150], **place, "context": [1], "full_name": ["void k<float>(float*)"], "name": ["k"],
            **dims, "registers": [16], "static_shared_bytes": [0], "dynamic_shared_bytes": [0], "graph_id": [None],
        },
        "copies": {
            "start_ns": [first + 160], "end_ns": [first + 170], **place, "bytes": [8], "kind": ["h2d"], "migrates": [0],
            "src_memory": ["pinned"], "dst_memory": [None],
        },
        "sets": {},
        "api_calls": {
            "start_ns": [first + 10], "end_ns": [first + 12], "thread": [TID], "correlation": [first], "name": ["cudaLaunchKernel_v7000"],
        },
        "ranges": {"start_ns": [first + 5], "end_ns": [first + 20], "thread": [TID], "text": ["work"], "domain": ["ours"]},
        "dropped": {"records": [dropped]},
    }  # fmt: skip


def test_batches_become_one_trace_with_names_domains_and_launches(tmp_path: Path) -> None:
    trace = CapturedTrace([batch(1_000, 0), batch(2_000, 3)])
    with RunWriter(tmp_path, "run") as writer:
        writer.append("run", [run_row("run", "")])
        write_tables(trace, writer, None, "", Notes())
        writer.commit()
    run = open_run(tmp_path / "run")
    kernels = run.table("kernels")
    assert kernels["name"].tolist() == ["k", "k"]
    assert kernels["full_name"].unique().tolist() == ["void k<float>(float*)"]
    assert kernels["launch_start_ns"].tolist() == [1_010, 2_010]
    assert kernels["range_id"].tolist() == [0, 1]
    assert run.table("ranges")["domain"].tolist() == ["ours", "ours"]
    assert run.table("ranges")["gpu_busy_ns"].tolist() == [60, 60]
    assert run.table("memory_ops")[["kind", "bytes", "src_memory"]].to_numpy().tolist() == [["h2d", 8, "pinned"]] * 2
    assert run.table("api_calls")["name"].tolist() == ["cudaLaunchKernel", "cudaLaunchKernel"]
    assert trace.dropped == 3
