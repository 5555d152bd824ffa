"""An imported trace of an annotated program without variants of its own, for picking some; its medians are counted by hand."""

from pathlib import Path
from typing import Any

from tests.synthetic_trace import run_row
from warpladder.data.store import RunWriter

#: text, duration on the host, gpu_busy_ns (None: it launched nothing), how many such ranges. Each next one is 10 ns longer in both.
RANGES = (
    ("naive n=8", 1_000, 500, 3),
    ("naive n=16", 2_000, 1_500, 3),
    ("tiled n=8", 900, 250, 3),
    ("tiled n=16", 1_100, 400, 3),
    ("load data", 5_000, None, 2),
    ("setup", 9_000, 100, 1),
)
EXPRESSION = r"^(?P<variant>naive|tiled) (?P<case>n=\d+)$"


def write(data_dir: Path, run_id: str = "annotated", *, unclosed: bool = True) -> Path:
    """Write the run; ranges of one text follow each other, and the last range of all was never closed.

    Returns:
        The folder of the run.
    """
    ranges: list[dict[str, Any]] = []
    start = 0
    for text, host_ns, busy_ns, count in RANGES:
        for number in range(count):
            busy = None if busy_ns is None else busy_ns + 10 * number
            ranges.append(_range(len(ranges), text, start, start + host_ns + 10 * number, busy))
            start += host_ns + 1_000
    if unclosed:
        ranges.append(_range(len(ranges), "naive n=8", start, None, None))
    with RunWriter(data_dir, run_id) as writer:
        writer.append("run", [run_row(run_id, run_id)])
        writer.append("ranges", ranges)
        return writer.commit()


def _range(range_id: int, text: str, start: int, end: int | None, busy: int | None) -> dict[str, Any]:
    by_time = ("time_gpu_start_ns", "time_gpu_end_ns", "time_gpu_busy_ns")
    nothing = dict.fromkeys(("parent_id", *by_time, "workload", "variant", "config", "case", "scope", "round"))
    return nothing | {
        "range_id": range_id, "depth": 0, "process": 1, "thread": 1, "domain": "", "text": text, "style": "push_pop",
        "start_ns": start, "end_ns": end, "gpu_start_ns": None if busy is None else start,
        "gpu_end_ns": None if busy is None else start + busy, "gpu_busy_ns": busy,
    }  # fmt: skip
