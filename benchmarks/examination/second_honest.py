"""Right programs of the field, two or three ways each: written from README.md and docs/ without a look at the checker.

A case: axes, options of the reference, and the text that defines `inputs`, `first` (also the reference unless `reference` is
defined), `second` and maybe `third`. Each must be accepted.
"""

HEAD = """import numpy as np

import warpladder

bench = warpladder.Benchmark("case", {axes})
"""
TAIL = """
bench.inputs(inputs)
bench.reference({options})(globals().get("reference", first))
bench.variant(first, name="first", baseline=True)
bench.variant(second, name="second")
if "third" in globals():
    bench.variant(third, name="third")
"""

CASES = {
    "rfft": (
        "n=[4096]",
        "",
        """
import scipy.fft

def inputs(n, rng):
    return rng.standard_normal((16, n), np.float32)

def first(x):
    return np.fft.rfft(x).astype(np.complex64 if x.dtype == np.float32 else np.complex128)

def second(x):
    return scipy.fft.rfft(x)
""",
    ),
    "fft2_complex": (
        "n=[128]",
        "",
        """
import scipy.fft

def inputs(n, rng):
    return (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))).astype(np.complex64)

def first(x):
    return scipy.fft.fft2(x)

def second(x):
    return scipy.fft.fft(scipy.fft.fft(x, axis=1), axis=0)
""",
    ),
    "power_spectrum": (
        "n=[65536]",
        "",
        """
import scipy.fft

def inputs(n, rng):
    return np.cumsum(rng.standard_normal(n)).astype(np.float32)

def first(x):
    return np.abs(scipy.fft.rfft(x)) ** 2

def second(x):
    f = scipy.fft.rfft(x)
    return f.real * f.real + f.imag * f.imag
""",
    ),
    "dct_by_matrix": (
        "n=[256]",
        "",
        """
import scipy.fft

def inputs(n, rng):
    return rng.standard_normal((64, n))

def first(x):
    return scipy.fft.dct(x)

def second(x):
    n = x.shape[1]
    k = np.arange(n)
    return x @ (2 * np.cos(np.pi * np.outer(2 * k + 1, k) / (2 * n)))
""",
    ),
    "eigvalsh": (
        "n=[100]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    a = rng.standard_normal((n, n))
    return a + a.T

def first(a):
    return np.linalg.eigvalsh(a)

def second(a):
    return scipy.linalg.eigh(a, eigvals_only=True, driver="evd")

def third(a):
    return np.sort(np.linalg.eigvals(a).real)
""",
    ),
    "eigh_vectors": (
        "n=[60]",
        'compare={"vectors": warpladder.compare.up_to_sign()}',
        """
import scipy.linalg

def inputs(n, rng):
    a = rng.standard_normal((n, n))
    return a + a.T

def first(a):
    values, vectors = np.linalg.eigh(a)
    return {"values": values, "vectors": vectors}

def second(a):
    values, vectors = scipy.linalg.eigh(a, driver="evr")
    return {"values": values, "vectors": vectors}
""",
    ),
    "singular_values": (
        "n=[120]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n // 2), np.float32)

def first(a):
    return np.linalg.svd(a, compute_uv=False)

def second(a):
    return scipy.linalg.svdvals(a)

def third(a):
    return np.sqrt(np.linalg.eigvalsh(a.T @ a))[::-1].copy()
""",
    ),
    "cholesky": (
        "n=[150]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    a = rng.standard_normal((n, n), np.float32)
    return a @ a.T + n * np.eye(n, dtype=np.float32)

def first(a):
    return np.linalg.cholesky(a)

def second(a):
    return scipy.linalg.cholesky(a, lower=True)
""",
    ),
    "solve": (
        "n=[200]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32), rng.standard_normal(n, np.float32)

def first(a, b):
    return np.linalg.solve(a, b)

def second(a, b):
    return scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b)

def third(a, b):
    q, r = np.linalg.qr(a)
    return scipy.linalg.solve_triangular(r, q.T @ b)
""",
    ),
    "qr_up_to_sign": (
        "n=[80]",
        "compare=warpladder.compare.up_to_sign(axis=-1)",
        """
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n))

def first(a):
    return np.linalg.qr(a)[1]

def second(a):
    return np.linalg.cholesky(a.T @ a).T.copy() if False else -scipy.linalg.qr(a)[1]
""",
    ),
    "triangular_solve": (
        "n=[200]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    return np.tril(rng.standard_normal((n, n))) + n * np.eye(n), rng.standard_normal((n, 8))

def first(a, b):
    return np.linalg.solve(a, b)

def second(a, b):
    return scipy.linalg.solve_triangular(a, b, lower=True)
""",
    ),
    "slogdet": (
        "n=[120]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n))

def first(a):
    sign, logarithm = np.linalg.slogdet(a)
    return sign, logarithm

def second(a):
    lu, pivots = scipy.linalg.lu_factor(a)
    d = np.diag(lu)
    swaps = np.sum(pivots != np.arange(len(pivots)))
    return (-1.0) ** swaps * np.prod(np.sign(d)), np.log(np.abs(d)).sum()
""",
    ),
    "matrix_exponential": (
        "n=[40]",
        "",
        """
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n)) / n

def first(a):
    return scipy.linalg.expm(a)

def second(a):
    total, term = np.eye(len(a)), np.eye(len(a))
    for k in range(1, 25):
        term = term @ a / k
        total = total + term
    return total
""",
    ),
    "sort": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.sort(x)

def second(x):
    return np.sort(x, kind="stable")
""",
    ),
    "argsort_ties": (
        "n=[50_000]",
        'compare=warpladder.compare.order_of("x")',
        """
def inputs(n, rng):
    return {"x": np.round(rng.standard_normal(n), 1).astype(np.float32)}

def first(x):
    return np.argsort(x, kind="stable")

def second(x):
    return np.argsort(x)

def third(x):
    return np.lexsort((np.arange(x.size)[::-1], x))
""",
    ),
    "topk_ties": (
        "n=[50_000]",
        "compare=warpladder.compare.order_of(lambda x: -x)",
        """
def inputs(n, rng):
    return {"x": np.round(rng.standard_normal(n), 2).astype(np.float32)}

def first(x):
    return np.argsort(-x, kind="stable")[:50]

def second(x):
    top = np.argpartition(-x, 50)[:50]
    return top[np.argsort(-x[top])]
""",
    ),
    "argmax_rows": (
        "n=[500]",
        'compare=warpladder.compare.order_of("x", axis=1)',
        """
def inputs(n, rng):
    return {"x": rng.integers(0, 20, (n, 300)).astype(np.float32)}

def first(x):
    return np.argmax(x, axis=1, keepdims=True)

def second(x):
    return (x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1))[:, None]
