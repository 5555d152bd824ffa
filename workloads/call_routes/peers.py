"""The report's two pitfalls on the GPU: the call that nobody waits for, and the lazy view."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.call_routes.problem import calls_of
from warpladder.workloads.call_routes.routes.cupy_raw import CupyRaw


def unsynchronized(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """A pitfall, kept as a specimen: the call is timed on the host and nobody waits for the device.

    Idea: Take the time before and after the call, as for a function of the host.
    Bottleneck: None that is timed: the call returns when the kernel is queued, in the same time at any size.
    Next: Synchronise before reading the clock, or let the device take the time: `cupy_raw_module`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.3: `cupy1` by the host's clock, `cupy2` by events.
    """
    return CupyRaw(case, inputs, outputs)


def cupy_view(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], Buffers]:
    """A pitfall, kept as a specimen: CuPy's transposition of an array is a view, as NumPy's is. No kernel runs.

    Idea: Time `cupy.transpose` by itself, as if it transposed.
    Bottleneck: None: the host makes a new header, and the device does nothing.
    Next: Copy out of the view, or call a kernel: `cupy_raw_module`.
    Source: E. Sgarbanti, Advanced Computer Architectures report, section 0.3.3: 0.0003 ms and 0.0011 ms for 1024x1024, where the
        report's own kernel takes 0.05 ms.
    """
    import cupy

    x, calls = inputs["x"], calls_of(case)

    def views() -> Buffers:
        for _ in range(calls):
            view = cupy.transpose(x)
        return {"y": view}

    return views
