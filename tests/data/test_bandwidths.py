"""The rate of a mix of reads and writes and its time by size, by hand-counted numbers."""

import numpy as np
import pandas as pd
import pytest

from warpladder.data.limits import DEVICE_MIXES, HOST_MIXES, Curve, device_memory, host_memory, reads_and_writes
from warpladder.data.names import Ceiling, by_size

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
    memory = device_memory(THREE)
    assert memory.time_ns(read, written) == pytest.approx(time_ns)
    assert memory.ceiling_names(read, written) == named


def test_a_further_mix_replaces_the_line_between_its_neighbours() -> None:
    # At 2:1 the line from 0.5 at a half to 0.2 at 1 gives 0.4 ns a byte; measured are 2.5 GB/s, and 0.4 again, then 3.2: 0.3125.
    assert device_memory(THREE).time_ns(200, 100) == pytest.approx(120)
    assert device_memory({**THREE, Ceiling.DEVICE_2_TO_1: 2.5}).time_ns(200, 100) == pytest.approx(120)
    finer = device_memory({**THREE, Ceiling.DEVICE_2_TO_1: 3.2})
    assert (finer.time_ns(200, 100), finer.ceiling_names(200, 100)) == (pytest.approx(93.75), "device_2_to_1")
    # Three quarters are a quarter of the way from 2/3 to 1: 0.3125 - 0.25 * 0.1125 = 0.284375 ns a byte.
    assert finer.time_ns(75, 25) == pytest.approx(28.4375)


def test_a_run_that_measured_only_a_copy_has_its_rate_for_every_mix() -> None:
    memory = device_memory({Ceiling.DEVICE_COPY: 2.0})
    assert memory.time_ns([100, 0, 50], [0, 100, 50]).tolist() == [50, 50, 50]
    assert set(memory.ceiling_names([100, 0, 50], [0, 100, 50])) == {"device_copy"}


def test_beyond_the_measured_mixes_the_nearest_one_counts() -> None:
    memory = device_memory({Ceiling.DEVICE_COPY: 2.0, Ceiling.DEVICE_READ: 5.0})
    assert (memory.time_ns(0, 100), memory.ceiling_names(0, 100)) == (50, "device_copy")


def test_without_a_ceiling_there_is_no_time_and_no_name() -> None:
    for memory in (device_memory({}), device_memory({Ceiling.DEVICE_COPY: float("nan")}), host_memory({})):
        assert np.isnan(memory.time_ns([1, 2], [1, 2])).all()
        assert memory.ceiling_names([1, 2], [1, 2]).tolist() == ["", ""]


def by_sizes(mix: str, cache: str, times_ns: dict[int, float]) -> dict[str, float]:
    """Ceilings of a mix by size, in us."""
    return {by_size(mix, cache, nbytes): time_ns / 1000 for nbytes, time_ns in times_ns.items()}


@pytest.mark.parametrize(
    ("nbytes", "time_ns"),
    [
        (100, 30),
        (200, 40),
        # In proportion to the smallest size.
        (50, 15),
        (0, 0),
        # Halfway between 30 and 40, and between 40 and 60: all of them are on lines of 0.1 ns a byte.
        (150, 35),
        (300, 50),
        # 200 bytes beyond the largest size at the rate, 0.5 ns a byte.
        (600, 160),
    ],
)
def test_a_curve_has_its_time_at_a_size_and_between_two(nbytes: float, time_ns: float) -> None:
    assert Curve((100, 200, 400), (30, 40, 60), 0.5).time_ns(nbytes) == pytest.approx(time_ns)


def test_where_a_curve_bends_upward_it_is_no_higher_than_its_continued_neighbours() -> None:
    # 0.1, 0.3 and 0.5 ns a byte. At 300, the line gives 30 + 30; continued from the left it is 30 + 10, from the right 90 - 50.
    curve = Curve((100, 200, 400, 600), (20, 30, 90, 190), 0.5)
    assert curve.time_ns([300, 250, 380]) == pytest.approx([40, 35, 80])
    # 250: 30 + 5 from the left, 90 - 75 from the right. 380: 30 + 18, 90 - 10. In the last interval only the left one: 90 + 30.
    assert curve.time_ns(500) == pytest.approx(120)
    # In the first one only the right one, 30 - 15, but no less than at its beginning.
    assert curve.time_ns(150) == pytest.approx(20)


def test_where_a_curve_bends_downward_it_is_on_the_line() -> None:
    # 0.5, 0.3 and 0.1 ns a byte.
    assert Curve((100, 200, 400, 600), (20, 70, 130, 150), 0.5).time_ns([150, 300, 500]) == pytest.approx([45, 100, 140])


def test_where_a_curve_jumps_the_time_before_the_jump_goes_on() -> None:
    # 0.1, 0.6 and 0.1 ns a byte: somewhere between 200 and 300 bytes.
    assert Curve((100, 200, 300, 400), (20, 30, 90, 100), 0.5).time_ns([250, 299, 300]) == pytest.approx([35, 39.9, 90])


