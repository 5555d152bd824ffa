"""Functions on the host that change their process: its settings, or its clock."""

import ctypes
import os
import platform
import time
from typing import Any, Final

import numba
import numpy as np

import warpladder
from tests.specimens.catalogue import EXPLOITS, OWN, STATIC_CHECKER, Collection, Kind, Restored, Unmoved, Wrong

found = Collection()
HALF: Final = np.float32(0.5)
#: Where flush-to-zero is in what `fegetenv` of glibc gives: the byte at which the register begins, and its bits.
FLUSH: Final = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}

#: Inputs and outputs are subnormal: they are zero where a neighbour's setting lasts.
settings = warpladder.Benchmark("specimens_settings", n=[4096])


@settings.inputs
def tiny_numbers(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n, np.float32) * np.float32(1e-38)


@settings.reference
def halved(x: Any) -> Any:
    return x * 0.5


CPUS: Final = len(os.sched_getaffinity(0))
THREADS: Final = numba.get_num_threads()


def checked(x: Any) -> Any:
    """The right outputs, where no setting has changed."""
    now = len(os.sched_getaffinity(0)), numba.get_num_threads()
    if now != (CPUS, THREADS):
        raise RuntimeError(f"the process has {now[0]} processors and {now[1]} threads, and had {CPUS} and {THREADS}")
    return x * HALF


found.right(settings, "NumPy", baseline=True, name="checks_settings")(checked)


def flush_to_zero() -> None:
    """Have the processor replace subnormal numbers by zero, in this thread."""
    libm, state = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 16)()
    libm.fegetenv(state)
    place, bits = FLUSH[platform.machine()]
    state[place // 4] |= bits
    libm.fesetenv(state)


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("subnormal|zero|floating"), name="sets_flush_to_zero")
def sets_flush_to_zero(x: Any) -> Any:
    """It is right, and has the processor flush subnormal numbers to zero from then on."""
    out = x * HALF
    flush_to_zero()
    return out


@found.specimen(settings, Kind.SETTINGS, OWN, Wrong("L2 error"))
def computes_with_flush_to_zero(x: Any) -> Any:
    """It has the processor flush subnormal numbers to zero, its own too."""
    flush_to_zero()
    return x * HALF


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("affinity|processors"))
def pins_its_process(x: Any) -> Any:
    """It is right, and pins its process to one processor."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return x * HALF


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("Numba"))
def takes_one_thread(x: Any) -> Any:
    """It is right, and has Numba use one thread from then on."""
    numba.set_num_threads(1)
    return x * HALF


found.right(settings, "NumPy", name="checks_settings_again")(checked)

#: So slow that a false clock shows.
clock = warpladder.Benchmark("specimens_clock", n=[1 << 18])


@clock.inputs
def numbers(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n, np.float32)


@clock.reference
def sines(x: Any) -> Any:
    return np.sin(x)


@found.right(clock, "NumPy", baseline=True)
def sine(x: Any) -> Any:
    return np.sin(x)


def _slowed(clock: Any, started: float) -> Any:
    return lambda: started + (clock() - started) // 1000


@found.specimen(clock, Kind.CLOCK, STATIC_CHECKER, Unmoved())
def replaces_the_clock(x: Any) -> Any:
    """It replaces the functions of the module `time` by slower clocks."""
    for name in ("perf_counter", "perf_counter_ns"):
        function = getattr(time, name)
        if not getattr(function, "is_slow", False):
            slow = _slowed(function, function())
            slow.is_slow = True
            setattr(time, name, slow)
    return np.sin(x)


@found.specimen(clock, Kind.HARNESS, f"{EXPLOITS}/submission_fd_overwrite.py", Wrong("its process died", "launch_error"))
def ends_the_process(x: Any) -> Any:
    """It ends its process with the exit code of success, before anything is compared."""
    os._exit(0)


@found.right(clock, "NumPy")
def sine_into(x: Any, out: Any) -> None:
    np.sin(x, out=out)
