"""Honest programs of many fields. Every variant here is right. `EXAMINED` names the benchmark that is recorded."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import warpladder
from warpladder import compare

Function = Callable[..., Any]
F = np.float32


def declare(
    name: str, inputs: Function, reference: Function, *variants: Function, needs: str = "", n: int = 2000, **options: Any
) -> None:
    if os.environ.get("EXAMINED", name) != name or (needs and not find_spec(needs)):
        return
    bench = warpladder.Benchmark(name, n=[n])
    bench.inputs(inputs)
    bench.reference(reference, **options)
    for number, variant in enumerate(variants or (reference,)):
        bench.variant(variant, name=f"v{number}", baseline=number == 0)
    globals()[f"bench_{name}"] = bench


def normal(n: int, rng: Any) -> Any:
    return rng.standard_normal(n, F)


def square(n: int, rng: Any) -> Any:
    return rng.standard_normal((n, n), F)


def positive(n: int, rng: Any) -> Any:
    return rng.random(n, F)


def symmetric(n: int, rng: Any) -> Any:
    a = rng.standard_normal((n, n), F)
    return a @ a.T / F(n) + np.eye(n, dtype=F)


# -- NumPy ------------------------------------------------------------------------------------------------------------------

declare("scan", normal, np.cumsum, np.cumsum, lambda x: np.add.accumulate(x), n=500_000)
declare("running_product", lambda n, rng: 1 + F(1e-4) * normal(n, rng), np.cumprod, n=10_000)
declare("running_maximum", normal, np.maximum.accumulate)
declare("sort", normal, np.sort, np.sort, lambda x: np.sort(x, kind="stable"))
declare("argsort", normal, np.argsort, np.argsort, lambda x: np.argsort(x, kind="stable"))
declare(
    "argsort_ties", lambda n, rng: rng.integers(0, 40, n).astype(F), np.argsort, lambda x: np.argsort(x),
    lambda x: np.argsort(x, kind="stable"), compare=compare.order_of("a"),
)  # fmt: skip
declare("top_ten", normal, lambda x: np.sort(x)[-10:], lambda x: np.sort(np.partition(x, -10)[-10:]))
declare("histogram", normal, lambda x: np.histogram(x, bins=64, range=(-4, 4))[0], n=200_000)
declare(
    "counts",
    lambda n, rng: rng.integers(0, 99, n),
    lambda x: np.bincount(x, minlength=99),
    lambda x: np.unique(x, return_counts=True)[1],
)
declare("distinct", lambda n, rng: rng.integers(0, 999, n), np.unique, lambda x: np.array(sorted(set(x.tolist()))))
declare("where", normal, lambda x: np.argwhere(x > 1.5), lambda x: np.flatnonzero(x > 1.5)[:, None])
declare("quantise", normal, lambda x: np.clip(np.rint(x * 40), -128, 127).astype(np.int8), n=300_000)
declare("dequantise", lambda n, rng: rng.integers(-128, 128, n).astype(np.int8), lambda x: x * F(0.03))
declare("half", lambda n, rng: normal(n, rng).astype(np.float16), lambda x: x * 2 + 1)
declare("fft", lambda n, rng: normal(n, rng) + 1j * normal(n, rng), np.fft.fft)
declare("fft_two_dimensions", lambda n, rng: rng.standard_normal((n, n)), np.fft.rfft2, n=128)
declare("round_trip", normal, lambda x: np.fft.irfft(np.fft.rfft(x), len(x)))
declare("eigenvalues", symmetric, np.linalg.eigvalsh, np.linalg.eigvalsh, lambda a: np.linalg.eigvalsh(a, UPLO="U"), n=60)
declare("singular_values", square, lambda a: np.linalg.svd(a, compute_uv=False), n=60)
declare("singular_vectors", symmetric, lambda a: np.linalg.eigh(a)[1], compare=compare.up_to_sign(axis=0), n=24)
declare("inverse", symmetric, np.linalg.inv, np.linalg.inv, lambda a: np.linalg.solve(a, np.eye(len(a), dtype=a.dtype)), n=80)
declare("determinant", symmetric, lambda a: np.linalg.slogdet(a)[1], n=60)
declare("cholesky", symmetric, np.linalg.cholesky, n=80)
declare(
    "batched",
    lambda n, rng: rng.standard_normal((n, 8, 8), F),
    lambda a: a @ a,
    lambda a: np.einsum("bij,bjk->bik", a, a),
    n=500,
)
declare("pairwise", lambda n, rng: rng.standard_normal((n, 8), F), lambda x: ((x[:, None] - x[None]) ** 2).sum(-1), n=200)
declare(
    "softmax",
    square,
    lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    n=200,
)
declare("layer_norm", square, lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), n=200)
declare(
    "log_sum_exp",
    square,
    lambda x: np.log(np.exp(x).sum(axis=1)),
    lambda x: x.max(1) + np.log(np.exp(x - x.max(1, keepdims=True)).sum(1)),
    n=200,
)
declare(
    "masked_rows",
    lambda n, rng: np.where(rng.random((n, n)) < 0.3, np.nan, square(n, rng)).astype(F),
    lambda x: np.nanmean(x, axis=1),
    n=100,
)
declare("log_of_zeros", lambda n, rng: np.maximum(normal(n, rng), 0), np.log)
declare(
    "entropy",
    lambda n, rng: (lambda p: p / p.sum())(rng.random(n)),
    lambda p: -(p * np.log(p)).sum(),
    lambda p: float(-np.dot(p, np.log(p))),
)
declare(
    "markov",
    lambda n, rng: (lambda p: p / p.sum(1, keepdims=True))(rng.random((n, n))),
    lambda p: np.linalg.matrix_power(p, 5),
    n=60,
)
declare(
    "polynomial", positive, lambda x: 1 + x * (2 + x * (3 + x * 4)), lambda x: np.polyval(np.array([4, 3, 2, 1], x.dtype), x)
)
declare("interpolation", lambda n, rng: (rng.random(n), np.sort(rng.random(64)), rng.random(64)), np.interp)
declare(
    "bisection",
    lambda n, rng: (np.sort(rng.random(512)), rng.random(n)),
    np.searchsorted,
    np.searchsorted,
    lambda a, v: (a[None] < v[:, None]).sum(1),
)
declare(
    "sampling",
    lambda n, rng: rng.integers(0, 2**31, 1),
    lambda seed: np.random.default_rng(int(seed[0])).standard_normal(1000),
    outputs="float64",
)
declare("monte_carlo", lambda n, rng: rng.random((n, 2)), lambda p: 4 * ((p**2).sum(1) < 1).mean())
declare("booleans", normal, lambda x: (x > 0) & (x < 1), lambda x: np.logical_and(x > 0, x < 1))
declare("pair", normal, lambda x: (x.min(), x.max()), lambda x: (np.sort(x)[0], np.sort(x)[-1]))
declare("nothing_found", normal, lambda x: x[x > 100])
declare(
    "popcount",
    lambda n, rng: rng.integers(0, 2**32, n, dtype=np.uint32),
    lambda x: np.unpackbits(x.view(np.uint8).reshape(-1, 4), axis=1).sum(1),
    lambda x: np.bitwise_count(x).astype(np.uint64),
)
declare(
    "dates",
    lambda n, rng: rng.integers(0, 10**9, n),
    lambda t: t.astype("datetime64[s]").astype("datetime64[D]").view(np.int64),
    lambda t: t // 86400,
)
declare(
    "bytes",
    lambda n, rng: rng.integers(97, 123, (n, 8), dtype=np.uint8),
    lambda b: np.where((b >= 97) & (b < 123), b - np.uint8(32), b),
    lambda b: b ^ np.uint8(32),
)
declare("huge_numbers", lambda n, rng: rng.standard_normal(n) * 1e250, lambda x: x / 3 * 1e40)
declare(
    "life",
    lambda n, rng: rng.integers(0, 2, (n, n), dtype=np.uint8),
    lambda g: (sum(np.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) == 3).astype(np.uint8),
    n=64,
)

# -- SciPy, scikit-learn, Numba, JAX ----------------------------------------------------------------------------------------

if find_spec("scipy"):
    import scipy.fft
    import scipy.linalg
    import scipy.ndimage
    import scipy.signal
    import scipy.sparse
    import scipy.spatial
    import scipy.special

    declare("dct", normal, scipy.fft.dct)
    declare("gamma", lambda n, rng: rng.random(n) * 5 + 1, scipy.special.gammaln)
    declare("erf", normal, scipy.special.erf)
    declare("filter", normal, lambda x: scipy.signal.lfilter(np.array([0.1], x.dtype), np.array([1, -0.9], x.dtype), x))
    declare(
        "convolution",
        normal,
        lambda x: np.convolve(x, np.ones(9, x.dtype), "same"),
        lambda x: scipy.signal.fftconvolve(x, np.ones(9, x.dtype), "same"),
    )
    declare("blur", square, lambda x: scipy.ndimage.gaussian_filter(x, 2.0), n=100)
    declare("labels", lambda n, rng: rng.random((n, n)) > 0.6, lambda x: scipy.ndimage.label(x)[0], n=60)
    declare(
        "lu_solve",
        symmetric,
        lambda a: scipy.linalg.solve(a, np.ones(len(a), a.dtype)),
        lambda a: scipy.linalg.solve(a, np.ones(len(a), a.dtype), assume_a="pos"),
        n=80,
    )
    declare(
        "sparse_product",
        lambda n, rng: np.where(rng.random((n, n)) > 0.95, square(n, rng), 0).astype(F),
        lambda a: a @ np.ones(len(a), a.dtype),
        lambda a: scipy.sparse.csr_array(a) @ np.ones(len(a), a.dtype),
        n=300,
    )
    declare("nearest", lambda n, rng: rng.random((n, 3)), lambda p: scipy.spatial.cKDTree(p).query(p, k=2)[0][:, 1], n=500)
if find_spec("sklearn"):
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.metrics import pairwise_distances
    from sklearn.preprocessing import StandardScaler

    declare("standardised", square, lambda x: (x - x.mean(0)) / x.std(0), lambda x: StandardScaler().fit_transform(x), n=100)
    declare(
        "ridge",
        lambda n, rng: rng.standard_normal((n, 8)),
        lambda x: np.linalg.solve(x[:, 1:].T @ x[:, 1:] + np.eye(7), x[:, 1:].T @ x[:, 0]),
        lambda x: Ridge(1.0, fit_intercept=False).fit(x[:, 1:], x[:, 0]).coef_,
    )
    declare(
        "distances",
        lambda n, rng: rng.standard_normal((n, 8)),
        lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)),
        lambda x: pairwise_distances(x, metric="euclidean", n_jobs=1),
        n=100,
        compare=compare.allclose(atol=1e-6),
    )
    declare(
        "components",
        lambda n, rng: rng.standard_normal((n, 5)) * np.arange(1, 6),
        lambda x: PCA(2, svd_solver="full").fit(x).explained_variance_,
        n=300,
    )
if find_spec("numba"):
    from numba import njit

    @njit
    def prefix(x: Any) -> Any:
        y, total = np.empty_like(x), x.dtype.type(0)
        for i in range(len(x)):
            total += x[i]
            y[i] = total
        return y

    @njit
    def insertion(x: Any) -> Any:
        y = x.copy()
        for i in range(1, len(y)):
            value, j = y[i], i
            while j > 0 and y[j - 1] > value:
                y[j] = y[j - 1]
                j -= 1
            y[j] = value
        return y

    @njit(fastmath=True)
    def fast_dot(x: Any) -> Any:
        total = x.dtype.type(0)
        for i in range(len(x)):
            total += x[i] * x[i]
        return total

    @njit
    def levenshtein(a: Any, b: Any) -> Any:
        row = np.arange(len(b) + 1)
        for i in range(len(a)):
            last, row[0] = row[0], i + 1
            for j in range(len(b)):
                last, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, last + (a[i] != b[j]))
        return np.array([row[-1]])

    declare("numba_scan", positive, np.cumsum, prefix, n=20_000)
    declare("numba_sort", normal, np.sort, np.sort, insertion, n=300)
    declare("numba_dot", normal, lambda x: (x * x).sum(), lambda x: (x * x).sum(), fast_dot, n=10_000)
    declare(
        "edit_distance",
        lambda n, rng: (rng.integers(0, 4, n, dtype=np.uint8), rng.integers(0, 4, n, dtype=np.uint8)),
        levenshtein,
        n=120,
    )
