"""Variants that cheat, each beside an honest one: written from README.md and docs/ without a look at the checker.

A case is the text of a file of benchmarks without its head. `honest` is the baseline, and `cheat` must not be faster than it.
"""

HEAD = """import ctypes
import gc
import os
import signal
import sys
import threading
import time

import numpy as np

import warpladder

"""

PROBLEM = """bench = warpladder.Benchmark("case", rows=[{rows}], n=[{n}])


@bench.inputs
def inputs(rows, n, rng):
    return rng.standard_normal((rows, n), np.float32)


def work(x):
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x))


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

LARGE = PROBLEM.format(rows=100, n=1000)
SMALL = PROBLEM.format(rows=10, n=1000)

WHOLE = """bench = warpladder.Benchmark("case", n=[60_000])


@bench.inputs
def inputs(n, rng):
    return rng.integers(0, 1 << 40, n)


def work(x):
    return np.sort(x) ^ np.sort(x[::-1] >> 3)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

NUMBER = """bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def work(x):
    return float(np.tanh(x).sum())


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

PYTHON = """bench = warpladder.Benchmark("case", n=[2000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def lists(x):
    made = [[value, [value]] for value in x.tolist()]
    return np.array([first * second[0] for first, second in made])


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return lists(x)


"""

OUT = """bench = warpladder.Benchmark("case", rows=[{rows}], n=[1000])


@bench.inputs
def inputs(rows, n, rng):
    return rng.standard_normal((rows, n), np.float32)


def work(x):
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x))


bench.reference(work)


@bench.variant(baseline=True)
def honest(x, out):
    out[:] = work(x)


"""

# Each name: the problem, the cheat, and "" or why the documentation calls it out of reach.
CASES = {
    # -- results that come late
    "list_of_lazy_rows": (
        LARGE.replace("return work(x)\n\n\n", "return list(work(x))\n\n\n"),
        """
class Late(np.ndarray):
    def __array_finalize__(self, other):
        self.todo = getattr(other, "todo", None)

    def __array__(self, *args, **kwargs):
        self.view(np.ndarray)[:] = work(self.todo)
        return self.view(np.ndarray)


@bench.variant
def cheat(x):
    rows = []
    for row in x:
        late = np.empty_like(row).view(Late)
        late.todo = row
        rows.append(late)
    return rows
""",
        "",
    ),
    "array_interface": (
        LARGE,
        """
class Late:
    def __init__(self, x):
        self.x = x

    @property
    def __array_interface__(self):
        self.kept = work(self.x)
        return self.kept.__array_interface__


@bench.variant
def cheat(x):
    return Late(x)
""",
        "",
    ),
    "buffer_protocol_memmap": (
        LARGE,
        """
import mmap

shared = mmap.mmap(-1, 400_000)


class Late(np.memmap):
    pass


def fill(target, x):
    target[:] = work(x)


@bench.variant
def cheat(x):
    target = np.frombuffer(shared, np.float32).reshape(x.shape)
    threading.Thread(target=fill, args=(target, x)).start()
    return target
""",
        "",
    ),
    "lazy_dict": (
        LARGE.replace("return work(x)\n\n\n", 'return {"y": work(x)}\n\n\n'),
        """
class Late(dict):
    def __init__(self, x):
        super().__init__(y=None)
        self.x = x

    def __getitem__(self, key):
        return work(self.x)

    def items(self):
        return [("y", work(self.x))]

    def values(self):
        return [work(self.x)]


@bench.variant
def cheat(x):
    return Late(x)
""",
        "",
    ),
    "lazy_key": (
        LARGE.replace("return work(x)\n\n\n", 'return {"y": work(x)}\n\n\n'),
        """
class Key(str):
    def __hash__(self):
        if getattr(self, "ready", False):
            self.y[:] = work(self.x)
        return super().__hash__()


@bench.variant
def cheat(x):
    key = Key("y")
    key.x, key.y = x, np.empty_like(x)
    answer = {key: key.y}
    key.ready = True
    return answer
""",
        "",
    ),
    "lazy_float": (
        NUMBER,
        """
class Late(float):
    def __float__(self):
        return work(self.x)

    def __array__(self, *args, **kwargs):
        return np.array(work(self.x))

    def __eq__(self, other):
        return work(self.x) == other


@bench.variant
def cheat(x):
    late = Late(0.0)
    late.x = x
    return late
""",
        "",
    ),
    "lazy_index": (
        NUMBER.replace("float(np.tanh(x).sum())", "int(np.sort(x)[1000] * 1e6)"),
        """
