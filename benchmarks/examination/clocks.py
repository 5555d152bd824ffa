"""Cheats that replace the clock, or change what it started from."""

from benchmarks.examination.problems import programs

CASES = programs("""
## clock_replaced | large | replaced functions of Python
real = time.perf_counter_ns


@bench.variant
def cheat(x):
    time.perf_counter_ns = lambda: real() // 2
    time.perf_counter = lambda: real() / 2e9
    time.monotonic_ns = time.perf_counter_ns
    return work(x)

## clock_in_every_module | large | replaced functions of Warpladder or Python
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

## caller_start_moved | large | replaced functions of Warpladder or Python
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
""")
