"""Cheats whose results come when they are looked at, or after the return."""

from benchmarks.examination.problems import programs

CASES = programs("""
## list_of_lazy_rows | list
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

## array_interface | large
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

## buffer_protocol_memmap | large
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

## lazy_dict | dict
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

## lazy_key | dict
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

## lazy_float | number
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

## lazy_index | own
bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def work(x):
    return int(np.sort(x)[1000] * 1e6)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)



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

## object_array | large
class Late:
    def __init__(self, x):
        self.x = x

    def __float__(self):
        return float(work(self.x))


@bench.variant
def cheat(x):
    return np.full(x.shape, Late(x[0, 0]), object)

## future | large
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)


@bench.variant
def cheat(x):
    return pool.submit(work, x)

## late_thread | large
def fill(y, x):
    y[:] = work(x)


@bench.variant
def cheat(x):
    y = np.empty_like(x)
    threading.Thread(target=fill, args=(y, x), daemon=True).start()
    return y

## late_thread_last_part_first | large
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

## late_pool | large | threads of a pool
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

## helper_process | large
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

## virtual_timer | large
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

## collector_callback | large
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

## finaliser | large
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

## out_filled_late | out
def fill(out, x):
    out[:] = work(x)


@bench.variant
def cheat(x, out):
    threading.Thread(target=fill, args=(out, x), daemon=True).start()

## profile_hook_works | large
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

## helpers_take_the_processor | own
import mmap

bench = warpladder.Benchmark("case", n=[20_000])
memory = mmap.mmap(-1, 1 << 20)
flags = np.frombuffer(memory, np.int32, 5)
source = np.frombuffer(memory, np.float64, 20_000, 4096)
target = np.frombuffer(memory, np.float64, 20_000, 4096 + source.nbytes)
helpers = []


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def work(x):
    for _ in range(120):
        x = np.sin(x) * 1.5 + np.cos(x)
    return x


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


def serve(number):
    part = slice(number * 4000, (number + 1) * 4000)
    while os.getppid() != 1:
        if flags[number]:
            target[part] = work(source[part])
            flags[number] = 0
        else:
            time.sleep(2e-4)
    os._exit(0)


@bench.variant
def cheat(x):
    if not helpers:
        for number in range(5):
            child = os.fork()
            if not child:
                serve(number)
            helpers.append(child)
    source[:] = x
    flags[:] = 1
    while flags.any():
        pass
    return target.copy()
""")
