"""Marks the part of a process that a profiler around it captures."""

from typing import Any


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
