"""Reads clock, temperature, power, energy and throttle reasons of one GPU through NVML."""

import os
import time
from typing import Any, Final

import pynvml

from warpladder.data.limits import THROTTLING

#: Why the energy of a GPU that MIG divides is of no use.
DIVIDED: Final = "the GPU is divided by MIG, and NVML counts the energy of the whole GPU"

#: A reading takes longer than a short kernel; samples within this many seconds share one.
MAX_AGE_S: Final = 0.005


class GpuState:
    """Reads one GPU's state, at most every `MAX_AGE_S`.

    Args:
        pci_bus_id: as the CUDA runtime returns it. It identifies the GPU independently of CUDA_VISIBLE_DEVICES.
    """

    def __init__(self, pci_bus_id: str) -> None:
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id)
        self._read_at = 0.0
        self._state: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Return the columns of `samples` about the GPU's state; a value that NVML lacks is None, as is the clock held."""
        now = time.monotonic()
        if now - self._read_at > MAX_AGE_S:
            self._state = {
                "sm_clock_mhz": _ask(pynvml.nvmlDeviceGetClockInfo, self._handle, pynvml.NVML_CLOCK_SM),
                "held_clock_mhz": None,
                "temperature_c": _ask(pynvml.nvmlDeviceGetTemperature, self._handle, pynvml.NVML_TEMPERATURE_GPU),
                "power_w": _watts(_ask(pynvml.nvmlDeviceGetPowerUsage, self._handle)),
                "throttle_reasons": _ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle),
            }
            self._read_at = time.monotonic()
        return self._state

    def energy_mj(self) -> int:
        """Energy of the whole GPU in mJ since the driver was loaded. Raises NVMLError."""
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def energy_problem(self) -> str:
        """Why `energy_mj` cannot be the energy of a variant on this GPU; empty if it can."""
        if _is_divided(self._handle):
            return DIVIDED
        try:
            self.energy_mj()
        except pynvml.NVMLError as error:
            return f"NVML reads no energy of this GPU ({error}); GPUs of compute capability 7.0 or more have a counter"
        return ""

    def others(self) -> tuple[str, ...]:
        """Other processes that use the GPU, each with its name and number.

        In a container, NVML may number processes as the host does. A single process is then taken to be this one.
        """
        using = {
            each.pid
            for ask in (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
            for each in _ask(ask, self._handle) or ()
        }
        if os.getpid() not in using and len(using) == 1:
            return ()
        names = {pid: _ask(pynvml.nvmlSystemGetProcessName, pid) or "a process" for pid in using - {os.getpid()}}
        return tuple(f"{name} (process {pid})" for pid, name in sorted(names.items()))

    def driver_version(self) -> str:
        return str(pynvml.nvmlSystemGetDriverVersion())


def is_throttled(state: dict[str, Any]) -> bool:
    """Whether a reading of `GpuState.read` shows a reduced clock."""
    return bool((state["throttle_reasons"] or 0) & THROTTLING)


def _ask(question: Any, *arguments: Any) -> Any:
    try:
        return question(*arguments)
    except pynvml.NVMLError:
        return None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def architectures() -> tuple[str, ...]:
    """Return the distinct architectures of this host's GPUs, such as `sm_90`. Creates no CUDA context."""
    return tuple(dict.fromkeys("sm_{}{}".format(*pynvml.nvmlDeviceGetCudaComputeCapability(handle)) for handle in _gpus()))


def least_memory() -> int:
    """Return the bytes of the GPU of this host that has the least. Creates no CUDA context."""
    return min(int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) for handle in _gpus())


def all_divided() -> bool:
    """Whether every GPU of this host is divided into instances (MIG). Creates no CUDA context."""
    return all(map(_is_divided, _gpus()))


def _gpus() -> list[Any]:
    pynvml.nvmlInit()
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _is_divided(handle: Any) -> bool:
    """Whether MIG is enabled. NVML cannot answer for a GPU that has no such mode."""
    current, _ = _ask(pynvml.nvmlDeviceGetMigMode, handle) or (0, 0)
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)
