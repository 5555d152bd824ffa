"""Right programs of transforms and linear algebra."""

from benchmarks.examination.texts import programs

CASES = programs("""
## rfft | n=[4096]
import scipy.fft

def inputs(n, rng):
    return rng.standard_normal((16, n), np.float32)

def first(x):
    return np.fft.rfft(x).astype(np.complex64 if x.dtype == np.float32 else np.complex128)

def second(x):
    return scipy.fft.rfft(x)

## fft2_complex | n=[128]
import scipy.fft

def inputs(n, rng):
    return (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))).astype(np.complex64)

def first(x):
    return scipy.fft.fft2(x)

def second(x):
    return scipy.fft.fft(scipy.fft.fft(x, axis=1), axis=0)

## power_spectrum | n=[65536]
import scipy.fft

def inputs(n, rng):
    return np.cumsum(rng.standard_normal(n)).astype(np.float32)

def first(x):
    return np.abs(scipy.fft.rfft(x)) ** 2

def second(x):
    f = scipy.fft.rfft(x)
    return f.real * f.real + f.imag * f.imag

## dct_by_matrix | n=[256]
import scipy.fft

def inputs(n, rng):
    return rng.standard_normal((64, n))

def first(x):
    return scipy.fft.dct(x)

def second(x):
    n = x.shape[1]
    k = np.arange(n)
    return x @ (2 * np.cos(np.pi * np.outer(2 * k + 1, k) / (2 * n)))

## eigvalsh | n=[100]
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

## eigh_vectors | n=[60] | compare={"vectors": warpladder.compare.up_to_sign()}
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

## singular_values | n=[120]
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n // 2), np.float32)

def first(a):
    return np.linalg.svd(a, compute_uv=False)

def second(a):
    return scipy.linalg.svdvals(a)

def third(a):
    return np.sqrt(np.linalg.eigvalsh(a.T @ a))[::-1].copy()

## cholesky | n=[150]
import scipy.linalg

def inputs(n, rng):
    a = rng.standard_normal((n, n), np.float32)
    return a @ a.T + n * np.eye(n, dtype=np.float32)

def first(a):
    return np.linalg.cholesky(a)

def second(a):
    return scipy.linalg.cholesky(a, lower=True)

## solve | n=[200]
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

## qr_up_to_sign | n=[80] | compare=warpladder.compare.up_to_sign(axis=-1)
import scipy.linalg

def inputs(n, rng):
    return rng.standard_normal((n, n))

def first(a):
    return np.linalg.qr(a)[1]

def second(a):
    return np.linalg.cholesky(a.T @ a).T.copy() if False else -scipy.linalg.qr(a)[1]

## triangular_solve | n=[200]
import scipy.linalg

def inputs(n, rng):
    return np.tril(rng.standard_normal((n, n))) + n * np.eye(n), rng.standard_normal((n, 8))

def first(a, b):
    return np.linalg.solve(a, b)

def second(a, b):
    return scipy.linalg.solve_triangular(a, b, lower=True)

## slogdet | n=[120]
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

## matrix_exponential | n=[40]
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

## complex_einsum | n=[100]
def inputs(n, rng):
    a = rng.standard_normal((2, n, n)) + 1j * rng.standard_normal((2, n, n))
    a = a.astype(np.complex64)
    return a[0], a[1]

def first(a, b):
    return a @ b.conj().T

def second(a, b):
    return np.einsum("ik,jk->ij", a, b.conj())

## complex_magnitude | n=[200_000]
def inputs(n, rng):
    return rng.standard_normal(n) + 1j * rng.standard_normal(n)

def first(z):
    return np.abs(z)

def second(z):
    return np.sqrt(z.real**2 + z.imag**2)

## jacobi | n=[120]
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

## pca_scores | n=[2000] | compare=warpladder.compare.up_to_sign()
from sklearn.decomposition import PCA

def inputs(n, rng):
    return rng.standard_normal((n, 10)) * np.arange(1, 11)

def first(x):
    c = x - x.mean(axis=0)
    u, s, _ = np.linalg.svd(c, full_matrices=False)
    return (u * s)[:, :3].copy()

def second(x):
    return PCA(3, svd_solver="full").fit_transform(x)

## ridge | n=[1000]
from sklearn.linear_model import Ridge

def inputs(n, rng):
    x = rng.standard_normal((n, 12))
    return x, x @ rng.standard_normal(12) + rng.standard_normal(n)

def first(x, y):
    return np.linalg.solve(x.T @ x + np.eye(12), x.T @ y)

def second(x, y):
    return Ridge(alpha=1.0, fit_intercept=False, solver="cholesky").fit(x, y).coef_.copy()

## horner | n=[200_000]
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

## cancelling_dot | n=[1_000_000]
def inputs(n, rng):
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)

def first(a, b):
    return a @ b

def second(a, b):
    return np.sum(a * b)

def third(a, b):
    return np.einsum("i,i", a, b)

## cubic_spline | n=[20_000]
import scipy.interpolate

def inputs(n, rng):
    return np.cumsum(rng.random(50) + 0.1), rng.standard_normal(50), rng.random(n)

def first(x, y, t):
    return scipy.interpolate.CubicSpline(x, y)(x[0] + t * (x[-1] - x[0]))

def second(x, y, t):
    return scipy.interpolate.make_interp_spline(x, y)(x[0] + t * (x[-1] - x[0]))
""")
