"""Bench that runs each operation once between cudaProfilerStart and cudaProfilerStop, for a tool around it that replays launches."""

import time
from typing import Final

from cupy.cuda import runtime

from collectors.bench import Operation
from collectors.cuda_events import COLD, CudaBench
from collectors.nvtx_ranges import executions_text, nvtx_range
from collectors.rounds import Pass, Reading


class SingleLaunchBench(CudaBench):
    """A case's buffers on the current GPU. Its samples say nothing: the tool replays each kernel, and empties the caches itself."""

    passes: tuple[Pass, ...] = (COLD,)

    def sample(self, operation: Operation, how: Pass) -> Reading:
        started = time.perf_counter_ns()
        if operation.run is not _NOTHING:
            self.device.stream.synchronize()
            runtime.profilerStart()
            try:
                with nvtx_range(executions_text(1)):
                    operation.run()
                self.device.stream.synchronize()
            finally:
                runtime.profilerStop()
            operation.run = _NOTHING
        return Reading(time.perf_counter_ns() - started, state=self.device.state.read())


def _nothing() -> None:
    """Stands for an operation that has been looked at."""


_NOTHING: Final = _nothing