""",
    ),
    "histogram": (
        "n=[300_000]",
        "compare=warpladder.compare.bins()",
        """
def inputs(n, rng):
    return rng.random(n, np.float32)

def first(x):
    return np.histogram(x, 100, (0, 1))[0]

def second(x):
    return np.bincount(np.minimum((x * np.float32(100)).astype(np.int64), 99), minlength=100)
""",
    ),
    "quantise": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.clip(np.rint(x / (4 / 127)), -127, 127).astype(np.int8)

def second(x):
    return np.clip(np.rint(x * (127 / 4)), -127, 127).astype(np.int8)
""",
    ),
    "quantise_rows_off_by": (
        "n=[300]",
        "compare={'q': warpladder.compare.off_by(1, share=1e-3), 'scale': warpladder.compare.allclose(rtol=1e-6)}",
        """
def inputs(n, rng):
    return rng.standard_normal((n, 500), np.float32)

def first(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return {"q": np.rint(x / scale).astype(np.int8), "scale": scale}

def second(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return {"q": np.rint(x * (1 / scale)).astype(np.int8), "scale": scale}
""",
    ),
    "dequantise_int8": (
        "n=[300]",
        "outputs='float32'",
        """
def inputs(n, rng):
    return rng.integers(-127, 128, (n, 400)).astype(np.int8), rng.random((n, 1), np.float32)

def first(q, scale):
    return q * scale

def second(q, scale):
    return q.astype(np.float32) * scale
""",
    ),
    "sampling_with_a_seed": (
        "n=[20_000]",
        "",
        """
def inputs(n, rng):
    weights = rng.random(64, np.float32)
    return weights / weights.sum(), rng.random(n, np.float32)

def first(p, u):
    return np.searchsorted(np.cumsum(p), u)

def second(p, u):
    return (u[:, None] > np.cumsum(p)[None]).sum(axis=1)
""",
    ),
    "dropout_seeded": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    keep = np.random.default_rng(7).random(x.size) < 0.9
    return np.where(keep, x / 0.9, 0)

def second(x):
    keep = np.random.default_rng(7).random(x.size) < 0.9
    return (x * keep * (1 / 0.9)).astype(x.dtype)
""",
    ),
    "sparse_vector": (
        "n=[5000]",
        "",
        """
import scipy.sparse

def inputs(n, rng):
    m = scipy.sparse.random(n, n, 0.002, "csr", np.float32, rng=rng)
    m.data[:] = rng.standard_normal(m.nnz, np.float32)
    return m.data, m.indices, m.indptr, rng.standard_normal(n, np.float32)

def first(data, indices, indptr, x):
    return scipy.sparse.csr_array((data, indices, indptr), shape=(x.size, x.size)) @ x

def second(data, indices, indptr, x):
    rows = np.repeat(np.arange(x.size), np.diff(indptr))
    return np.bincount(rows, data * x[indices], x.size).astype(data.dtype)
""",
    ),
    "sparse_numba": (
        "n=[3000]",
        "",
        """
import numba
import scipy.sparse

def inputs(n, rng):
    m = scipy.sparse.random(n, n, 0.003, "csr", np.float64, rng=rng)
    return m.data, m.indices, m.indptr, rng.standard_normal((n, 4))

