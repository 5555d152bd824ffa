"""Functions on the host that leave work to a later time, parts of an output that a norm does not see, and settings left to neighbours."""

import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from threadpoolctl import ThreadpoolController

import warpladder
from tests.specimens.catalogue import OWN, Collection, Kind, Restored, Unmoved, Wrong

found = Collection()

# -- work later ------------------------------------------------------------------------------------------------------------------

later = warpladder.Benchmark("specimens_host_later", n=[300_000])


@later.inputs
def numbers(n: int, rng: np.random.Generator) -> Any:
    return rng.standard_normal(n, np.float32)


@later.reference
def roots(x: Any) -> Any:
    return {"y": np.cbrt(np.cbrt(x * x + 1))}


def computed(x: Any) -> Any:
    return np.cbrt(np.cbrt(x * x + np.float32(1)))


@found.right(later, "NumPy", baseline=True)
def roots_at_once(x: Any) -> Any:
    return {"y": computed(x)}


class _Dict(dict):  # type: ignore[type-arg]
    def __getitem__(self, name: str) -> Any:
        return computed(self.x)


class _List(list):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        return iter([computed(self.x)])


class _Array(np.ndarray):
    todo: Any = None

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        if self.todo is not None:
            x, self.todo = self.todo, None
            np.ndarray.view(self, np.ndarray)[:] = computed(x)
        return np.ndarray.dtype.__get__(self)  # type: ignore[attr-defined]


@found.specimen(later, Kind.ELSEWHERE, OWN, Unmoved())
def dict_computes_when_it_is_read(x: Any) -> Any:
    """It returns a dict of a class of its own, which computes an output when it is asked for it."""
    returned = _Dict(y=None)
    returned.x = x  # type: ignore[attr-defined]
    return returned


@found.specimen(later, Kind.ELSEWHERE, OWN, Unmoved())
def list_computes_when_it_is_read(x: Any) -> Any:
    """It returns a list of a class of its own, which computes when it is gone through."""
    returned = _List([None])
    returned.x = x  # type: ignore[attr-defined]
    return returned


@found.specimen(later, Kind.ELSEWHERE, OWN, Unmoved())
def array_computes_when_its_type_is_read(x: Any) -> Any:
    """It returns an array of a class of its own, which computes when its type is asked for."""
    returned = np.empty_like(x).view(_Array)
    returned.todo = x
    return {"y": returned}


#: Before each part, so that beside other programs too the thread is not done before the function has returned.
_PAUSE_S: Final = 0.001
_jobs: Final[queue.SimpleQueue[Any]] = queue.SimpleQueue()


def _work() -> None:
    while True:
        x, out = _jobs.get()
        for at in range(0, len(x), 1 << 13):
            time.sleep(_PAUSE_S)
            out[at : at + (1 << 13)] = computed(x[at : at + (1 << 13)])


threading.Thread(target=_work, daemon=True).start()


@found.specimen(later, Kind.ELSEWHERE, OWN, Wrong("not finite|L2 error|largest error|too few right digits"))
def thread_keeps_ahead_of_the_comparison(x: Any, out: Any) -> None:
    """It computes the first elements, and has a thread compute the others while these are compared."""
    first = len(x) // 16
    _jobs.put((x[first:], out[first:]))
    out[:first] = computed(x[:first])


# -- small parts -------------------------------------------------------------------------------------------------------------------

tails = warpladder.Benchmark("specimens_host_tails", n=[50_000])


@tails.inputs
def exponents(n: int, rng: np.random.Generator) -> Any:
    return rng.standard_normal(n, np.float32)


@tails.reference
def powers_and_energy(x: Any) -> Any:
    return {"power": np.exp(6 * x), "joule": 1.38e-23 * x * x}


def _powers_and_energy(x: Any) -> dict[str, Any]:
    return {"power": np.exp(6 * x), "joule": np.float32(1.38e-23) * x * x}


@found.right(tails, "NumPy", baseline=True)
def powers_of_all(x: Any) -> Any:
    return _powers_and_energy(x)


@found.right(tails, "NumPy")
def powers_of_powers(x: Any) -> Any:
    return _powers_and_energy(x) | {"power": np.exp(x) ** 6}


@found.specimen(tails, Kind.SKIPPED, OWN, Wrong("have too few right digits"))
def leaves_out_small_powers(x: Any) -> Any:
    """It leaves out half of the elements, which are small beside the others."""
    return _powers_and_energy(x) | {"power": np.where(x < 0, np.float32(0), np.exp(6 * np.maximum(x, 0)))}


@found.specimen(tails, Kind.SKIPPED, OWN, Wrong("joule: relative L2 error 1 "))
def leaves_out_an_output_in_small_units(x: Any) -> Any:
    """It leaves out an output whose unit makes it small beside the other one."""
    return _powers_and_energy(x) | {"joule": np.zeros_like(x)}


# -- settings ------------------------------------------------------------------------------------------------------------------------

settings = warpladder.Benchmark("specimens_host_neighbours", n=[64])


@settings.inputs
def two_matrices(n: int, rng: np.random.Generator) -> Any:
    return {name: rng.standard_normal((n, n), np.float32) for name in ("a", "b")}


@settings.reference
def product(a: Any, b: Any) -> Any:
    return np.tanh(a @ b)


@found.right(settings, "NumPy", baseline=True)
def product_alone(a: Any, b: Any) -> Any:
    return np.tanh(a @ b)


_blas: Final = [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]
_tanh: Final = np.tanh


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("sys.setprofile"))
def leaves_a_profiler(a: Any, b: Any) -> Any:
    """It has Python call a function at each call of the others."""
    sys.setprofile(None)
    out = product_alone(a, b)
    sys.setprofile(lambda *_: None)
    return out


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("sys.settrace"))
def leaves_a_tracer(a: Any, b: Any) -> Any:
    """It has Python call a function at each line of the others."""
    out = product_alone(a, b)
    sys.settrace(lambda *_: None)
    return out


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("number of threads"))
def leaves_other_threads_of_blas(a: Any, b: Any) -> Any:
    """It changes how many threads BLAS has for the others."""
    out = product_alone(a, b)
    for each in _blas:
        each.set_num_threads(1 + each.get_num_threads() % 2)
    return out


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("NumPy's functions"))
def leaves_a_slow_function(a: Any, b: Any) -> Any:
    """It replaces a function of NumPy that the others call."""
    out = _tanh(a @ b)
    np.tanh = lambda x: _tanh(_tanh(x) * 0 + x)  # type: ignore[assignment]
    return out


@found.specimen(settings, Kind.SETTINGS, OWN, Restored("timers that send signals"))
def leaves_a_timer(a: Any, b: Any) -> Any:
    """It leaves a timer on, whose signals interrupt the others."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    out = product_alone(a, b)
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    return out
