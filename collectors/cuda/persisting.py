"""The part of the L2 that a variant may set aside for lines that stay, which a flush would leave there."""

import ctypes
from typing import Any, Final

#: `cudaLimitPersistingL2CacheSize` of the CUDA runtime.
LIMIT: Final = 6


class PersistingLines:
    """Makes lines of the L2 that persist usual ones again, and the limit of their bytes what it was.

    Args:
        runtime: CuPy's module of the CUDA runtime.
        most_bytes: that the device can set aside; 0 where it cannot.
        driver: the driver's library; by default the system's.
    """

    def __init__(self, runtime: Any, most_bytes: int, driver: Any = None) -> None:
        self._runtime, self._has_any = runtime, most_bytes > 0
        if self._has_any:
            self._driver = driver or ctypes.CDLL("libcuda.so.1")
            self._limit = runtime.deviceGetLimit(LIMIT)

    def reset(self) -> None:
        """Call it before each flush. A device that refuses, such as one that several programs share, has no such lines to reset."""
        if not self._has_any:
            return
        if self._runtime.deviceGetLimit(LIMIT) != self._limit:
            self._runtime.deviceSetLimit(LIMIT, self._limit)
        self._has_any = self._driver.cuCtxResetPersistingL2Cache() == 0