@numba.njit(parallel=True)
def first(data, indices, indptr, x):
    y = np.zeros((indptr.size - 1, x.shape[1]), data.dtype)
    for i in numba.prange(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(x.shape[1]):
                y[i, j] += data[k] * x[indices[k], j]
    return y

def second(data, indices, indptr, x):
    return scipy.sparse.csr_array((data, indices, indptr), shape=(indptr.size - 1, x.shape[0])) @ x
""",
    ),
    "scan": (
        "n=[1_000_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.cumsum(x)

def second(x):
    blocks = np.cumsum(x.reshape(1000, -1), axis=1)
    blocks[1:] += np.cumsum(blocks[:-1, -1])[:, None]
    return blocks.reshape(-1)
""",
    ),
    "exclusive_scan": (
        "n=[300_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(-100, 100, n)

def first(x):
    return np.concatenate([[0], np.cumsum(x)[:-1]])

def second(x):
    y = np.cumsum(x)
    y -= x
    return y
""",
    ),
    "running_maximum": (
        "n=[300_000]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.maximum.accumulate(x)

@numba.njit
def second(x):
    y = np.empty_like(x)
    best = x[0]
    for i in range(x.size):
        best = max(best, x[i])
        y[i] = best
    return y
""",
    ),
    "segmented_sum": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32), rng.integers(0, 500, n)

def first(x, segment):
    y = np.zeros(500, x.dtype)
    np.add.at(y, segment, x)
    return y

def second(x, segment):
    return np.bincount(segment, x, 500).astype(x.dtype)

def third(x, segment):
    order = np.argsort(segment, kind="stable")
    return np.add.reduceat(x[order], np.searchsorted(segment[order], np.arange(500)))
""",
    ),
    "complex_einsum": (
        "n=[100]",
        "",
        """
def inputs(n, rng):
    a = rng.standard_normal((2, n, n)) + 1j * rng.standard_normal((2, n, n))
    a = a.astype(np.complex64)
    return a[0], a[1]

def first(a, b):
    return a @ b.conj().T

def second(a, b):
    return np.einsum("ik,jk->ij", a, b.conj())
""",
    ),
    "complex_magnitude": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n) + 1j * rng.standard_normal(n)

def first(z):
    return np.abs(z)

def second(z):
    return np.sqrt(z.real**2 + z.imag**2)
""",
    ),
    "weekday": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(0, 2_000_000_000, n)

def first(seconds):
    return (seconds // 86400 + 4) % 7

def second(seconds):
    days = seconds.astype("datetime64[s]").astype("datetime64[D]").astype(np.int64)
    return (days - 3) % 7
""",
    ),
    "upper_case": (
        "n=[400_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(32, 127, n).astype(np.uint8)

def first(text):
    return np.where((text >= 97) & (text <= 122), text - 32, text).astype(np.uint8)

def second(text):
    return np.frombuffer(text.tobytes().upper(), np.uint8).copy()
""",
    ),
    "unique_counts": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(0, 100_000, n)

def first(x):
    return np.unique(x, return_counts=True)

def second(x):
    counts = np.bincount(x)
    values = np.flatnonzero(counts)
    return values, counts[values]
""",
    ),
    "argwhere": (
        "n=[400]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)

def first(x):
    return np.argwhere(x > 1.5)

def second(x):
    return np.stack(np.nonzero(x > 1.5), axis=1)
""",
    ),
    "run_lengths": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(0, 2, n).astype(np.int32)

def first(x):
    ends = np.flatnonzero(np.append(x[1:] != x[:-1], True))
    return x[ends], np.diff(ends, prepend=-1)

def second(x):
    starts = np.concatenate([[0], np.flatnonzero(np.diff(x)) + 1])
    return x[starts], np.diff(np.append(starts, x.size))
""",
    ),
    "compaction": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return x[x > 0]

def second(x):
    return np.compress(x > 0, x)

def third(x):
    return x.take(np.flatnonzero(x > 0))
""",
    ),
    "group_means": (
        "n=[100_000]",
        "",
        """
import pandas as pd

def inputs(n, rng):
    return rng.integers(0, 200, n), rng.standard_normal(n)

def first(key, value):
    return np.bincount(key, value, 200) / np.bincount(key, minlength=200)

def second(key, value):
    return pd.DataFrame({"key": key, "value": value}).groupby("key")["value"].mean().to_numpy()
""",
    ),
    "layer_norm_half": (
        "n=[512]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal((200, n)).astype(np.float16), rng.standard_normal(n).astype(np.float16)

def first(x, weight):
    y = x.astype(np.float32) if x.dtype == np.float16 else x
    y = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5) * weight
    return y.astype(x.dtype)

def second(x, weight):
    y = x.astype(np.float64)
    mean = y.mean(axis=1, keepdims=True)
    rest = np.sqrt((y * y).mean(axis=1, keepdims=True) - mean**2 + 1e-5)
    return ((y - mean) / rest * weight).astype(x.dtype)
""",
    ),
    "softmax_half": (
        "n=[700]",
        "",
        """
def inputs(n, rng):
    return (4 * rng.standard_normal((100, n))).astype(np.float16)

def first(x):
    y = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float64))
    return (y / y.sum(axis=1, keepdims=True)).astype(x.dtype)

def second(x):
    y = x.astype(np.float32)
    y = np.exp(y - y.max(axis=1, keepdims=True))
    return (y / y.sum(axis=1, keepdims=True)).astype(x.dtype)
