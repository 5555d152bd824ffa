"""The part of a process that a profiler around it should capture."""

from typing import Any


class ProfilerRange:
    """Tells a profiler around this process where the part begins that it should capture. Without one that has no effect."""

    def begin(self) -> None:
        from cupy.cuda import runtime

        runtime.profilerStart()

    def take(self) -> Any:
        return None

    def end(self) -> None:
        from cupy.cuda import runtime

        runtime.deviceSynchronize()
        runtime.profilerStop()
