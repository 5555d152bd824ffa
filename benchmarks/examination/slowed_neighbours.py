"""Cheats that slow the variant beside them."""

from benchmarks.examination.problems import programs

CASES = programs("""
## nice_left | large
@bench.variant
def cheat(x):
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    y = work(x)
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    return y

## idle_class_left | large
@bench.variant
def cheat(x):
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    y = work(x)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return y

## affinity_left | own
from numba import njit, prange


@njit(parallel=True)
def total(x):
    answer = 0.0
    for i in prange(x.size):
        answer += np.tanh(x[i])
    return answer


bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def work(x):
    return total(x)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)



every = os.sched_getaffinity(0)


@bench.variant
def cheat(x):
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), every)
    y = total(x)
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), {min(every)})
    return y

## buffer_size_left | buffered
@bench.variant
def cheat(x):
    np.setbufsize(8192)
    y = work(x)
    np.setbufsize(16)
    return y

## error_call_left | many_roots
def slow(kind, flag):
    time.sleep(2e-4)


np.seterrcall(slow)


@bench.variant
def cheat(x):
    np.seterr(all="ignore")
    y = honest(x)
    np.seterr(all="call")
    return y

## numpy_function_slow | large
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

## neighbour_rewritten | large
original = work


def slower(x):
    original(x)
    return original(x)


@bench.variant
def cheat(x):
    global work
    work = slower
    return original(x)

## neighbour_code_replaced | large
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

## ballast_of_objects | python | switching the collector off for its own work gains as much without the ballast
ballast = []


@bench.variant
def cheat(x):
    if not ballast:
        ballast.extend([k] for k in range(1_500_000))
    gc.disable()
    y = lists(x)
    gc.enable()
    return y

## collector_threshold_left | python
@bench.variant
def cheat(x):
    gc.set_threshold(100_000)
    y = lists(x)
    gc.set_threshold(1)
    return y

## audit_hook | own | audit hooks
bench = warpladder.Benchmark("case", n=[2000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def lists(x):
    eval("1 + 1")
    made = [[value, [value]] for value in x.tolist()]
    return np.array([first * second[0] for first, second in made])


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return lists(x)



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

## background_thread | large
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

## background_process | large
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

## huge_pages_left | huge | settings of C libraries
libc = ctypes.CDLL(None)


@bench.variant
def cheat(x):
    libc.prctl(41, 0, 0, 0, 0)
    y = work(x)
    libc.prctl(41, 1, 0, 0, 0)
    return y

## switch_interval_left | own
bench = warpladder.Benchmark("case", n=[2000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def lists(x):
    threads = [threading.Thread(target=sum, args=(range(20_000),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [[value, [value]] for value in x.tolist()]
    return np.array([first * second[0] for first, second in made])


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return lists(x)



@bench.variant
def cheat(x):
    sys.setswitchinterval(0.005)
    y = lists(x)
    sys.setswitchinterval(1e-7)
    return y

## warnings_left | roots
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

## defaults_replaced | own
bench = warpladder.Benchmark("case", n=[20_000])
taps = tuple(np.linspace(0, 1, 64))


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def filtered(x, taps=taps):
    y = np.zeros_like(x)
    for tap in taps:
        y = y * x * 0.5 + tap
    return y.astype(x.dtype)


bench.reference(lambda x: filtered(x, taps))


@bench.variant(baseline=True)
def honest(x):
    return filtered(x)


@bench.variant
def cheat(x):
    y = filtered(x, taps)
    filtered.__defaults__ = (tuple(np.longdouble(tap) for tap in taps),)
    return y

## method_replaced | own
bench = warpladder.Benchmark("case", n=[100_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


class Curve:
    def at(self, x):
        return np.tanh(x) * np.exp(-x * x)


original = Curve.at


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return Curve().at(x)


def slower(self, x):
    original(self, x)
    return original(self, x)


@bench.variant
def cheat(x):
    Curve.at = slower
    return original(Curve(), x)

## scipy_function_replaced | own
import scipy.special

bench = warpladder.Benchmark("case", n=[100_000])
fast = scipy.special.erf


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return scipy.special.erf(scipy.special.erf(x))


def slower(x):
    fast(x)
    return fast(x)


@bench.variant
def cheat(x):
    scipy.special.erf = slower
    return fast(fast(x))

## torch_anomalies_left | own
import torch

torch.set_num_threads(1)
bench = warpladder.Benchmark("case", n=[2000])


@bench.inputs
def inputs(n):
    return torch.randn(n)


def slope(x):
    x = x.clone().requires_grad_()
    y = x
    for _ in range(5):
        y = torch.sin(y) * 1.5 + torch.cos(y)
    return torch.autograd.grad(y.sum(), x)[0]


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return slope(x)


@bench.variant
def cheat(x):
    torch.autograd.set_detect_anomaly(False)
    y = slope(x)
    torch.autograd.set_detect_anomaly(True)
    return y

## jax_debugging_left | own
import jax
import jax.numpy as jnp

bench = warpladder.Benchmark("case", n=[20_000])


@bench.inputs
def inputs(n, rng):
    return jnp.asarray(rng.standard_normal(n, np.float32))


def chain(x, numbers):
    for _ in range(5):
        x = numbers.sin(x) * 1.5 + numbers.cos(x)
    return x


bench.reference(lambda x: chain(np.asarray(x), np))


@bench.variant(baseline=True)
def honest(x):
    return chain(x, jnp)


@bench.variant
def cheat(x):
    jax.config.update("jax_debug_nans", False)
    y = chain(x, jnp)
    jax.config.update("jax_debug_nans", True)
    return y

## data_replaced | own | data of your file that a variant changes
bench = warpladder.Benchmark("case", n=[20_000])
taps = np.linspace(0, 1, 64)
own = taps.copy()


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def filtered(x, taps):
    y = np.zeros_like(x)
    for tap in taps:
        y = y * x * 0.5 + tap
    return y.astype(x.dtype)


bench.reference(lambda x: filtered(x, own))


@bench.variant(baseline=True)
def honest(x):
    return filtered(x, taps)


@bench.variant
def cheat(x):
    global taps
    taps = own.astype(np.longdouble)
    return filtered(x, own)

## thread_works_beside_the_neighbour | large | threads that work only while another variant runs
started = []


def burn():
    heap = np.ones(400_000)
    while True:
        frames, beside = list(sys._current_frames().values()), False
        for frame in frames:
            while frame:
                beside |= frame.f_code is honest.__code__
                frame = frame.f_back
        if beside:
            heap += 1
        else:
            time.sleep(3e-4)


@bench.variant
def cheat(x):
    if not started:
        started.extend(threading.Thread(target=burn, daemon=True) for _ in range(2))
        for thread in started:
            thread.start()
    return work(x)
""")