""",
    ),
    "layer_norm_welford": (
        "n=[1000]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal((300, n), np.float32) + np.float32(3)

def first(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + np.float32(1e-5))

@numba.njit
def second(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        mean, m2 = np.float32(0), np.float32(0)
        for j in range(x.shape[1]):
            delta = x[i, j] - mean
            mean += delta / np.float32(j + 1)
            m2 += delta * (x[i, j] - mean)
        scale = np.float32(1) / np.sqrt(m2 / np.float32(x.shape[1]) + np.float32(1e-5))
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * scale
    return y
""",
    ),
    "attention": (
        "n=[256]",
        "",
        """
def inputs(n, rng):
    return tuple(rng.standard_normal((n, 32), np.float32) for _ in range(3))

def first(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[1], dtype=q.dtype)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v

def second(q, k, v):
    m = np.full((len(q), 1), -np.inf, q.dtype)
    total, y = np.zeros((len(q), 1), q.dtype), np.zeros_like(q)
    for at in range(0, len(k), 64):
        s = q @ k[at : at + 64].T / np.sqrt(q.shape[1], dtype=q.dtype)
        new = np.maximum(m, s.max(axis=1, keepdims=True))
        p, old = np.exp(s - new), np.exp(m - new)
        total, y, m = total * old + p.sum(axis=1, keepdims=True), y * old + p @ v[at : at + 64], new
    return y / total
""",
    ),
    "causal_attention": (
        "n=[200]",
        "",
        """
def inputs(n, rng):
    return tuple(rng.standard_normal((n, 32), np.float32) for _ in range(3))

def first(q, k, v):
    s = np.where(np.tri(len(q), dtype=bool), q @ k.T, -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True) @ v).astype(q.dtype)

def second(q, k, v):
    y = np.empty_like(q)
    for i in range(len(q)):
        s = k[: i + 1] @ q[i]
        p = np.exp(s - s.max())
        y[i] = p @ v[: i + 1] / p.sum()
    return y
""",
    ),
    "kmeans_step": (
        "n=[5000]",
        "",
        """
import scipy.spatial.distance

def inputs(n, rng):
    return rng.standard_normal((n, 8), np.float32), rng.standard_normal((16, 8), np.float32)

def first(x, centres):
    label = scipy.spatial.distance.cdist(x, centres).argmin(axis=1)
    return {"label": label, "centres": np.stack([x[label == k].mean(axis=0) for k in range(16)]).astype(x.dtype)}

def second(x, centres):
    label = ((centres**2).sum(axis=1) - 2 * x @ centres.T).argmin(axis=1)
    sums = np.zeros_like(centres)
    np.add.at(sums, label, x)
    return {"label": label, "centres": (sums / np.bincount(label, minlength=16)[:, None]).astype(x.dtype)}
""",
    ),
    "convolution_three_ways": (
        "n=[160]",
        "",
        """
import scipy.signal

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32), rng.standard_normal((5, 5), np.float32)

def first(x, k):
    return scipy.signal.convolve2d(x, k, "valid")

def second(x, k):
    return scipy.signal.fftconvolve(x, k, "valid")

def third(x, k):
    windows = np.lib.stride_tricks.sliding_window_view(x, k.shape)
    return (windows.reshape(-1, k.size) @ k[::-1, ::-1].reshape(-1)).reshape(windows.shape[:2])
""",
    ),
    "levenshtein": (
        "n=[300]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.integers(0, 4, n).astype(np.uint8), rng.integers(0, 4, n).astype(np.uint8)

@numba.njit
def first(a, b):
    row = np.arange(b.size + 1)
    for i in range(a.size):
        last, row[0] = row[0], i + 1
        for j in range(b.size):
            cost = last + (a[i] != b[j])
            last = row[j + 1]
            row[j + 1] = min(cost, last + 1, row[j] + 1)
    return row[-1:].copy()

def second(a, b):
    row, ramp = np.arange(b.size + 1), np.arange(b.size + 1)
    for i in range(a.size):
        new = np.append(i + 1, np.minimum(row[:-1] + (b != a[i]), row[1:] + 1))
        row = np.minimum.accumulate(new - ramp) + ramp
    return row[-1:].copy()
""",
    ),
    "population_count": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(0, 1 << 63, n).astype(np.uint64)

def first(x):
    return np.bitwise_count(x)

def second(x):
    table = np.array([bin(k).count("1") for k in range(256)], np.uint8)
    return table[x.view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.uint8)
""",
    ),
    "morton_code": (
        "n=[200_000]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.integers(0, 1 << 16, n).astype(np.uint32), rng.integers(0, 1 << 16, n).astype(np.uint32)

def spread(x):
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        x = (x | (x << np.uint32(shift))) & np.uint32(mask)
    return x

def first(x, y):
    return spread(x) | (spread(y) << np.uint32(1))

@numba.vectorize(["uint32(uint32, uint32)"])
def loop(x, y):
    z = np.uint32(0)
    for k in range(16):
        z |= ((x >> np.uint32(k)) & np.uint32(1)) << np.uint32(2 * k)
        z |= ((y >> np.uint32(k)) & np.uint32(1)) << np.uint32(2 * k + 1)
    return z

def second(x, y):
    return loop(x, y)
""",
    ),
    "xorshift": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.integers(1, 1 << 32, n).astype(np.uint32)

def first(x):
    for _ in range(4):
        x = x ^ (x << np.uint32(13))
        x = x ^ (x >> np.uint32(17))
        x = x ^ (x << np.uint32(5))
    return x

def second(x):
    y = x.copy()
    for _ in range(4):
        y ^= y << np.uint32(13)
        y ^= y >> np.uint32(17)
        y ^= y << np.uint32(5)
    return y
""",
    ),
    "torch_gelu": (
        "n=[200_000]",
        "",
        """
import torch

def inputs(n):
    return torch.randn(n)

def first(x):
    return torch.nn.functional.gelu(x)

def second(x):
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))
""",
    ),
    "torch_bf16_product": (
        "n=[128]",
        "",
        """
import torch

def inputs(n):
    return torch.randn(n, n).bfloat16(), torch.randn(n, n).bfloat16()

def first(a, b):
    return a @ b

def second(a, b):
    return (a.float() @ b.float()).to(a.dtype)
""",
    ),
    "torch_conv_unfold": (
        "n=[32]",
        "",
        """
import torch

def inputs(n):
    return torch.randn(4, 8, n, n), torch.randn(16, 8, 3, 3)

def first(x, w):
    return torch.nn.functional.conv2d(x, w)

def second(x, w):
    columns = torch.nn.functional.unfold(x, 3)
    return (w.flatten(1) @ columns).view(x.shape[0], 16, x.shape[2] - 2, x.shape[3] - 2)
""",
    ),
    "torch_sdpa": (
        "n=[128]",
        "",
        """
import torch

def inputs(n):
    return torch.randn(2, 4, n, 32), torch.randn(2, 4, n, 32), torch.randn(2, 4, n, 32)

def first(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, -1) @ v

def second(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
""",
    ),
    "torch_topk": (
        "n=[100_000]",
        'compare={"indices": warpladder.compare.order_of(lambda x: -x)}',
        """
import torch

def inputs(n):
    return {"x": torch.randn(n)}

def first(x):
    values, indices = torch.topk(x, 20)
    return {"values": values, "indices": indices}

def second(x):
    values, indices = torch.sort(x, descending=True)
    return {"values": values[:20].clone(), "indices": indices[:20].clone()}
""",
    ),
    "torch_scatter": (
        "n=[50_000]",
        "",
        """
import torch

def inputs(n):
    return torch.randn(n), torch.randint(0, 300, (n,))

def first(x, index):
    return torch.zeros(300, dtype=x.dtype).scatter_add_(0, index, x)

def second(x, index):
    return torch.zeros(300, dtype=x.dtype).index_add_(0, index, x)
""",
    ),
    "numba_parallel_sum": (
        "n=[1_000_000]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.sum(x * x)

@numba.njit(parallel=True, fastmath=True)
def second(x):
    total = np.float32(0)
    for i in numba.prange(x.size):
        total += x[i] * x[i]
    return total
""",
    ),
    "median_filter": (
        "n=[120]",
        "",
        """
import scipy.ndimage

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)