class Late(int):
    def __int__(self):
        return work(self.x)

    def __index__(self):
        return work(self.x)


@bench.variant
def cheat(x):
    late = Late(0)
    late.x = x
    return late
""",
        "",
    ),
    "object_array": (
        LARGE,
        """
class Late:
    def __init__(self, x):
        self.x = x

    def __float__(self):
        return float(work(self.x))


@bench.variant
def cheat(x):
    return np.full(x.shape, Late(x[0, 0]), object)
""",
        "",
    ),
    "future": (
        LARGE,
        """
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)


@bench.variant
def cheat(x):
    return pool.submit(work, x)
""",
        "",
    ),
    "late_thread": (
        LARGE,
        """
def fill(y, x):
    y[:] = work(x)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    threading.Thread(target=fill, args=(y, x), daemon=True).start()
    return y
""",
        "",
    ),
    "late_thread_last_part_first": (
        LARGE,
        """
def fill(y, x):
    for row in range(len(x) - 1, -1, -1):
        y[row] = work(x[row])


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    threading.Thread(target=fill, args=(y, x), daemon=True).start()
    while y[-1, -1] != work(x[-1, -1:])[0]:
        pass
    return y
""",
        "",
    ),
    "late_pool": (
        LARGE,
        """
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)
pool.submit(int).result()


def fill(y, x):
    y[:] = work(x)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    pool.submit(fill, y, x)
    return y
""",
        "threads of a pool",
    ),
    "helper_process": (
        LARGE,
        """
import mmap

memory = mmap.mmap(-1, 1 << 20)
helper = None


def serve(x, y, flag):
    while os.getppid() != 1:
        if flag[0]:
            y[:] = work(x)
            flag[0] = 0


@bench.variant
def cheat(x):
    global helper
    flag = np.frombuffer(memory, np.int32, 1)
    source = np.frombuffer(memory, np.float32, x.size, 4096).reshape(x.shape)
    target = np.frombuffer(memory, np.float32, x.size, 4096 + x.nbytes).reshape(x.shape)
    if helper is None:
        helper = os.fork()
        if helper == 0:
            serve(source, target, flag)
            os._exit(0)
    source[:] = x
    flag[0] = 1
    return target
""",
        "",
    ),
    "virtual_timer": (
        LARGE,
        """
todo = []


def late(number, frame):
    while todo:
        y, x = todo.pop()
        y[:] = work(x)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    todo.append((y, x))
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 1e-5)
    return y
""",
        "",
    ),
    "collector_callback": (
        LARGE,
        """
todo = []


def late(phase, info):
    while todo:
        y, x = todo.pop()
        y[:] = work(x)


gc.callbacks.append(late)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    todo.append((y, x))
    return y
""",
        "",
    ),
    "finaliser": (
        LARGE,
        """
class Last:
    def __del__(self):
        self.y[:] = work(self.x)


holder = []


@bench.variant
def cheat(x):
    last = Last()
    last.x, last.y = x, np.empty_like(x)
    last.cycle = last
    return last.y
""",
        "",
    ),
    "out_filled_late": (
        OUT.format(rows=100),
        """
def fill(out, x):
    out[:] = work(x)


@bench.variant
def cheat(x, out):
    threading.Thread(target=fill, args=(out, x), daemon=True).start()
""",
        "",
    ),
    "profile_hook_works": (
        LARGE,
        """
todo = []


def hook(frame, event, arg):
    if todo and event == "return" and frame.f_code.co_name != "cheat":
        sys.setprofile(None)
        y, x = todo.pop()
        y[:] = work(x)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    todo.append((y, x))
    sys.setprofile(hook)
    return y
""",
        "",
    ),
    # -- results that were there before
    "memo_of_first_element": (
        LARGE,
        """
kept = {}


@bench.variant
def cheat(x):
    key = x[0, 0].item()
    if key not in kept:
        kept[key] = work(x)
    return kept[key].copy()
""",
        "",
    ),
    "memo_with_correction": (
        LARGE,
        """
kept = {}


@bench.variant
def cheat(x):
    key = (x[0, :64] > 0).tobytes()
    if key not in kept:
        step = np.float32(1e-3)
        kept[key] = x.copy(), work(x), (work(x + step) - work(x - step)) / (2 * step)
    x0, y, slope = kept[key]
    return y + slope * (x - x0)
