"""Settings of a process are restored after a variant changed them, and what ends a measuring thread is no verdict."""

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
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from warpladder.collectors.core.bench import Ended, Pass, Reading
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.process_state import ProcessState
from warpladder.collectors.core.rounds import Entry, Limits, SampleFailed, Turn, run_rounds
from warpladder.workloads.declare.neighbours import load

#: On a single processor, no thread can be bound to fewer, and Numba has no second thread to give up.
two_processors = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs two processors: on one, nothing can be bound to fewer"
)
_BLAS = next(each for each in ThreadpoolController().lib_controllers if each.internal_api == "openblas")


def _descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def flush_to_zero() -> None:
    """As a library that was compiled with -ffast-math does when it is loaded, through the C library's own environment."""
    library, environment = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    library.fegetenv(environment)
    at, bits = (28, 0x8040) if platform.machine() == "x86_64" else (0, 1 << 24)
    ctypes.c_uint32.from_buffer(environment, at).value |= bits
    library.fesetenv(environment)


def smallest_product() -> float:
    """0 where numbers below the smallest normal one are flushed."""
    return float(np.float32(1e-38) * np.float32(0.01))


def os_affinity() -> set[int]:
    return os.sched_getaffinity(0)


def test_the_changes_of_these_tests_are_seen_where_nothing_restores_them() -> None:
    with ProcessState() as state:
        flush_to_zero()
        assert smallest_product() == 0
        state.restore()
        assert smallest_product() > 0


def test_a_library_that_flushed_to_zero_where_it_was_imported_flushes_nobody_s_numbers() -> None:
    flush_to_zero()
    with ProcessState() as state:
        assert smallest_product() > 0 and state.restore() == ()


def test_a_priority_that_no_user_may_raise_again_is_named_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    levels = iter((0, 0, 5, 5, 5))
    monkeypatch.setattr(os, "getpriority", lambda *_: next(levels))
    with ProcessState() as state:
        monkeypatch.setattr(os, "setpriority", refuse)
        assert state.restore() == ()
        assert state.restore() == ("its priority",)
        assert state.restore() == ()


@two_processors
def test_other_threads_that_were_bound_to_a_processor_run_everywhere_again() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    everywhere = os.sched_getaffinity(0)
    try:
        with ProcessState() as state:
            os.sched_setaffinity(thread.native_id or 0, {min(everywhere)})
            assert state.restore() == ("the processors that its threads may run on",)
            assert os.sched_getaffinity(thread.native_id or 0) == everywhere
    finally:
        end.set()
        thread.join()


def test_what_is_as_before_is_not_named() -> None:
    with ProcessState() as state:
        assert state.restore() == ()


@pytest.mark.parametrize(
    ("change", "get", "name"),
    [
        (lambda: np.seterr(over="raise", invalid="ignore"), np.geterr, "NumPy's error handling"),
        (lambda: os.chdir("/"), os.getcwd, "the working folder"),
        (lambda: setattr(sys, "stderr", None), lambda: sys.stderr, "sys.stderr"),
        (lambda: warnings.simplefilter("error"), lambda: list(warnings.filters), "the filters of warnings"),
        (lambda: flush_to_zero(), lambda: smallest_product(), "how floating-point numbers are rounded"),
        pytest.param(
            lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
            os_affinity,
            "the processors that it may run on",
            marks=two_processors,
        ),
        pytest.param(
            lambda: numba.set_num_threads(1), numba.get_num_threads, "Numba's number of threads", marks=two_processors
        ),
        (lambda: sys.setprofile(lambda *_: None), sys.getprofile, "the profiling of Python (sys.setprofile)"),
        (lambda: sys.settrace(lambda *_: None), sys.gettrace, "the tracing of Python (sys.settrace)"),
        (lambda: threading.setprofile(lambda *_: None), threading.getprofile, "the profiling of threads"),
        (lambda: tracemalloc.start(), tracemalloc.is_tracing, "the tracing of memory (tracemalloc)"),
        (
            lambda: setattr(decimal.getcontext(), "prec", 5000),
            lambda: decimal.getcontext().prec,
            "the context of decimal numbers",
        ),
        (lambda: gc.set_threshold(20, 1, 1), gc.get_threshold, "when garbage is collected"),
        (lambda: sys.setswitchinterval(1e-6), sys.getswitchinterval, "how often Python changes threads"),
        (lambda: np.setbufsize(1024), np.getbufsize, "NumPy's buffer size"),
        (lambda: setattr(warnings, "showwarning", print), lambda: warnings.showwarning, "how warnings are shown"),
        (lambda: warnings.simplefilter("always"), lambda: warnings.filters[0], "the filters of warnings"),
        (lambda: setattr(np, "tanh", np.sin), lambda: np.tanh, "NumPy's functions"),
        (lambda: setattr(np.linalg, "norm", np.sum), lambda: np.linalg.norm, "NumPy's functions"),
        (
            lambda: signal.signal(signal.SIGALRM, lambda *_: None),
            lambda: signal.getsignal(signal.SIGALRM),
            "the handlers of signals",
        ),
        (
            lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 99, 99),
            lambda: signal.getitimer(signal.ITIMER_VIRTUAL),
            "timers that send signals",
        ),
        (lambda: _BLAS.set_num_threads(1 + _BLAS.get_num_threads() % 2), _BLAS.get_num_threads, "OpenBLAS's number of threads"),
    ],
)
def test_a_changed_setting_is_restored_and_named(change: Callable[[], object], get: Callable[[], object], name: str) -> None:
    with ProcessState() as state:
        before = get()
        change()
        assert state.restore() == (name,)
        assert get() == before and state.restore() == ()