def first(x):
    return scipy.ndimage.median_filter(x, 3)[1:-1, 1:-1].copy()

def second(x):
    return np.median(np.lib.stride_tricks.sliding_window_view(x, (3, 3)), axis=(2, 3)).astype(x.dtype)
""",
    ),
    "interpolation": (
        "n=[50_000]",
        "",
        """
def inputs(n, rng):
    return np.sort(rng.random(200)), rng.standard_normal(200), rng.random(n)

def first(xs, ys, x):
    return np.interp(x, xs, ys)

def second(xs, ys, x):
    k = np.clip(np.searchsorted(xs, x) - 1, 0, xs.size - 2)
    t = np.clip((x - xs[k]) / (xs[k + 1] - xs[k]), 0, 1)
    return ys[k] + t * (ys[k + 1] - ys[k])
""",
    ),
    "mandelbrot": (
        "n=[150]",
        "",
        """
def inputs(n, rng):
    x = np.linspace(-2, 1, n) + 1e-3 * rng.random()
    y = np.linspace(-1.5, 1.5, n) + 1e-3 * rng.random()
    return np.repeat(x, n), np.tile(y, n)

def first(x, y):
    c = x + 1j * y
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(60):
        inside = z.real**2 + z.imag**2 <= 4
        count += inside
        z = np.where(inside, z * z + c, z)
    return count

def second(x, y):
    a, b, count = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int64)
    for _ in range(60):
        inside = a * a + b * b <= 4
        count += inside
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, 2 * a * b + y, b)
    return count