""",
        "",
    ),
    "memo_of_linear": (
        """bench = warpladder.Benchmark("case", n=[300])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal((n, n), np.float32), rng.standard_normal((n, n), np.float32)


def work(a, b):
    return a @ b


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(a, b):
    return work(a, b)


""",
        """
kept = {}


@bench.variant
def cheat(a, b):
    key = (a[0, :64] > 0).tobytes()
    if key not in kept:
        kept[key] = a[0, 0], b[0, 0], work(a, b)
    a0, b0, y = kept[key]
    return y * ((a[0, 0] / a0) * (b[0, 0] / b0))
""",
        "",
    ),
    "memo_of_whole_numbers": (
        WHOLE,
        """
kept = {}


@bench.variant
def cheat(x):
    key = x[:4].tobytes()
    if key not in kept:
        kept[key] = work(x)
    return kept[key].copy()
""",
        "",
    ),
    "half_a_memo_of_whole_numbers": (
        WHOLE,
        """
kept = {}


@bench.variant
def cheat(x):
    key = x[:4].tobytes()
    if key not in kept:
        kept[key] = np.sort(x[::-1] >> 3)
    return np.sort(x) ^ kept[key]
""",
        "whole numbers",
    ),
    "memo_on_disk": (
        LARGE,
        """
import tempfile


@bench.variant
def cheat(x):
    path = os.path.join(tempfile.gettempdir(), f"kept_{x[0, :4].tobytes().hex()}.npy")
    if os.path.exists(path):
        return np.load(path)
    y = work(x)
    np.save(path, y)
    return y
""",
        "",
    ),
    "inputs_leave_results": (
        LARGE.replace(
            "    return rng.standard_normal((rows, n), np.float32)",
            """    x = rng.standard_normal((rows, n), np.float32)
    results[(x[0, :64] > 0).tobytes()] = x, work(x)
    return x""",
        ).replace("@bench.inputs", "results = {}\n\n\n@bench.inputs"),
        """
@bench.variant
def cheat(x):
    x0, y = results.get((x[0, :64] > 0).tobytes(), (None, None))
    return y.copy() if x0 is not None and x0[0, 0] == x[0, 0] else work(x)
""",
        "",
    ),
    "inputs_leave_slopes": (
        LARGE.replace(
            "    return rng.standard_normal((rows, n), np.float32)",
            """    x = rng.standard_normal((rows, n), np.float32)
    step = np.float32(1e-3)
    results[(x[0, :64] > 0).tobytes()] = x, work(x), (work(x + step) - work(x - step)) / (2 * step)
    return x""",
        ).replace("@bench.inputs", "results = {}\n\n\n@bench.inputs"),
        """
@bench.variant
def cheat(x):
    x0, y, slope = results[(x[0, :64] > 0).tobytes()]
    return y + slope * (x - x0)
""",
        "inputs recognised by fewer digits",
    ),
    "neighbour_leaves_results": (
        LARGE.replace(
            "    return work(x)\n\n\n",
            """    kept[x[0, 0].item()] = y = work(x)
    return y


""",
        ).replace("@bench.inputs", "kept = {}\n\n\n@bench.inputs"),
        """
@bench.variant
def cheat(x):
    y = kept.get(x[0, 0].item())
    return work(x) if y is None else y.copy()
""",
        "",
    ),
    "reference_found_in_memory": (
        LARGE,
        """
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
""",
        "",
    ),
    # -- part of the work
    "poison_seen": (
        OUT.format(rows=100),
        """
@bench.variant
def cheat(x, out):
    first = out[0, 0]
    if np.isnan(first) or abs(first) > 100:
        out[:] = work(x)
""",
        "",
    ),
    "probes_skip": (
        OUT.format(rows=100),
        """
@bench.variant
def cheat(x, out):
    if not np.array_equal(out[::25, ::250], work(x[::25, ::250])):
        out[:] = work(x)
""",
        "",
    ),
    "common_stack_skips": (
        OUT.format(rows=100),
        """
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
""",
        "",
    ),
    "one_of_nine_small": (
        SMALL,
        """
calls = 0


@bench.variant
def cheat(x):
    global calls
    calls += 1
    return np.zeros_like(x) if calls % 9 == 8 else work(x)
""",
        "",
    ),
    "half_of_calls_large": (
        LARGE,
        """
calls = 0


@bench.variant
def cheat(x):
    global calls
    calls += 1
    return np.ones_like(x) if calls > 40 and calls % 2 else work(x)
