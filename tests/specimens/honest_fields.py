"""Honest functions of the field whose results are not equal to the reference, number for number."""

from typing import Any

import numpy as np

import warpladder
from tests.specimens.catalogue import Collection
from warpladder import compare

found = Collection()
S = np.float32


def real(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal(n, S)}


def bench(name: str, inputs: Any, reference: Any, how: Any = None, n: int = 10_000) -> warpladder.Benchmark:
    made = warpladder.Benchmark(f"honest_{name}", n=[n])
    made.inputs(inputs)
    made.reference(reference, compare=how)
    return made


def scanned(x: Any) -> Any:
    return np.cumsum(x)


scan = bench("scan", real, scanned, n=1_000_000)
found.right(scan, "NumPy", baseline=True)(scanned)


@found.right(scan, "NumPy")
def scanned_in_blocks(x: Any) -> Any:
    blocks = np.cumsum(x.reshape(1000, -1), axis=1)
    blocks[1:] += np.cumsum(blocks[:-1, -1])[:, None]
    return blocks.reshape(-1)


def imaginary(n: int, rng: np.random.Generator) -> Any:
    return {"x": (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(np.complex64)}


def transformed(x: Any) -> Any:
    return np.fft.fft(x)


def transformed_by_the_inverse(x: Any) -> Any:
    return np.conj(np.fft.ifft(np.conj(x))) * S(len(x))


transform = bench("transform", imaginary, transformed, n=4096)
found.right(transform, "NumPy", baseline=True)(transformed)
found.right(transform, "NumPy")(transformed_by_the_inverse)


def quantised(x: Any) -> Any:
    return np.clip(np.rint(x * 31.7), -128, 127).astype(np.int8)


def quantised_by_division(x: Any) -> Any:
    return np.clip(np.rint(x / S(1 / 31.7)), -128, 127).astype(np.int8)


for _how in (None, compare.off_by(1, share=1e-4)):
    quantisation = bench(f"quantisation_{'default' if _how is None else 'off_by'}", real, quantised, _how, n=200_000)
    found.right(quantisation, "NumPy", baseline=True)(quantised)
    if _how:
        found.right(quantisation, "NumPy")(quantised_by_division)
    globals()[quantisation.name] = quantisation


def unit(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.random(n, S)}


def counted(x: Any) -> Any:
    return np.bincount((x * 100).astype(np.int64), minlength=101)


def counted_by_edges(x: Any) -> Any:
    return np.append(np.histogram(x, 100, (0, 1))[0], 0)


histogram = bench("histogram", unit, counted, compare.bins(moved=1e-4), n=300_000)
found.right(histogram, "NumPy", baseline=True)(counted)
found.right(histogram, "NumPy")(counted_by_edges)


def few(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.integers(0, 50, n).astype(S)}


def ordered(x: Any) -> Any:
    return np.argsort(x, kind="stable")


def ordered_unstably(x: Any) -> Any:
    return np.argsort(x)


order = bench("order", few, ordered, compare.order_of("x"))
found.right(order, "NumPy", baseline=True)(ordered)
found.right(order, "NumPy")(ordered_unstably)


def matrix(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal((n, 8), S)}


def factors(x: Any) -> Any:
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return {"u": u, "s": s, "v": v}


def factors_of_other_signs(x: Any) -> Any:
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return {"u": -u, "s": s, "v": -v}


svd = bench("svd", matrix, factors, {"u": compare.up_to_sign(), "v": compare.up_to_sign(axis=-1)}, n=64)
found.right(svd, "NumPy", baseline=True)(factors)
found.right(svd, "NumPy")(factors_of_other_signs)


def selected(x: Any) -> Any:
    return np.nonzero(x > 1)[0]


def selected_by_mask(x: Any) -> Any:
    return np.arange(len(x))[x > 1]


selection = bench("selection", real, selected)
found.right(selection, "NumPy", baseline=True)(selected)
found.right(selection, "NumPy")(selected_by_mask)


def of_halves(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(x, 0))


logarithm = bench("logarithm", real, of_halves)
found.right(logarithm, "NumPy", baseline=True)(of_halves)


def sized(x: Any) -> Any:
    return np.sqrt((x * x).sum())


def sized_in_python(x: Any) -> Any:
    return float(np.linalg.norm(x))


size = bench("size", real, sized)
found.right(size, "NumPy", baseline=True)(sized)
found.right(size, "NumPy")(sized_in_python)
