"""Calls into GPU libraries and of functions on the GPU: what cannot be made ready, and the stream that they use."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.collectors.cuda.fake_cuda import install, install_events
from tests.collectors.cuda.test_copied_inputs import bench_of
from warpladder.collectors.core.bench import Failed, Unavailable
from warpladder.workloads import registry
from warpladder.workloads.api import Buffers, Case, LibraryVariant, Repacked
from warpladder.workloads.declare.functions.calls import Call
from warpladder.workloads.declare.functions.variants import FunctionVariant


@pytest.mark.slow
def test_a_library_that_is_installed_but_cannot_be_imported_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an extension module that was built for another driver."""

    def prepare(*arguments: Any) -> Any:
        raise ImportError("_driver.so: undefined symbol: cuArrayCreate_v2")

    bench = bench_of(install_events(monkeypatch, []), registry.load("gan_tconv").case("images=3"))
    with pytest.raises(Unavailable, match=r"installed but cannot be imported: _driver\.so: undefined symbol: cuArrayCreate_v2"):
        bench.prepare(LibraryVariant("broken", "Broken", "peer", prepare=prepare), {})


def test_the_values_of_a_config_are_arguments_of_the_library_s_function(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def prepare(case: Case, inputs: Buffers, outputs: Buffers, layout: str) -> Any:
        given.append(layout)
        return lambda: None

    bench = bench_of(install_events(monkeypatch, []), registry.load("gan_tconv").case("images=3"))
    monkeypatch.setattr("warpladder.collectors.cuda.calls._fault", lambda *arguments: "")
    configs = {"layout": "nchw"}, {"layout": "nhwc"}
    variant = LibraryVariant("two_layouts", "Two layouts", "peer", configs=configs, prepare=prepare)
    for config in variant.configs:
        bench.prepare(variant, config)
    assert given == ["nchw", "nhwc"]


@pytest.mark.slow
def test_a_layout_of_a_library_is_renewed_with_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the library would compute with the filter of the inputs that it was prepared with."""
    repacked = []

    def prepare(*arguments: Any) -> Repacked:
        return Repacked(lambda: None, lambda: repacked.append(len(repacked)))

    bench = bench_of(install_events(monkeypatch, []), registry.load("gan_tconv").case("images=3"))
    monkeypatch.setattr("warpladder.collectors.cuda.calls._fault", lambda *arguments: "")
    operation = bench.prepare(LibraryVariant("own_layout", "Own layout", "peer", prepare=prepare), {})
    assert operation.note.startswith("an input is copied into the layout of the library")
    before = len(repacked)
    bench.draw(operation, None)
    assert len(repacked) == before + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "said"),
    [(["elsewhere", ""], ""), (["elsewhere", "elsewhere"], "elsewhere"), ([""], "")],
    ids=["default", "other", "timed"],
)
def test_work_on_the_default_stream_is_joined_and_on_another_one_refused(
    faults: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_of(install_events(monkeypatch, []), registry.load("gan_tconv").case("images=3"))
    left = [*faults]
    monkeypatch.setattr("warpladder.collectors.cuda.calls._fault", lambda *arguments: left.pop(0))
    monkeypatch.setattr(bench.device, "with_default_stream", lambda call: lambda: ["join", call()], raising=False)
    call = Call(lambda: "called", lambda returned: None)
    variant = FunctionVariant("mine", "Mine", "rung", on_gpu=True, bind=lambda *arguments: call)
    if said:
        with pytest.raises(Failed, match=said):
            bench.prepare(variant, {})
        return
    operation = bench.prepare(variant, {})
    joined, why = len(faults) > 1, "it launches on CUDA's default stream"
    assert operation.run() == (["join", "called"] if joined else "called")
    assert operation.no_graph == (why if joined else "")
    assert operation.note.startswith(why) if joined else not operation.note


def test_the_default_stream_waits_for_the_timed_one_which_then_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_event(self, event: "Event") -> None:
            log.append(f"{self.name} waits for {event.of}")

    class Event:
        of = ""

        def __init__(self, **options: bool) -> None: ...

        def record(self, stream: Stream) -> None:
            self.of = stream.name

    module = install(monkeypatch, [], "device")
    monkeypatch.setattr(module.cupy.cuda, "Event", Event)
    monkeypatch.setattr(module.cupy.cuda, "Stream", SimpleNamespace(null=Stream("default")))
    device = SimpleNamespace(stream=Stream("timed"))
    joined = module.CudaDevice.with_default_stream(device, lambda first, second: log.append("call") or first + second)
    assert joined(2, 3) == 5
    assert log == ["default waits for timed", "call", "timed waits for default"]
