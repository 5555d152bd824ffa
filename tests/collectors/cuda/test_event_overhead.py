"""What two events add to the time of a kernel between them."""

from types import SimpleNamespace

import pytest

from tests.collectors.cuda.fake_cuda import install


def test_the_overhead_is_that_of_the_median_kernel_and_its_uncertainty_the_farthest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = SimpleNamespace(_added_by_events=lambda: [2200.0, 2150.0, 2290.0])
    install(monkeypatch, [], "device").CudaDevice.measure_event_overhead(device)
    assert (device.event_overhead_ns, device.event_uncertainty_ns) == (pytest.approx(2200), pytest.approx(90))


@pytest.mark.gpu
def test_a_kernel_of_known_length_reads_its_length() -> None:
    from warpladder.collectors.cuda.device import current_device

    device = current_device()
    added = list(device._added_by_events())
    assert max(abs(ns - device.event_overhead_ns) for ns in added) <= 3 * device.event_uncertainty_ns
    assert 0 < device.event_uncertainty_ns < 500 < device.event_overhead_ns < 10_000
