"""Calls into GPU libraries that cannot be made ready."""

from typing import Any

import pytest

from tests.collectors.cuda.fake_cuda import install_events
from tests.collectors.cuda.test_copied_inputs import bench_of
from warpladder.collectors.core.bench import Unavailable
from warpladder.workloads import registry
from warpladder.workloads.api import Buffers, Case, LibraryVariant, Repacked


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
    monkeypatch.setattr("warpladder.collectors.cuda.calls._check_stream", lambda *arguments: None)
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
    monkeypatch.setattr("warpladder.collectors.cuda.calls._check_stream", lambda *arguments: None)
    operation = bench.prepare(LibraryVariant("own_layout", "Own layout", "peer", prepare=prepare), {})
    assert operation.note.startswith("an input is copied into the layout of the library")
    before = len(repacked)
    bench.draw(operation, None)
    assert len(repacked) == before + 1