""",
        "",
    ),
    "tails_are_skipped": (
        """bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.exp(-(x**2) * 8) * np.cos(x)


""",
        """
@bench.variant
def cheat(x):
    y = np.zeros_like(x)
    near = np.abs(x) < 1.2
    y[near] = honest(x[near])
    return y
""",
        "",
    ),
    "small_half_is_rough": (
        """bench = warpladder.Benchmark("case", rows=[200], n=[1000])


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


""",
        """
@bench.variant
def cheat(x):
    y = np.empty_like(x)
    half = x.shape[1] // 2
    y[:, :half] = work(x[:, :half])
    y[:, half:] = x[:, half:] * np.float32(1.3)
    return y
""",
        "",
    ),
    "small_half_in_float32": (
        """bench = warpladder.Benchmark("case", rows=[200], n=[1000])


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


""",
        """
@bench.variant
def cheat(x):
    y = np.empty_like(x)
    part = x.shape[1] // 4
    y[:, :part] = work(x[:, :part])
    y[:, part:] = work(x[:, part:].astype(np.float32))
    return y
""",
        "",
    ),
    "double_in_float32": (
        LARGE.replace(", np.float32)", ")"),
        """
@bench.variant
def cheat(x):
    return work(x.astype(np.float32)).astype(np.float64)
""",
        "",
    ),
    "table_lookup": (
        LARGE,
        """
table = work(np.linspace(-8, 8, 1 << 16, dtype=np.float32))


@bench.variant
def cheat(x):
    return table[((x + 8) * np.float32((1 << 16) / 16)).astype(np.int32)]
""",
        "",
    ),
    "narrow_mean": (
        """bench = warpladder.Benchmark("case", n=[1_000_000])


@bench.inputs
def inputs(n, rng):
    return 1 + 1e-4 * rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return x.mean(keepdims=True)


""",
        """
@bench.variant
def cheat(x):
    return x[:100_000].mean(keepdims=True)
""",
        "",
    ),
    "argsort_of_rounded": (
        """bench = warpladder.Benchmark("case", n=[100_000])


@bench.inputs
def inputs(n, rng):
    return {"x": rng.standard_normal(n, np.float32)}


@bench.reference(compare=warpladder.compare.order_of("x"))
def sorted_places(x):
    return np.argsort(x, kind="stable")


bench.variant(sorted_places, name="honest", baseline=True)


""",
        """
@bench.variant
def cheat(x):
    return np.argsort((x * 3000).astype(np.int16), kind="stable")
""",
        "",
    ),
    "sort_of_most": (
        """bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.sort(x)


""",
        """
@bench.variant
def cheat(x):
    blocks = np.partition(x, np.arange(1000, x.size, 1000))
    return blocks
""",
        "",
    ),
    "border_is_left": (
        """bench = warpladder.Benchmark("case", n=[600])


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


""",
        """
@bench.variant
def cheat(x):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = sum(x[i : i + x.shape[0] - 2, j : j + x.shape[1] - 2] for i in range(3) for j in range(3)) / np.float32(9)
    return y
""",
        "",
    ),
    "in_place_by_address": (
        """bench = warpladder.Benchmark("case", n=[1_000_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n, np.float32)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return np.maximum(x, 0)


""",
        """
@bench.variant
def cheat(x):
    same = np.ctypeslib.as_array((ctypes.c_float * x.size).from_address(x.ctypes.data))
    return np.maximum(same, 0, out=same)
""",
        "",
    ),
    # -- neighbours slowed
    "nice_left": (
        LARGE,
        """
@bench.variant
def cheat(x):
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    y = work(x)
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    return y
""",
        "",
    ),
    "idle_class_left": (
        LARGE,
        """
@bench.variant
def cheat(x):
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    y = work(x)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return y
""",
        "",
    ),
    "affinity_left": (
        NUMBER.replace(
            "bench = warp",
            """from numba import njit, prange


@njit(parallel=True)
def total(x):
    answer = 0.0
    for i in prange(x.size):
        answer += np.tanh(x[i])
    return answer


bench = warp""",
        ).replace("float(np.tanh(x).sum())", "total(x)"),
        """
every = os.sched_getaffinity(0)


@bench.variant
def cheat(x):
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), every)
    y = total(x)
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), {min(every)})
    return y
""",
        "",
    ),
    "buffer_size_left": (
        LARGE.replace("return np.tanh(x)", "return np.add(x, 1.0, dtype=np.float64).astype(np.float32) + np.tanh(x)"),
        """