@pytest.mark.parametrize(
    ("library", "change", "get", "name"),
    [
        (
            "torch",
            lambda torch: torch.autograd.set_detect_anomaly(True),
            lambda torch: torch.is_anomaly_enabled(),
            "PyTorch's search for anomalies",
        ),
        (
            "torch",
            lambda torch: torch.use_deterministic_algorithms(True),
            lambda torch: torch.are_deterministic_algorithms_enabled(),
            "PyTorch's choice of deterministic algorithms",
        ),
        (
            "torch",
            lambda torch: setattr(torch.backends.mkldnn, "enabled", False),
            lambda torch: torch.backends.mkldnn.enabled,
            "PyTorch's use of oneDNN",
        ),
        (
            "torch",
            lambda torch: setattr(torch.backends.cudnn, "benchmark", True),
            lambda torch: torch.backends.cudnn.benchmark,
            "PyTorch's use of cuDNN",
        ),
        (
            "jax",
            lambda jax: jax.config.update("jax_debug_nans", True),
            lambda jax: jax.config.jax_debug_nans,
            "JAX's jax_debug_nans",
        ),
    ],
)
def test_a_setting_of_a_library_that_is_imported_late_is_restored_and_named(
    library: str, change: Callable[[Any], object], get: Callable[[Any], object], name: str
) -> None:
    with ProcessState() as state:
        imported = pytest.importorskip(library)
        assert state.restore() == ()
        before = get(imported)
        change(imported)
        assert state.restore() == (name,)
        assert get(imported) == before and state.restore() == ()


def test_functions_of_the_file_that_a_variant_replaces_are_restored_and_named_and_new_ones_stay(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text("def work(x):\n    return x\n\ndef slow(x):\n    return x + 1\n")
    module = load(file)
    work, code = module.work, module.work.__code__
    with ProcessState() as state:
        module.work = module.slow
        module.more = module.slow
        assert state.restore() == ("functions of your file",) and module.work is work
        work.__code__ = module.slow.__code__
        assert state.restore() == ("functions of your file",) and work.__code__ is code
        assert state.restore() == () and module.more is module.slow


def test_defaults_and_methods_and_compiled_functions_of_the_file_are_restored_too(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text(
        "import functools\nimport numpy as np\n\nTAPS = np.ones(3)\n\n\ndef slow(*args):\n    return args\n\n\n"
        "def work(x, taps=(TAPS,), *, k=1):\n    return x\n\n\nkept = functools.cache(work)\n\n\n"
        "class Solver:\n    def step(self, x):\n        return x\n"
    )
    module = load(file)
    defaults, kept, step = module.work.__defaults__, module.kept, module.Solver.step
    with ProcessState() as state:
        module.work.__defaults__ = (module.TAPS.astype(np.longdouble),)
        assert state.restore() == ("functions of your file",) and module.work.__defaults__ is defaults
        module.work.__kwdefaults__ = {"k": 2}
        assert state.restore() == ("functions of your file",) and module.work.__kwdefaults__ == {"k": 1}
        module.Solver.step, module.kept = module.slow, module.slow
        assert state.restore() == ("functions of your file",) and module.Solver.step is step and module.kept is kept
        assert state.restore() == ()


def test_a_function_of_a_library_is_restored_where_one_of_the_file_stands_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, part = ModuleType("a_library"), ModuleType("a_library.part")
    vars(library).update(part=part, first=lambda x: x)
    vars(part).update(work=lambda x: x, other=lambda x: x, itself=library)
    monkeypatch.setitem(sys.modules, "a_library", library)
    file = tmp_path / "bench.py"
    file.write_text(
        "import a_library\n\n\ndef slow(x):\n    return x + 1\n\n\n"
        "def calls(x):\n    return [a_library.part.itself.part.work(each) for each in a_library.first(x)]\n"
    )
    module = load(file)
    first, work, own = vars(library)["first"], vars(part)["work"], len
    with ProcessState() as state:
        vars(part).update(work=module.slow, other=module.slow)
        assert (
            state.restore() == ("functions of libraries",) and vars(part)["work"] is work and vars(part)["other"] is module.slow
        )
        vars(library)["first"] = own  # as a library does with its own at the first call
        assert state.restore() == () and vars(library)["first"] is own is not first


def test_a_filter_of_warnings_that_a_library_adds_stays() -> None:
    with warnings.catch_warnings(), ProcessState() as state:
        warnings.filterwarnings("ignore", "of a library")
        assert state.restore() == () and warnings.filters[0][0] == "ignore"


def test_a_folder_that_is_gone_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    with ProcessState() as state:
        os.chdir("/")
        (tmp_path / "gone").rmdir()
        assert state.restore() == ()


def test_the_descriptors_kept_aside_are_given_back() -> None:
    before = _descriptors()
    with ProcessState():
        assert _descriptors() > before
    assert _descriptors() == before


@pytest.mark.parametrize(("raised", "becomes"), [(Ended, Ended), (SystemExit, SampleFailed), (KeyboardInterrupt, SampleFailed)])
def test_what_a_variant_raises_is_its_verdict_and_what_ends_the_thread_is_not(
    raised: type[BaseException], becomes: type[BaseException]
) -> None:
    def take(entry: Entry, number: int) -> Reading:
        raise raised

    turn = Turn(0, 0, Limits(min_rounds=1, max_rounds=1))
    with pytest.raises(becomes):
        run_rounds([Entry(Cell("w", "v", "", "n=1"))], Pass("operation", "hot"), take, turn, np.random.default_rng(0), gpus=0)
