"""Variants that gain time without doing the work, each beside an honest one. `EXAMINED` names the benchmark that is recorded."""

import asyncio
import ctypes
import functools
import gc
import hashlib
import os
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import warpladder

Function = Callable[..., Any]
N = 120_000


def curve(x: Any) -> Any:
    return np.tanh(np.sqrt(x * x + 1)) ** 3


def declare(
    name: str, cheats: dict[str, Function], honest: Function = curve, inputs: Function | None = None, **options: Any
) -> None:
    """A benchmark of an honest variant and cheats, if it is the one that is recorded."""
    if os.environ.get("EXAMINED", name) != name:
        return
    bench = warpladder.Benchmark(name, n=[options.pop("n", N)])
    bench.inputs(inputs or (lambda n, rng: rng.standard_normal(n, np.float32)))
    bench.reference(options.pop("reference", honest), **options)
    bench.variant(honest, name="honest", baseline=True)
    for each, function in cheats.items():
        bench.variant(function, name=each)
    globals()[f"bench_{name}"] = bench


# -- results that are kept --------------------------------------------------------------------------------------------------

by_sum: dict[float, Any] = {}
by_hash: dict[str, Any] = {}
recent: deque[tuple[Any, Any]] = deque(maxlen=8)
halves: dict[bytes, Any] = {}
rows: dict[bytes, Any] = {}
squares: dict[bytes, Any] = {}
folder = Path(tempfile.gettempdir()) / f"kept-{os.getpid()}"


def keyed_by_sum(x: Any) -> Any:
    key = float(x.sum())
    if key not in by_sum:
        by_sum[key] = curve(x)
    return by_sum[key].copy()


def keyed_by_hash(x: Any) -> Any:
    key = hashlib.blake2b(x.tobytes()).hexdigest()
    if key not in by_hash:
        by_hash[key] = curve(x)
    return by_hash[key].copy()


def looks_through_recent(x: Any) -> Any:
    for given, result in recent:
        if np.array_equal(given[:100], x[:100]):
            return result.copy()
    result = curve(x)
    recent.append((x.copy(), result))
    return result.copy()


@functools.lru_cache(maxsize=64)
def _cached(data: bytes) -> Any:
    return curve(np.frombuffer(data, np.float32))


def lru_cache_of_bytes(x: Any) -> Any:
    return _cached(x.tobytes()).copy()


def keeps_half(x: Any) -> Any:
    key, half = x[::1000].tobytes(), len(x) // 2
    if key not in halves:
        halves[key] = curve(x[:half])
    return np.concatenate([halves[key], curve(x[half:])])


def keeps_a_subexpression(x: Any) -> Any:
    """x * x + 1 and its root are kept, the rest is computed"""
    key = x[:64].tobytes()
    if key not in squares:
        squares[key] = np.sqrt(x * x + 1)
    return np.tanh(squares[key]) ** 3


def file_beside(x: Any) -> Any:
    folder.mkdir(exist_ok=True)
    file = folder / f"{x[:8].tobytes().hex()}.npy"
    if not file.exists():
        np.save(file, curve(x))
    return np.load(file)


declare(
    "kept",
    {each.__name__: each for each in (
        keyed_by_sum, keyed_by_hash, looks_through_recent, lru_cache_of_bytes, keeps_half, keeps_a_subexpression, file_beside,
    )},
)  # fmt: skip

ahead: dict[bytes, Any] = {}
of_reference: dict[bytes, Any] = {}
of_honest: dict[bytes, Any] = {}


def inputs_with_answers(n: int, rng: Any) -> Any:
    x = rng.standard_normal(n, np.float32)
    ahead[x[:4].tobytes()] = curve(x)
    return x


def reference_that_notes(x: Any) -> Any:
    y = curve(x)
    of_reference[x[:4].astype(np.float32).tobytes()] = y.astype(np.float32)
    return y


def honest_that_notes(x: Any) -> Any:
    y = curve(x)
    of_honest[x[:4].tobytes()] = y.copy()
    return y


