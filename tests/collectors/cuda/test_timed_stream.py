"""Work that a library call enqueues elsewhere than on the timed stream is caught, and honest calls raise no alarm."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda import torch_streams
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda import timed_stream
from warpladder.collectors.cuda.timed_stream import Prints, fault_of, look
from warpladder.collectors.wiring import collector_of
from warpladder.data import store

POISON, RIGHT, HALF = 1, 2, 3


@pytest.mark.parametrize(
    ("prints", "early", "late"),
    [
        (Prints(POISON, held=POISON, at_end=RIGHT, when_done=RIGHT), False, False),
        (Prints(POISON, held=RIGHT, at_end=RIGHT, when_done=RIGHT), True, False),
        (Prints(POISON, held=HALF, at_end=RIGHT, when_done=RIGHT), True, False),
        (Prints(POISON, held=POISON, at_end=POISON, when_done=POISON), True, False),
        (Prints(POISON, held=POISON, at_end=POISON, when_done=RIGHT), False, True),
        (Prints(POISON, held=POISON, at_end=HALF, when_done=RIGHT), False, True),
    ],
)
def test_an_output_written_while_the_stream_is_held_is_early_and_one_written_after_its_end_is_late(
    prints: Prints, early: bool, late: bool
) -> None:
    assert (prints.early, prints.late) == (early, late)


def test_the_message_names_the_output_and_the_call_that_is_missing() -> None:
    prints = {"x": Prints(POISON, POISON, RIGHT, RIGHT), "y": Prints(POISON, RIGHT, RIGHT, RIGHT)}
    said = fault_of(prints, timed_stream.CURE_TORCH)
    assert said.startswith(
        "its work is not on the timed stream: output y is written while that stream is held; PyTorch's current"
    )
    assert "warpladder.workloads.torch_bridge.use_current_stream()" in said and "torch.cuda.set_stream(" in said
    said = fault_of({"y": Prints(POISON, POISON, POISON, RIGHT)}, timed_stream.CURE)
    assert said == (
        "its work is not all on the timed stream: output y is written after that stream is done; enqueue on CuPy's current stream, "
        "or let your own stream wait for it first and let it wait for yours at the end"
    )
    assert fault_of({}, timed_stream.CURE_TORCH) == ""


# -- on a device that is simulated ---------------------------------------------------------------------------------------


class Simulated:
    """A GPU with one stream that is timed. Work is done when it is enqueued, on a held stream when that is let go."""

    def __init__(self) -> None:
        self.queue: list[Callable[[], object]] = []
        self.after: list[Callable[[], object]] = []
        self.holding = self.waited_inside = self.gave_up = self.on_side = False

    def enqueue(self, work: Callable[[], object]) -> None:
        """On the timed stream."""
        if self.holding and not self.on_side:
            self.queue.append(work)
        else:
            work()

    def elsewhere(self, work: Callable[[], object]) -> None:
        """On a stream that waits for none."""
        work()

    def afterwards(self, work: Callable[[], object]) -> None:
        """On a stream that waits for what the timed one has now, and is not waited for."""
        if self.holding:
            self.after.append(work)
        else:
            work()

    def synchronize(self) -> None:
        """What a call may do inside: the hold gives up."""
        self.gave_up |= self.holding
        self._release()

    def _release(self) -> None:
        self.holding = False
        for work in (*self.queue, *self.after):
            work()
        self.queue, self.after = [], []

    @contextmanager
    def held(self, limit_ns: int) -> Iterator[None]:
        self.holding, self.gave_up = True, False
        yield
        self._release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        self.on_side = True
        yield
        self.on_side = False

    def new_prints(self, count: int) -> Any:
        return np.zeros(count, np.uint64)

    def add_fingerprint(self, array: Any, into: Any) -> None:
        def add() -> None:
            into[0] += np.uint64(hash(array.tobytes()) % (1 << 62))

        self.enqueue(add)

    def wait(self) -> None:
        assert not self.holding


Call = Callable[[Simulated, Any, Any], Any]


def looked_at(make: Call, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any, Any]:
    """What is said of a call that doubles x, and the inputs and outputs as it leaves them."""
    monkeypatch.setattr(timed_stream, "_SETTLE_S", 0.0)
    device, inputs, outputs = Simulated(), {"x": np.arange(4.0)}, {"y": np.zeros(4)}
    prints = look(device, make(device, inputs["x"], outputs["y"]), inputs, outputs)
    return fault_of(prints, timed_stream.CURE)[:40], inputs, outputs


def doubled(x: Any, y: Any) -> Callable[[], object]:
    return lambda: np.multiply(x, 2, out=y)


def on_the_stream(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: device.enqueue(doubled(x, y))


def on_another_stream(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: device.elsewhere(doubled(x, y))


def half_on_another_stream(device: Simulated, x: Any, y: Any) -> Any:
    def call() -> None:
        device.elsewhere(doubled(x[:2], y[:2]))
        device.enqueue(doubled(x[2:], y[2:]))

    return call


def not_waited_for(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: device.afterwards(doubled(x, y))


def waits_inside(device: Simulated, x: Any, y: Any) -> Any:
    def call() -> None:
        device.enqueue(doubled(x, y))
        device.synchronize()

    return call


def writes_nothing(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: None


def returns_anew(device: Simulated, x: Any, y: Any, enqueue: str = "enqueue") -> Any:
    def call() -> Any:
        own = np.empty(4)
        getattr(device, enqueue)(doubled(x, own))
        return {"y": own}

    return call


def returns_anew_from_another_stream(device: Simulated, x: Any, y: Any) -> Any:
    return returns_anew(device, x, y, "elsewhere")


def returns_the_same_buffer(device: Simulated, x: Any, y: Any) -> Any:
    own = np.empty(4)
    return lambda: device.enqueue(doubled(x, own)) or {"y": own}


def returns_a_view_of_its_input(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: {"y": x}


def returns_something_else(device: Simulated, x: Any, y: Any) -> Any:
    return lambda: 7


EARLY, LATE = "its work is not on the timed stream: out", "its work is not all on the timed stream:"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (on_the_stream, ""),
        (waits_inside, ""),
        (writes_nothing, ""),
        (returns_anew, ""),
        (returns_the_same_buffer, ""),
        (returns_a_view_of_its_input, ""),
        (returns_something_else, ""),
        (on_another_stream, EARLY),
        (half_on_another_stream, EARLY),
        (returns_anew_from_another_stream, EARLY),
        (not_waited_for, LATE[:40]),
    ],
)
def test_work_elsewhere_is_told_and_work_on_the_stream_is_not(call: Call, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, inputs, _ = looked_at(call, monkeypatch)
    assert found == said
    assert inputs["x"].tolist() == [0, 1, 2, 3]


def test_a_call_that_gives_the_same_array_again_finds_in_it_what_it_put_there(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"y": np.array([0.0, 2, 4, 6])}
    found, *_ = looked_at(lambda device, x, y: lambda: kept, monkeypatch)
    assert (found, kept["y"].tolist()) == ("", [0, 2, 4, 6])


# -- on a GPU ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("torch")
    data_dir = tmp_path_factory.mktemp("data")
    limits = replace(LIMITS["quick"], seconds=0.2, cell_timeout_s=60.0, budget_s=None)
    plan = make_plan(Request(files=[Path(torch_streams.__file__)]), limits)
    run_id, _ = Recorder(plan, collector_of("cuda_events")).record(data_dir, "", [])
    return store.open_run(data_dir / run_id).table("results")


@pytest.mark.gpu
@pytest.mark.parametrize("variant", sorted(torch_streams.HONEST))
def test_a_torch_variant_whose_work_is_on_the_timed_stream_is_measured(results: Any, variant: str) -> None:
    rows = results.query("variant == @variant")
    assert rows["status"].tolist() == ["ok"] * len(torch_streams.SIZES), rows["detail"].tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("variant", sorted(torch_streams.FAULTS))
def test_a_torch_variant_whose_work_is_elsewhere_is_told_what_to_call(results: Any, variant: str) -> None:
    rows = results.query("variant == @variant")
    assert rows["status"].tolist() == ["launch_error"] * len(torch_streams.SIZES), rows["detail"].tolist()
    for piece in torch_streams.FAULTS[variant]:
        assert rows["detail"].str.contains(piece, regex=False).all(), rows["detail"].tolist()