def test_fewer_bytes_take_no_longer_than_more() -> None:
    assert Curve((100, 200, 400), (50, 40, 60), 0.1).time_ns([100, 150, 50]) == pytest.approx([40, 40, 20])


def test_by_size_each_mix_has_its_curve_and_a_mix_between_is_on_the_line_between_them() -> None:
    ceilings = {Ceiling.DEVICE_COPY: 2.0, Ceiling.DEVICE_READ: 5.0}
    ceilings |= by_sizes(Ceiling.DEVICE_COPY, "cold", {100: 40, 200: 60}) | by_sizes(
        Ceiling.DEVICE_COPY, "hot", {100: 20, 200: 30}
    )
    ceilings |= by_sizes(Ceiling.DEVICE_READ, "cold", {80: 30, 200: 42}) | by_sizes(
        Ceiling.DEVICE_READ, "hot", {100: 10, 200: 18}
    )
    cold, hot = device_memory(ceilings, "cold"), device_memory(ceilings, "hot")
    assert (cold.time_ns(50, 50), cold.time_ns(100, 0), cold.time_ns(75, 75)) == tuple(map(pytest.approx, (40, 32, 50)))
    # Three quarters read: halfway between 40 and 32, and between 20 and 10.
    assert (cold.time_ns(75, 25), hot.time_ns(75, 25)) == (pytest.approx(36), pytest.approx(15))
    # Fewer reads than in each measured mix: the nearest one. 300 bytes copied: 60, and 100 at 2 bytes a nanosecond.
    assert hot.time_ns([0, 150, np.nan], [100, 150, 1]) == pytest.approx([20, 80, np.nan], nan_ok=True)
    assert cold.ceiling_names([50, 75], [50, 25]).tolist() == [
        "device_copy by size (cold)",
        "device_copy and device_read by size (cold)",
    ]
    # Without a cache, the rates.
    rates = device_memory(ceilings)
    assert (rates.time_ns(50, 50), rates.ceiling_names(50, 50), rates.curves) == (50, "device_copy", ())


def test_passes_after_the_first_find_a_hot_cache() -> None:
    ceilings = {Ceiling.DEVICE_COPY: 2.0} | by_sizes(Ceiling.DEVICE_COPY, "cold", {100: 40, 200: 60})
    ceilings |= by_sizes(Ceiling.DEVICE_COPY, "hot", {100: 20, 200: 30})
    cold, hot = device_memory(ceilings, "cold"), device_memory(ceilings, "hot")
    # 1, 2 and 4 passes over 200, 100 and 100 bytes.
    assert cold.time_ns([100, 100, 200], [100, 100, 200], [1, 2, 4]) == pytest.approx([60, 40 + 20, 40 + 3 * 20])
    assert hot.time_ns(100, 100, 2) == pytest.approx(40)
    assert device_memory(ceilings).time_ns(100, 100, 2) == pytest.approx(100), "a rate does not tell what a cache saves"


def test_without_times_by_size_for_each_mix_the_rates_count() -> None:
    some = THREE | by_sizes(Ceiling.DEVICE_COPY, "cold", {100: 40}) | by_sizes(Ceiling.DEVICE_READ, "cold", {100: 40})
    for memory in (device_memory(some, "cold"), device_memory(THREE, "cold"), device_memory({}, "cold")):
        assert (memory.curves, memory.cache) == ((), "")


def test_the_host_has_one_mix() -> None:
    memory = host_memory({Ceiling.HOST_COPY: 0.5, Ceiling.DEVICE_COPY: 2.0})
    assert (memory.time_ns(70, 30), memory.ceiling_names(70, 30)) == (200, "host_copy")


def test_the_host_s_times_by_size_are_those_of_warm_caches() -> None:
    memory = host_memory({Ceiling.HOST_COPY: 0.5} | by_sizes(Ceiling.HOST_COPY, "hot", {100: 40, 200: 400}))
    assert (memory.time_ns(50, 50), memory.time_ns(100, 100), memory.time_ns(300, 100)) == (40, 400, 800)
    assert memory.ceiling_names(50, 50) == "host_copy by size (hot)"


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


def test_fewer_bytes_than_the_smallest_size_take_the_time_of_an_empty_kernel_and_more() -> None:
    curve = Curve((100, 200), (30, 40), 0.5, empty_ns=10)
    assert curve.time_ns([0, 50, 100]) == pytest.approx([10, 20, 30])
    # An empty kernel that was measured to take more than the smallest size bounds nothing.
    assert Curve((100, 200), (30, 40), 0.5, empty_ns=99).time_ns([0, 50]) == pytest.approx([30, 30])


@pytest.mark.parametrize(("name", "empty_ns"), [(Ceiling.DEVICE_COPY, 500), (Ceiling.HOST_COPY, 0)])
def test_times_by_size_of_a_gpu_begin_at_its_empty_kernel(name: str, empty_ns: float) -> None:
    ceilings = {name: 2.0, by_size(name, "hot", 100): 1.0, Ceiling.GRAPH_NODE: 0.5}
    memory = device_memory(ceilings, "hot") if name == Ceiling.DEVICE_COPY else host_memory(ceilings)
    assert memory.time_ns([0], [0]) == pytest.approx([empty_ns])
