"""Bench that runs each operation once between cudaProfilerStart and cudaProfilerStop, for a tool around it that replays launches."""

import time
from typing import Any

from cupy.cuda import runtime

from collectors.core.bench import Operation, Pass, Reading
from collectors.core.nvtx_ranges import nvtx_range
from collectors.cuda.events import COLD, CudaBench
from data.range_texts import executions_text


class SingleLaunchBench(CudaBench):
    """A case's buffers on the current GPU. Its samples say nothing: the tool replays each kernel, and empties the caches itself."""

    passes: tuple[Pass, ...] = (COLD,)
    checks_stream = False  # nothing is timed, and the tool may let streams wait for one another

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._looked_at: list[Operation] = []

    def sample(self, operation: Operation, how: Pass) -> Reading:
        started = time.perf_counter_ns()
        if not any(operation is each for each in self._looked_at):
            self._looked_at.append(operation)
            self.device.stream.synchronize()
            runtime.profilerStart()
            try:
                with nvtx_range(executions_text(1)):
                    operation.run()
                self.device.stream.synchronize()
            finally:
                runtime.profilerStop()
        return Reading(time.perf_counter_ns() - started, state=self.device.state.read())