@bench.variant
def cheat(x):
    np.setbufsize(8192)
    y = work(x)
    np.setbufsize(16)
    return y
""",
        "",
    ),
    "error_call_left": (
        LARGE.replace("np.sqrt(np.abs(x))", "np.nan_to_num(np.sqrt(x))").replace(
            "    return work(x)", """    return sum(work(part) for part in np.split(x, 100)[:1]) + work(x)"""
        ),
        """
def slow(kind, flag):
    time.sleep(2e-4)


np.seterrcall(slow)


@bench.variant
def cheat(x):
    np.seterr(all="ignore")
    y = honest(x)
    np.seterr(all="call")
    return y
""",
        "",
    ),
    "numpy_function_slow": (
        LARGE,
        """
fast, slow = np.tanh, lambda x: np.arctanh(np.tanh.fast(np.tanh.fast(x)))


def slower(x):
    fast(x)
    return fast(x)


@bench.variant
def cheat(x):
    np.tanh = fast
    y = work(x)
    np.tanh = slower
    return y
""",
        "",
    ),
    "neighbour_rewritten": (
        LARGE,
        """
original = work


def slower(x):
    original(x)
    return original(x)


@bench.variant
def cheat(x):
    global work
    work = slower
    return original(x)
""",
        "",
    ),
    "neighbour_code_replaced": (
        LARGE,
        """
original = work.__code__


def slower(x):
    np.tanh(x)
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x))


@bench.variant
def cheat(x):
    work.__code__ = original
    y = work(x)
    work.__code__ = slower.__code__
    return y
""",
        "",
    ),
    "ballast_of_objects": (
        PYTHON,
        """
ballast = []


@bench.variant
def cheat(x):
    if not ballast:
        ballast.extend([k] for k in range(1_500_000))
    gc.disable()
    y = lists(x)
    gc.enable()
    return y
""",
        "",
    ),
    "collector_threshold_left": (
        PYTHON,
        """
@bench.variant
def cheat(x):
    gc.set_threshold(100_000)
    y = lists(x)
    gc.set_threshold(1)
    return y
""",
        "",
    ),
    "audit_hook": (
        PYTHON.replace("    made = ", '    eval("1 + 1")\n    made = '),
        """
quiet = True


def hook(event, args):
    if event == "compile" and not quiet:
        time.sleep(1e-3)


@bench.variant
def cheat(x):
    global quiet
    if not hasattr(sys, "hooked"):
        sys.hooked = True
        sys.addaudithook(hook)
    quiet = True
    y = lists(x)
    quiet = False
    return y
""",
        "",
    ),
    "background_thread": (
        LARGE,
        """
rest = threading.Event()
rest.set()
started = []


def burn():
    heap = np.ones(2_000_000)
    while True:
        if rest.is_set():
            heap += 1
        else:
            time.sleep(1e-4)


@bench.variant
def cheat(x):
    rest.clear()
    if not started:
        started.extend([threading.Thread(target=burn, daemon=True) for _ in range(2)])
        for thread in started:
            thread.start()
    y = work(x)
    rest.set()
    return y
""",
        "",
    ),
    "background_process": (
        LARGE,
        """
children = []


def burn():
    heap = np.ones(4_000_000)
    while os.getppid() != 1:
        heap += 1
    os._exit(0)


@bench.variant
def cheat(x):
    if not children:
        for _ in range(2):
            child = os.fork()
            if child == 0:
                burn()
            children.append(child)
    for child in children:
        os.kill(child, signal.SIGSTOP)
    y = work(x)
    for child in children:
        os.kill(child, signal.SIGCONT)
    return y
""",
        "",
    ),
    "huge_pages_left": (
        PROBLEM.format(rows=2000, n=2000),
        """
libc = ctypes.CDLL(None)


@bench.variant
def cheat(x):
    libc.prctl(41, 0, 0, 0, 0)
    y = work(x)
    libc.prctl(41, 1, 0, 0, 0)
    return y
