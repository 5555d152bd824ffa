"""Right programs that keep what does not depend on the numbers: tables, factors, plans, compiled code, choices of a tuner; and a start."""

from benchmarks.examination.texts import programs

CASES = programs("""
## weights_of_a_width | n=[3000]
import functools

def inputs(n, rng):
    return {"x": rng.standard_normal(n), "width": 1.7}

def weights(width):
    k = np.exp(-0.5 * (np.arange(-1000, 1001) / width) ** 2)
    return k[980:1021] / k.sum()

kept = functools.cache(weights)

def first(x, width):
    return np.convolve(x, weights(width), "valid")

def second(x, width):
    return np.convolve(x, kept(width), "valid")

## factors_of_a_step | n=[300]
import functools
import scipy.linalg

def inputs(n, rng):
    return {"u": rng.standard_normal(n), "dt": 0.01}

def system(n, dt):
    r = 0.3 * dt * n
    return (1 + 2 * r) * np.eye(n) - r * (np.eye(n, k=1) + np.eye(n, k=-1))

@functools.cache
def factors(n, dt):
    return scipy.linalg.lu_factor(system(n, dt))

def first(u, dt):
    return np.linalg.solve(system(u.size, dt), u)

def second(u, dt):
    return scipy.linalg.lu_solve(factors(u.size, float(dt)), u)

## own_tuner | n=[200_000]
import time

def inputs(n, rng):
    return rng.standard_normal(n)

def first(x):
    return np.tanh(x) * np.exp(-x * x)

def blocked(x, size):
    y = np.empty_like(x)
    for start in range(0, x.size, size):
        y[start : start + size] = first(x[start : start + size])
    return y

sizes, times = [1 << k for k in range(10, 17)], {}

def second(x):
    untried = [size for size in sizes if (x.size, size) not in times]
    size = untried[0] if untried else min(sizes, key=lambda each: times[x.size, each])
    started = time.perf_counter()
    y = blocked(x, size)
    times.setdefault((x.size, size), time.perf_counter() - started)
    return y

## start_at_the_last_result | n=[20_000]
def inputs(n, rng):
    return rng.uniform(1, 2, n)

def first(x):
    return np.cbrt(x)

last = {}

def second(x):
    y = last.get(x.size, np.ones_like(x))
    while True:
        step = (y * y * y - x) / (3 * y * y)
        y = y - step
        if np.abs(step).max() < 1e-13:
            last[x.size] = y
            return y.copy()

## code_of_a_degree | n=[5000], degree=[12]
def inputs(n, degree, rng):
    return rng.standard_normal(n), rng.standard_normal(degree + 1)

def first(x, c):
    return np.polynomial.polynomial.polyval(x, c)

made = {}

def second(x, c):
    if len(c) not in made:
        text = f"c[{len(c) - 1}]"
        for k in reversed(range(len(c) - 1)):
            text = f"({text}) * x + c[{k}]"
        made[len(c)] = eval(f"lambda x, c: {text}")
    return made[len(c)](x, c)

## gelu_from_one | n=[20_000]
import scipy.special

def inputs(n, rng):
    return 3 * rng.standard_normal(n, np.float32)

def first(x):
    return x * scipy.special.ndtr(x)

def second(x):
    return (0.5 * x * (1 + scipy.special.erf(x * x.dtype.type(0.5**0.5)))).astype(x.dtype)

## torch_compiled_with_a_number | n=[20_000]
import torch

def inputs(n):
    return {"x": torch.randn(n), "slope": 0.37}

def first(x, slope):
    return torch.where(x > 0, x, slope * x)

second = torch.compile(first, backend="eager")

## torch_kept_rotations | n=[128]
import functools
import torch

def inputs(n):
    return torch.randn(4, n, 64)

def tables(n, d, dtype):
    angle = torch.arange(n, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return angle.cos().to(dtype), angle.sin().to(dtype)

kept = functools.cache(tables)

def rotated(x, c, s):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

def first(x):
    return rotated(x, *tables(x.shape[1], x.shape[2], x.dtype))

def second(x):
    return rotated(x, *kept(x.shape[1], x.shape[2], x.dtype))

## jax_static_number | n=[20_000]
import jax
import jax.numpy as jnp

def inputs(n, rng):
    return {"x": jnp.asarray(rng.standard_normal(n, np.float32)), "slope": 0.3}

def reference(x, slope):
    return np.where(x > 0, x, slope * x)

first = jax.jit(lambda x, slope: jnp.where(x > 0, x, slope * x))
second = jax.jit(lambda x, slope: jnp.where(x > 0, x, slope * x), static_argnames="slope")

## jax_compiled_ahead | n=[128]
import jax
import jax.numpy as jnp

def inputs(n, rng):
    return jnp.asarray(rng.standard_normal((n, n), np.float32)), jnp.asarray(rng.standard_normal((n, n), np.float32))

def reference(a, b):
    return np.maximum(np.asarray(a) @ np.asarray(b), 0)

first = jax.jit(lambda a, b: jnp.maximum(a @ b, 0))
kept = {}

def second(a, b):
    if a.shape not in kept:
        kept[a.shape] = first.lower(a, b).compile()
    return kept[a.shape](a, b)
""")
