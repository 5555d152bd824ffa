"""Records files of benchmarks."""

from pathlib import Path

from warpladder.collectors.core import plan
from warpladder.collectors.core.record import Recorder
from warpladder.collectors.wiring import collector_of
from warpladder.data import store


def record(folder: Path, text: str, rounds: int = 2) -> store.Run:
    """Write a file of benchmarks, and record it on the host."""
    file = folder / "bench.py"
    file.write_text(text)
    work = plan.make_plan(plan.Request(files=[file], max_rounds=rounds))
    run_id, _ = Recorder(work, collector_of("host_clock")).record(folder / "runs", "", [])
    return store.open_run(folder / "runs" / run_id)
