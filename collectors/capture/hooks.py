"""Puts what watches in place of what launches kernels."""

from contextlib import suppress

from warpladder.collectors.capture.cupy_kernels import watch_cupy
from warpladder.collectors.capture.extensions import watch_extensions
from warpladder.collectors.capture.numba_kernels import watch_numba
from warpladder.collectors.capture.triton_kernels import watch_triton
from warpladder.collectors.capture.watch import Watch


def watch_all(watch: Watch) -> None:
    """Watch every tool that is installed here."""
    with suppress(ImportError):
        import cupy

        watch_cupy(watch, cupy)
    with suppress(ImportError):
        import torch
        from triton.runtime import autotuner, jit

        watch_triton(watch, jit, autotuner, torch.cuda.synchronize)
    with suppress(ImportError):
        from numba import cuda
        from numba.cuda import dispatcher

        if hasattr(dispatcher, "_Kernel"):  # Numba's simulator has none
            watch_numba(watch, dispatcher, cuda)
    with suppress(ImportError):
        import torch
        from torch.utils import cpp_extension

        watch_extensions(watch, torch, cpp_extension)
