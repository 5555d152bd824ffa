"""The steps of a first use: timed one by one in a fresh process, with empty caches and then with what was left there."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpladder.collectors.cuda import first_use
from warpladder.collectors.cuda.first_use import FirstUseError, first_uses, time_steps
from warpladder.data.names import Phase
from warpladder.workloads.api import Buffer, Case
from warpladder.workloads.declare.stepwise import Stepwise

CASE = Case({"n": 3}, 0, 24, ("full",))
ALL = [Phase.CONTEXT, Phase.IMPORT, Phase.COMPILE, Phase.LOAD, Phase.FIRST_CALL, Phase.HAND_OVER]


class Array(np.ndarray):
    """A CuPy array that lies in host memory."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> np.ndarray:
        return np.asarray(self)


class Steps(Stepwise):
    """Doubles x on the host, and keeps the order of its steps. Each step moves the clock on by its own time."""

    interface = "memory"
    factor = 2.0

    def __init__(self, case: Case, clock: "Clock") -> None:
        super().__init__(case)
        self.clock = clock

    def start(self) -> None:
        self.clock.log("start", 10)

    def compile(self) -> None:
        self.clock.log("compile", 200)

    def load(self) -> None:
        self.clock.log("load", 3000)

    def hand_over(self, array: Any) -> Any:
        self.clock.log("hand over", 1)
        return array

    def address_of(self, handle: Any) -> int:
        return int(handle.data.ptr)

    def bind(self, handles: Mapping[str, Any]) -> Any:
        def enqueue() -> None:
            self.clock.log("call", 40_000)
            handles["y"][...] = handles["x"] * self.factor

        return enqueue


class Clock:
    """Nanoseconds that pass only when something is logged."""

    def __init__(self) -> None:
        self.now, self.done = 0, list[str]()

    def log(self, what: str, lasting: int) -> None:
        self.now += lasting
        if not (self.done and self.done[-1] == what):
            self.done.append(what)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    cupy = ModuleType("cupy")
    vars(cupy).update(
        asarray=lambda array: np.array(array).view(Array),
        full=lambda shape, value, dtype: np.full(shape, value, dtype).view(Array),
        cuda=SimpleNamespace(
            Stream=lambda **options: SimpleNamespace(use=lambda: None, synchronize=lambda: made.log("wait", 500_000))
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(first_use, "_make_context", lambda: made.log("context", 7))
    monkeypatch.setattr(first_use.time, "perf_counter_ns", lambda: made.now)
    return made


X = np.array([1, 2, 3], np.float32)


def times_of(steps: Steps) -> dict[str, int]:
    return time_steps(steps, {"x": X}, {"y": Buffer((3,))}, {"y": X * 2})


def test_each_step_has_its_own_time_and_the_first_call_is_handed_over_launched_and_waited_for(clock: Clock) -> None:
    assert times_of(Steps(CASE, clock)) == {
        Phase.CONTEXT: 7,
        Phase.IMPORT: 10,
        Phase.COMPILE: 200,
        Phase.LOAD: 3000,
        Phase.FIRST_CALL: 2 + 40_000 + 500_000,  # two arrays, the call, the wait
        Phase.HAND_OVER: 2,  # of both arrays, the mean of a hundred
    }
    assert clock.done == ["context", "start", "compile", "load", "wait", "hand over", "call", "wait", "hand over"]


def test_a_route_that_loads_while_it_compiles_has_no_time_of_loading(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps, "load", Stepwise.load)
    assert list(times_of(Steps(CASE, clock))) == [scope for scope in ALL if scope != Phase.LOAD]


def test_a_first_call_whose_output_is_wrong_is_not_timed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps, "factor", 3.0)
    with pytest.raises(FirstUseError, match="output y of the first call is wrong"):
        times_of(Steps(CASE, clock))


# -- the processes -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A program in place of the fresh process: it says whether its cache holds something, and leaves something there."""
    program = tmp_path / "process.py"
    program.write_text(
        "import json, os, pathlib\n"
        "folder = pathlib.Path(os.environ['SOME_CACHE'])\n"
        "found = len(list(folder.iterdir()))\n"
        "(folder / str(os.getpid())).touch()\n"
        "print('some library says hello')\n"
        "print(json.dumps({'phase:compile': 100 - found}))\n"
    )
    monkeypatch.setattr(first_use, "IMPORT_ROOT", tmp_path)
    monkeypatch.setattr(first_use, "__name__", "process")
    for name in first_use._TOOLS:
        monkeypatch.delenv(name, raising=False)
    return program


def uses() -> list[tuple[int, str, Mapping[str, int]]]:
    return [(found.number, found.cache, found.phases_ns) for found in first_uses("w", "v", "n=3", ("SOME_CACHE",))]


@pytest.mark.slow
def test_cold_processes_find_empty_caches_and_hot_ones_what_the_last_cold_one_left(fresh: Path) -> None:
    cold = [(number, "cold", {"phase:compile": 100}) for number in range(3)]
    hot = [(number, "hot", {"phase:compile": 99 - number}) for number in range(3)]
    assert uses() == cold + hot


def test_processes_that_take_long_are_fewer(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "_ENOUGH_S", -1.0)
    assert uses() == [(0, "cold", {"phase:compile": 100}), (0, "hot", {"phase:compile": 99})]


def test_a_process_that_fails_is_told_with_its_last_words(fresh: Path) -> None:
    fresh.write_text("import sys\nprint('one', file=sys.stderr)\nsys.exit('CUDA_ERROR_NO_DEVICE')\n")
    with pytest.raises(FirstUseError, match="ended with status 1: CUDA_ERROR_NO_DEVICE"):
        uses()


def test_a_process_that_hangs_is_ended(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(first_use, "LIMIT_S", 0.5)
    with pytest.raises(FirstUseError, match=r"was not done after 0\.5 s"):
        uses()


def test_nothing_is_started_under_a_tool_that_would_trace_it_too(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    assert uses() == []


@pytest.mark.gpu
def test_the_first_use_of_cupy_on_a_gpu_is_all_there_and_compiling_is_shorter_once_cached() -> None:
    found = list(first_uses("call_routes", "cupy_raw_module", "n=1024,calls=1", ("CUPY_CACHE_DIR",)))
    assert json.dumps([dict(each.phases_ns) for each in found])
    compiled = {each.cache: each.phases_ns[Phase.COMPILE] for each in found}
    assert compiled["hot"] < compiled["cold"]
    assert all(set(each.phases_ns) == set(ALL) - {Phase.LOAD} for each in found)
