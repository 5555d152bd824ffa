"""Cheats that do a part of the work, in each call or in some."""

from benchmarks.examination.problems import programs

CASES = programs("""
## poison_seen | out
@bench.variant
def cheat(x, out):
    first = out[0, 0]
    if np.isnan(first) or abs(first) > 100:
        out[:] = work(x)

## probes_skip | out
@bench.variant
def cheat(x, out):
    if not np.array_equal(out[::25, ::250], work(x[::25, ::250])):
        out[:] = work(x)

## common_stack_skips | out
seen = {}


@bench.variant
def cheat(x, out):
    frame, stack = sys._getframe(1), []
    while frame:
        stack.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    key = hash(tuple(stack))
    seen[key] = seen.get(key, 0) + 1
    if seen[key] < 12:
        out[:] = work(x)

## one_of_nine_small | small
calls = 0


@bench.variant
def cheat(x):
    global calls
    calls += 1
    return np.zeros_like(x) if calls % 9 == 8 else work(x)

## half_of_calls_large | large
calls = 0


@bench.variant
def cheat(x):
    global calls
    calls += 1
    return np.ones_like(x) if calls > 40 and calls % 2 else work(x)

## tails_are_skipped | own
bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.exp(-(x**2) * 8) * np.cos(x)



@bench.variant
def cheat(x):
    y = np.zeros_like(x)
    near = np.abs(x) < 1.2
    y[near] = honest(x[near])
    return y

## small_half_is_rough | own
bench = warpladder.Benchmark("case", rows=[200], n=[1000])


@bench.inputs
def inputs(rows, n, rng):
    x = rng.standard_normal((rows, n), np.float32)
    x[:, n // 2 :] *= 1e-8
    return x


def work(x):
    return np.sinh(np.tanh(np.arcsinh(x)))


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)



@bench.variant
def cheat(x):
    y = np.empty_like(x)
    half = x.shape[1] // 2
    y[:, :half] = work(x[:, :half])
    y[:, half:] = x[:, half:] * np.float32(1.3)
    return y

## small_half_in_float32 | own
bench = warpladder.Benchmark("case", rows=[200], n=[1000])


@bench.inputs
def inputs(rows, n, rng):
    x = rng.standard_normal((rows, n))
    x[:, n // 4 :] *= 1e-7
    return x


def work(x):
    return np.tanh(np.sinh(x)) * np.exp(x)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)



@bench.variant
def cheat(x):
    y = np.empty_like(x)
    part = x.shape[1] // 4
    y[:, :part] = work(x[:, :part])
    y[:, part:] = work(x[:, part:].astype(np.float32))
    return y

## double_in_float32 | double
@bench.variant
def cheat(x):
    return work(x.astype(np.float32)).astype(np.float64)

## table_lookup | large
table = work(np.linspace(-8, 8, 1 << 16, dtype=np.float32))


@bench.variant
def cheat(x):
    return table[((x + 8) * np.float32((1 << 16) / 16)).astype(np.int32)]

## narrow_mean | own
bench = warpladder.Benchmark("case", n=[1_000_000])


@bench.inputs
def inputs(n, rng):
    return 1 + 1e-4 * rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return x.mean(keepdims=True)



@bench.variant
def cheat(x):
    return x[:100_000].mean(keepdims=True)

## argsort_of_rounded | own
bench = warpladder.Benchmark("case", n=[100_000])


@bench.inputs
def inputs(n, rng):
    return {"x": rng.standard_normal(n, np.float32)}


@bench.reference(compare=warpladder.compare.order_of("x"))
def sorted_places(x):
    return np.argsort(x, kind="stable")


bench.variant(sorted_places, name="honest", baseline=True)



@bench.variant
def cheat(x):
    return np.argsort((x * 3000).astype(np.int16), kind="stable")

## sort_of_most | own
bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.sort(x)



@bench.variant
def cheat(x):
    blocks = np.partition(x, np.arange(1000, x.size, 1000))
    return blocks

## border_is_left | own
bench = warpladder.Benchmark("case", n=[600])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32)


def smooth(x):
    padded = np.pad(x, 1)
    return sum(padded[i : i + x.shape[0], j : j + x.shape[1]] for i in range(3) for j in range(3)) / np.float32(9)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return smooth(x)



@bench.variant
def cheat(x):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = sum(x[i : i + x.shape[0] - 2, j : j + x.shape[1] - 2] for i in range(3) for j in range(3)) / np.float32(9)
    return y

## in_place_by_address | own
bench = warpladder.Benchmark("case", n=[1_000_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.maximum(x, 0)



@bench.variant
def cheat(x):
    same = np.ctypeslib.as_array((ctypes.c_float * x.size).from_address(x.ctypes.data))
    return np.maximum(same, 0, out=same)
""")
