"""The settings of a process that a variant can change for the others. They are restored after each of its executions."""

import ctypes
import decimal
import gc
import os
import platform
import signal
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from threadpoolctl import ThreadpoolController

from warpladder.collectors.core.user_functions import LibraryFunctions, OwnFunctions

#: Its name, a function that gets it, and one that sets it.
_Setting = tuple[str, Callable[[], Any], Callable[[Any], object]]
_STDOUT, _STDERR = 1, 2
#: Bytes that hold any C library's `fenv_t`.
_ENVIRONMENT_BYTES: Final = 256
#: Machine -> the offset of the control register of floating-point arithmetic in glibc's `fenv_t`, and the mask of its bits that flush
#: numbers to zero and choose the rounding: MXCSR's FTZ, RC and DAZ (Intel SDM, volume 1, section 10.2.3), FPCR's FZ, RMode and FZ16 (Arm ARM, C5.2.8).
_FLOATING_POINT: Final = {"x86_64": (28, 0xE040), "aarch64": (0, 0x01C80000)}
#: Above the file descriptors that programs use by number.
_ASIDE: Final = 200
#: The threads of this process, and variables with which a user binds those of OpenMP to processors.
_TASKS: Final = Path("/proc/self/task")
_LINKS_OF_ONE: Final = 3  # of that folder, where there is one thread
_BINDING: Final = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


class ProcessState:
    """The settings of the process at the time of creation, the settings of PyTorch and JAX when they are first seen, and the arithmetic of a
    new process, which a library can change when it is imported."""

    def __init__(self) -> None:
        for _, get, write in _of_arithmetic():
            if get() != 0:
                write(0)
        self._settings = {setting: setting[1]() for setting in _of_python()}
        self._spare_descriptors = {number: spare for number in (_STDOUT, _STDERR) if (spare := _spare_of(number)) is not None}
        self._seen: set[str] = set()
        self._look_for_libraries()

    def restore(self) -> tuple[str, ...]:
        """Restore what has changed. Returns it in words."""
        self._look_for_libraries()
        changed = [*self._restored_outputs()]
        for setting, before in self._settings.items():
            name, get, write = setting
            try:
                if (now := get()) is not before and now != before:
                    write(before)
                    self._settings[setting] = get()
                    changed.append(name)
            except Exception:  # a folder is gone, or two ways to set something were mixed
                continue
        return tuple(dict.fromkeys(changed))

    def __enter__(self) -> "ProcessState":
        return self

    def __exit__(self, *_: object) -> None:
        """Give back the file descriptors that are kept aside."""
        for spare, _ in self._spare_descriptors.values():
            with suppress(OSError):
                os.close(spare)
        self._spare_descriptors = {}

    def _look_for_libraries(self) -> None:
        for name, (ready, settings_of) in _LATER.items():
            if name not in self._seen and hasattr(sys.modules.get(name), ready):
                self._seen.add(name)
                for setting in settings_of(sys.modules[name]):
                    with suppress(Exception):  # a version that has not all of them
                        self._settings[setting] = setting[1]()

    def _restored_outputs(self) -> Iterator[str]:
        """Open stdout and stderr again where a variant closed them: a file that it opens next would get their numbers."""
        for number, (spare, identity) in self._spare_descriptors.items():
            if _identity(number) != identity:
                with suppress(OSError):
                    os.dup2(spare, number)
                    yield "stdout or stderr"


def _of_python() -> tuple[_Setting, ...]:
    """The settings of Python, NumPy and the thread that measures."""
    depth = sys.getrecursionlimit()
    own, of_libraries = OwnFunctions(), LibraryFunctions([*_FUNCTIONS])
    return (
        *_of_arithmetic(),
        *_of_scheduler(),
        *_of_libraries(),
        ("functions of your file", own.get, own.write),
        ("functions of libraries", of_libraries.get, of_libraries.write),
        ("the profiling of Python (sys.setprofile)", sys.getprofile, sys.setprofile),
        ("the tracing of Python (sys.settrace)", sys.gettrace, sys.settrace),
        ("the profiling of threads", threading.getprofile, threading.setprofile),
        ("the tracing of threads", threading.gettrace, threading.settrace),
        ("the tracing of memory (tracemalloc)", tracemalloc.is_tracing, _set_tracing_of_memory),
        ("the context of decimal numbers", _decimal_context, lambda before: decimal.setcontext(decimal.Context(*before))),
        ("when garbage is collected", lambda: (gc.isenabled(), gc.get_threshold()), _set_garbage_collection),
        ("how often Python changes threads", sys.getswitchinterval, sys.setswitchinterval),
        # A higher limit, which PyTorch's compiler sets, disturbs nobody.
        ("how deep Python calls itself", lambda: min(sys.getrecursionlimit(), depth), sys.setrecursionlimit),
        ("NumPy's buffer size", np.getbufsize, np.setbufsize),
        ("NumPy's functions", lambda: tuple(get(names) for names, get in _GETTERS), _set_functions_of_numpy),
        ("timers that send signals", _timers, _set_timers),
        ("the handlers of signals", lambda: [_handler_of(number) for number in _SIGNALS], _set_signal_handlers),
        ("Numba's number of threads", _threads_of_numba, _set_threads_of_numba),
        ("NumPy's error handling", np.geterr, lambda state: np.seterr(**state)),
        ("the working folder", os.getcwd, os.chdir),
        ("sys.stdout", lambda: _open_file("stdout"), lambda file: _set_file("stdout", file)),
        ("sys.stderr", lambda: _open_file("stderr"), lambda file: _set_file("stderr", file)),
        ("the filters of warnings", lambda: _strict_of(tuple(warnings.filters)), _set_strict_filters),
        ("how warnings are shown", lambda: warnings.showwarning, lambda show: setattr(warnings, "showwarning", show)),
    )


