"""Right programs of images, physics, finance and statistics, and of results at the edge of the numbers."""

from benchmarks.examination.texts import programs

CASES = programs("""
## numba_parallel_sum | n=[1_000_000]
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

## median_filter | n=[120]
import scipy.ndimage

def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)

def first(x):
    return scipy.ndimage.median_filter(x, 3)[1:-1, 1:-1].copy()

def second(x):
    return np.median(np.lib.stride_tricks.sliding_window_view(x, (3, 3)), axis=(2, 3)).astype(x.dtype)

## interpolation | n=[50_000]
def inputs(n, rng):
    return np.sort(rng.random(200)), rng.standard_normal(200), rng.random(n)

def first(xs, ys, x):
    return np.interp(x, xs, ys)

def second(xs, ys, x):
    k = np.clip(np.searchsorted(xs, x) - 1, 0, xs.size - 2)
    t = np.clip((x - xs[k]) / (xs[k + 1] - xs[k]), 0, 1)
    return ys[k] + t * (ys[k + 1] - ys[k])

## mandelbrot | n=[150]
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

## n_body | n=[200]
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

## black_scholes | n=[100_000]
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

## moments_and_flag | n=[100_000]
def inputs(n, rng):
    return rng.standard_normal(n)

def first(x):
    return x.mean(), x.var(), bool((x > 4).any())

def second(x):
    mean = x.sum() / x.size
    return float(mean), float(((x - mean) ** 2).sum() / x.size), bool(x.max() > 4)

## nearest_neighbour | n=[3000]
from sklearn.neighbors import KDTree

def inputs(n, rng):
    return rng.standard_normal((n, 3)), rng.standard_normal((200, 3))

def first(points, queries):
    return ((queries[:, None] - points[None]) ** 2).sum(axis=2).argmin(axis=1)

def second(points, queries):
    return KDTree(points).query(queries)[1][:, 0].copy()

## distance_transform | n=[40]
import scipy.ndimage

def inputs(n, rng):
    return (rng.random((n, n)) > 0.1).astype(np.float64)

def first(x):
    zeros = np.argwhere(x == 0)
    at = np.stack(np.meshgrid(*map(np.arange, x.shape), indexing="ij"), axis=2)
    return np.sqrt(((at[:, :, None] - zeros) ** 2).sum(axis=3).min(axis=2))

def second(x):
    return scipy.ndimage.distance_transform_edt(x)

## nan_means | n=[300]
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

## log_of_zeros | n=[100_000]
def inputs(n, rng):
    return np.maximum(rng.standard_normal(n), 0)

def first(x):
    with np.errstate(divide="ignore"):
        return np.log(x)

def second(x):
    return np.where(x > 0, np.log(np.where(x > 0, x, 1)), -np.inf)

## hypot_of_large | n=[100_000]
def inputs(n, rng):
    return 1e200 * rng.standard_normal(n), 1e200 * rng.standard_normal(n)

def first(x, y):
    return np.hypot(x, y)

def second(x, y):
    s = np.maximum(np.abs(x), np.abs(y))
    return s * np.sqrt((x / s) ** 2 + (y / s) ** 2)

## point_in_polygon | n=[20_000]
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

## lorenz | n=[500]
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

## two_numbers | n=[1000]
import math

def inputs(n, rng):
    return float(rng.standard_normal()), float(rng.random() + 1)

def first(a, b):
    return math.hypot(a, b) + math.exp(a)

def second(a, b):
    return math.sqrt(a * a + b * b) + math.e**a

## float32_to_int_pixels | n=[300]
def inputs(n, rng):
    return rng.random((n, n, 3), np.float32)

def first(x):
    return (x @ np.array([0.299, 0.587, 0.114], x.dtype) * 255).astype(np.uint8)

def second(x):
    return ((0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]) * 255).astype(np.uint8)

## variance_of_far_mean | n=[200]
def inputs(n, rng):
    return rng.standard_normal((n, 1000), np.float32) + np.float32(100)

def first(x):
    return x.var(axis=1)

def second(x):
    shifted = x - x[:, :1]
    return (shifted**2).mean(axis=1) - shifted.mean(axis=1) ** 2
""")
