"""Recordings of the same few cells by several collectors, and one with a trace of its end-to-end rounds; all counted by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.synthetic_trace import run_row
from warpladder.data import metrics
from warpladder.data.schema import TABLES
from warpladder.data.store import RunWriter

DEVICE = "NVIDIA H200 (synthetic)"
CASE = "n=512"
#: Variant -> its device time in ns, by collector: two long variants that agree but for one, and two short ones that do not.
TIMES: Mapping[str, Mapping[str, int]] = {
    "cuda_events": {"v01_long": 100_000, "v02_longer": 200_000, "v03_short": 5_000, "v04_shorter": 4_000},
    "cupti": {"v01_long": 99_000, "v02_longer": 206_000, "v03_short": 3_500, "v04_shorter": 3_500},
    "nsight_compute": {"v01_long": 102_000, "v03_short": 5_200},
}
H2D_BYTES, D2H_BYTES = 4_096, 2_048


def write(
    data_dir: Path,
    collector: str,
    run_id: str = "",
    *,
    device: str = DEVICE,
    day: int = 2,
    sources: Mapping[str, str] | None = None,
) -> Path:
    """Write the run of a collector: of each variant of `TIMES` seven samples from 30 ‰ below to 30 ‰ above, cold; of `nsight_compute`
    the counter of two launches that add up to it.

    Args:
        sources: hashes of the variants' sources; all `same` where a variant is not named.

    Returns:
        The folder of the run.
    """
    times = TIMES[collector]
    counted = collector == "nsight_compute"
    samples = [
        _row("samples") | _cell(variant) | {
            "gpus": 1, "rank": 0, "cache": "cold", "scope": "device", "twin": 0, "round": number, "position": 0,
            "duration_ns": time_ns * (1_000 + 10 * (number - 3)) // 1_000,
        }
        for variant, time_ns in times.items() for number in range(7) if not counted
    ]  # fmt: skip
    counters = [
        _cell(variant) | {"kernel": "k", "launch_index": index, "metric": metrics.TIME, "value": value, "unit": "ns"}
        for variant, time_ns in times.items() if counted for index, value in enumerate((time_ns - 1_000.0, 1_000.0))
    ]  # fmt: skip
    tables = {
        "variants": [_variant(name, (sources or {}).get(name, "same")) for name in times], "cases": [_case()], "samples": samples,
        "counters": counters, "results": [_row("results") | _cell(name) | {"status": "ok", "detail": ""} for name in times],
    }  # fmt: skip
    info = {"collector": collector, "device_name": device, "started_at": datetime(2026, 1, day, tzinfo=UTC)}
    return _write(data_dir, run_id or collector, info, tables)


def write_traced(data_dir: Path, run_id: str = "traced", *, wrong: bool = False, dropped: bool = False) -> Path:
    """Write a recording with a trace: rounds 0 and 1 and a twin that copy the case's bytes, a warm-up that copies others, and a device
    sample; its five kernels of 100 ns are in these ranges. What is wrong where asked: a third round that copies 96 bytes too few, a
    fourth that copies nothing, a kernel of 300 ns outside of any range, and one of 200 ns with no launch.

    Returns:
        The folder of the run.
    """
    texts = ["end_to_end.hot#0", "end_to_end.hot#1", "end_to_end.hot.twin#1", "end_to_end.hot.warm_up#0", "device.cold#0"]
    texts += ["end_to_end.hot#2", "end_to_end.hot#3"] if wrong else []
    ranges: list[dict[str, Any]] = [_range(0, None, "conv2d", {"workload": "conv2d"})]
    copies: list[dict[str, Any]] = []
    kernels = []
    for text in texts:
        scope = text.split(".")[0]
        cell = _cell("v01_long") | {"scope": scope, "round": None if "warm_up" in text else int(text[-1])}
        outer = len(ranges)
        ranges += [_range(outer, 0, text, cell), _range(outer + 1, outer, "executions=1", cell)]
        kernels.append(_kernel(len(kernels), 100, outer + 1))
        bytes_in = {"end_to_end.hot#2": H2D_BYTES - 96, "end_to_end.hot.warm_up#0": 7, "end_to_end.hot#3": 0}.get(
            text, H2D_BYTES
        )
        if bytes_in:
            copies += [
                # In two pieces, one by the sample's range and one by a range within it.
                _copy("h2d", bytes_in - 1, outer), _copy("h2d", 1, outer + 1), _copy("d2h", D2H_BYTES, outer + 1),
                _copy("memset", 999, outer),
            ]  # fmt: skip
    if wrong:
        kernels = kernels[:5]
        kernels += [_kernel(5, 300, None), _kernel(6, 200, 1) | {"launch_start_ns": None, "launch_end_ns": None}]
    lost = {"severity": "error", "source": "dropped", "text": "CUPTI dropped 12 records", **dict.fromkeys(_cell(""))}
    tables = {
        "variants": [_variant("v01_long", "same")], "cases": [_case()], "ranges": ranges, "kernels": kernels, "memory_ops": copies,
        "diagnostics": [lost] if dropped else [],
    }  # fmt: skip
    info = {"collector": "cupti", "device_name": DEVICE, "started_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return _write(data_dir, run_id, info, tables)


def _write(data_dir: Path, run_id: str, info: Mapping[str, Any], tables: Mapping[str, list[dict[str, Any]]]) -> Path:
    with RunWriter(data_dir, run_id) as writer:
        writer.append("run", [run_row(run_id, run_id) | {"kind": "recording", "source": ""} | info])
        for name, rows in tables.items():
            writer.append(name, rows)
        return writer.commit()


def _row(table: str) -> dict[str, Any]:
    return {column.name: None if column.nullable else "" for column in TABLES[table].columns}


def _cell(variant: str) -> dict[str, Any]:
    return {"workload": "conv2d", "variant": variant, "config": "", "case": CASE}


def _variant(name: str, source: str) -> dict[str, Any]:
    about = {"workload": "conv2d", "variant": name, "rung": int(name[1:3]), "kind": "cuda", "role": "rung", "precision": "fp32"}
    return _row("variants") | about | {"title": name, "source_sha256": source}


def _case() -> dict[str, Any]:
    work = {"flops": 10**6, "min_bytes": 10**6, "h2d_bytes": H2D_BYTES, "d2h_bytes": D2H_BYTES}
    return {"workload": "conv2d", "case": CASE, "size_rank": 0, "params": '{"n":512}', **work}


def _range(range_id: int, parent: int | None, text: str, cell: Mapping[str, Any]) -> dict[str, Any]:
    # The workload's range holds those of the samples, and each of them its executions.
    depth = 0 if parent is None else 1 if parent == 0 else 2
    times = {"start_ns": range_id, "end_ns": range_id + 1_000}
    about = {"range_id": range_id, "parent_id": parent, "depth": depth, "process": 1, "thread": 1, "domain": "warpladder"}
    return _row("ranges") | about | times | {"text": text, "style": "push_pop"} | cell


def _kernel(correlation: int, duration_ns: int, range_id: int | None) -> dict[str, Any]:
    name = "inside" if range_id is not None else "outside"
    times = {"start_ns": 0, "end_ns": duration_ns, "launch_start_ns": 0, "launch_end_ns": 1}
    about = {"correlation": correlation, "process": 1, "device": 0, "name": name, "full_name": name, "range_id": range_id}
    return _row("kernels") | about | times


def _copy(kind: str, size: int, range_id: int) -> dict[str, Any]:
    about = {"correlation": 1, "process": 1, "start_ns": 0, "end_ns": 1, "device": 0}
    return _row("memory_ops") | about | {"kind": kind, "bytes": size, "range_id": range_id}
