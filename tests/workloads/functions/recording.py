"""Records files of benchmarks."""

from pathlib import Path

from warpladder.collectors.core import plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.rounds import Limits
from warpladder.collectors.wiring import collector_of
from warpladder.data import store


def record(folder: Path, text: str, rounds: int = 2, limits: Limits | None = None) -> store.Run:
    """Write a file of benchmarks, and record it on the host: in so many rounds, or within these limits."""
    file = folder / "bench.py"
    file.write_text(text)
    work = plan.make_plan(plan.Request(files=[file], max_rounds=None if limits else rounds), limits)
    run_id, _ = Recorder(work, collector_of("host_clock")).record(folder / "runs", "", [])
    return store.open_run(folder / "runs" / run_id)