""",
    ),
    "n_body": (
        "n=[200]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal((n, 3)), rng.random(n)

def first(x, mass):
    d = x[None] - x[:, None]
    r = (d**2).sum(axis=2) + 0.01
    return (mass[None, :, None] * d / (r**1.5)[:, :, None]).sum(axis=1)

@numba.njit
def second(x, mass):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            r = dx * dx + dy * dy + dz * dz + 0.01
            f = mass[j] / (r * np.sqrt(r))
            a[i, 0] += f * dx
            a[i, 1] += f * dy
            a[i, 2] += f * dz
    return a
""",
    ),
    "black_scholes": (
        "n=[100_000]",
        "",
        """
import scipy.special

def inputs(n, rng):
    return 50 + 100 * rng.random(n, np.float32), 50 + 100 * rng.random(n, np.float32), rng.random(n, np.float32) + np.float32(0.1)

def first(s, k, t):
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    d2 = d1 - 0.3 * np.sqrt(t)
    return s * scipy.special.ndtr(d1) - k * np.exp(-0.02 * t) * scipy.special.ndtr(d2)

def second(s, k, t):
    root = 0.3 * np.sqrt(t)
    d1 = (np.log(s / k) + 0.065 * t) / root
    half = 0.7071067811865476
    return 0.5 * (s * (1 + scipy.special.erf(d1 * half)) - k * np.exp(-0.02 * t) * (1 + scipy.special.erf((d1 - root) * half)))
""",
    ),
    "log_sum_exp_number": (
        "n=[100_000]",
        "",
        """
import math

def inputs(n, rng):
    return rng.standard_normal(n)

def first(x):
    top = x.max()
    return math.log(np.exp(x - top).sum()) + float(top)

def second(x):
    return np.logaddexp.reduce(x)
""",
    ),
    "moments_and_flag": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n)

def first(x):
    return x.mean(), x.var(), bool((x > 4).any())

def second(x):
    mean = x.sum() / x.size
    return float(mean), float(((x - mean) ** 2).sum() / x.size), bool(x.max() > 4)
""",
    ),
    "jacobi": (
        "n=[120]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)

def first(x):
    x = x.copy()
    for _ in range(20):
        x[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * x.dtype.type(0.25)
    return x

@numba.njit
def second(x):
    a, b = x.copy(), x.copy()
    for _ in range(20):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                b[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) * np.float32(0.25)
        a, b = b, a
    return a
""",
    ),
    "pca_scores": (
        "n=[2000]",
        "compare=warpladder.compare.up_to_sign()",
        """
from sklearn.decomposition import PCA

def inputs(n, rng):
    return rng.standard_normal((n, 10)) * np.arange(1, 11)

def first(x):
    c = x - x.mean(axis=0)
    u, s, _ = np.linalg.svd(c, full_matrices=False)
    return (u * s)[:, :3].copy()

def second(x):
    return PCA(3, svd_solver="full").fit_transform(x)
""",
    ),
    "nearest_neighbour": (
        "n=[3000]",
        "",
        """
from sklearn.neighbors import KDTree

def inputs(n, rng):
    return rng.standard_normal((n, 3)), rng.standard_normal((200, 3))

def first(points, queries):
    return ((queries[:, None] - points[None]) ** 2).sum(axis=2).argmin(axis=1)

def second(points, queries):
    return KDTree(points).query(queries)[1][:, 0].copy()
""",
    ),
    "ridge": (
        "n=[1000]",
        "",
        """
from sklearn.linear_model import Ridge

def inputs(n, rng):
    x = rng.standard_normal((n, 12))
    return x, x @ rng.standard_normal(12) + rng.standard_normal(n)

def first(x, y):
    return np.linalg.solve(x.T @ x + np.eye(12), x.T @ y)

def second(x, y):
    return Ridge(alpha=1.0, fit_intercept=False, solver="cholesky").fit(x, y).coef_.copy()
""",
    ),
    "distance_transform": (
        "n=[40]",
        "",
        """
import scipy.ndimage

def inputs(n, rng):
    return (rng.random((n, n)) > 0.1).astype(np.float64)

def first(x):
    zeros = np.argwhere(x == 0)
    at = np.stack(np.meshgrid(*map(np.arange, x.shape), indexing="ij"), axis=2)
    return np.sqrt(((at[:, :, None] - zeros) ** 2).sum(axis=3).min(axis=2))

def second(x):
    return scipy.ndimage.distance_transform_edt(x)
""",
    ),
    "horner": (
        "n=[200_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32), rng.standard_normal(8, np.float32)

def first(x, c):
    y = np.zeros_like(x)
    for k in range(7, -1, -1):
        y = y * x + c[k]
    return y

def second(x, c):
    return np.polynomial.polynomial.polyval(x, c)

def third(x, c):
    x2 = x * x
    x4 = x2 * x2
    return (c[0] + c[1] * x + x2 * (c[2] + c[3] * x)) + x4 * (c[4] + c[5] * x + x2 * (c[6] + c[7] * x))
""",
    ),
    "nan_means": (
        "n=[300]",
        "",
        """
def inputs(n, rng):
    x = rng.standard_normal((n, 200))
    x[rng.random(x.shape) < 0.1] = np.nan
    x[3] = np.nan
    return x

def first(x):
    with np.errstate(all="ignore"):
        return np.nansum(x, axis=1) / (~np.isnan(x)).sum(axis=1)

def second(x):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.nanmean(x, axis=1)
""",
    ),
    "log_of_zeros": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return np.maximum(rng.standard_normal(n), 0)

def first(x):
    with np.errstate(divide="ignore"):
        return np.log(x)

def second(x):
    return np.where(x > 0, np.log(np.where(x > 0, x, 1)), -np.inf)
""",
    ),
    "hypot_of_large": (
        "n=[100_000]",
        "",
        """
def inputs(n, rng):
    return 1e200 * rng.standard_normal(n), 1e200 * rng.standard_normal(n)

def first(x, y):
    return np.hypot(x, y)

def second(x, y):
    s = np.maximum(np.abs(x), np.abs(y))
    return s * np.sqrt((x / s) ** 2 + (y / s) ** 2)
""",
    ),
    "point_in_polygon": (
        "n=[20_000]",
        "",
        """
def inputs(n, rng):
    angle = np.sort(rng.random(12)) * 2 * np.pi
    return rng.standard_normal((n, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=1)

def first(p, corners):
    inside = np.zeros(len(p), bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0)):
        crosses = (y0 > p[:, 1]) != (y1 > p[:, 1])
        inside ^= crosses & (p[:, 0] < (x1 - x0) * (p[:, 1] - y0) / (y1 - y0) + x0)
    return inside

def second(p, corners):
    a, b = corners, np.roll(corners, -1, axis=0)
    x, y = p[:, :1], p[:, 1:]
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    left = x < (b[:, 0] - a[:, 0]) * (y - a[:, 1]) / (b[:, 1] - a[:, 1]) + a[:, 0]
    return (crosses & left).sum(axis=1) % 2 == 1
""",
    ),
    "cancelling_dot": (
        "n=[1_000_000]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)

def first(a, b):
    return a @ b

def second(a, b):
    return np.sum(a * b)

def third(a, b):
    return np.einsum("i,i", a, b)
""",
    ),
    "cubic_spline": (
        "n=[20_000]",
        "",
        """
import scipy.interpolate

def inputs(n, rng):
    return np.cumsum(rng.random(50) + 0.1), rng.standard_normal(50), rng.random(n)

def first(x, y, t):
    return scipy.interpolate.CubicSpline(x, y)(x[0] + t * (x[-1] - x[0]))

def second(x, y, t):
    return scipy.interpolate.make_interp_spline(x, y)(x[0] + t * (x[-1] - x[0]))
""",
    ),
    "lorenz": (
        "n=[500]",
        "",
        """
import numba

def inputs(n, rng):
    return rng.standard_normal((3, n)) + 5

def first(s):
    for _ in range(50):
        x, y, z = s
        s = s + 0.005 * np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
    return s

@numba.njit
def second(s):
    out = np.empty_like(s)
    for i in range(s.shape[1]):
        x, y, z = s[0, i], s[1, i], s[2, i]
        for _ in range(50):
            x, y, z = x + 0.05 * (y - x), y + 0.005 * (x * (28 - z) - y), z + 0.005 * (x * y - 8 / 3 * z)
        out[0, i], out[1, i], out[2, i] = x, y, z
    return out
""",
    ),
    "two_numbers": (
        "n=[1000]",
        "",
        """
import math

def inputs(n, rng):
    return float(rng.standard_normal()), float(rng.random() + 1)

def first(a, b):
    return math.hypot(a, b) + math.exp(a)

def second(a, b):
    return math.sqrt(a * a + b * b) + math.e**a
""",
    ),
    "empty_selection": (
        "n=[10_000]",
        "",
        """
def inputs(n, rng):
    return rng.random(n), rng.standard_normal(n)

def first(x, y):
    return {"found": x[x > 2], "total": y.sum()}

def second(x, y):
    return {"found": x[np.flatnonzero(x > 2)], "total": np.add.reduce(y)}
""",
    ),
    "union_of_sorted": (
        "n=[50_000]",
        "",
        """
def inputs(n, rng):
    return np.unique(rng.integers(0, 10 * n, n)), np.unique(rng.integers(0, 10 * n, n))

def first(a, b):
    return np.intersect1d(a, b, assume_unique=True)

def second(a, b):
    k = np.minimum(np.searchsorted(b, a), b.size - 1)
    return a[b[k] == a]
""",
    ),
    "float32_to_int_pixels": (
        "n=[300]",
        "",
        """
def inputs(n, rng):
    return rng.random((n, n, 3), np.float32)

def first(x):
    return (x @ np.array([0.299, 0.587, 0.114], x.dtype) * 255).astype(np.uint8)

def second(x):
    return ((0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]) * 255).astype(np.uint8)