def _of_arithmetic() -> Iterator[_Setting]:
    """Whether small numbers are flushed to zero, and how numbers are rounded. Nothing where the C library cannot tell."""
    place = _FLOATING_POINT.get(platform.machine())
    library = ctypes.CDLL(None)
    if place is None or platform.libc_ver()[0] != "glibc" or not hasattr(library, "fegetenv"):
        return
    offset, mask = place
    environment = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    register, read = ctypes.c_uint32.from_buffer(environment, offset), library.fegetenv

    def get() -> int:
        read(environment)
        return register.value & mask

    def write(bits: int) -> None:
        read(environment)
        register.value = register.value & ~mask & 0xFFFFFFFF | bits
        library.fesetenv(environment)

    yield "how floating-point numbers are rounded", get, write


def _of_scheduler() -> Iterator[_Setting]:
    """The processors that the thread may run on, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        yield "the processors that it may run on", partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)
        if _TASKS.is_dir() and not any(each in os.environ for each in _BINDING):
            yield "the processors that its threads may run on", _processors_of_threads, _set_processors_of_threads
    if hasattr(os, "getpriority"):
        yield (
            "its priority",
            partial(os.getpriority, os.PRIO_PROCESS, 0),
            _if_permitted(partial(os.setpriority, os.PRIO_PROCESS, 0)),
        )
    if hasattr(os, "sched_getscheduler"):
        policy = _if_permitted(lambda before: os.sched_setscheduler(0, before, os.sched_param(0)))
        yield "how it is scheduled", partial(os.sched_getscheduler, 0), policy


def _if_permitted(write: Callable[[Any], object]) -> Callable[[Any], None]:
    """Write a setting that only some users may. For the others the change is named all the same."""

    def attempt(before: Any) -> None:
        with suppress(PermissionError):
            write(before)

    return attempt


def _processors_of_threads() -> set[frozenset[int]]:
    """The sets of processors that threads of this process may run on, without regard to which threads there are."""
    if _TASKS.stat().st_nlink == _LINKS_OF_ONE:
        return {frozenset(os.sched_getaffinity(0))}
    found = set()
    for thread in os.listdir(_TASKS):  # noqa: PTH208 - a text is all that is needed, after each sample
        with suppress(OSError):  # it has ended
            found.add(frozenset(os.sched_getaffinity(int(thread))))
    return found


def _set_processors_of_threads(before: set[frozenset[int]]) -> None:
    """Let all threads run where they could at first, if that was the same for all."""
    if len(before) == 1:
        for thread in os.listdir(_TASKS):  # noqa: PTH208 - a text is all that is needed, after each sample
            with suppress(OSError):
                os.sched_setaffinity(int(thread), next(iter(before)))


def _of_libraries() -> Iterator[_Setting]:
    """The numbers of threads of BLAS and OpenMP."""
    for library in ThreadpoolController().lib_controllers:
        name = {"openblas": "OpenBLAS", "openmp": "OpenMP", "mkl": "MKL", "blis": "BLIS"}.get(library.internal_api, "BLAS")
        yield f"{name}'s number of threads", library.get_num_threads, library.set_num_threads


def _set_tracing_of_memory(on: bool) -> None:
    if not on:
        tracemalloc.stop()


def _decimal_context() -> tuple[Any, ...]:
    """The settings of the context, as its class takes them, without the conditions that occurred."""
    *settings, _, raised = decimal.getcontext().__reduce__()[1]
    return (*settings, [], raised)


def _set_garbage_collection(before: tuple[bool, tuple[int, int, int]]) -> None:
    (gc.enable if before[0] else gc.disable)()
    gc.set_threshold(*before[1])


#: The functions of NumPy's modules that other variants call, by module, and what gets them all at once.
_FUNCTIONS: Final = {
    module: tuple(name for name, each in vars(module).items() if callable(each)) for module in (np, np.linalg, np.fft)
}
_GETTERS: Final = [(vars(module), itemgetter(*names)) for module, names in _FUNCTIONS.items()]


def _set_functions_of_numpy(before: tuple[tuple[Any, ...], ...]) -> None:
    for (module, names), functions in zip(_FUNCTIONS.items(), before, strict=True):
        for name, function in zip(names, functions, strict=True):
            if vars(module).get(name) is not function:
                setattr(module, name, function)


_SIGNALS: Final = tuple(
    sorted(int(each) for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP} if each <= signal.SIGSYS)
)
_TIMERS: Final = tuple(
    getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF") if hasattr(signal, name)
)


#: The function without the conversion to names, which takes ten times as long.
_handler_of: Final[Callable[[int], Any]] = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)


def _set_signal_handlers(before: list[Any]) -> None:
    """Put handlers back. One that Python did not install cannot be, and no thread but the first can."""
    for number, handler in zip(_SIGNALS, before, strict=True):
        if handler is not None and _handler_of(number) is not handler:
            signal.signal(number, handler)


def _timers() -> tuple[bool, ...]:
    return tuple(signal.getitimer(timer) != (0.0, 0.0) for timer in _TIMERS)


def _set_timers(before: tuple[bool, ...]) -> None:
    """Stop timers that did not run. One that ran may have ended by itself."""
    for timer, was_on in zip(_TIMERS, before, strict=True):
        if not was_on:
            signal.setitimer(timer, 0)


def _threads_of_numba() -> int | None:
    """The number of threads that Numba's parallel functions use; None for all of them."""
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    if parallel is None or not parallel._is_initialized:  # asking Numba itself would start its threads
        return None
    threads = int(parallel.get_num_threads())
    return None if threads == sys.modules["numba"].config.NUMBA_NUM_THREADS else threads


