"""Functions on the host that do not compute what they return: memory that they did not write, and results that they kept."""

import ctypes
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import warpladder
from tests.specimens.catalogue import (
    DEEP_REINFORCE,
    EIGH,
    FIELD_GUIDE,
    KERNELBOT,
    OWN,
    PYGPUBENCH,
    REFERENCE_KERNELS,
    RESULT_REUSE,
    STATIC_CHECKER,
    ZERO_OUT,
    Collection,
    Kind,
    Unmoved,
    Wrong,
)

found = Collection()
TWO, ONE = np.float32(2), np.float32(1)
NOT_RIGHT: Final = Wrong("never written|L2 error|largest error")
OTHER_INPUTS: Final = Wrong("with other inputs|in a timed sample|wrong after it was timed")
KEPT: Final = Wrong("keeps results")
calls: dict[str, int] = {}
kept: dict[Any, Any] = {}

# -- unwritten memory ----------------------------------------------------------------------------------------------------------------

BLOCK: Final = 1 << 16


def affine(name: str) -> warpladder.Benchmark:
    """A benchmark of 2x + 1 with outputs of 4 MiB, for which the allocator gives the block that a neighbour freed."""
    bench = warpladder.Benchmark(name, n=[1 << 20])
    bench.inputs(one_array)
    bench.reference(right_affine)
    found.right(bench, "NumPy", baseline=True)(first)
    return bench


def one_array(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n, np.float32)


def right_affine(x: Any) -> Any:
    return 2 * x + 1


def first(x: Any) -> Any:
    return TWO * x + ONE


def last(x: Any) -> Any:
    return x + x + ONE


unwritten, blocks, overflow, various = (affine(f"specimens_{name}") for name in ("unwritten", "blocks", "overflow", "various"))


@found.specimen(unwritten, Kind.UNWRITTEN, RESULT_REUSE, Wrong("never written"))
def returns_unwritten_memory(x: Any) -> Any:
    """It returns memory that it never wrote, which holds the outputs of the variant before it."""
    return np.empty(x.shape, x.dtype)


@found.specimen(blocks, Kind.UNWRITTEN, OWN, NOT_RIGHT)
def forgets_the_last_block(x: Any) -> Any:
    """Its loop ends a block early."""
    out = np.empty_like(x)
    for start in range(0, x.size - BLOCK, BLOCK):
        np.multiply(x[start : start + BLOCK], TWO, out=out[start : start + BLOCK])
        out[start : start + BLOCK] += ONE
    return out


@found.specimen(overflow, Kind.UNWRITTEN, OWN, NOT_RIGHT)
def overflows_its_index(x: Any) -> Any:
    """The number of its bits overflows 32-bit integers, so that its loop has no iteration."""
    out = np.empty_like(x)
    bits = np.array([x.size], np.int32) * np.int32(8 * x.itemsize) * np.int32(128)
    elements = int(bits[0]) // (8 * x.itemsize * 128)
    np.multiply(x[:elements], TWO, out=out[:elements])
    out[:elements] += ONE
    return out


@found.specimen(various, Kind.ELSEWHERE, STATIC_CHECKER, NOT_RIGHT)
def leaves_it_to_a_thread(x: Any) -> Any:
    """It returns at once, and a thread computes later."""
    out = np.empty_like(x)
    threading.Timer(0.05, np.multiply, (x, TWO), {"out": out}).start()
    return out


class Lazy(np.ndarray):
    """An array that computes when NumPy first does something with it."""

    make: Callable[[], np.ndarray]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [each.make() if isinstance(each, Lazy) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **keywords)

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        return self.make().reshape(*shape)

    def astype(self, *args: Any, **keywords: Any) -> Any:
        return self.make().astype(*args, **keywords)


@found.specimen(various, Kind.ELSEWHERE, EIGH, NOT_RIGHT, Wrong("return an array"))
def returns_a_lazy_array(x: Any) -> Any:
    """It returns an array of a class of its own, which computes when the result is compared."""
    lazy = np.empty_like(x).view(Lazy)
    lazy.make = lambda: TWO * x + ONE
    return lazy


class Promise:
    """An object that becomes an array when NumPy asks for one."""

    def __init__(self, make: Callable[[], np.ndarray]) -> None:
        self._make = make

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        return self._make()


