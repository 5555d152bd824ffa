"""The rate of a mix of reads and writes, by hand-counted numbers."""

import numpy as np
import pandas as pd
import pytest

from warpladder.data.bandwidths import DEVICE_MIXES, HOST_MIXES, device_memory, host_memory, reads_and_writes
from warpladder.data.names import Ceiling

#: 4 bytes a nanosecond written, 2 copied, 5 read: 0.25, 0.5 and 0.2 ns a byte.
THREE = {Ceiling.DEVICE_WRITE: 4.0, Ceiling.DEVICE_COPY: 2.0, Ceiling.DEVICE_READ: 5.0}


@pytest.mark.parametrize(
    ("read", "written", "time_ns", "named"),
    [
        (100, 100, 100, "device_copy"),
        (100, 0, 20, "device_read"),
        (0, 100, 25, "device_write"),
        # Three quarters read: halfway between 0.5 and 0.2 ns a byte, 0.35.
        (75, 25, 35, "device_copy and device_read"),
        # A quarter read: halfway between 0.25 and 0.5 ns a byte, 0.375.
        (25, 75, 37.5, "device_write and device_copy"),
        # 0.996 is read: 0.2 + 0.008 * 0.3 ns a byte, by a ceiling whose mix is the same within 0.005.
        (99.6, 0.4, 20.24, "device_read"),
    ],
)
def test_a_mix_has_its_time_at_a_measured_share_and_between_two(
    read: float, written: float, time_ns: float, named: str
) -> None:
    memory = device_memory(THREE, None)
    assert memory.time_ns(read, written) == pytest.approx(time_ns)
    assert memory.named(read, written) == named


def test_a_further_mix_replaces_the_line_between_its_neighbours() -> None:
    # At 2:1 the line from 0.5 at a half to 0.2 at 1 gives 0.4 ns a byte; measured are 2.5 GB/s, and 0.4 again, then 3.2: 0.3125.
    assert device_memory(THREE, None).time_ns(200, 100) == pytest.approx(120)
    assert device_memory({**THREE, Ceiling.DEVICE_2_TO_1: 2.5}, None).time_ns(200, 100) == pytest.approx(120)
    finer = device_memory({**THREE, Ceiling.DEVICE_2_TO_1: 3.2}, None)
    assert (finer.time_ns(200, 100), finer.named(200, 100)) == (pytest.approx(93.75), "device_2_to_1")
    # Three quarters are a quarter of the way from 2/3 to 1: 0.3125 - 0.25 * 0.1125 = 0.284375 ns a byte.
    assert finer.time_ns(75, 25) == pytest.approx(28.4375)


def test_a_run_that_measured_only_a_copy_has_its_rate_for_every_mix() -> None:
    memory = device_memory({Ceiling.DEVICE_COPY: 2.0}, None)
    assert memory.time_ns([100, 0, 50], [0, 100, 50]).tolist() == [50, 50, 50]
    assert set(memory.named([100, 0, 50], [0, 100, 50])) == {"device_copy"}


def test_beyond_the_measured_mixes_the_nearest_one_counts() -> None:
    memory = device_memory({Ceiling.DEVICE_COPY: 2.0, Ceiling.DEVICE_READ: 5.0}, None)
    assert (memory.time_ns(0, 100), memory.named(0, 100)) == (50, "device_copy")


def test_without_a_ceiling_there_is_no_time_and_no_name() -> None:
    for memory in (device_memory({}, None), device_memory({Ceiling.DEVICE_COPY: float("nan")}, None), host_memory({})):
        assert np.isnan(memory.time_ns([1, 2], [1, 2])).all()
        assert memory.named([1, 2], [1, 2]).tolist() == ["", ""]


def test_writes_that_stay_in_the_l2_are_not_counted_and_change_the_mix() -> None:
    # 50 bytes may stay: of 100 read and 150 written a copy of 200 bytes is left; of 100 and 40 written only the reads.
    memory = device_memory({**THREE, Ceiling.L2_KEPT: 50e-6}, None)
    assert memory.time_ns([100, 100, 0], [150, 40, 30]).tolist() == pytest.approx([100, 20, 0])
    assert memory.named([100, 100], [150, 40]).tolist() == ["device_copy", "device_read"]
    assert memory.keeping_at_most(0).time_ns(100, 100) == pytest.approx(100)
    assert memory.keeping_at_most(1e9) == memory


def test_where_it_was_not_measured_half_the_l2_may_hold_writes() -> None:
    # 30 of 60 bytes: of 100 and 130, a copy of 200 is left.
    assert device_memory(THREE, 60).time_ns(100, 130) == pytest.approx(100)
    assert device_memory({**THREE, Ceiling.L2_KEPT: 30e-6}, 1000).time_ns(100, 130) == pytest.approx(100)
    for unknown in (None, 0, float("nan")):
        assert device_memory(THREE, unknown).kept_bytes == 0


def test_the_host_has_one_mix_and_keeps_nothing() -> None:
    memory = host_memory({Ceiling.HOST_COPY: 0.5, Ceiling.DEVICE_COPY: 2.0, Ceiling.L2_KEPT: 50e-6})
    assert (memory.time_ns(70, 30), memory.named(70, 30)) == (200, "host_copy")


def test_inputs_are_read_and_outputs_written_and_half_is_where_neither_is_known() -> None:
    cases = pd.DataFrame(
        {"min_bytes": [300, 300, 300, None], "h2d_bytes": [200, 0, None, 1], "d2h_bytes": [100, 0, None, 1]}, dtype=float
    )
    read, written = reads_and_writes(cases)
    assert read.tolist()[:3] == [200, 150, 150] and written.tolist()[:3] == [100, 150, 150]
    assert np.isnan(read[3]) and np.isnan(written[3])
    # An input that is copied but not read in full: the mix is that of the copies, the bytes are those of the case.
    read, written = reads_and_writes({"min_bytes": 100, "h2d_bytes": 300, "d2h_bytes": 100})
    assert (read, written) == (75, 25)


def test_the_mixes_rise_so_that_the_time_can_be_interpolated() -> None:
    assert list(DEVICE_MIXES.values()) == sorted(set(DEVICE_MIXES.values())) and [*HOST_MIXES.values()] == [0.5]
