"""The verdicts for exceptions that variants raise."""

from warpladder.collectors.core.bench import Failed
from warpladder.collectors.core.verdicts import Cell
from warpladder.workloads.api import WorkloadError, WrongOutput
from warpladder.workloads.functions.extensions import CallFailed
from warpladder.workloads.locate import text_of, where


class CellCrashed(Exception):
    """A cell made the process unusable, for example by a sticky CUDA error."""

    def __init__(self, cell: Cell, status: str, detail: str) -> None:
        super().__init__(detail)
        self.cell, self.status, self.detail = cell, status, detail


def classify(error: BaseException) -> tuple[str, str]:
    """Return status and detail of the result row for an exception that a variant raised."""
    if isinstance(error, Failed):
        return error.status, error.detail
    if isinstance(error, WrongOutput):
        return "wrong_result", str(error)
    if isinstance(error, WorkloadError):
        return "launch_error", str(error)
    name, text = type(error).__name__, text_of(error)
    said = ": ".join(filter(None, [where(error), name, text]))
    if isinstance(error, MemoryError) or "OutOfMemory" in name or "out of memory" in text.lower():
        return "out_of_memory", said
    return "launch_error", said


def is_sticky(error: BaseException) -> bool:
    """Whether the error leaves the process's CUDA context unusable, so that every later call fails too."""
    if isinstance(error, Failed | CallFailed):
        return error.lasting
    of_device = ("CUDARuntimeError", "CUDADriverError", "AcceleratorError", "NcclError")
    return type(error).__name__ in of_device and "out of memory" not in text_of(error)
