"""What a variant leaves to be computed when its clock has stopped is timed, or found."""

import queue
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from tests.collectors.core.judged import FEW, judged, measured
from warpladder.collectors.core import agreement
from warpladder.collectors.core.rounds import Limits
from warpladder.collectors.core.verify import snapshot
from warpladder.workloads.declare.functions.arrays import is_finished

S = np.float32
N = 100_000
#: Work that takes long beside copies of its output.
SLOW_S = 0.02


def work(x: np.ndarray) -> np.ndarray:
    time.sleep(SLOW_S)
    return 2 * x


class LaterDict(dict):  # type: ignore[type-arg]
    def __getitem__(self, name: str) -> np.ndarray:
        return work(self.x)


class LaterList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[np.ndarray]:
        return iter([work(self.x)])


class LaterMapping(Mapping[str, np.ndarray]):
    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __getitem__(self, name: str) -> np.ndarray:
        return work(self.x)

    def __iter__(self) -> Iterator[str]:
        return iter(["out"])

    def __len__(self) -> int:
        return 1


class LaterArray(np.ndarray):
    todo: Any = None

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        if self.todo is not None:
            x, self.todo = self.todo, None
            np.ndarray.view(self, np.ndarray)[:] = work(x)
        return np.ndarray.dtype.__get__(self)  # type: ignore[attr-defined]


class LaterName(str):
    def __eq__(self, other: object) -> bool:
        if self.todo is not None:
            (x, out), self.todo = self.todo, None
            out[:] = work(x)
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def later_dict(x: np.ndarray) -> Any:
    found = LaterDict(out=None)
    found.x = x  # type: ignore[attr-defined]
    return found


def later_list(x: np.ndarray) -> Any:
    found = LaterList([None])
    found.x = x  # type: ignore[attr-defined]
    return found


def later_array(x: np.ndarray) -> Any:
    found = np.empty_like(x).view(LaterArray)
    found.todo = x
    return found


def later_name(x: np.ndarray) -> Any:
    out, name = np.empty_like(x), LaterName("out")
    name.todo = x, out  # type: ignore[attr-defined]
    return {name: out}


LATER: dict[str, Callable[[np.ndarray], Any]] = {
    "dict": later_dict,
    "list": later_list,
    "mapping": LaterMapping,
    "array": later_array,
    "name": later_name,
}


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", LATER)
def test_what_is_computed_when_results_are_looked_at_is_part_of_their_time(name: str) -> None:
    def inputs(rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(100, S)

    variants = {"later": LATER[name]}
    samples = measured(inputs, lambda x: {"out": 2 * x}, variants, table="samples")
    of_rounds = samples[~samples["scope"].str.startswith("phase:")]
    assert len(of_rounds) and (of_rounds["duration_ns"] >= SLOW_S * 1e9).all()
    assert judged(inputs, lambda x: {"out": 2 * x}, variants).loc["later", "status"] == "ok"


def test_arrays_of_libraries_and_tuples_of_them_have_nothing_left_to_compute() -> None:
    x = np.ones(3)
    both = namedtuple("both", "a b")
    for finished in (
        None,
        x,
        x[::2],
        3.0,
        True,
        x.sum(),
        {"a": x},
        [x, x],
        (x, (x,)),
        both(x, x),
        np.matrix([1]),
        np.ma.array(x),
    ):
        assert is_finished(finished)
    for other in (
        later_dict(x),
        later_list(x),
        LaterMapping(x),
        later_array(x),
        later_name(x),
        iter([x]),
        object(),
        [later_array(x)],
    ):
        assert not is_finished(other)
    posing = type("ArrayImpl", (), {"__module__": "jaxlib.posing"})()
    assert not is_finished(posing)


def test_a_thread_that_goes_on_writing_is_seen_by_the_comparison_as_it_was() -> None:
    output, right = np.zeros(1 << 20, S), np.ones(1 << 20)
    before = snapshot({"y": output})
    output[:] = 1
    assert not agreement.compare(before, {"y": right}, 1e-6).ok
    for array in (np.array(3.0), np.arange(6).reshape(2, 3).T, np.arange(5)[::-1], np.zeros((0, 2))):
        assert np.array_equal(snapshot({"y": array})["y"], array)


@pytest.mark.slow
def test_work_of_a_thread_after_the_return_is_found_though_it_keeps_ahead_of_a_comparison() -> None:
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def step(x: np.ndarray, out: np.ndarray) -> None:
        for at in range(0, len(x), 1 << 14):
            part = out[at : at + (1 << 14)]
            np.tanh(x[at : at + (1 << 14)], out=part)
            for _ in range(9):
                np.sqrt(part * part + S(1), out=part)

    def works() -> None:
        while job := jobs.get():
            step(*job)

    thread = threading.Thread(target=works, daemon=True)
    thread.start()

    def right(x: np.ndarray) -> np.ndarray:
        out = np.tanh(x)
        for _ in range(9):
            out = np.sqrt(out * out + 1)
        return out

    def keeps_ahead(x: np.ndarray, out: np.ndarray) -> None:
        jobs.put((x[len(x) // 8 :], out[len(x) // 8 :]))
        step(x[: len(x) // 8], out[: len(x) // 8])

    found = judged(lambda rng: rng.standard_normal(1 << 20, S), right, {"right": step, "ahead": keeps_ahead})
    jobs.put(None)
    thread.join()
    assert found["status"].to_dict() == {"right": "ok", "ahead": "wrong_result"}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("every", [25, 40])
def test_every_sample_of_a_small_case_is_compared(every: int) -> None:
    calls = [0]

    def seldom_wrong(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        out = 2 * x
        out[-1] += calls[0] % every == every - 1
        return out

    limits = Limits(seconds=5.0, min_rounds=6, max_rounds=80, target=0.0)
    found = judged(
        lambda rng: rng.standard_normal(1000, S), lambda x: 2 * x, {"right": lambda x: x + x, "seldom": seldom_wrong}, limits
    )
    assert found["status"].to_dict() == {"right": "ok", "seldom": "wrong_result"}


def test_a_fault_in_one_call_of_25_is_found_where_a_case_is_small_though_it_has_few_samples() -> None:
    calls = [0]

    def seldom_wrong(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        out = 2 * x
        out[-1] += calls[0] % 25 == 24
        return out

    found = judged(lambda rng: rng.standard_normal(100, S), lambda x: 2 * x, {"right": lambda x: x + x, "seldom": seldom_wrong})
    assert found["status"].to_dict() == {"right": "ok", "seldom": "wrong_result"}


def test_replaced_functions_of_numpy_change_no_comparison() -> None:
    before = np.abs, np.isfinite, np.count_nonzero, np.square

    def replaces(x: np.ndarray) -> np.ndarray:
        np.abs = np.square = lambda values, *_, **__: values * 0  # type: ignore[assignment]
        np.isfinite = lambda values: values == values  # type: ignore[assignment]
        np.count_nonzero = lambda values, *_: 0  # type: ignore[assignment]
        return np.zeros_like(x)

    try:
        found = judged(
            lambda rng: rng.standard_normal(N, S), lambda x: 2 * x, {"replaces": replaces, "right": lambda x: 2 * x}, FEW
        )
    finally:
        np.abs, np.isfinite, np.count_nonzero, np.square = before  # type: ignore[assignment]
    assert found["status"].to_dict() == {"replaces": "wrong_result", "right": "ok"}