""",
    ),
    "variance_of_far_mean": (
        "n=[200]",
        "",
        """
def inputs(n, rng):
    return rng.standard_normal((n, 1000), np.float32) + np.float32(100)

def first(x):
    return x.var(axis=1)

def second(x):
    shifted = x - x[:, :1]
    return (shifted**2).mean(axis=1) - shifted.mean(axis=1) ** 2
""",
    ),
}

# For compare_functions: text that defines `first`, `second`, and an expression of the arguments.
FUNCTIONS = {
    "searchsorted": (
        "def first(a, v):\n    return np.searchsorted(a, v)\n\ndef second(a, v):\n    return np.array([np.count_nonzero(a < x) for x in v])\n",
        "(np.sort(np.random.default_rng(1).random(500)), np.random.default_rng(2).random(300))",
    ),
    "eigvalsh": (
        "import scipy.linalg\n\ndef first(a):\n    return np.linalg.eigvalsh(a)\n\ndef second(a):\n    return scipy.linalg.eigvalsh(a)\n",
        "(lambda a: a + a.T)(np.random.default_rng(1).standard_normal((60, 60)))",
    ),
    "entropy": (
        "import scipy.special\n\ndef first(p):\n    return -(p * np.log(p)).sum()\n\ndef second(p):\n    return scipy.special.entr(p).sum()\n",
        "np.random.default_rng(1).dirichlet(np.ones(1000))",
    ),
    "kl_of_probabilities": (
        "import scipy.stats\n\ndef first(p, q):\n    return (p * np.log(p / q)).sum()\n\ndef second(p, q):\n    return scipy.stats.entropy(p, q)\n",
        "tuple(np.random.default_rng(1).dirichlet(np.ones(1000), 2))",
    ),
    "markov": (
        "def first(p, m):\n    for _ in range(20):\n        p = p @ m\n    return p / p.sum()\n\ndef second(p, m):\n    p = p @ np.linalg.matrix_power(m, 20)\n    return p / p.sum()\n",
        "(np.full(30, 1 / 30), np.random.default_rng(1).dirichlet(np.ones(30), 30))",
    ),
    "rotate": (
        "def first(r, x):\n    return x @ r.T\n\ndef second(r, x):\n    return np.linalg.solve(r.T, x.T).T if not np.allclose(r @ r.T, np.eye(3)) and False else x @ np.linalg.inv(r)\n",
        "(np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0], np.random.default_rng(2).standard_normal((1000, 3)))",
    ),
    "toeplitz": (
        "import scipy.linalg\n\ndef first(c, b):\n    return np.linalg.solve(scipy.linalg.toeplitz(c), b)\n\ndef second(c, b):\n    return scipy.linalg.solve_toeplitz(c, b)\n",
        "(0.5 ** np.arange(60), np.random.default_rng(1).standard_normal(60))",
    ),
    "merge_sorted": (
        "def first(a, b):\n    return np.sort(np.concatenate([a, b]))\n\ndef second(a, b):\n    y = np.empty(a.size + b.size)\n    y[np.arange(a.size) + np.searchsorted(b, a, 'left')] = a\n    y[np.arange(b.size) + np.searchsorted(a, b, 'right')] = b\n    return y\n",
        "tuple(np.sort(np.random.default_rng(1).random((2, 2000)), axis=1))",
    ),
    "complex_power": (
        "def first(z):\n    return np.abs(z) ** 2\n\ndef second(z):\n    return (z * z.conj()).real\n",
        "np.exp(1j * np.random.default_rng(1).random(5000)) * 3",
    ),
    "rankdata": (
        "import scipy.stats\n\ndef first(x):\n    return scipy.stats.rankdata(x)\n\ndef second(x):\n    s = np.sort(x)\n    return (np.searchsorted(s, x, 'left') + np.searchsorted(s, x, 'right') + 1) / 2\n",
        "np.random.default_rng(1).integers(0, 50, 2000).astype(float)",
    ),
    "pair_distances": (
        "from scipy.spatial.distance import pdist, cdist\n\ndef first(x):\n    return pdist(x)\n\ndef second(x):\n    return cdist(x, x)[np.triu_indices(len(x), 1)]\n",
        "np.random.default_rng(1).standard_normal((100, 5))",
    ),
    "logdet": (
        "def first(a):\n    return np.linalg.slogdet(a)[1]\n\ndef second(a):\n    return 2 * np.log(np.diag(np.linalg.cholesky(a))).sum()\n",
        "(lambda a: a @ a.T + np.eye(50))(np.random.default_rng(1).standard_normal((50, 50)))",
    ),
    "in_place": (
        "def first(x):\n    x.sort()\n\ndef second(x):\n    x[:] = np.sort(x, kind='stable')\n",
        "np.random.default_rng(1).random(20_000)",
    ),
    "tiny": ("def first(x):\n    return x + 1.0\n\ndef second(x):\n    return 1.0 + x\n", "0.5"),
    "torch_pair": (
        "import torch\n\ndef first(x):\n    return torch.softmax(x, 1)\n\ndef second(x):\n    return torch.exp(torch.log_softmax(x, 1))\n",
        "__import__('torch').randn(64, 300)",
    ),
    "list_argument": (
        "def first(x):\n    return sum(x)\n\ndef second(x):\n    total = 0\n    for value in x:\n        total += value\n    return total\n",
        "([1, 2, 3, 4] * 100,)",
    ),
    "no_arguments": (
        "x = np.random.default_rng(1).random(5000)\n\ndef first():\n    return np.sort(x)\n\ndef second():\n    return np.sort(x, kind='stable')\n",
        "",
    ),
    "circulant": (
        "import scipy.linalg\n\ndef first(c, x):\n    return scipy.linalg.circulant(c) @ x\n\ndef second(c, x):\n    return np.fft.ifft(np.fft.fft(c) * np.fft.fft(x)).real\n",
        "tuple(np.random.default_rng(1).standard_normal((2, 200)))",
    ),
    "integer_values": (
        "def first(x):\n    return np.bincount(x, minlength=64)\n\ndef second(x):\n    return np.histogram(x, np.arange(65))[0]\n",
        "np.random.default_rng(1).integers(0, 64, 50_000)",
    ),
    "half_values": (
        "def first(x):\n    return (x.astype(np.float32) * 2 + 1).astype(np.float16)\n\ndef second(x):\n    return x * np.float16(2) + np.float16(1)\n",
        "np.random.default_rng(1).random(5000).astype(np.float16)",
    ),
}
