"""What two events add to the time of a kernel between them."""

import pytest

from warpladder.collectors.cuda.event_overhead import EventOverhead


def test_the_overhead_is_that_of_the_median_kernel_and_its_uncertainty_the_farthest_one() -> None:
    overhead = EventOverhead.of([2200.0, 2150.0, 2290.0])
    assert (overhead.ns, overhead.uncertainty_ns) == (pytest.approx(2200), pytest.approx(90))


@pytest.mark.gpu
def test_a_kernel_of_known_length_reads_its_length() -> None:
    from warpladder.collectors.cuda.device import current_device

    device = current_device()
    added = list(device._added_by_events())
    assert max(abs(ns - device.event_overhead.ns) for ns in added) <= 3 * device.event_overhead.uncertainty_ns
    assert 0 < device.event_overhead.uncertainty_ns < 500 < device.event_overhead.ns < 10_000
