"""A run with machine code, made without a GPU: the kernels of a workload compiled for one architecture."""

from datetime import UTC, datetime
from pathlib import Path

from warpladder.collectors.core.cells import result_row
from warpladder.collectors.core.environment import NO_GPU, host_facts
from warpladder.collectors.core.plan import Request, case_row, make_plan, variant_row
from warpladder.collectors.cuda.machine_code import rows_of
from warpladder.data import schema, store

#: An H200, as a recording on it describes it.
H200 = {"device_name": "NVIDIA H200", "device_count": 1, "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 62914560}


def write(data_dir: Path, request: Request, architecture: str = "sm_90", run_id: str = "code") -> Path:
    """Write a run with the launches and the code of every cell of a request, and without samples. Returns its folder."""
    plan = make_plan(request)
    cells = [cell for job in plan.jobs for cell in job.cells if plan.workloads[0].variant(cell.variant).kind == "cuda"]
    with store.RunWriter(data_dir, run_id) as writer:
        facts = {**host_facts(["record"]), **NO_GPU, **H200}
        started = {"started_at": datetime(2026, 11, 25, tzinfo=UTC), "schema_version": schema.SCHEMA_VERSION}
        identity = {
            "run_id": run_id,
            "label": "",
            "kind": "recording",
            "collector": "cuda_events",
            "source": "",
            "source_sha256": None,
        }
        writer.append("run", [{"collector_version": "", **facts, **started, **identity}])
        for workload in plan.workloads:
            variants = dict.fromkeys(cell.variant for cell in cells if cell.workload == workload.name)
            writer.append("variants", [variant_row(workload, workload.variant(name)) for name in variants])
            cases = dict.fromkeys(cell.case for cell in cells if cell.workload == workload.name)
            writer.append("cases", [case_row(workload, workload.case(name)) for name in cases])
        writer.append("results", [result_row(cell, "ok", "") for cell in cells])
        for table, rows in rows_of(plan, cells, architecture).items():
            writer.append(table, rows)
        return writer.commit()
