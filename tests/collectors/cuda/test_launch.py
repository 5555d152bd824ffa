"""Copies of outputs to the host, on a CuPy that computes nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import FakeArray, install


def test_an_output_without_axes_is_copied_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []
    launch = install(monkeypatch, log, "launch")
    host = np.zeros((), np.float32)
    launch.copy_to_host(FakeArray(log, (), name="sum", values=3.0), host, stream=None)
    assert host == 3.0 and log == ["sum out"]


def test_an_output_with_gaps_is_made_contiguous_on_the_current_stream_first(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[object] = []
    launch = install(monkeypatch, log, "launch")
    dense = FakeArray(log, (2,), name="dense", values=[1.0, 2.0])
    monkeypatch.setattr(launch.cupy, "ascontiguousarray", lambda array: dense, raising=False)
    gaps = FakeArray(log, (2,), name="gaps")
    gaps.flags = SimpleNamespace(c_contiguous=False)
    host = np.zeros(2, np.float32)
    launch.copy_to_host(gaps, host, stream=None)
    assert host.tolist() == [1.0, 2.0] and log == ["dense out"]