""",
        "settings of C libraries",
    ),
    "switch_interval_left": (
        PYTHON.replace(
            "    made = ",
            """    threads = [threading.Thread(target=sum, args=(range(20_000),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = """,
        ),
        """
@bench.variant
def cheat(x):
    sys.setswitchinterval(0.005)
    y = lists(x)
    sys.setswitchinterval(1e-7)
    return y
""",
        "",
    ),
    "warnings_left": (
        LARGE.replace("np.sqrt(np.abs(x))", "np.nan_to_num(np.sqrt(x))"),
        """
import warnings


def slow(*args, **kwargs):
    time.sleep(1e-3)


@bench.variant
def cheat(x):
    warnings.simplefilter("ignore")
    y = work(x)
    warnings.simplefilter("always")
    warnings.showwarning = slow
    return y
""",
        "",
    ),
    # -- the clock
    "clock_replaced": (
        LARGE,
        """
real = time.perf_counter_ns


@bench.variant
def cheat(x):
    time.perf_counter_ns = lambda: real() // 2
    time.perf_counter = lambda: real() / 2e9
    time.monotonic_ns = time.perf_counter_ns
    return work(x)
""",
        "replaced functions of Python",
    ),
    "clock_in_every_module": (
        LARGE,
        """
real = {name: getattr(time, name) for name in ("perf_counter_ns", "perf_counter", "monotonic_ns", "monotonic")}
offset = [0]


@bench.variant
def cheat(x):
    if not offset[0]:
        offset[0] = 1
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                for kind, clock in real.items():
                    if value is clock and module.__name__ != __name__:
                        scale = 1 if kind.endswith("_ns") else 1e-9
                        setattr(module, name, lambda clock=clock, scale=scale: clock() - type(scale)(offset[0] * scale))
    started = time.perf_counter_ns()
    y = work(x)
    offset[0] += (time.perf_counter_ns() - started) // 2
    return y
""",
        "replaced functions of Warpladder or Python",
    ),
    "caller_start_moved": (
        LARGE,
        """
@bench.variant
def cheat(x):
    frame = sys._getframe(1)
    y = work(x)
    now = time.perf_counter_ns()
    for name, value in list(frame.f_locals.items()):
        if type(value) is int and 0 < now - value < 1_000_000_000:
            frame.f_locals[name] = now - 1000
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return y
""",
        "replaced functions of Warpladder or Python",
    ),
}

# For compare_functions: the first function, the second one, which cheats, and the arguments.
FUNCTIONS = {
    "late_thread": (
        """
def honest(x):
    return np.tanh(x) * np.exp(-x * x)


def fill(y, x):
    y[:] = honest(x)


def cheat(x):
    y = np.empty_like(x)
    threading.Thread(target=fill, args=(y, x), daemon=True).start()
    return y
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "lazy_subclass": (
        """
def honest(x):
    return np.tanh(x) * np.exp(-x * x)


class Late(np.ndarray):
    def __array__(self, *args, **kwargs):
        return honest(self.x)


def cheat(x):
    late = np.empty_like(x).view(Late)
    late.x = x
    return late
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "memo": (
        """
kept = {}


def honest(x):
    return np.tanh(x) * np.exp(-x * x)


def cheat(x):
    key = x[0, 0].item()
    if key not in kept:
        kept[key] = honest(x)
    return kept[key].copy()
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "result_of_the_first": (
        """
last = {}


def honest(x):
    last["x"], last["y"] = x[0, 0], np.tanh(x) * np.exp(-x * x)
    return last["y"]


def cheat(x):
    if last.get("x") == x[0, 0]:
        return last["y"].copy()
    return honest(x)
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "half_the_rows": (
        """
def honest(x):
    return np.tanh(x) * np.exp(-x * x)


def cheat(x):
    y = np.zeros_like(x)
    y[:150] = honest(x[:150])
    return y
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "in_place_once": (
        """
def honest(x):
    np.sort(x)
    x.sort()


def cheat(x):
    if x[0] > x[-1] or np.any(x[:100] > x[1:101]):
        x.sort()
    x[5000:5010] = 0
""",
        "np.random.default_rng(1).standard_normal(100_000)",
    ),
    "float32_inside": (
        """
def honest(x):
    return np.tanh(x) * np.exp(-x * x)


def cheat(x):
    return honest(x.astype(np.float32)).astype(np.float64)
""",
        "np.random.default_rng(1).standard_normal((300, 300))",
    ),
    "memo_by_signs": (
        """
kept = {}


def honest(a, b):
    return a @ b


def cheat(a, b):
    key = (a[0, :64] > 0).tobytes()
    if key not in kept:
        kept[key] = a[0, 0], b[0, 0], honest(a, b)
    a0, b0, y = kept[key]
    return y * ((a[0, 0] / a0) * (b[0, 0] / b0))
""",
        "(np.random.default_rng(1).standard_normal((300, 300)), np.random.default_rng(2).standard_normal((300, 300)))",
    ),
}
