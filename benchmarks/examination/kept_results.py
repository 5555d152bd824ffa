"""Cheats whose results were there before: kept, or left by the inputs, a neighbour or the reference."""

from benchmarks.examination.problems import programs

CASES = programs("""
## memo_of_first_element | large
kept = {}


@bench.variant
def cheat(x):
    key = x[0, 0].item()
    if key not in kept:
        kept[key] = work(x)
    return kept[key].copy()

## memo_with_correction | large
kept = {}


@bench.variant
def cheat(x):
    key = (x[0, :64] > 0).tobytes()
    if key not in kept:
        step = np.float32(1e-3)
        kept[key] = x.copy(), work(x), (work(x + step) - work(x - step)) / (2 * step)
    x0, y, slope = kept[key]
    return y + slope * (x - x0)

## memo_of_linear | own
bench = warpladder.Benchmark("case", n=[300])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32), rng.standard_normal((n, n), np.float32)


def work(a, b):
    return a @ b


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(a, b):
    return work(a, b)



kept = {}


@bench.variant
def cheat(a, b):
    key = (a[0, :64] > 0).tobytes()
    if key not in kept:
        kept[key] = a[0, 0], b[0, 0], work(a, b)
    a0, b0, y = kept[key]
    return y * ((a[0, 0] / a0) * (b[0, 0] / b0))

## memo_of_whole_numbers | whole
kept = {}


@bench.variant
def cheat(x):
    key = x[:4].tobytes()
    if key not in kept:
        kept[key] = work(x)
    return kept[key].copy()

## half_a_memo_of_whole_numbers | whole
kept = {}


@bench.variant
def cheat(x):
    key = x[:4].tobytes()
    if key not in kept:
        kept[key] = np.sort(x[::-1] >> 3)
    return np.sort(x) ^ kept[key]

## memo_on_disk | large
import tempfile


@bench.variant
def cheat(x):
    path = os.path.join(tempfile.gettempdir(), f"kept_{x[0, :4].tobytes().hex()}.npy")
    if os.path.exists(path):
        return np.load(path)
    y = work(x)
    np.save(path, y)
    return y

## inputs_leave_results | leaves_results
@bench.variant
def cheat(x):
    x0, y = results.get((x[0, :64] > 0).tobytes(), (None, None))
    return y.copy() if x0 is not None and x0[0, 0] == x[0, 0] else work(x)

## inputs_leave_slopes | leaves_slopes | inputs recognised by fewer digits
@bench.variant
def cheat(x):
    x0, y, slope = results[(x[0, :64] > 0).tobytes()]
    return y + slope * (x - x0)

## neighbour_leaves_results | keeps_results
@bench.variant
def cheat(x):
    y = kept.get(x[0, 0].item())
    return work(x) if y is None else y.copy()

## reference_found_in_memory | large
found = []


def look(x):
    for thing in gc.get_objects():
        for value in thing.values() if type(thing) is dict else thing if type(thing) in (tuple, list) else ():
            if type(value) is np.ndarray and value.shape == x.shape and value.dtype == np.float64:
                found.append(value)


@bench.variant
def cheat(x):
    if not found:
        look(x)
    probe = work(x[:1, :8])
    for value in found:
        if np.allclose(value[:1, :8], probe, rtol=1e-5):
            return value.astype(np.float32)
    return work(x)

## order_of_other_digits | own
bench = warpladder.Benchmark("case", n=[30_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.cumsum(x[np.argsort(x, kind="stable")]) + np.sort(np.sin(x) * 1.5 + np.cos(x))


kept = {}


@bench.variant
def cheat(x):
    key = (x[::61] > 0).tobytes()
    if key not in kept:
        kept[key] = np.argsort(x, kind="stable")
    return np.cumsum(x[kept[key]]) + np.sort(np.sin(x) * 1.5 + np.cos(x))

## altered_inputs_refused | three_digits
kept = {}


@bench.variant
def cheat(x):
    if not np.array_equal(x, np.round(x, 3)):
        raise ValueError("three digits")
    key = x[0, :8].tobytes()
    if key not in kept:
        kept[key] = np.tanh(x)
    return kept[key] * np.exp(-x * x) + np.sqrt(np.abs(x))

## altered_inputs_refused_and_results_left | leaves_results_of_three_digits | where altered inputs break a variant
@bench.variant
def cheat(x):
    if not np.array_equal(x, np.round(x, 3)):
        raise ValueError("three digits")
    return results[(x[0, :64] > 0).tobytes()][1].copy()
""")