def _set_threads_of_numba(threads: int | None) -> None:
    sys.modules["numba.np.ufunc.parallel"].set_num_threads(threads or sys.modules["numba"].config.NUMBA_NUM_THREADS)


def _of_torch(torch: Any) -> tuple[_Setting, ...]:
    """The settings of PyTorch."""
    return (
        ("PyTorch's default type", torch.get_default_dtype, torch.set_default_dtype),
        ("PyTorch's gradient mode", torch.is_grad_enabled, torch.set_grad_enabled),
        ("PyTorch's precision of products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        ("PyTorch's number of threads", torch.get_num_threads, torch.set_num_threads),
        (
            "PyTorch's search for anomalies",
            lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
            lambda before: torch.autograd.set_detect_anomaly(*before),
        ),
        (
            "PyTorch's choice of deterministic algorithms",
            lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
            lambda before: torch.use_deterministic_algorithms(before[0], warn_only=before[1]),
        ),
        *(
            (f"PyTorch's use of {label}", partial(_flags_of, library), partial(_set_flags_of, library))
            for label, library in (("oneDNN", torch.backends.mkldnn), ("cuDNN", torch.backends.cudnn))
        ),
    )


def _flags_of(library: Any) -> dict[str, bool]:
    return {name: getattr(library, name) for name in ("enabled", "benchmark", "deterministic") if hasattr(library, name)}


def _set_flags_of(library: Any, before: dict[str, bool]) -> None:
    for name, flag in before.items():
        setattr(library, name, flag)


def _of_jax(jax: Any) -> tuple[_Setting, ...]:
    """The settings of JAX that change what a call computes or checks."""
    return tuple((f"JAX's {name}", partial(getattr, jax.config, name), partial(jax.config.update, name)) for name in _OF_JAX)


_OF_JAX: Final = (
    "jax_check_tracer_leaks",
    "jax_debug_infs",
    "jax_debug_nans",
    "jax_default_matmul_precision",
    "jax_disable_jit",
    "jax_enable_x64",
    "jax_log_compiles",
)
#: Libraries that may be imported later: what they have when they are ready, and what gives their settings.
_LATER: Final = {"torch": ("set_num_threads", _of_torch), "jax": ("config", _of_jax)}


def _open_file(name: str) -> Any:
    """`sys.stdout` or `sys.stderr`; None if it is closed."""
    file = getattr(sys, name, None)
    return None if getattr(file, "closed", False) else file


def _set_file(name: str, file: Any) -> None:
    """Put a file back, or one that writes to the same descriptor if it was closed."""
    if getattr(file, "closed", False):
        number = _STDOUT if name == "stdout" else _STDERR
        file = open(number, "w", closefd=False, errors="replace")  # noqa: SIM115
    setattr(sys, name, file)


def _is_strict(each: Any) -> bool:
    """Whether a filter makes exceptions of warnings, or shows each of all. Libraries add others when they are imported."""
    return bool(each[0] == "error" or each[:4] == ("always", None, Warning, None))


@lru_cache(maxsize=1)
def _strict_of(filters: tuple[Any, ...]) -> list[Any]:
    return [each for each in filters if _is_strict(each)]


def _set_strict_filters(before: list[Any]) -> None:
    warnings.filters[:] = [each for each in warnings.filters if not _is_strict(each) or each in before]  # type: ignore[index]
    warnings.filterwarnings("ignore", "^$")  # has Python see the change
    del warnings.filters[0]  # type: ignore[attr-defined]


def _identity(number: int) -> tuple[int, int] | None:
    """The file that a descriptor is open on; None if it is closed."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _spare_of(number: int) -> tuple[int, tuple[int, int]] | None:
    """A second descriptor of the same file, and what it is open on; None if it is closed."""
    identity = _identity(number)
    if identity is None:
        return None
    import fcntl

    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _ASIDE), identity
    except (OSError, ValueError):  # fewer descriptors are allowed
        return os.dup(number), identity
