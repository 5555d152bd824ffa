"""Right programs that sort, count, scan, sample and select."""

from benchmarks.examination.texts import programs

CASES = programs("""
## sort | n=[100_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.sort(x)

def second(x):
    return np.sort(x, kind="stable")

## argsort_ties | n=[50_000] | compare=warpladder.compare.order_of("x")
def inputs(n, rng):
    return {"x": np.round(rng.standard_normal(n), 1).astype(np.float32)}

def first(x):
    return np.argsort(x, kind="stable")

def second(x):
    return np.argsort(x)

def third(x):
    return np.lexsort((np.arange(x.size)[::-1], x))

## topk_ties | n=[50_000] | compare=warpladder.compare.order_of(lambda x: -x)
def inputs(n, rng):
    return {"x": np.round(rng.standard_normal(n), 2).astype(np.float32)}

def first(x):
    return np.argsort(-x, kind="stable")[:50]

def second(x):
    top = np.argpartition(-x, 50)[:50]
    return top[np.argsort(-x[top])]

## argmax_rows | n=[500] | compare=warpladder.compare.order_of("x", axis=1)
def inputs(n, rng):
    return {"x": rng.integers(0, 20, (n, 300)).astype(np.float32)}

def first(x):
    return np.argmax(x, axis=1, keepdims=True)

def second(x):
    return (x.shape[1] - 1 - np.argmax(x[:, ::-1], axis=1))[:, None]

## histogram | n=[300_000] | compare=warpladder.compare.bins()
def inputs(n, rng):
    return rng.random(n, np.float32)

def first(x):
    return np.histogram(x, 100, (0, 1))[0]

def second(x):
    return np.bincount(np.minimum((x * np.float32(100)).astype(np.int64), 99), minlength=100)

## sampling_with_a_seed | n=[20_000]
def inputs(n, rng):
    weights = rng.random(64, np.float32)
    return weights / weights.sum(), rng.random(n, np.float32)

def first(p, u):
    return np.searchsorted(np.cumsum(p), u)

def second(p, u):
    return (u[:, None] > np.cumsum(p)[None]).sum(axis=1)

## sparse_vector | n=[5000]
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

## sparse_numba | n=[3000]
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

## scan | n=[1_000_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return np.cumsum(x)

def second(x):
    blocks = np.cumsum(x.reshape(1000, -1), axis=1)
    blocks[1:] += np.cumsum(blocks[:-1, -1])[:, None]
    return blocks.reshape(-1)

## exclusive_scan | n=[300_000]
def inputs(n, rng):
    return rng.integers(-100, 100, n)

def first(x):
    return np.concatenate([[0], np.cumsum(x)[:-1]])

def second(x):
    y = np.cumsum(x)
    y -= x
    return y

## running_maximum | n=[300_000]
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

## segmented_sum | n=[200_000]
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

## weekday | n=[200_000]
def inputs(n, rng):
    return rng.integers(0, 2_000_000_000, n)

def first(seconds):
    return (seconds // 86400 + 4) % 7

def second(seconds):
    days = seconds.astype("datetime64[s]").astype("datetime64[D]").astype(np.int64)
    return (days - 3) % 7

## upper_case | n=[400_000]
def inputs(n, rng):
    return rng.integers(32, 127, n).astype(np.uint8)

def first(text):
    return np.where((text >= 97) & (text <= 122), text - 32, text).astype(np.uint8)

def second(text):
    return np.frombuffer(text.tobytes().upper(), np.uint8).copy()

## unique_counts | n=[100_000]
def inputs(n, rng):
    return rng.integers(0, 100_000, n)

def first(x):
    return np.unique(x, return_counts=True)

def second(x):
    counts = np.bincount(x)
    values = np.flatnonzero(counts)
    return values, counts[values]

## argwhere | n=[400]
def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)

def first(x):
    return np.argwhere(x > 1.5)

def second(x):
    return np.stack(np.nonzero(x > 1.5), axis=1)

## run_lengths | n=[100_000]
def inputs(n, rng):
    return rng.integers(0, 2, n).astype(np.int32)

def first(x):
    ends = np.flatnonzero(np.append(x[1:] != x[:-1], True))
    return x[ends], np.diff(ends, prepend=-1)

def second(x):
    starts = np.concatenate([[0], np.flatnonzero(np.diff(x)) + 1])
    return x[starts], np.diff(np.append(starts, x.size))

## compaction | n=[200_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)

def first(x):
    return x[x > 0]

def second(x):
    return np.compress(x > 0, x)

def third(x):
    return x.take(np.flatnonzero(x > 0))

## group_means | n=[100_000]
import pandas as pd

def inputs(n, rng):
    return rng.integers(0, 200, n), rng.standard_normal(n)

def first(key, value):
    return np.bincount(key, value, 200) / np.bincount(key, minlength=200)

def second(key, value):
    return pd.DataFrame({"key": key, "value": value}).groupby("key")["value"].mean().to_numpy()

## empty_selection | n=[10_000]
def inputs(n, rng):
    return rng.random(n), rng.standard_normal(n)

def first(x, y):
    return {"found": x[x > 2], "total": y.sum()}

def second(x, y):
    return {"found": x[np.flatnonzero(x > 2)], "total": np.add.reduce(y)}

## union_of_sorted | n=[50_000]
def inputs(n, rng):
    return np.unique(rng.integers(0, 10 * n, n)), np.unique(rng.integers(0, 10 * n, n))

def first(a, b):
    return np.intersect1d(a, b, assume_unique=True)

def second(a, b):
    k = np.minimum(np.searchsorted(b, a), b.size - 1)
    return a[b[k] == a]

## levenshtein | n=[300]
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

## population_count | n=[200_000]
def inputs(n, rng):
    return rng.integers(0, 1 << 63, n).astype(np.uint64)

def first(x):
    return np.bitwise_count(x)

def second(x):
    table = np.array([bin(k).count("1") for k in range(256)], np.uint8)
    return table[x.view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.uint8)

## morton_code | n=[200_000]
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

## xorshift | n=[200_000]
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
""")
