"""Which stream and event was waited for, in reports of both profilers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.nsight_systems.reports import Tables, small, write
from warpladder.collectors.kineto import parse as kineto
from warpladder.collectors.nsight_systems import parse as nsight_systems
from warpladder.data import store

NOTHING = 0xFFFF_FFFF
#: Serialized ids of two processes.
ONE, OTHER = 7 << 24, 8 << 24


def _wait(kind: int, correlation: int, event: int, stream: int = NOTHING, process: int = ONE, **more: int) -> dict[str, int]:
    of_event = {"eventId": event, "streamId": stream, **more}
    return {"start": 1, "end": 2, "deviceId": 0, "contextId": 1, "correlationId": correlation, "globalPid": process, "syncType": kind, **of_event}  # fmt: skip


def _record(correlation: int, event: int, stream: int, process: int = ONE, **more: int) -> dict[str, int]:
    return {"deviceId": 0, "contextId": 1, "correlationId": correlation, "globalPid": process, "eventId": event, "streamId": stream, **more}  # fmt: skip


def imported(folder: Path, tables: Tables) -> list[dict[str, Any]]:
    report = write(folder / "report.sqlite", {**small(), **tables})
    run = store.open_run(folder / "runs" / nsight_systems.import_report(report, folder / "runs", "", None, []))
    names = ["process", "correlation", "kind", "stream", "event_stream", "event_correlation"]
    rows = run.table("synchronizations")[names]
    return list(rows.astype(object).where(rows.notna(), None).to_dict("records"))


def test_a_wait_for_an_event_names_the_stream_on_which_its_process_recorded_the_event_last_before(tmp_path: Path) -> None:
    rows = imported(
        tmp_path,
        {
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [
                _record(10, 5, 7), _record(20, 5, 13), _record(40, 5, 21), _record(25, 6, 30), _record(28, 5, 99, OTHER),
            ],
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
                _wait(2, 15, 5, 31), _wait(2, 30, 5, 31), _wait(1, 50, 5), _wait(1, 8, 5), _wait(2, 60, NOTHING, 31),
                _wait(3, 70, NOTHING, 7), _wait(4, 80, NOTHING), _wait(0, 90, NOTHING), _wait(2, 35, 5, 31, OTHER),
            ],
        },
    )  # fmt: skip
    assert [tuple(row.values()) for row in rows] == [
        (7, 15, "stream_wait_event", 31, 7, 10),
        (7, 30, "stream_wait_event", 31, 13, 20),
        (7, 50, "event", None, 21, 40),
        (7, 8, "event", None, None, None),
        (7, 60, "stream_wait_event", 31, None, None),
        (7, 70, "stream", 7, None, None),
        (7, 80, "context", None, None, None),
        (8, 35, "stream_wait_event", 31, 99, 28),
    ]


def test_the_number_that_a_report_gives_to_a_recording_comes_before_the_order(tmp_path: Path) -> None:
    (row,) = imported(
        tmp_path,
        {
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [_record(10, 5, 7, eventSyncId=1), _record(20, 5, 13, eventSyncId=2)],
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [_wait(2, 30, 5, 31, eventSyncId=1)],
        },
    )
    assert (row["event_stream"], row["event_correlation"]) == (7, 10)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Stream Wait Event", "stream_wait_event"),
        ("Event Sync", "event"),
        ("Event Synchronize", "event"),
        ("Stream Sync", "stream"),
        ("Stream Synchronize", "stream"),
        ("Context Sync", "context"),
        ("Context Synchronize", "context"),
        ("Unknown", None),
    ],
)
def test_events_of_pytorchs_profiler_are_taken_over(name: str, kind: str | None, tmp_path: Path) -> None:
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 50, "tid": 1, "ts": 1, "dur": 2, "args": {"correlation": 3}}  # fmt: skip
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"correlation": 3, "device": 0, "stream": 7}}  # fmt: skip
    about = {"stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2, "correlation": 4, "device": 0}
    if kind == "context":
        about |= {"stream": NOTHING, "wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1}
    wait = {"ph": "X", "cat": "cuda_sync", "name": name, "pid": 0, "tid": 20, "ts": 8, "dur": 1, "args": about}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [call, kernel, wait]}))
    run = store.open_run(tmp_path / "runs" / kineto.import_report(tmp_path / "trace.json", tmp_path / "runs", "", None, []))
    rows = run.table("synchronizations") if "synchronizations" in run.tables else None
    if kind is None:
        assert rows is None
        return
    assert rows is not None and len(rows) == 1
    row = rows.astype(object).where(rows.notna(), None).iloc[0].to_dict()
    assert (row["kind"], row["process"], row["correlation"], row["device"]) == (kind, 50, 4, 0)
    nothing = kind == "context"
    assert (row["stream"], row["event_stream"], row["event_correlation"]) == ((None, None, None) if nothing else (20, 7, 2))
    assert (row["start_ns"], row["end_ns"]) == (8_000, 9_000)