@found.specimen(various, Kind.ELSEWHERE, DEEP_REINFORCE, Wrong("returns a Promise; return an array"))
def returns_a_promise(x: Any) -> Any:
    """It returns an object that computes when the result is compared."""
    return Promise(lambda: TWO * x + ONE)


@found.specimen(various, Kind.INPUTS, ZERO_OUT, Wrong("changes its input x"))
def zeroes_its_input(x: Any) -> Any:
    """It sets its input to zero, so that a reference computed later is zero too."""
    ctypes.memset(x.ctypes.data, 0, x.nbytes)
    return np.ones_like(x)


@found.specimen(various, Kind.INPUTS, FIELD_GUIDE, Wrong("is a view of input x"))
def returns_its_input(x: Any) -> Any:
    """It returns its input."""
    return x[:]


for bench in (unwritten, blocks, overflow, various):
    found.right(bench, "NumPy")(last)


# -- kept results ------------------------------------------------------------------------------------------------------------------

#: So much work for so few inputs that it pays to recognise them, even by way of a file while other programs use the disk.
convolution = warpladder.Benchmark("specimens_convolution", n=[12_000], taps=[4000])


@convolution.inputs
def signal_and_taps(n: int, taps: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal(n, np.float32), "w": rng.standard_normal(taps, np.float32)}


@convolution.reference
def convolve(x: Any, w: Any) -> Any:
    return np.convolve(x, w, "valid")


def fingerprint(x: Any, w: Any) -> tuple[float, ...]:
    return (float(x[0]), float(x[-1]), float(w[0]))


def summed(x: Any, w: Any) -> int:
    return zlib.crc32(w.tobytes(), zlib.crc32(x.tobytes()))


@cache
def folder() -> Path:
    """A folder of the process, which is removed at its end."""
    made = kept["folder"] = tempfile.TemporaryDirectory()
    return Path(made.name)


def counted(name: str) -> int:
    calls[name] = calls.get(name, 0) + 1
    return calls[name]


@found.right(convolution, "NumPy", baseline=True)
def direct(x: Any, w: Any) -> Any:
    return np.convolve(x, w, "valid")


@found.specimen(convolution, Kind.KEPT, OWN, OTHER_INPUTS)
def packs_its_weights_once(x: Any, w: Any) -> Any:
    """It packs its weights at the first call, and uses the packed ones ever after."""
    packed = kept.setdefault("packed", np.ascontiguousarray(w[::-1]))
    return np.correlate(x, packed, "valid")


@found.specimen(convolution, Kind.KEPT, OWN, OTHER_INPUTS)
def gives_garbage_for_other_inputs(x: Any, w: Any) -> Any:
    """It computes for the first inputs alone, and gives ones for all others."""
    known = kept.setdefault("known", x.copy())
    return np.convolve(x, w, "valid") if np.array_equal(known, x) else np.ones(x.size - w.size + 1, np.float32)


@found.specimen(convolution, Kind.KEPT, f"{REFERENCE_KERNELS}/pull/102", OTHER_INPUTS)
def keeps_results_by_identity(x: Any, w: Any) -> Any:
    """It keeps results by the identity of its input."""
    return _kept_by(("identity", id(x)), x, w)


@found.specimen(convolution, Kind.KEPT, f"{KERNELBOT}/pull/501", OTHER_INPUTS)
def keeps_results_by_address(x: Any, w: Any) -> Any:
    """It keeps results by the address of its input."""
    return _kept_by(("address", x.ctypes.data), x, w)


@found.specimen(convolution, Kind.KEPT, OWN, KEPT)
def keeps_results_by_a_fingerprint(x: Any, w: Any) -> Any:
    """It keeps results by three elements of its inputs."""
    return _kept_by(("fingerprint", fingerprint(x, w)), x, w)


@found.specimen(convolution, Kind.KEPT, FIELD_GUIDE, KEPT)
def keeps_results_by_all_inputs(x: Any, w: Any) -> Any:
    """It keeps results by a checksum of all of its inputs."""
    return _kept_by(("checksum", summed(x, w)), x, w)


