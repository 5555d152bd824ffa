"""The columns of a long trace lie on disk, and come back as they were."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warpladder.collectors.kineto import events, operations, spool
from warpladder.collectors.kineto.parse import import_report
from warpladder.collectors.kineto.trace import KinetoTrace
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kineto" / "resnet18_train_h2d.json.gz"


@pytest.fixture
def short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_ROWS", 100)


def _filled() -> spool.Spool:
    made = spool.Spool()
    for begin in range(0, 990, 30):
        number = np.arange(begin, begin + 30)
        made.add({"number": number, "odd": pa.array(number, mask=number % 2 == 0)})
    return made


@pytest.mark.parametrize("rows", [100, 5_000])
def test_columns_come_back_as_they_were(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_ROWS", rows)
    made = _filled()
    assert made.rows == 990
    whole = pa.Table.from_batches(made.batches(("odd", "number")))
    assert whole["number"].to_pylist() == list(range(990))
    assert whole["odd"].to_pylist() == [each if each % 2 else None for each in range(990)]
    wanted = np.random.default_rng(0).permutation(990)[:500]
    assert made.take(wanted, ("number",))["number"].to_pylist() == wanted.tolist()


@pytest.mark.usefixtures("short_batches")
def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.tempfile, "TemporaryFile", full)
    with pytest.raises(ReportError, match=r"cannot be written \(No space left on device\); free some space"):
        _filled()


@pytest.mark.usefixtures("short_batches")
def test_reading_takes_no_more_memory_for_a_longer_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PIECE_BYTES", 1 << 16)
    peaks = []
    for count in (300, 1_800):
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps({"traceEvents": [each for number in range(count) for each in _step(number)]}))
        tracemalloc.start()
        KinetoTrace(path, Notes())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def _step(number: int) -> list[dict[str, object]]:
    whole = {"ph": "X", "pid": 1, "tid": 1, "ts": number * 100, "dur": 50}
    own = {"External id": number, "correlation": number + 1}
    return [
        {**whole, "cat": "cpu_op", "name": "aten::mm", "args": {**own, "Input Dims": [[64, 64], [64, 64]]}},
        {**whole, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": own},
        {**whole, "cat": "kernel", "name": "gemm", "args": {**own, "device": 0, "stream": 7, "grid": [1, 1, 1]}},
    ]


def test_operators_in_blocks_are_those_that_are_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_ROWS", 1_000)
    tables = []
    for rows in (1 << 16, 500):
        monkeypatch.setattr(operations, "_BLOCK_ROWS", rows)
        path = tmp_path / import_report(FIXTURE, tmp_path, "", None, [])
        with pq.ParquetFile(path / "operations.parquet") as file:
            tables.append(file.read())
            groups = file.num_row_groups
    assert groups > 4
    assert tables[0].equals(tables[1])
    assert tables[0]["forward_id"].null_count < len(tables[0])


def test_sorted_operators_take_20_bytes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 100_000
    number = np.arange(rows)
    made = spool.Spool()
    made.add({"thread": number % 2, "start": number[::-1] * 10, "end": number[::-1] * 10 + 5})
    monkeypatch.setattr(operations, "_BLOCK_ROWS", 1_000)
    tracemalloc.start()
    blocks = operations._Blocks(made, 7, None)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 21 * rows
    assert peak < 60 * rows
    found = [np.concatenate(column) for column in zip(*(each[1:] for each in blocks), strict=True)]
    row, thread, start, end = found
    assert np.array_equal(thread, np.repeat((0, 1), rows // 2))
    assert np.array_equal(start[: rows // 2], np.sort(start[: rows // 2]))
    assert np.array_equal((row % 2, (rows - 1 - row) * 10 + 7, start + 5), (thread, start, end))


def test_a_trace_that_is_read_keeps_no_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"ph": "X", "ts": 1}], "distributedInfo": {"rank": 3}}')
    file = events.TraceFile(path)
    assert sum(len(piece.events) for piece in file.pieces()) == 1
    assert file.head.distributed == {"rank": 3}
    assert not getattr(file.head, "events", [])