def found(kept: dict[bytes, Any]) -> Function:
    def finds(x: Any) -> Any:
        y = kept.get(x[:4].tobytes())
        return curve(x) if y is None else y.copy()

    return finds


declare(
    "elsewhere",
    {"of_inputs": found(ahead), "of_reference": found(of_reference), "of_honest": found(of_honest)},
    honest_that_notes,
    inputs_with_answers,
    reference=reference_that_notes,
)

# -- work that is left for later --------------------------------------------------------------------------------------------


class OnLook(np.ndarray):
    """Computes when it becomes a plain array."""

    todo: Any = None

    def __array__(self, *_: Any, **__: Any) -> Any:
        return curve(self.todo)

    def __array_finalize__(self, other: Any) -> None:
        if getattr(other, "todo", None) is not None:
            np.ndarray.view(other, np.ndarray)[:] = curve(other.todo)


class Interface:
    def __init__(self, x: Any) -> None:
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    @property
    def __array_interface__(self) -> Any:
        self.y = curve(self.x)
        return self.y.__array_interface__


class Pending(UserDict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return curve(self.data["x"])

    def __iter__(self) -> Iterator[str]:
        return iter(["out"])


class Ordered(OrderedDict[str, Any]):
    def items(self) -> Any:
        return [("out", curve(self["out"]))]


def subclass(x: Any) -> Any:
    y = np.empty_like(x).view(OnLook)
    y.todo = x
    return y


def interface(x: Any) -> Any:
    return Interface(x)


def user_dict(x: Any) -> Any:
    return Pending(x=x)


def ordered(x: Any) -> Any:
    return Ordered(out=x)


pool = ThreadPoolExecutor(1)


def pool_goes_on(x: Any, out: Any) -> None:
    out[: len(x) // 3] = curve(x[: len(x) // 3])
    pool.submit(lambda: np.copyto(out[len(x) // 3 :], curve(x[len(x) // 3 :])))


def timer_finishes(x: Any, out: Any) -> None:
    threading.Timer(0, lambda: np.copyto(out, curve(x))).start()


def alarm_finishes(x: Any, out: Any) -> None:
    signal.signal(signal.SIGALRM, lambda *_: np.copyto(out, curve(x)))
    signal.setitimer(signal.ITIMER_REAL, 1e-6)


def finalizer(x: Any, out: Any) -> None:
    class Token:
        pass

    token = Token()
    token.me = token  # type: ignore[attr-defined]
    weakref.finalize(token, lambda: np.copyto(out, curve(x)))


loop = asyncio.new_event_loop()


def event_loop(x: Any, out: Any) -> None:
    loop.call_soon(lambda: np.copyto(out, curve(x)))


declare("later", {each.__name__: each for each in (subclass, interface, user_dict, ordered, pool_goes_on, timer_finishes, alarm_finishes, finalizer, event_loop)})  # fmt: skip

# -- less than the work -----------------------------------------------------------------------------------------------------


def forgets_the_tail(x: Any, out: Any) -> None:
    whole = len(x) // 4096 * 4096
    out[:whole] = curve(x[:whole])


def every_second(x: Any) -> Any:
    return np.repeat(curve(x[::2]), 2)[: len(x)]


def half_precision(x: Any) -> Any:
    return curve(x.astype(np.float16)).astype(np.float32)


def constant(x: Any) -> Any:
    return np.full_like(x, 0.55)


def table_of_256(x: Any) -> Any:
    grid = np.linspace(-6, 6, 256, dtype=np.float32)
    return curve(grid)[np.clip(((x + 6) * (255 / 12)).astype(np.int32), 0, 255)]


declare("less", {each.__name__: each for each in (forgets_the_tail, every_second, half_precision, constant, table_of_256)})


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_of_the_large(x: Any) -> Any:
    top = x.max(axis=1, keepdims=True)
    e = np.where(x > top - 6, np.exp(np.maximum(x - top, -6)), 0)
    return e / e.sum(axis=1, keepdims=True)


def softmax_of_half_rows(x: Any) -> Any:
    y = np.zeros_like(x)
    y[::2] = softmax(x[::2])
    return y


declare(
    "softmax",
    {"of_the_large": softmax_of_the_large, "of_half_rows": softmax_of_half_rows},
    softmax,
    lambda n, rng: 4 * rng.standard_normal((n, 256), np.float32),
    n=400,
)
declare(
    "sort",
    {
        "partitioned": lambda x: np.partition(x, len(x) // 2),
        "unsorted_end": lambda x: np.concatenate([np.sort(x[:-50]), x[-50:]]),
        "unsorted_now_and_then": (lambda calls: lambda x: x.copy() if next(calls) % 25 == 24 else np.sort(x))(
            iter(range(10**9))
        ),
    },
    np.sort,
)
declare(
    "histogram",
    {
        "of_a_tenth": lambda x: 10 * np.bincount((x[::10] * 50).astype(np.int64), minlength=50),
        "even": lambda x: np.full(50, len(x) // 50),
    },
    lambda x: np.bincount((x * 50).astype(np.int64), minlength=50),
    lambda n, rng: rng.random(n, np.float32),
)
declare(
    "largest",
    {
        "of_every_tenth": lambda x: x[::10].max(keepdims=True),
        "of_the_first_half": lambda x: x[: len(x) // 2].max(keepdims=True),
    },
    lambda x: x.max(keepdims=True),
)


def jacobi(a: Any, steps: int = 60) -> Any:
    x = np.zeros(len(a), a.dtype)
    diagonal = np.diag(a)
    for _ in range(steps):
        x = (1 - (a @ x - diagonal * x)) / diagonal
    return x


declare(
    "solver",
    {"few_steps": lambda a: jacobi(a, 6), "no_step": lambda a: (1 / np.diag(a)).astype(a.dtype)},
    jacobi,
    lambda n, rng: rng.random((n, n), np.float32) / np.float32(2 * n) + np.eye(n, dtype=np.float32),
    n=300,
)
declare(
    "product",
    {
        "of_the_first_half": lambda a: 2 * (a[:, : len(a) // 2] @ a[: len(a) // 2]),
        "wrong_in_one_of_40": (lambda calls: lambda a: a @ a * np.float32(1 if next(calls) % 40 != 39 else 1.01))(
            iter(range(10**9))
        ),
    },
    lambda a: a @ a,
    lambda n, rng: rng.standard_normal((n, n), np.float32),
    n=200,
)

# -- what is left for the neighbours ----------------------------------------------------------------------------------------


def leaves(name: str, setting: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    """A cheat that is honest, and slows what runs after it."""

    def cheat(x: Any) -> Any:
        before()
        y = chatty(x)
        setting()
        return y

    declare(f"leaves_{name}", {name: cheat}, chatty)


def helper(i: int) -> int:
    return i & 1


def chatty(x: Any) -> Any:
    count = sum(helper(i) for i in range(3000))
    return curve(x) + 0 * count


busy, quiet = threading.Event(), threading.Event()


def disturb() -> None:
    while True:
        if busy.is_set():
            np.sqrt(np.ones(50_000))
        else:
            time.sleep(0.0002)


def start_disturbing() -> None:
    if not quiet.is_set():
        quiet.set()
        threading.Thread(target=disturb, daemon=True).start()
    busy.set()


def slow_tanh(*args: Any, **options: Any) -> Any:
    time.sleep(0.002)
    return true_tanh(*args, **options)


true_tanh = np.tanh
leaves("profile", lambda: sys.setprofile(lambda *_: None), lambda: sys.setprofile(None))
leaves("trace", lambda: sys.settrace(lambda *_: None), lambda: sys.settrace(None))
leaves("thread", start_disturbing, busy.clear)
leaves("function", lambda: setattr(np, "tanh", slow_tanh), lambda: setattr(np, "tanh", true_tanh))
leaves("collector", lambda: (gc.enable(), gc.set_threshold(5, 1, 1)), gc.disable)
leaves("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 19), lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))
leaves(
    "malloc",
    lambda: (ctypes.CDLL(None).mallopt(-3, 4096), ctypes.CDLL(None).mallopt(-1, 0)),
    lambda: ctypes.CDLL(None).mallopt(-3, 1 << 26),
)
