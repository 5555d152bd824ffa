"""The entry of the collector `cuda_events`."""

from typing import Any, Final

from warpladder.collectors.core.entry import Entry


class ProfilerRange:
    """Tells a profiler around this process where its capture begins. Has no effect without a profiler."""

    def begin(self) -> None:
        from cupy.cuda import runtime

        runtime.profilerStart()

    def take(self) -> Any:
        return None

    def end(self) -> None:
        from cupy.cuda import runtime

        runtime.deviceSynchronize()
        runtime.profilerStop()


ENTRY: Final = Entry("cuda_events", capture=ProfilerRange)