@found.specimen(convolution, Kind.KEPT, EIGH, KEPT)
def keeps_results_in_a_file(x: Any, w: Any) -> Any:
    """It keeps results in files, from which it also serves later processes."""
    file = folder() / f"{summed(x, w)}.npy"
    if not file.exists():
        np.save(file, np.convolve(x, w, "valid"))
    return np.load(file)


@found.specimen(convolution, Kind.KEPT, f"{REFERENCE_KERNELS}/pull/142", OTHER_INPUTS)
def returns_the_result_before(x: Any, w: Any) -> Any:
    """It returns the result of the call before, and computes its own for the next."""
    before = kept.get("before")
    kept["before"] = np.convolve(x, w, "valid")
    return kept["before"] if before is None else before


def _kept_by(key: Any, x: Any, w: Any) -> Any:
    if key not in kept:
        kept[key] = np.convolve(x, w, "valid")
    return kept[key].copy()


# -- skipped work ------------------------------------------------------------------------------------------------------------------


@found.specimen(convolution, Kind.SKIPPED, OWN, Unmoved())
def skips_what_is_right_already(x: Any, w: Any, out: Any) -> None:
    """It computes three elements, and returns if the output holds them already."""
    turned = w[::-1]
    if not all(np.isclose(out[i], np.dot(x[i : i + w.size], turned), 1e-4) for i in (0, out.size // 2, out.size - 1)):
        out[:] = np.convolve(x, w, "valid")


@found.specimen(convolution, Kind.SKIPPED, OWN, OTHER_INPUTS)
def skips_unless_poisoned(x: Any, w: Any, out: Any) -> None:
    """It computes only where the output holds NaN, or a value that nobody computes."""
    if not abs(out[0]) < 1e30:
        out[:] = np.convolve(x, w, "valid")


@found.specimen(convolution, Kind.SKIPPED, OWN, OTHER_INPUTS)
def computes_in_its_first_calls(x: Any, w: Any) -> Any:
    """It computes in as many calls as verification and warming up take, and returns the last result ever after."""
    if counted("first calls") <= 12:
        kept["last"] = np.convolve(x, w, "valid")
    return kept["last"]


@found.specimen(convolution, Kind.SKIPPED, "https://github.com/karpathy/llm.c/pull/852", OTHER_INPUTS)
def spoils_an_element_after_ten_calls(x: Any, w: Any) -> Any:
    """It is right in ten calls, and has a wrong element ever after."""
    out = np.convolve(x, w, "valid")
    if counted("spoiled") > 10:
        out[0] += 1000
    return out


@found.specimen(convolution, Kind.SKIPPED, OWN, OTHER_INPUTS, NOT_RIGHT)
def computes_every_other_call(x: Any, w: Any) -> Any:
    """It computes in every other call."""
    if counted("every other") % 2:
        kept["every other"] = np.convolve(x, w, "valid")
    return kept["every other"]


@found.specimen(convolution, Kind.SKIPPED, f"{PYGPUBENCH}/blob/main/exploits/submission_warmup.py", Unmoved())
def sleeps_while_warming_up(x: Any, w: Any) -> Any:
    """It is slow at first, so that a harness that plans by its warm-up times few calls."""
    if counted("sleeps") <= 4:
        time.sleep(0.05)
    return np.convolve(x, w, "valid")


@found.right(convolution, "NumPy")
def correlated(x: Any, w: Any) -> Any:
    return np.correlate(x, w[::-1], "valid")


attention = warpladder.Benchmark("specimens_attention", n=[128], d=[64])


@attention.inputs
def query_key_value(n: int, d: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.standard_normal((n, d), np.float32) for name in ("q", "k", "v")}


@attention.reference
def attend(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ v


@found.right(attention, "NumPy", baseline=True)
def attention_at_once(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v)


@found.specimen(attention, Kind.KEPT, OWN, OTHER_INPUTS)
def keeps_keys_and_values(q: Any, k: Any, v: Any) -> Any:
    """It keeps the keys and values of its first call in a cache."""
    return attend(q, *kept.setdefault("cache", (k.copy(), v.copy())))


@found.right(attention, "NumPy")
def attention_by_rows(q: Any, k: Any, v: Any) -> Any:
    return np.concatenate([attend(rows, k, v) for rows in np.array_split(q, 4)])
